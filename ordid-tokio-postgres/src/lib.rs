//! Ordered keys in PostgreSQL through [tokio-postgres](tokio_postgres).
//!
//! ```text
//! $ cargo add ordid ordid-tokio-postgres tokio-postgres
//! $ cargo add ordid-tokio-postgres --features deadpool     # or bb8: connections of a pool
//! $ cargo add ordid-tokio-postgres --features postgres     # clients of the crate postgres, whose calls block
//! ```
//!
#![doc = ordid_sql::documentation!(tasks)]
//! | use another column in one place | [`Stored`] |
//!
//! The [guide](https://github.com/ordid/ordid/blob/main/docs/src/README.md) has a chapter for each task.
//!
//! | key type's `tokio_postgres(...)` | raw key | column type | stored as | order kept |
//! |---|---|---|---|---|
#![doc = ordid_sql::documentation!(columns_postgres)]
//!
//! A bare `tokio_postgres` means the raw key's own column: `uuid` for a UUID, which is how tokio-postgres stores
//! `uuid::Uuid` itself, `bigint` for an `i64`, `bytea` for an ObjectId or a `Key192`, `char20` for a `PushId`. A `u64`
//! has no column. Under another collation text loses its order, or two keys compare as equal: declare the columns with
//! the types above.
//!
//! A scheme that does not keep its order in a column does not compile. Where order does not matter,
//! `postgres = unordered(bytea)` says so. A key type implements [`ToSql`](tokio_postgres::types::ToSql) and
//! [`FromSql`](tokio_postgres::types::FromSql), which refuse a column of another type; so do an `Option`, and a `Vec`
//! for an array, as in `WHERE id = ANY ($1)`.
//!
//! # Example: a graph of rows in one transaction
//!
//! ```no_run
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use ordid::{KeyType, OrderedKey, uuid::Uuid};
//! use ordid_tokio_postgres::UnitOfWork;
//!
//! #[derive(KeyType)]
//! #[ordid(scheme = uuid_v7, tokio_postgres)]
//! struct CustomerId(Uuid);
//!
//! #[derive(KeyType)]
//! #[ordid(scheme = uuid_v7, prefix = "ord", tokio_postgres(postgres = uuid))]
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
//! let url = std::env::var("DATABASE_URL")?;
//! let (mut client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await?;
//! tokio::spawn(connection);
//!
//! let mut work = UnitOfWork::new();
//! let customer = work.add(Customer { id: CustomerId::generate(), name: "Ada".into() });
//! for total in [1250, 990] {
//!     work.add(Order { id: OrderId::generate(), customer, total });
//! }
//! let flushed = work.flush(&mut client).await?;
//! assert_eq!(flushed.rows(), 3);
//!
//! let sql = "SELECT total FROM orders WHERE customer = $1 ORDER BY id";
//! let rows = client.query(sql, &[&customer]).await?;
//! let totals: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
//! assert_eq!(totals, [1250, 990]);
//! # Ok(())
//! # }
//! ```
//!
//! Tables with many rows go by binary `COPY` where it does what an `INSERT` would: [`UnitOfWork::flush`] says when.
//! [`UnitOfWork::flush_with`] takes clients of a pool or of a function, and goes on over another one if one is lost.
//!
//! # Fields
//!
//! A field of an entity is of any type that implements [`ToSql`](tokio_postgres::types::ToSql) and `Clone`. As everywhere
//! in tokio-postgres, its value must be of its column's own type: an `i32` in a `bigint` column is an error. A flush asks
//! the database for the types of the columns, together with its BEGIN. For a column of a domain, a type that does not know
//! the domain is written as the type beneath it.
//!
//! # Columns that the database fills
//!
//! A field under `#[ordid(returning)]` is an [`Assigned<T>`](ordid_core::Assigned). A flush does not write the column, and
//! fills the field after its COMMIT. `T` implements [`FromSql`](tokio_postgres::types::FromSql).
//!
//! # The crate `postgres`
//!
//! Its clients are those of tokio-postgres, with calls that block, and its traits are the same, so key types are columns
//! there, too. With the feature `postgres`, a unit of work has `flush_blocking`, `flush_with_blocking` and
//! `flush_in_blocking` for them; `BlockingFollower` and `partitions::BlockingPartitions` are a [`Follower`] and
//! [`Partitions`](partitions::Partitions).
//!
//! # Behind PgBouncer
//!
//! A statement whose text is sent again is prepared by name, which PgBouncer in its mode `transaction` may not follow. Give
//! [`EngineProfile::PGBOUNCER`] to `with_engine`: then a flush prepares none. For a type that PostgreSQL does not have
//! itself, such as an `ENUM` of yours, tokio-postgres asks by named statements when it first meets one over a connection.
//!
#![doc = ordid_sql::documentation!(watching)]
//!
//! # Minimum supported Rust version
//!
//! 1.89, as `ordid-core`.

#![forbid(unsafe_code)]

mod binder;
mod calls;
mod classify;
mod connection;
mod copy;
mod engine_macros;
mod follower;
pub mod partitions;
mod stored;
mod types;
mod unit_of_work;

pub use binder::{Binder, Entity};
pub use connection::AsClient;
#[cfg(feature = "postgres")]
pub use follower::{BlockingFollower, BlockingOver, BlockingPostgres};
pub use follower::{FollowError, Follower, Over, TokioPostgres};
pub use ordid_core::storage::column;
#[cfg(feature = "journal")]
pub use ordid_sql::JournalRow;
#[doc(inline)]
pub use ordid_sql::for_applications::*;
pub use ordid_sql::{OrphanDecision, PreparedOrphan, Recovered};
pub use stored::{PgColumn, Stored, StoredAs};
#[cfg(feature = "journal")]
pub use unit_of_work::Journaled;
pub use unit_of_work::{
    ShardedUnitOfWork, UnitOfWork, create_flushes_table, detect_engine, flushes_table,
    prepared_orphans, recover_prepared, remove_old_markers,
};
#[cfg(feature = "postgres")]
pub use unit_of_work::{
    create_flushes_table_blocking, detect_engine_blocking, remove_old_markers_blocking,
};

/// Why a unit of work was not flushed; its [`driver`](FlushError::driver) is tokio-postgres' error.
pub type Error = FlushError<tokio_postgres::Error>;

#[doc(hidden)]
pub use crate::__engine as engine;

/// The columns that `#[ordid(tokio_postgres(postgres = column))]` names, with a module for each engine.
///
/// `#[derive(KeyType)]` gives them to the macro of this name, which checks the order and implements the library's
/// traits for the key type.
pub mod engine {
    pub use ordid_core::storage::column::names::postgres;
}

#[doc(hidden)]
pub mod __private {
    pub use crate::stored::{StoredAs, TypeResult, write_checked};
    pub use bytes::BytesMut;
    pub use ordid_core::__private::{NamedColumn, engine_otherwise, keeps_order};
    pub use std::primitive::{bool, u8};
    pub use tokio_postgres::types::{FromSql, IsNull, ToSql, Type};
}
