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
//! | `postgres = uuid` | 128 bits | `uuid` | 16 bytes | as bytes |
//! | `postgres = bytea` | all but integers | `bytea` | the key's bytes | as bytes |
//! | `postgres = text` | all but integers | `text COLLATE "C"` | the key's own text | as bytes |
//! | `postgres = char22`, `char26` | 128 bits | `text COLLATE "C"` | ordered text, a ULID | as bytes |
//! | `postgres = char20`, `char32` | `PushId`, `Key192` | `text COLLATE "C"` | the key's own text | as bytes |
//! | `postgres = bigint` | `i64` | `bigint` | a number | as numbers |
//! | `mysql = binary16`, `binary12`, `binary24` | 128 bits, `ObjectId`, `Key192` | `BINARY(n)` | the key's bytes | as bytes |
//! | `mysql = binary16_swapped` | 128 bits | `BINARY(16)` | `UUID_TO_BIN(x, 1)` | of version 1 |
//! | `mysql = binary16_dotnet` | 128 bits | `BINARY(16)` | `Guid.ToByteArray` | of schemes for it |
//! | `mysql = char36`, `char22`, `char26` | 128 bits | `CHAR(n)`, ascii_bin | hyphenated, ordered text, a ULID | as bytes |
//! | `mysql = char20`, `char32` | `PushId`, `Key192` | `CHAR(n)`, ascii_bin | the key's own text | as bytes |
//! | `mysql = bigint` | `i64` | `BIGINT` | a number | as numbers |
//! | `mysql = bigint_unsigned` | `u64` | `BIGINT UNSIGNED` | a number | as numbers |
//! | `mysql = mariadb_uuid` | 128 bits | MariaDB's `UUID` | bound as text | of versions 6 and 7, and of COMBs |
//! | `sqlite = blob` | all but integers | `BLOB` | the key's bytes | as bytes |
//! | `sqlite = text` | all but integers | `TEXT` | the key's own text | as bytes |
//! | `sqlite = char22`, `char26` | 128 bits | `TEXT` | ordered text, a ULID | as bytes |
//! | `sqlite = char20`, `char32` | `PushId`, `Key192` | `TEXT` | the key's own text | as bytes |
//! | `sqlite = integer` | `i64` | `INTEGER` | a number, the rowid | as numbers |
//!
//! A bare `sqlx` means `postgres = uuid, mysql = binary16, sqlite = blob`, which is also how SQLx
//! stores `uuid::Uuid` itself; for `i64` it is `bigint, bigint, integer`, for `u64`
//! `mysql = bigint_unsigned` alone, since no other engine has an integer without a sign; for
//! `ObjectId` and `Key192` the bytes, for `PushId` `char20`. Text under another collation loses its
//! order, or takes two keys for one: declare the columns with the types above.
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
//! # Nodes and numbers that nobody else has
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
//! SQLx prepares statements by name, which PgBouncer in its mode `transaction` does not follow. Give
//! [`EngineProfile::PGBOUNCER`] to `with_engine` of units of work, leases, counters, sequences, followers and mapping
//! tables. Then each statement is in a transaction and none is prepared by name. `statement_cache_capacity(0)` is no
//! substitute, since SQLx still gives names. It also asks by named statements for types that PostgreSQL does not have
//! itself, such as an `ENUM` of yours, when it first meets one over a connection.
//!
//! # Watching flushes
//!
//! With the feature `tracing`, a flush is a span `ordid.flush` of the target `ordid`, at INFO, with its
//! `tables`, `rows` and `retries`, and says at WARN why it is tried again. With `metrics`, the
//! histogram `ordid_flush_rows` has the rows of each committed flush, and the counter
//! `ordid_flush_retries_total` the retries by their `cause`, `transient` or `lost`. Keys and values are
//! in neither.
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
pub use ordid_sql::follower::{Batch, Position};
#[cfg(feature = "mysql")]
pub use ordid_sql::leases::{TicketChoice, TicketForm};
pub use ordid_sql::mapping::Mapping;
pub use ordid_sql::{
    Action, ChunkLimits, EngineProfile, Failure, FlushError, FlushPlan, Flushed, FlushedTable,
    NotBulk, OnConflict, OrphanDecision, PlannedStatement, PlannedTable, PreparedOrphan, Progress,
    Recovered, Retry, ServerFact, Sharding, UpsertStep, Upserted,
};
pub use over::Over;
pub use sharded::ShardedUnitOfWork;
pub use stored::{SqlxColumn, Stored, StoredAs};
pub use two_phase::{prepared_orphans, recover_prepared};
#[cfg(feature = "journal")]
pub use unit_of_work::Journaled;
pub use unit_of_work::UnitOfWork;

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
