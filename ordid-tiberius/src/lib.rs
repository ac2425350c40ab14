//! Ordered keys in SQL Server and Babelfish through [tiberius].
//!
//! ```text
//! $ cargo add ordid
//! $ cargo add ordid-tiberius --features rustls # or native-tls, or none
//! $ cargo add tiberius@0.13 --no-default-features
//! $ cargo add tokio --features macros,net,rt
//! $ cargo add tokio-util --features compat
//! ```
//!
#![doc = ordid_sql::documentation!(tasks)]
//! | write to Babelfish | [`UnitOfWork::for_babelfish`] |
//! | use another column, or send a NULL of a type | [`Stored`], [`Nullable`] |
//! | follow a table | [`Follower`] |
//! | lease a node | [`SqlLease`] |
//!
//! The [guide](https://github.com/ordid/ordid/blob/main/docs/src/README.md) has a chapter for each task.
//!
//! | key type's `tiberius(...)` | column type | stored as | order kept |
//! |---|---|---|---|
//! | `sql_server = unique_identifier` | `uniqueidentifier` | the value | for schemes that rise there, such as `uuid_v8_sql_server` and the COMBs |
//! | `sql_server = unique_identifier_permuted` | `uniqueidentifier` | its bytes, permuted | for schemes that rise as bytes, such as `uuid_v7` |
//! | `sql_server = binary16` | `binary(16)` | 16 bytes | for schemes that rise as bytes |
//! | `sql_server = binary12`, `binary24` | `binary(n)` | bytes | yes |
//! | `sql_server = bigint` | `bigint` | the number | yes |
//! | `babelfish = babelfish_unique_identifier` | Babelfish's `uniqueidentifier` | the value | for schemes that rise as bytes |
//! | `babelfish = binary16`, `bigint` | as above | | |
//!
//! A bare `tiberius` means SQL Server's own type: `unique_identifier`, `bigint`, `binary12` or
//! `binary24`, by the raw key. A key type whose keys would lose their order in its column does not
//! compile. Declare the columns with the types above, and the key as the clustered one.
//!
//! SQL Server compares a `uniqueidentifier` by its last six bytes first. Those are random in version 7, so the keys and
//! their index are in random order there. tiberius sends a [`Uuid`](ordid_core::uuid::Uuid) in the mixed byte order of
//! the protocol and converts the bytes back, so the value stays the same.
//!
//! # Example: a graph of rows in one transaction
//!
//! ```no_run
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use ordid::{KeyType, OrderedKey, uuid::Uuid};
//! use ordid_tiberius::{Nullable, UnitOfWork};
//! use tiberius::{Client, Config};
//! use tokio::net::TcpStream;
//! use tokio_util::compat::TokioAsyncWriteCompatExt;
//!
//! #[derive(KeyType)]
//! #[ordid(scheme = uuid_v8_sql_server, tiberius)]
//! struct CustomerId(Uuid);
//!
//! #[derive(KeyType)]
//! #[ordid(scheme = uuid_v7, tiberius(sql_server = unique_identifier_permuted))]
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
//! let config = Config::from_ado_string(&std::env::var("MSSQL_URL")?)?;
//! let stream = TcpStream::connect(config.get_addr()).await?;
//! let mut client = Client::connect(config, stream.compat_write()).await?;
//!
//! let mut work = UnitOfWork::new();
//! let customer = work.add(Customer { id: CustomerId::generate(), name: "Ada".into() });
//! for total in [1250, 990] {
//!     work.add(Order { id: OrderId::generate(), customer, total });
//! }
//! let flushed = work.flush(&mut client).await?;
//! assert_eq!(flushed.rows(), 3);
//!
//! let rows = client
//!     .query("SELECT id, total FROM orders WHERE customer = @P1 ORDER BY id", &[&customer])
//!     .await?
//!     .into_first_result()
//!     .await?;
//! let first: Option<OrderId> = rows[0].try_get("id")?;
//! // A key that may be NULL, as a parameter:
//! client.query("SELECT 1 WHERE @P1 IS NOT NULL", &[&Nullable(first)]).await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`UnitOfWork::flush`] says when rows go by bulk load, and [`UnitOfWork::flush_with`] goes on over
//! another connection where one is lost.
//!
//! # More than one run, more than one server
//!
//! With the feature `journal`, `UnitOfWork::with_journal` records the rows of each flush. If the process is killed, the
//! next run of the program can finish the flush. [`ShardedUnitOfWork`] spreads rows over several databases.
//!
//! A field under `#[ordid(returning)]` is an `ordid::Assigned<T>`, and [`Decode`] says which types `T` can be.
//!
#![doc = ordid_sql::documentation!(watching)]
//!
//! # Babelfish
//!
//! Babelfish for PostgreSQL speaks SQL Server's language and protocol, but sorts `uniqueidentifier` as PostgreSQL sorts
//! `uuid`. So ordid treats it as a separate flavour: a unit of work is made by [`UnitOfWork::for_babelfish`], and key
//! types name a column for it. A flush asks the server which of the two it is, as [`is_babelfish`] does. tiberius' own
//! traits cannot tell the two apart, so a key type implements them for SQL Server. On Babelfish, pass a key as the
//! parameter `Stored::<_, column::BabelfishUniqueIdentifier>::new(key)`.
//!
//! Babelfish refuses a `None` that tiberius sends without a type (text, bytes, `numeric`, `xml`, dates) with error 8009. A
//! unit of work writes `NULL` in its place; your own statements have to do the same. A table or column with `]` in its
//! name is refused before anything is sent, since Babelfish does not parse it.
//!
#![doc = ordid_sql::documentation!(leases)]
//!
//! # What was proven on what
//!
//! The real tiberius ran against a recorder of the protocol, which is not an SQL engine. This proved the bytes, the
//! text and the order of what flushes, leases and followers send. It also proved how the server's errors are handled,
//! and the loss of a connection before or during COMMIT. SQL Server's order of keys is taken from `SqlGuid.CompareTo`
//! and Microsoft's published examples. The tests that need a server run where one is given.
//!
//! # Minimum supported Rust version
//!
//! 1.89, as `ordid-core`.

// The paths that the derive writes, in the tests of this crate.
#[cfg(test)]
extern crate self as ordid_tiberius;

mod binder;
mod decode;
mod encode;
mod engine_macros;
mod error;
mod failure;
mod fit;
mod flavour;
mod follower;
mod lease;
mod null;
mod sharded;
mod stored;
mod unit_of_work;

pub use binder::{Binder, Entity};
pub use decode::Decode;
pub use encode::Encode;
pub use error::Error;
pub use flavour::{Flavour, is_babelfish};
pub use follower::{FollowError, Follower, Over, TiberiusDriver};
pub use lease::{Connect, SqlLease, Stream, Tiberius};
pub use ordid_core::storage::{column, dialect};
#[cfg(feature = "journal")]
pub use ordid_sql::JournalRow;
#[doc(inline)]
pub use ordid_sql::for_applications::*;
pub use sharded::ShardedUnitOfWork;
pub use stored::{Nullable, Stored, StoredAs, TiberiusColumn};
#[cfg(feature = "journal")]
pub use unit_of_work::Journaled;
pub use unit_of_work::{UnitOfWork, create_flushes_table, flushes_table, remove_old_markers};

#[doc(hidden)]
pub use crate::__engine as engine;

/// The columns that `#[ordid(tiberius(engine = column))]` names, with a module for each engine.
///
/// `#[derive(KeyType)]` gives them to the macro of this name, which checks the order and implements the library's
/// traits for the key type.
pub mod engine {
    pub use ordid_core::storage::column::names::{babelfish, sql_server};
}

#[doc(hidden)]
pub mod __private {
    pub use ordid_core::{
        __private::{NamedColumn, engine_otherwise, keeps_order},
        storage::dialect,
    };
    pub use tiberius::{ColumnData, FromSql, FromSqlOwned, IntoSql, Result, ToSql};

    pub use crate::{
        decode::{Decode, not_null},
        encode::Encode,
        stored::{Read, StoredAs, decode, encode, null},
    };
}
