//! The trait that an adapter implements for partitions.

use std::{error::Error as StdError, pin::Pin};

use ordid_core::{
    OrderedKey, RawKeyOf,
    storage::{ColumnOn, Stores, dialect::Postgres},
};

use crate::DriverError;

/// A boxed future, as mapping tables have it, too.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A library with which an entity's table can be partitioned. An adapter implements this trait; it translates, and
/// sends each statement once.
pub trait PartitionDriver<E: OrderedKey>: 'static {
    /// The library's error.
    type Error: StdError + Send + Sync + 'static;
    /// The pool, connection or transaction over which the statements of a call are sent.
    type Source<'c>: Send;

    /// The column of the key.
    type Column: ColumnOn<Postgres> + Stores<RawKeyOf<E>>;

    /// Sends a query without parameters, and returns the first column of its rows.
    ///
    /// # Errors
    ///
    /// Returns the error of the library or the database, together with its meaning.
    fn texts<'a>(
        source: &'a mut Self::Source<'_>,
        sql: String,
    ) -> BoxFuture<'a, Result<Vec<String>, DriverError<Self::Error>>>;

    /// Sends a statement without parameters, which is not prepared.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`texts`](Self::texts).
    fn run<'a>(
        source: &'a mut Self::Source<'_>,
        sql: String,
    ) -> BoxFuture<'a, Result<(), DriverError<Self::Error>>>;

    /// Returns a connection to its pool, or closes it if it `is_lost`.
    fn release(source: &mut Self::Source<'_>, is_lost: bool);
}
