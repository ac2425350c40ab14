//! Ordered keys in PostgreSQL, MySQL, MariaDB and SQLite through [SQLx](sqlx).
//!
//! | key type's `sqlx(...)` | column type | stored as | order kept |
//! |---|---|---|---|
//! | `postgres = uuid` | `uuid` | 16 bytes | yes |
//! | `postgres = text` | `text COLLATE "C"` | 36 characters | yes |
//! | `postgres = char22` | `text COLLATE "C"` | 22 characters | yes |
//! | `mysql = binary16` | `BINARY(16)` | 16 bytes | yes |
//! | `mysql = char36` | `CHAR(36) CHARACTER SET ascii COLLATE ascii_bin` | 36 characters | yes |
//! | `mysql = char22` | `CHAR(22) CHARACTER SET ascii COLLATE ascii_bin` | 22 characters | yes |
//! | `mysql = mariadb_uuid` | MariaDB's `UUID` | 16 bytes | yes, for version 7 |
//! | `sqlite = blob` | `BLOB` | 16 bytes | yes |
//! | `sqlite = text` | `TEXT` | 36 characters | yes |
//! | `sqlite = char22` | `TEXT` | 22 characters | yes |
//!
//! A bare `sqlx` means `postgres = uuid, mysql = binary16, sqlite = blob`, which is also how SQLx
//! stores `uuid::Uuid` itself. Text under another collation loses its order, or takes two keys for
//! one: declare the columns with the types above.
//!
//! # Example: a graph of rows in one transaction
//!
#![cfg_attr(feature = "sqlite", doc = "```")]
#![cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use ordid::{KeyType, OrderedKey};
//! use ordid_sqlx::UnitOfWork;
//! use uuid::Uuid;
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
//! # In `query!` and `query_as!`
//!
//! The macros do not see newtypes: name the type on both sides,
//! `query_as!(Order, r#"SELECT id AS "id: OrderId" FROM orders WHERE id = $1"#, id as OrderId)`.
//!
//! # Minimum supported Rust version
//!
//! 1.94, as SQLx 0.9.

mod backend;
mod bulk;
mod engine_macros;
mod error;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
mod stored;
mod unit_of_work;

pub use backend::{Backend, Binder, Entity};
pub use error::Error;
pub use ordid_core::storage::column;
pub use stored::{SqlxColumn, Stored, StoredAs};
pub use unit_of_work::{Flushed, FlushedTable, Progress, UnitOfWork};

/// The macros that `#[derive(KeyType)]` calls for each `engine = column` pair of
/// `#[ordid(sqlx(...))]`.
///
/// They take the key type, its scheme, and the column's name, and implement SQLx's traits for the
/// key type. Without the engine's feature they only check the order.
pub mod engine {
    pub use crate::{
        __engine_all as all, __engine_mysql as mysql, __engine_postgres as postgres,
        __engine_sqlite as sqlite,
    };
}

#[doc(hidden)]
pub mod __private {
    pub use ordid_core::storage::{assert_keeps_order, column, dialect};
    pub use sqlx;

    #[cfg(feature = "postgres")]
    pub use crate::postgres::{array_compatible, array_type_info};
    pub use crate::stored::{StoredAs, compatible, decode, encode, type_info};
    pub use std::{primitive::bool, result::Result};
}
