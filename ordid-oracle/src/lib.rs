//! Ordered keys in Oracle through the [`oracle`] crate.
//!
//! ```text
//! $ cargo add ordid ordid-oracle oracle
//! ```
//!
#![doc = ordid_sql::documentation!(tasks)]
//! | use another column in one place | [`Stored`] |
//! | follow a table | [`Follower`] |
//! | lease a node | [`SqlLease`] |
//!
//! The [guide](https://github.com/ordid/ordid/blob/main/docs/src/README.md) has a chapter for each task.
//!
//! | key type's `oracle(...)` | column type | stored as | order kept |
//! |---|---|---|---|
//! | `oracle = raw16` | `RAW(16)` | 16 bytes in network order | yes |
//! | `oracle = raw16_dotnet` | `RAW(16)` | 16 bytes as .NET's `Guid.ToByteArray` has them | yes, of schemes that rise there |
//! | `oracle = raw12` | `RAW(12)` | an ObjectId's 12 bytes | yes |
//! | `oracle = raw24` | `RAW(24)` | 24 bytes | yes |
//! | `oracle = number19` | `NUMBER(19)` | an `i64` | yes |
//! | `oracle = number20` | `NUMBER(20)` | a `u64` | yes |
//!
//! A bare `oracle` is the raw key's own column: `raw16` for a UUID, `raw12` for an
//! ObjectId, `raw24` for a `Key192`, `number19` for an `i64`, `number20` for a `u64`.
//!
//! Where a scheme's keys would lose their order, the column does not compile; `unordered(raw16)` takes
//! them all the same.
//!
//! Oracle compares `RAW` byte by byte, and its own `UUID_TO_RAW` (23ai) writes network order. Tables
//! that are shared with programs on .NET may hold the other byte order: that is `raw16_dotnet`.
//! Never bind a key as text: Oracle then converts the column instead of the text, and does not use
//! its index.
//!
//! # Example: a graph of rows in one transaction
//!
//! ```no_run
//! use ordid::{KeyType, OrderedKey, uuid::Uuid};
//! use ordid_oracle::UnitOfWork;
//!
//! #[derive(KeyType)]
//! #[ordid(scheme = uuid_v7, oracle)]
//! struct CustomerId(Uuid);
//!
//! #[derive(KeyType)]
//! #[ordid(scheme = uuid_v7, prefix = "ord", oracle(oracle = raw16))]
//! struct OrderId(Uuid);
//!
//! #[derive(OrderedKey)]
//! #[ordid(table = "CUSTOMERS", rename_all = "SCREAMING_SNAKE_CASE")]
//! struct Customer { #[ordid(key)] id: CustomerId, name: String }
//!
//! #[derive(OrderedKey)]
//! #[ordid(table = "ORDERS", rename_all = "SCREAMING_SNAKE_CASE")]
//! struct Order { #[ordid(key)] id: OrderId, #[ordid(parent)] customer: CustomerId, total: i64 }
//!
//! let connection = ordid_oracle::connect("scott", "tiger", "//localhost/FREEPDB1")?;
//! let mut work = UnitOfWork::new();
//! let customer = work.add(Customer { id: CustomerId::generate(), name: "Ada".into() });
//! for total in [1250, 990] {
//!     work.add(Order { id: OrderId::generate(), customer, total });
//! }
//! let flushed = work.flush(&connection)?;
//! assert_eq!(flushed.rows(), 3);
//!
//! let sql = "SELECT total FROM orders WHERE customer = :1 ORDER BY id";
//! let totals = connection.query_as::<i64>(sql, &[&customer])?.collect::<Result<Vec<_>, _>>()?;
//! assert_eq!(totals, [1250, 990]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`UnitOfWork::flush_with`] takes connections from a pool or a function, and goes on over another one if one is lost.
//! A field under `#[ordid(returning)]` is an `ordid::Assigned<T>` of a type `T` that the `oracle` crate reads
//! ([`FromSql`](oracle::sql_type::FromSql)), or of an `Option` of one.
//!
#![doc = ordid_sql::documentation!(watching)]
//!
#![doc = ordid_sql::documentation!(leases)]
//!
//! # What was proven on what
//!
//! The real `oracle` crate and ODPI-C ran on a recorder in place of Oracle's client library; the recorder is not a
//! database. This proved the text, the bytes and the order of what flushes, leases and followers send. It also proved
//! how errors, missing rows and lost connections are handled. The statements run on H2 in its Oracle mode, an
//! emulation. The tests that need Oracle run where one is given.
//!
//! # Names
//!
//! Names are quoted exactly as the entity has them, and Oracle distinguishes upper and lower case in quoted names. A
//! table or column that was created without quotes has a name in upper case: declare that with `table` and
//! `rename_all = "SCREAMING_SNAKE_CASE"`.
//!
//! # The Oracle client
//!
//! The `oracle` crate is built on ODPI-C, which loads Oracle's client library when it is first
//! called. Without the library everything compiles, and [`connect`] fails with an [`Error`] that
//! says how to install it ([`Error::is_client_missing`]). Client and server must be 12.1 or later.
//!
//! # Minimum supported Rust version
//!
//! 1.89, as `ordid-core`.

#![forbid(unsafe_code)]

mod binder;
mod classify;
mod connection;
mod engine_macros;
mod error;
mod follower;
mod lease;
mod stored;
mod unit_of_work;

pub use binder::{Binder, Entity};
pub use error::Error;
pub use follower::{FollowError, Follower, Over};
pub use lease::{Connect, OracleDriver, SqlLease};
pub use ordid_core::storage::column;
#[cfg(feature = "journal")]
pub use ordid_sql::JournalRow;
#[doc(inline)]
pub use ordid_sql::for_applications::*;
pub use stored::{OracleColumn, Stored, StoredAs};
#[cfg(feature = "journal")]
pub use unit_of_work::Journaled;
pub use unit_of_work::{
    ShardedUnitOfWork, UnitOfWork, create_flushes_table, flushes_table, remove_old_markers,
};

/// Connects, as [`oracle::Connection::connect`] does, with an error that says what to do where
/// Oracle's client library is missing.
///
/// For anything else that a connection needs, use [`oracle::Connector`] or [`oracle::pool`] and
/// turn their errors into this crate's with `?` or [`Error::from`].
///
/// # Errors
///
/// [`Error::is_client_missing`], and all that the server or the network says.
pub fn connect(
    username: &str,
    password: &str,
    connect_string: &str,
) -> Result<oracle::Connection, Error> {
    let connected = oracle::Connection::connect(username, password, connect_string);
    Ok(connected?)
}

#[doc(hidden)]
pub use crate::__engine as engine;

/// The columns that `#[ordid(oracle(oracle = column))]` names, with a module for each engine.
///
/// `#[derive(KeyType)]` gives them to the macro of this name, which checks the order and implements the library's
/// traits for the key type.
pub mod engine {
    pub use ordid_core::storage::column::names::oracle;
}

#[doc(hidden)]
pub mod __private {
    pub use crate::stored::{StoredAs, TypeResult};
    pub use oracle::{
        Connection, Result, SqlValue,
        sql_type::{FromSql, ToSql, ToSqlNull},
    };
    pub use ordid_core::__private::{NamedColumn, engine_otherwise, keeps_order};
}
