//! Ordered keys in MySQL and MariaDB through [mysql_async].
//!
//! ```text
//! $ cargo add ordid ordid-mysql-async mysql_async
//! ```
//!
#![doc = ordid_sql::documentation!(tasks)]
//! | use another column in one place | [`Stored`] |
//!
//! The [guide](https://github.com/ordid/ordid/blob/main/docs/src/README.md) has a chapter for each task.
//!
//! | key type's `mysql_async(...)` | raw key | column type | stored as | order kept |
//! |---|---|---|---|---|
#![doc = ordid_sql::documentation!(columns_mysql)]
//!
//! A bare `mysql_async` is the raw key's own column: `BINARY(16)` for a UUID, which is how mysql_async stores `uuid::Uuid`
//! itself, `BIGINT` for an `i64`. Text under another collation loses its order, or takes two keys for one.
//!
//! A scheme that does not keep its order in a column does not compile. Where order does not matter,
//! `mysql = unordered(char36)` says so.
//!
//! # Example: a graph of rows in one transaction
//!
//! ```no_run
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use mysql_async::prelude::*;
//! use ordid::{KeyType, OrderedKey, uuid::Uuid};
//! use ordid_mysql_async::UnitOfWork;
//!
//! #[derive(KeyType)]
//! #[ordid(scheme = uuid_v7, mysql_async)]
//! struct CustomerId(Uuid);
//!
//! #[derive(KeyType)]
//! #[ordid(scheme = uuid_v7, prefix = "ord", mysql_async(mysql = binary16))]
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
//! let pool = mysql_async::Pool::from_url(std::env::var("DATABASE_URL")?)?;
//! let mut work = UnitOfWork::new();
//! let customer = work.add(Customer { id: CustomerId::generate(), name: "Ada".into() });
//! for total in [1250, 990] {
//!     work.add(Order { id: OrderId::generate(), customer, total });
//! }
//! let flushed = work.flush(&pool).await?;
//! assert_eq!(flushed.rows(), 3);
//!
//! let mut conn = pool.get_conn().await?;
//! let sql = "SELECT id, total FROM orders WHERE customer = ? ORDER BY id";
//! let rows: Vec<(OrderId, i64)> = conn.exec(sql, (customer,)).await?;
//! assert_eq!(rows.iter().map(|(_, total)| *total).collect::<Vec<_>>(), [1250, 990]);
//! # Ok(())
//! # }
//! ```
//!
//! # Fields
//!
//! A field of an entity is of any type that implements mysql_async's [`ToValue`](mysql_async::prelude::ToValue), as do those
//! of chrono, time, and `rust_decimal` with its features.
//!
//! # Keys that cannot be read
//!
//! mysql_async's functions such as `query` and `exec` panic if a value is not of the type that is read. The text then names
//! the value and the column to declare, if that is a key. Functions that end in `_opt` return the value instead:
//! [`ReadKey::read_key`] says what is wrong with it.
//!
//! # Columns that the database fills
//!
//! A field under `#[ordid(returning)]` is an [`Assigned<T>`](ordid_core::Assigned), of a `T` that implements
//! [`FromValue`](mysql_async::prelude::FromValue). A flush does not write the column, and fills the field after its COMMIT.
//!
//! # Statements
//!
//! A statement with parameters is prepared. Statements that a flush sends several times, and short ones, stay prepared
//! on the connection, as many as mysql_async keeps (`stmt_cache_size`). A pool resets a connection when it is given
//! back, and the prepared statements are lost. With its option `reset_connection` off, a flush saves one round trip for
//! the reset and one for each statement. A flush leaves nothing behind on a connection that would have to be reset.
//!
//! The first flush of a process also prepares `DO ?` on its connection and closes it again, by one round trip more. The
//! statement is never executed: mysql_async can close a connection from a destructor only by refusing wrong parameters of a
//! statement. If that first flush finds its connection lost before it could prepare the statement, it reports the loss but
//! does not close the connection. Then call `Conn::disconnect`, because a pool would lend it again.
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
mod follower;
mod stored;
mod unit_of_work;

pub use binder::{Binder, Entity};
pub use follower::{FollowError, Follower, MysqlAsync, Over};
pub use ordid_core::storage::column;
#[cfg(feature = "journal")]
pub use ordid_sql::JournalRow;
#[doc(inline)]
pub use ordid_sql::for_applications::*;
pub use ordid_sql::{OrphanDecision, PreparedOrphan, Recovered};
pub use stored::{MysqlColumn, ReadKey, Stored, StoredAs};
#[cfg(feature = "journal")]
pub use unit_of_work::Journaled;
pub use unit_of_work::{
    ShardedUnitOfWork, UnitOfWork, create_flushes_table, detect_engine, flushes_table,
    prepared_orphans, recover_prepared, remove_old_markers,
};

/// Why a unit of work was not flushed; its [`driver`](FlushError::driver) is mysql_async's error.
pub type Error = FlushError<mysql_async::Error>;

#[doc(hidden)]
pub use crate::__engine as engine;

/// The columns that `#[ordid(mysql_async(mysql = column))]` names.
///
/// `#[derive(KeyType)]` gives them to the macro of this name, which checks the order and implements the library's
/// traits for the key type.
pub mod engine {
    pub use ordid_core::storage::column::names::mysql;
}

#[doc(hidden)]
pub mod __private {
    pub use crate::stored::{Parsed, StoredAs};
    pub use mysql_async::{Value, prelude::FromValue};
    pub use ordid_core::__private::{NamedColumn, engine_otherwise, keeps_order};
    pub use std::convert::From;
}
