//! Ordered keys in PostgreSQL, MySQL, MariaDB and SQLite through [SQLx](sqlx).
//!
//! ```text
//! $ cargo add ordid
//! $ cargo add ordid-sqlx --features sqlite     # or postgres, mysql
//! $ cargo add sqlx --features runtime-tokio,sqlite
//! ```
//!
#![doc = ordid_sql::documentation!(tasks)]
//! | use another column in one place | [`Stored`] |
//! | lease a node, reserve numbers | [`SqlLease`], [`SqlCounter`] |
//! | get integers for UUIDs | [`MappingTable`] |
//! | follow a table | [`Follower`] |
//!
//! The [guide](https://github.com/ordid/ordid/blob/main/docs/src/README.md) has a chapter for each task.
//!
//! | key type's `sqlx(...)` | raw key | column type | stored as | order kept |
//! |---|---|---|---|---|
#![doc = ordid_sql::documentation!(columns_postgres)]
#![doc = ordid_sql::documentation!(columns_mysql)]
#![doc = ordid_sql::documentation!(columns_sqlite)]
//!
//! A bare `sqlx` means `postgres = uuid, mysql = binary16, sqlite = blob`, which is also how SQLx
//! stores `uuid::Uuid` itself. For `i64` it means `bigint, bigint, integer`, and for `u64` only
//! `mysql = bigint_unsigned`, since no other engine has an unsigned integer. `ObjectId` and `Key192` are
//! stored as bytes, and a `PushId` as `char20`. Under another collation text loses its order, or two keys
//! compare as equal: declare the columns with the types above.
//!
//! A scheme that does not keep its order in a column does not compile. Where order does not matter,
//! `mysql = unordered(binary16)` says so.
//!
//! # Example: a graph of rows in one transaction
//!
#![cfg_attr(feature = "sqlite", doc = "```")]
#![cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use ordid::{KeyType, OrderedKey, uuid::Uuid};
//! use ordid_sqlx::UnitOfWork;
//!
//! #[derive(KeyType)]
//! #[ordid(scheme = uuid_v7, sqlx)]
//! struct CustomerId(Uuid);
//!
//! #[derive(KeyType)]
//! #[ordid(scheme = uuid_v7, prefix = "ord", sqlx)]
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
//! let pool = sqlx::SqlitePool::connect("sqlite::memory:").await?;
//! sqlx::raw_sql(
//!     "CREATE TABLE customers (id BLOB NOT NULL PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID;
//!      CREATE TABLE orders (id BLOB NOT NULL PRIMARY KEY,
//!         customer BLOB NOT NULL REFERENCES customers (id), total INTEGER NOT NULL) WITHOUT ROWID",
//! )
//! .execute(&pool)
//! .await?;
//!
//! let mut work = UnitOfWork::new();
//! let customer = work.add(Customer { id: CustomerId::generate(), name: "Ada".into() });
//! for total in [1250, 990] {
//!     work.add(Order { id: OrderId::generate(), customer, total });
//! }
//! let flushed = work.flush(&pool).await?;
//! assert_eq!(flushed.rows(), 3);
//!
//! let totals: Vec<i64> =
//!     sqlx::query_scalar("SELECT total FROM orders WHERE customer = ? ORDER BY id")
//!         .bind(customer)
//!         .fetch_all(&pool)
//!         .await?;
//! assert_eq!(totals, [1250, 990]);
//! # Ok(())
//! # }
//! ```
//!
//! On PostgreSQL, tables with many rows go by `COPY` where it does what an `INSERT` would:
//! [`UnitOfWork::flush`] says when.
//!
//! # Columns that the database fills
//!
//! A field under `#[ordid(returning)]` is an [`Assigned<T>`](ordid_core::Assigned). SQLx must be able to decode a `T`
//! from the column. A flush does not write the column, and fills the field after its COMMIT. `sqlx::FromRow` reads the
//! field with the attribute `#[sqlx(try_from = "T")]`.
//!
//! # Leased nodes and reserved numbers
//!
//! [`SqlLease`] leases nodes from a table, [`SqlDisposableNode`] gives each start one of its own, and
//! [`SqlCounter`], `PgSequence` and `Tickets64` reserve blocks of numbers: see
//! [`ordid_core::coordination`] for what they promise.
//!
//! # Following a table, and partitions by time
//!
//! [`Follower`] reads the rows that were inserted since the last call. On PostgreSQL it delivers each of them exactly
//! once. On the other databases it misses rows that are committed later than a bound that you give. `partitions`
//! creates the partitions of a table of PostgreSQL by the time in its keys.
//!
//! # Behind PgBouncer
//!
//! SQLx prepares statements by name. PgBouncer in its mode `transaction` gives each transaction another session, which does
//! not know the names. Give
//! [`EngineProfile::PGBOUNCER`] to `with_engine` of units of work, leases, counters, sequences, followers and mapping
//! tables. Then each statement is in a transaction and none is prepared by name. `statement_cache_capacity(0)` is no
//! substitute, since SQLx still gives names. It also asks by named statements for types that PostgreSQL does not have
//! itself, such as an `ENUM` of yours, when it first meets one over a connection.
//!
#![doc = ordid_sql::documentation!(watching)]
//!
//! # In `query!` and `query_as!`
//!
//! The macros do not see newtypes: name the type on both sides,
//! `query_as!(Order, r#"SELECT id AS "id: OrderId" FROM orders WHERE id = $1"#, id as OrderId)`.
//!
//! # Minimum supported Rust version
//!
//! 1.94, as SQLx 0.9.

mod backend;
mod classify;
mod connection;
mod engine_macros;
mod flushes_table;
mod follower;
#[cfg(feature = "postgres")]
pub mod instagram;
mod leases;
mod mapping;
#[cfg(feature = "mysql")]
mod mysql;
mod over;
#[cfg(feature = "postgres")]
pub mod partitions;
#[cfg(feature = "postgres")]
mod postgres;
mod sharded;
#[cfg(feature = "sqlite")]
mod sqlite;
mod stored;
mod two_phase;
mod unit_of_work;

pub use backend::{Backend, Binder, Entity};
pub use classify::failure_of;
pub use flushes_table::{create_flushes_table, flushes_table, remove_old_markers};
pub use follower::{FollowError, Follower};
#[cfg(feature = "postgres")]
pub use leases::PgSequence;
#[cfg(feature = "mysql")]
pub use leases::Tickets64;
pub use leases::{ConnectOptions, SqlCounter, SqlDisposableNode, SqlLease, Sqlx};
pub use mapping::{MappingError, MappingTable};
pub use ordid_core::storage::column;
#[cfg(feature = "journal")]
pub use ordid_sql::JournalRow;
#[doc(inline)]
pub use ordid_sql::for_applications::*;
#[cfg(feature = "mysql")]
pub use ordid_sql::leases::{TicketChoice, TicketForm};
pub use ordid_sql::mapping::Mapping;
pub use ordid_sql::{Failure, OrphanDecision, PreparedOrphan, Recovered};
pub use over::Over;
pub use sharded::ShardedUnitOfWork;
pub use stored::{SqlxColumn, Stored, StoredAs};
pub use two_phase::{prepared_orphans, recover_prepared};
#[cfg(feature = "journal")]
pub use unit_of_work::Journaled;
pub use unit_of_work::{UnitOfWork, detect_engine};

/// Why a unit of work was not flushed; its [`driver`](FlushError::driver) is SQLx's error.
pub type Error = FlushError<sqlx::Error>;

#[doc(hidden)]
pub use crate::__engine as engine;

/// The columns that `#[ordid(sqlx(engine = column))]` names, with a module for each engine.
///
/// `#[derive(KeyType)]` gives them to the macro of this name, which checks the order and implements the library's
/// traits for the key type. Without the engine's feature it only checks the order.
pub mod engine {
    pub use ordid_core::storage::column::names::{mysql, postgres, sqlite};
}

#[doc(hidden)]
pub mod __private {
    ordid_core::__private::engines_by_feature! {}

    pub use ordid_core::__private::{NamedColumn, native_columns, unknown_engine};
    pub use sqlx;

    #[cfg(feature = "postgres")]
    pub use crate::postgres::{array_compatible, array_type_info};
    pub use crate::stored::{StoredAs, compatible, decode, encode, type_info};
    pub use std::{primitive::bool, result::Result};
}
