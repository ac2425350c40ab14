//! Ordered keys in SQLite through [rusqlite].
//!
//! ```text
//! $ cargo add ordid
//! $ cargo add ordid-rusqlite --features bundled
//! $ cargo add rusqlite@0.39
//! ```
//!
#![doc = ordid_sql::documentation!(tasks)]
//! | use another column in one place | [`Stored`] |
//!
//! The [guide](https://github.com/ordid/ordid/blob/main/docs/src/README.md) has a chapter for each task.
//!
//! | key type's `rusqlite(...)` | raw key | column type | stored as | order kept |
//! |---|---|---|---|---|
#![doc = ordid_sql::documentation!(columns_sqlite)]
//!
//! A bare `rusqlite` means `sqlite = blob`, which is also how rusqlite stores `uuid::Uuid` itself; for `i64` it is
//! `integer`, and for `PushId` `char20`. SQLite has no unsigned integer, so a `u64` has no column. Under another
//! collation than `BINARY`, text loses its order, or two keys compare as equal.
//!
//! A scheme that does not keep its order in a column does not compile. Where order does not matter,
//! `sqlite = unordered(blob)` says so. SQLite keeps what it is given, whatever the column's type, and orders integers before
//! texts, and texts before blobs. So a value of another storage class than the column's is not read as a key: the error
//! names both.
//!
//! # Example: a graph of rows in one transaction
//!
//! ```
//! use ordid::{KeyType, OrderedKey, uuid::Uuid};
//! use ordid_rusqlite::UnitOfWork;
//! use rusqlite::Connection;
//!
//! #[derive(KeyType)]
//! #[ordid(scheme = uuid_v7, rusqlite)]
//! struct CustomerId(Uuid);
//!
//! #[derive(KeyType)]
//! #[ordid(scheme = uuid_v7, prefix = "ord", rusqlite)]
//! struct OrderId(Uuid);
//!
//! #[derive(OrderedKey)]
//! #[ordid(table = "customers")]
//! struct Customer { #[ordid(key)] id: CustomerId, name: String }
//!
//! #[derive(OrderedKey)]
//! #[ordid(table = "orders")]
//! struct Order { #[ordid(key)] id: OrderId, #[ordid(parent)] customer: CustomerId, total: i64 }
//!
//! let mut connection = Connection::open_in_memory()?;
//! connection.execute_batch(
//!     "CREATE TABLE customers (id BLOB NOT NULL PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID;
//!      CREATE TABLE orders (id BLOB NOT NULL PRIMARY KEY,
//!         customer BLOB NOT NULL REFERENCES customers (id), total INTEGER NOT NULL) WITHOUT ROWID",
//! )?;
//!
//! let mut work = UnitOfWork::new();
//! let customer = work.add(Customer { id: CustomerId::generate(), name: "Ada".into() });
//! for total in [1250, 990] {
//!     work.add(Order { id: OrderId::generate(), customer, total });
//! }
//! let flushed = work.flush(&mut connection)?;
//! assert_eq!(flushed.rows(), 3);
//!
//! let mut query = connection.prepare("SELECT total FROM orders WHERE customer = ? ORDER BY id")?;
//! let totals = query.query_map([customer], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
//! assert_eq!(totals, [1250, 990]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Connections and pools
//!
//! [`UnitOfWork::flush`] takes a connection, and [`UnitOfWork::flush_in`] a transaction or a savepoint of rusqlite.
//! [`UnitOfWork::flush_with`] takes what lends connections, such as `|| pool.get()` of a pool of r2d2. The first of them
//! also shows how async code flushes.
//!
//! A statement has up to fifty rows. Those that a flush sends several times, and short ones, stay prepared
//! (`prepare_cached`). rusqlite keeps 16 of them for a connection, yours among them, unless
//! `set_prepared_statement_cache_capacity` says otherwise.
//!
//! # Columns that the database fills
//!
//! A field under `#[ordid(returning)]` is an [`Assigned<T>`](ordid_core::Assigned), of a `T` that rusqlite reads (`FromSql`).
//! A flush does not write the column, and fills the field after its COMMIT.
//!
//! # What cannot be bound
//!
//! A field's `ToSql` returns a value, which is kept until its statement is complete. `ZeroBlob` and the pointers of
//! `rarray` cannot be kept as values, so a flush with such a field fails before it sends the row.
//! A field of the type `u64` or `usize` does not compile, unless rusqlite has its feature `fallible_uint`.
//!
#![doc = ordid_sql::documentation!(watching)]
//!
//! # Minimum supported Rust version
//!
//! 1.89, as `ordid-core`.

#![forbid(unsafe_code)]

mod binder;
mod classify;
mod connection;
mod engine_macros;
mod flushes_table;
mod follower;
mod sharded;
mod stored;
mod unit_of_work;

pub use binder::{Binder, Entity};
pub use flushes_table::{create_flushes_table, flushes_table, remove_old_markers};
pub use follower::{FollowError, Follower, Over, Rusqlite};
pub use ordid_core::storage::column;
#[cfg(feature = "journal")]
pub use ordid_sql::JournalRow;
#[doc(inline)]
pub use ordid_sql::for_applications::*;
pub use sharded::ShardedUnitOfWork;
pub use stored::{RusqliteColumn, Stored, StoredAs};
#[cfg(feature = "journal")]
pub use unit_of_work::Journaled;
pub use unit_of_work::UnitOfWork;

/// Why a unit of work was not flushed; its [`driver`](FlushError::driver) is rusqlite's error.
pub type Error = FlushError<rusqlite::Error>;

#[doc(hidden)]
pub use crate::__engine as engine;

/// The columns that `#[ordid(rusqlite(sqlite = column))]` names.
///
/// `#[derive(KeyType)]` gives them to the macro of this name, which checks the order and implements the library's
/// traits for the key type.
pub mod engine {
    pub use ordid_core::storage::column::names::sqlite;
}

#[doc(hidden)]
pub mod __private {
    pub use crate::stored::StoredAs;
    pub use ordid_core::__private::{NamedColumn, engine_otherwise, keeps_order};
    pub use rusqlite::{
        Result, ToSql,
        types::{FromSql, FromSqlResult, ToSqlOutput, ValueRef},
    };
}
