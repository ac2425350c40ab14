//! What statements outside of a unit of work are sent over.

use sqlx::{Pool, Transaction, pool::PoolConnection};

use crate::{backend::Backend, connection::Source};

/// A pool or connection over which a call sends its statements: `&Pool`, `&mut` a connection of a pool,
/// `&mut Connection`, or `&mut Transaction`. With a transaction, the writes are committed or rolled back with it.
///
/// In code that is generic over the database, all of these implement the trait except a `&mut DB::Connection` of
/// which nothing else is known.
pub trait Over<'c, DB: Backend>: Into<Source<'c, DB>> + Send {}

impl<'c, DB: Backend, T: Into<Source<'c, DB>> + Send> Over<'c, DB> for T {}

impl<'c, DB: Backend> From<&'c Pool<DB>> for Source<'c, DB> {
    fn from(pool: &'c Pool<DB>) -> Self {
        Self::of(pool)
    }
}

impl<'c, DB: Backend> From<&'c mut PoolConnection<DB>> for Source<'c, DB> {
    fn from(connection: &'c mut PoolConnection<DB>) -> Self {
        Self::on(&mut **connection)
    }
}

impl<'c, DB: Backend> From<&'c mut Transaction<'_, DB>> for Source<'c, DB> {
    fn from(transaction: &'c mut Transaction<'_, DB>) -> Self {
        Self::on(&mut **transaction)
    }
}

/// Connections themselves, of which no blanket implementation can tell that they are none of the above.
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
macro_rules! connection {
    ($database:ident, $connection:ident) => {
        impl<'c> From<&'c mut sqlx::$connection> for Source<'c, sqlx::$database> {
            fn from(connection: &'c mut sqlx::$connection) -> Self {
                Self::on(connection)
            }
        }
    };
}

#[cfg(feature = "postgres")]
connection!(Postgres, PgConnection);
#[cfg(feature = "mysql")]
connection!(MySql, MySqlConnection);
#[cfg(feature = "sqlite")]
connection!(Sqlite, SqliteConnection);
