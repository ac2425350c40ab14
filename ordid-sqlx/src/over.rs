//! What statements outside of a unit of work are sent over.

use sqlx::{Pool, Transaction, pool::PoolConnection};

use crate::backend::{Backend, sealed::Sealed};

/// What the statements of a call are sent over: `&Pool`, `&mut` a connection of one, `&mut Connection`, or
/// `&mut Transaction`, and then what they write is committed or rolled back with it.
///
/// Code that is generic over the database has it of all but a `&mut DB::Connection` of which nothing else is
/// known.
pub trait Over<'c, DB: Backend>: Sealed + Send {
    #[doc(hidden)]
    fn lane(self) -> Lane<'c, DB>;
}

/// A pool can be asked for another connection; a connection may have a transaction open that only its
/// owner knows of.
#[doc(hidden)]
#[derive(Debug)]
pub enum Lane<'c, DB: Backend> {
    Pool(&'c Pool<DB>),
    Connection(&'c mut DB::Connection),
}

impl<DB: Backend> Sealed for &Pool<DB> {}

impl<'c, DB: Backend> Over<'c, DB> for &'c Pool<DB> {
    fn lane(self) -> Lane<'c, DB> {
        Lane::Pool(self)
    }
}

impl<DB: Backend> Sealed for &mut PoolConnection<DB> {}

impl<'c, DB: Backend> Over<'c, DB> for &'c mut PoolConnection<DB> {
    fn lane(self) -> Lane<'c, DB> {
        Lane::Connection(&mut **self)
    }
}

impl<DB: Backend> Sealed for &mut Transaction<'_, DB> {}

impl<'c, DB: Backend> Over<'c, DB> for &'c mut Transaction<'_, DB> {
    fn lane(self) -> Lane<'c, DB> {
        Lane::Connection(&mut **self)
    }
}

/// Connections themselves, of which no blanket implementation can tell that they are none of the above.
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
macro_rules! connection {
    ($database:ident, $connection:ident) => {
        impl Sealed for &mut sqlx::$connection {}

        impl<'c> Over<'c, sqlx::$database> for &'c mut sqlx::$connection {
            fn lane(self) -> Lane<'c, sqlx::$database> {
                Lane::Connection(self)
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
