//! Columns: how a raw key is stored in each database, and how the database compares it.
//!
//! | column | stored form | PostgreSQL | MySQL | MariaDB | SQLite | compares |
//! |---|---|---|---|---|---|---|
//! | [`Uuid`](column::Uuid) | 16 bytes | `uuid` | | | | bytes |
//! | [`Binary16`](column::Binary16) | 16 bytes | | `BINARY(16)` | `BINARY(16)` | | bytes |
//! | [`Blob`](column::Blob) | 16 bytes | | | | `BLOB` | bytes |
//! | [`Text`](column::Text) | 36 characters | `text COLLATE "C"` | | | `TEXT` | bytes |
//! | [`Char36`](column::Char36) | 36 characters | | `CHAR(36)` ascii_bin | same | | bytes |
//! | [`Char22`](column::Char22) | 22 characters | `text COLLATE "C"` | `CHAR(22)` ascii_bin | same | `TEXT` | bytes |
//! | [`MariaDbUuid`](column::MariaDbUuid) | 16 bytes | | | `UUID` | | by version |
//!
//! A column is a type, named as users write it in `#[ordid(sqlx(postgres = uuid))]`. It knows its
//! encoding ([`Stores`]), its declaration in each dialect ([`ColumnOn`]) and its comparison rule;
//! no column knows a scheme. [`assert_keeps_order`] and [`KeepsOrder`] put the two together.

mod check;
pub mod column;
pub mod dialect;

pub use check::{ComparesBytes, KeepsOrder, assert_keeps_order};
pub use dialect::Dialect;

use crate::{error::Error, key::RawKey, layout::Comparison};

/// A way to store raw keys in a table's column.
pub trait Column: Sized + 'static {
    /// The name that users write: `binary16`.
    const NAME: &'static str;
    /// How the database compares the stored values.
    const COMPARISON: Comparison;
}

/// A column that stores this kind of raw key.
pub trait Stores<R: RawKey>: Column {
    /// The stored form.
    type Stored: AsRef<[u8]> + Copy + Ord + Send + Sync + 'static;

    /// Returns the bytes to store: network order for binary columns, ASCII for text.
    fn encode(raw: R) -> Self::Stored;

    /// Reads what the database returns.
    ///
    /// # Errors
    ///
    /// Another form gives an error that [`is_parse`](Error::is_parse) and names the form found and
    /// the column to declare instead.
    fn decode(stored: &[u8]) -> Result<R, Error>;

    /// Returns bytes whose `memcmp` is the database's order of the stored values.
    fn sort_key(raw: R) -> Self::Stored;
}

/// A column that a dialect has.
#[diagnostic::on_unimplemented(
    message = "{D} has no `{Self}` column for keys",
    label = "not a column of this database",
    note = "PostgreSQL has uuid, text, char22; MySQL binary16, char36, char22; MariaDB also \
            mariadb_uuid; SQLite blob, text, char22"
)]
pub trait ColumnOn<D: Dialect>: Column {
    /// The column's type in a `CREATE TABLE`, with its collation: `CHAR(36) CHARACTER SET ascii
    /// COLLATE ascii_bin`.
    const TYPE: &'static str;
}
