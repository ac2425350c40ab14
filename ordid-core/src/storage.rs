//! Columns: how a raw key is stored in each database, and how the database compares it.
//!
//! | column | stored form | PostgreSQL | MySQL, MariaDB | SQLite | SQL Server | Oracle | compares |
//! |---|---|---|---|---|---|---|---|
//! | [`Uuid`](column::Uuid) | 16 bytes | `uuid` | | | | | bytes |
//! | [`Bytea`](column::Bytea) | bytes | `bytea` | | | | | bytes |
//! | [`Blob`](column::Blob) | bytes | | | `BLOB` | | | bytes |
//! | [`Binary16`](column::Binary16), [`Binary12`](column::Binary12), [`Binary24`](column::Binary24) | bytes | | `BINARY(n)` | | `binary(n)` | | bytes |
//! | [`Raw16`](column::Raw16), [`Raw12`](column::Raw12), [`Raw24`](column::Raw24) | bytes | | | | | `RAW(n)` | bytes |
//! | [`MariaDbUuid`](column::MariaDbUuid) | the value | | MariaDB's `UUID` | | | | by version |
//! | [`Binary16Swapped`](column::Binary16Swapped) | `UUID_TO_BIN(x, 1)` | | `BINARY(16)` | | | | the third group first |
//! | [`Binary16DotNet`](column::Binary16DotNet) | `Guid.ToByteArray` | | `BINARY(16)` | | | | .NET's bytes |
//! | [`Raw16DotNet`](column::Raw16DotNet) | `Guid.ToByteArray` | | | | | `RAW(16)` | .NET's bytes |
//! | [`UniqueIdentifier`](column::UniqueIdentifier) | the value | | | | `uniqueidentifier` | | bytes 10 to 15 first |
//! | [`UniqueIdentifierPermuted`](column::UniqueIdentifierPermuted) | its bytes permuted | | | | `uniqueidentifier` | | the key's bytes |
//! | [`BabelfishUniqueIdentifier`](column::BabelfishUniqueIdentifier) | the value | | | | Babelfish's `uniqueidentifier` | | bytes |
//! | [`Text`](column::Text) | the key's text | `text COLLATE "C"` | | `TEXT` | | | bytes |
//! | [`Char36`](column::Char36) | 36 characters | | `CHAR(36)` ascii_bin | | | | bytes |
//! | [`Char32`](column::Char32), [`Char26`](column::Char26), [`Char22`](column::Char22), [`Char20`](column::Char20) | ordered text | `text COLLATE "C"` | `CHAR(n)` ascii_bin | `TEXT` | | | bytes |
//! | [`BigInt`](column::BigInt) | 64 bits, signed | `bigint` | `BIGINT` | | `bigint` | | numbers |
//! | [`Integer`](column::Integer) | 64 bits, signed | | | `INTEGER` | | | numbers |
//! | [`BigIntUnsigned`](column::BigIntUnsigned) | 64 bits | | `BIGINT UNSIGNED` | | | | numbers |
//! | [`Number19`](column::Number19), [`Number20`](column::Number20) | 64 bits | | | | | `NUMBER(n)` | numbers |
//!
//! A column is a type, named as users write it in `#[ordid(sqlx(postgres = uuid))]`. It knows its encoding
//! ([`Stores`]), its declaration in each dialect ([`ColumnOn`]) and its comparison rule, but no scheme.
//! [`assert_keeps_order`] and [`KeepsOrder`] check a column together with a scheme. [`Unordered`](column::Unordered)
//! says that no order is wanted.
//!
//! # Example: a column's declaration, a value in a script, and a key that rises
//!
//! ```
//! use ordid_core::{
//!     storage::{ColumnOn, Stores, column::UniqueIdentifier, dialect::SqlServer},
//!     uuid::Uuid,
//! };
//!
//! let id: Uuid = "00112233-4455-6677-8899-aabbccddeeff".parse()?;
//! assert_eq!(
//!     <UniqueIdentifier as ColumnOn<SqlServer>>::primary_key("id"),
//!     "[id] uniqueidentifier NOT NULL PRIMARY KEY CLUSTERED"
//! );
//! assert_eq!(
//!     <UniqueIdentifier as ColumnOn<SqlServer>>::literal(id),
//!     "CAST('00112233-4455-6677-8899-aabbccddeeff' AS uniqueidentifier)"
//! );
//! // What SQL Server compares first comes first, and leads back to the value.
//! let key = UniqueIdentifier::sort_key(id);
//! assert_eq!(key[..6], [0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff]);
//! assert_eq!(UniqueIdentifier::from_sort_key(key), Ok(id));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod check;
pub mod column;
pub mod dialect;
mod value;

pub use check::{ComparesBytes, KeepsOrder, assert_keeps_order, assert_named_keeps_order};
pub use dialect::Dialect;
pub use value::{Found, Literal, StoredValue, Written};

use alloc::{format, string::String};
use core::{cmp::Ordering, fmt};

use crate::{error::Error, key::RawKey, layout::Comparison};

/// A column type in which a table can store raw keys.
pub trait Column: Sized + 'static {
    /// The name that users write, such as `binary16`.
    const NAME: &'static str;
    /// How the database compares the stored values.
    const COMPARISON: Comparison;
    /// The comparison rule in words, for messages, such as `compares byte by byte from the first`.
    const COMPARES: &'static str = Self::COMPARISON.describe();
    /// Whether keys need not keep their order in this column: `unordered(binary16)`.
    const UNORDERED: bool = false;
}

/// A column that stores this kind of raw key.
///
/// A signed column does not store unsigned integers, because their upper half would sort below the lower:
///
/// ```compile_fail
/// use ordid_core::storage::{Stores, column::BigInt};
///
/// BigInt::encode(u64::MAX);
/// ```
#[diagnostic::on_unimplemented(
    message = "a `{Self}` column does not store raw keys of type `{R}`",
    label = "cannot hold this key",
    note = "128 bits fit uuid, binary16, blob, raw16, unique_identifier and texts; `i64` bigint, \
            integer (SQLite) and number19 (Oracle); `u64` only bigint_unsigned (MySQL, MariaDB) and \
            number20 (Oracle), since a signed column would sort its upper half below the lower; \
            others bytea, blob, text, and the binary, raw or char column of their length",
    note = "which column to take on each engine: https://github.com/ordid/ordid/blob/main/docs/src/engines.md"
)]
pub trait Stores<R: RawKey>: Column {
    /// The type of the stored value: bytes for binary and text columns, the integer for others.
    type Stored: StoredValue;
    /// The type that [`sort_key`](Self::sort_key) returns.
    type SortKey: AsRef<[u8]> + Copy + Ord + fmt::Debug + Send + Sync + 'static;

    /// Returns the value to store: bytes in network order for binary columns unless they say otherwise, ASCII for
    /// text.
    fn encode(raw: R) -> Self::Stored;

    /// Reads a value that the database returned.
    ///
    /// # Errors
    ///
    /// A value of another form gives an error that [`is_parse`](Error::is_parse). It names the form that was found
    /// and, if the value tells it, the column to declare instead.
    fn decode<'a>(found: impl Into<Found<'a>>) -> Result<R, Error>;

    /// Returns bytes that compare, from the first, as the database compares the stored values.
    fn sort_key(raw: R) -> Self::SortKey;

    /// Compares two raw keys as the database compares the stored values.
    fn compare(left: &R, right: &R) -> Ordering {
        Self::sort_key(*left).cmp(&Self::sort_key(*right))
    }

    /// Returns the raw key that has this [`sort_key`](Self::sort_key). Rising sort keys give keys that rise in the
    /// column.
    ///
    /// # Errors
    ///
    /// Bytes that are no key's, which only text has, give an error that
    /// [`is_parse`](Error::is_parse).
    fn from_sort_key(key: Self::SortKey) -> Result<R, Error>;
}

/// A column type that a database dialect has.
#[diagnostic::on_unimplemented(
    message = "{D} has no `{Self}` column for keys",
    label = "not a column of this database",
    note = "PostgreSQL has uuid, bytea, text, char32, char26, char22, char20, bigint; MySQL binary16, \
            binary12, binary24, binary16_swapped, binary16_dotnet, char36, char32, char26, char22, \
            char20, bigint, bigint_unsigned; MariaDB also mariadb_uuid; SQLite blob, text, char32, \
            char26, char22, char20, integer; SQL Server unique_identifier, \
            unique_identifier_permuted, binary16, binary12, binary24, bigint; Babelfish \
            babelfish_unique_identifier, binary16, bigint; Oracle raw16, raw16_dotnet, raw12, raw24, \
            number19, number20",
    note = "which of them to take: https://github.com/ordid/ordid/blob/main/docs/src/engines.md"
)]
pub trait ColumnOn<D: Dialect>: Column {
    /// The column's type in a `CREATE TABLE`, with its collation, such as
    /// `CHAR(36) CHARACTER SET ascii COLLATE ascii_bin`.
    const TYPE: &'static str;

    /// The source for how the database compares this type: a section of a manual, or a source file.
    const SOURCE: &'static str;

    /// The syntax of a value in SQL.
    const LITERAL: Literal;

    /// Returns the declaration of a primary key: the quoted name, the type, the constraints.
    fn primary_key(name: &str) -> String {
        format!("{} {} {}", D::quote(name), Self::TYPE, D::PRIMARY_KEY)
    }

    /// Returns the stored form of a raw key as SQL text, for scripts: `'...'::uuid`, `X'...'`, `HEXTORAW('...')`. The
    /// database can compare it with the column without converting the column.
    fn literal<R: RawKey>(raw: R) -> String
    where
        Self: Stores<R>,
    {
        Self::LITERAL.of(Self::encode(raw).found())
    }
}
