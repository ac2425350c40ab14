//! Ordered keys in PostgreSQL, MySQL, MariaDB and SQLite through [Diesel](diesel).
//!
//! ```text
//! $ cargo add ordid
//! $ cargo add ordid-diesel --features postgres # or mysql, sqlite
//! $ cargo add diesel --features postgres
//! ```
//!
#![doc = ordid_sql::documentation!(tasks)]
//! | flush over diesel-async | `UnitOfWork::flush_async` (feature `async`) |
//!
//! The [guide](https://github.com/ordid/ordid/blob/main/docs/src/README.md) has a chapter for each task.
//!
//! | key type's `diesel(...)` | raw key | column type | in `table!` | order kept |
//! |---|---|---|---|---|
//! | `postgres = uuid` | 128 bits | `uuid` | `Uuid` | as bytes |
//! | `postgres = bytea` | all but integers | `bytea` | `Binary` | as bytes |
//! | `postgres = text` | all but integers | `text COLLATE "C"` | `Text` | as bytes |
//! | `postgres = char22`, `char26` | 128 bits | `text COLLATE "C"` | `Text` | as bytes |
//! | `postgres = char20`, `char32` | `PushId`, `Key192` | `text COLLATE "C"` | `Text` | as bytes |
//! | `postgres = bigint` | `i64` | `bigint` | `BigInt` | as numbers |
//! | `mysql = binary16`, `binary12`, `binary24` | 128 bits, `ObjectId`, `Key192` | `BINARY(n)` | `Binary` | as bytes |
//! | `mysql = binary16_swapped` | 128 bits | `BINARY(16)` | `Binary` | of version 1 |
//! | `mysql = binary16_dotnet` | 128 bits | `BINARY(16)` | `Binary` | of schemes for it |
//! | `mysql = char36`, `char22`, `char26` | 128 bits | `CHAR(n)`, ascii_bin | `Char`, `Text` | as bytes |
//! | `mysql = char20`, `char32` | `PushId`, `Key192` | `CHAR(n)`, ascii_bin | `Char`, `Text` | as bytes |
//! | `mysql = bigint` | `i64` | `BIGINT` | `BigInt` | as numbers |
//! | `mysql = bigint_unsigned` | `u64` | `BIGINT UNSIGNED` | `Unsigned<BigInt>` | as numbers |
//! | `mysql = mariadb_uuid` | 128 bits | MariaDB's `UUID` | `Char`, `Text` | of versions 6 and 7, and of COMBs |
//! | `sqlite = blob` | all but integers | `BLOB` | `Binary` | as bytes |
//! | `sqlite = text` | all but integers | `TEXT` | `Text` | as bytes |
//! | `sqlite = char22`, `char26` | 128 bits | `TEXT` | `Text` | as bytes |
//! | `sqlite = char20`, `char32` | `PushId`, `Key192` | `TEXT` | `Text` | as bytes |
//! | `sqlite = integer` | `i64` | `INTEGER` | `BigInt` | as numbers |
//!
//! A bare `diesel` means `postgres = uuid, mysql = binary16, sqlite = blob`. For `i64` it means `bigint,
//! bigint, integer`, and for `u64` only `mysql = bigint_unsigned`, since no other engine has an unsigned
//! integer. `ObjectId` and `Key192` are stored as bytes, and a `PushId` as `char20`. Under another collation
//! text loses its order, or two keys compare as equal: declare the columns with the types above, which
//! [`ColumnOn`](ordid_core::storage::ColumnOn) has for your migrations.
//!
//! A scheme that does not keep its order in a column does not compile. Where order does not matter,
//! `mysql = unordered(binary16)` says so.
//!
//! ```compile_fail,E0080
//! // Its keys rise from their end, which no column of PostgreSQL compares first.
//! #[derive(ordid::KeyType)]
//! #[ordid(scheme = comb_nhibernate, diesel(postgres = uuid))]
//! struct OrderId(ordid::uuid::Uuid);
//! ```
//!
//! Key types are values in `Queryable`, `Selectable`, `Insertable`, `Identifiable`, `AsChangeset` and
//! associations, in filters, `eq_any` and `returning`. Each backend accepts one
//! SQL type for a key column. If `table!` declares another one, the query does not compile.
//!
//! A unit of work writes NULL for a field that is `None`. `Insertable` sends DEFAULT for it, and `AsChangeset` leaves the
//! column alone. `#[ordid(returning)]` is for a column that the database fills, and `update_columns` names the columns that
//! an update writes.
//!
//! # Example: a graph of rows in one transaction
//!
#![cfg_attr(feature = "sqlite", doc = "```")]
#![cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
//! # use libsqlite3_sys as _;
//! use diesel::{connection::SimpleConnection, prelude::*};
//! use ordid::{KeyType, OrderedKey, uuid::Uuid};
//! use ordid_diesel::UnitOfWork;
//!
//! #[derive(KeyType)]
//! #[ordid(scheme = uuid_v7, diesel)]
//! struct CustomerId(Uuid);
//!
//! #[derive(KeyType)]
//! #[ordid(scheme = uuid_v7, prefix = "ord", diesel)]
//! struct OrderId(Uuid);
//!
//! diesel::table! {
//!     customers (id) { id -> Binary, name -> Text, }
//! }
//! diesel::table! {
//!     orders (id) { id -> Binary, customer -> Binary, total -> BigInt, }
//! }
//!
//! #[derive(OrderedKey)]
//! #[diesel(table_name = customers)]
//! #[ordid(diesel)]
//! struct Customer { id: CustomerId, name: String }
//!
//! #[derive(OrderedKey, Queryable, Selectable)]
//! #[diesel(table_name = orders)]
//! #[ordid(diesel)]
//! struct Order { id: OrderId, #[ordid(parent)] customer: CustomerId, total: i64 }
//!
//! let mut connection = SqliteConnection::establish(":memory:")?;
//! connection.batch_execute(
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
//! let found: Vec<Order> = orders::table
//!     .filter(orders::customer.eq(customer))
//!     .order(orders::id)
//!     .select(Order::as_select())
//!     .load(&mut connection)?;
//! assert_eq!([found[0].total, found[1].total], [1250, 990]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A stored value of another form is an error whose source says what was found and which column to
//! declare; Diesel's own text before it names the field.
//!
//! # Plain inserts
//!
//! Rows with an `Option` for a key, which is read with `#[diesel(deserialize_as = OrderId)]`, are given
//! one by [`assign`] and [`assign_all`], on their way into `values`. On SQLite, Diesel then sends a
//! statement for each row, since `None` may stand for a column's default; a struct that says
//! `#[diesel(treat_none_as_default_value = false)]` goes by one statement, and its key is no `Option`. A
//! [`UnitOfWork`] sends many rows a statement on every backend, whatever the struct says.
//!
//! # Columns that the database fills
//!
//! A field under `#[ordid(returning)]` is an `ordid::Assigned<T>`. Diesel must be able to read a `T` from the column of
//! `table!`. A flush does not write the column, and fills the field after its COMMIT. `Queryable` reads it by
//! `deserialize_as`:
//!
#![cfg_attr(feature = "sqlite", doc = "```")]
#![cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
//! use diesel::{connection::SimpleConnection, prelude::*};
//! use ordid::{Assigned, KeyType, OrderedKey, uuid::Uuid};
//! use ordid_diesel::UnitOfWork;
//!
//! #[derive(KeyType)]
//! #[ordid(diesel)]
//! struct OrderId(Uuid);
//!
//! diesel::table! {
//!     orders (id) { id -> Binary, total -> BigInt, tax -> BigInt, }
//! }
//!
//! #[derive(OrderedKey, Queryable, Selectable)]
//! #[diesel(table_name = orders)]
//! #[ordid(diesel)]
//! struct Order {
//!     id: OrderId,
//!     total: i64,
//!     #[ordid(returning)]
//!     #[diesel(deserialize_as = i64)]
//!     tax: Assigned<i64>,
//! }
//!
//! let mut connection = SqliteConnection::establish(":memory:")?;
//! connection.batch_execute(
//!     "CREATE TABLE orders (id BLOB PRIMARY KEY, total INTEGER NOT NULL, tax INTEGER AS (total / 5))",
//! )?;
//! let tax = Assigned::new();
//! let mut work = UnitOfWork::new();
//! work.add(Order { id: OrderId::generate(), total: 50, tax: tax.clone() });
//! work.flush(&mut connection)?;
//! assert_eq!(tax.get(), Some(10));
//!
//! let read = orders::table.select(Order::as_select()).first(&mut connection)?;
//! assert_eq!(read.tax.get(), Some(10));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Async
//!
//! With the feature `async`, `UnitOfWork::flush_async` and the other `_async` methods take connections of
//! [diesel-async](https://docs.rs/diesel-async) 0.9, whether from its pools or not. This includes SQLite's
//! connections in `SyncConnectionWrapper`, which otherwise takes no more than one row a statement
//! ([diesel_async #277](https://github.com/diesel-rs/diesel_async/issues/277)).
//!
//! # `COPY`
//!
//! With the feature `copy`, a flush in a transaction of its own over `diesel::PgConnection`, and with `r2d2`
//! over a connection of that pool, inserts tables of 1,000 rows and more by `COPY`, which
//! [`FlushedTable::bulk`] counts. If `COPY` would not do the same as `INSERT`, the flush sends an `INSERT`: for
//! rules, triggers, row-level security, generated columns, a value of another type than its column, and a type
//! that is not a built-in scalar type of PostgreSQL.
//!
//! # Behind PgBouncer
//!
//! In its mode `transaction`, give [`EngineProfile::PGBOUNCER`] to `with_engine` of a [`UnitOfWork`], and call
//! `set_prepared_statement_cache_size(CacheSize::Disabled)` of the connection for statements of your own. diesel-async
//! prepares each statement by name all the same, so it needs a PgBouncer that follows such statements: 1.21 or later, with
//! `max_prepared_statements` above 0. With an older one flushes fail with "prepared statement does not exist".
//!
//! # C clients
//!
//! This crate's database features enable Diesel's backends, but not Diesel's connections. Enable those yourself, by the
//! feature `postgres` or `mysql` of Diesel or of diesel-async. Only the feature `copy` needs libpq.
//!
//! # `diesel print-schema`
//!
//! This command writes the SQL types of the table above, with two exceptions. An `INTEGER` of SQLite becomes
//! `Integer` unless `diesel.toml` says `sqlite_integer_primary_key_is_bigint = true`. Diesel's MySQL backend
//! does not have MariaDB's `UUID`, so the command makes a type of the schema's own, such as `OrdersIdUuid`:
//! replace that type with `Char`, by a `patch_file`.
//!
//! # Minimum supported Rust version
//!
//! 1.94, as the other adapters.

#![forbid(unsafe_code)]

// The path that the derives write, in the tests of this crate.
#[cfg(all(test, feature = "postgres", feature = "mysql", feature = "sqlite"))]
extern crate self as ordid_diesel;

mod assign;
mod backend;
mod connection;
mod engine_macros;
mod entity;
mod failure;
mod flushes_table;
mod follower;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
pub mod partitions;
#[cfg(feature = "postgres")]
mod postgres;
mod returned;
mod sharded;
#[cfg(feature = "sqlite")]
mod sqlite;
mod stored;
mod two_phase;
mod unit_of_work;

pub use assign::{assign, assign_all};
pub use backend::Backend;
pub use entity::{Binder, Columns, Entity};
pub use flushes_table::{create_flushes_table, flushes_table, remove_old_markers};
#[cfg(feature = "async")]
pub use flushes_table::{create_flushes_table_async, remove_old_markers_async};
#[cfg(feature = "async")]
pub use follower::AsyncFollower;
pub use follower::{FollowError, Follower, Over};
pub use ordid_core::storage::column;
#[doc(inline)]
pub use ordid_sql::for_applications::*;
#[cfg(feature = "journal")]
pub use ordid_sql::{Journal, JournalRow};
pub use ordid_sql::{OrphanDecision, PreparedOrphan, Recovered};
pub use sharded::ShardedUnitOfWork;
pub use stored::{DieselColumn, KeySqlType, StoredAs};
pub use two_phase::{prepared_orphans, recover_prepared};
#[cfg(feature = "async")]
pub use two_phase::{prepared_orphans_async, recover_prepared_async};
#[cfg(feature = "journal")]
pub use unit_of_work::Journaled;
#[cfg(feature = "async")]
pub use unit_of_work::detect_engine_async;
pub use unit_of_work::{UnitOfWork, detect_engine};

/// Why a unit of work was not flushed; its [`driver`](FlushError::driver) is Diesel's error.
pub type Error = FlushError<diesel::result::Error>;

#[doc(hidden)]
pub use crate::__engine as engine;

/// The columns that `#[ordid(diesel(engine = column))]` names, with a module for each engine.
///
/// `#[derive(KeyType)]` gives them to the macro of this name, which checks the order and implements the library's
/// traits for the key type. Without the engine's feature it only checks the order.
pub mod engine {
    pub use ordid_core::storage::column::names::{mysql, postgres, sqlite};
}

#[doc(hidden)]
pub use crate::__entity as entity;

#[doc(hidden)]
pub mod __private {
    ordid_core::__private::engines_by_feature! {}

    pub use diesel;
    // What Diesel's own derives write for expressions of a value.
    pub use diesel::internal::derives::as_expression::Bound;
    pub use ordid_core::__private::{AssignedField, NamedColumn, native_columns, unknown_engine};
    pub use std::{default::Default, primitive::str, result::Result};

    pub use crate::{
        entity::{AsKey, AsValue, MakeValues, Takes},
        returned::{ReadAs, ReadValue},
        stored::{SqlTypeOf, StoredAs, from_sql, to_sql},
    };
}
