//! The trait that an adapter implements for statements about a table that are not those of a flush.

use std::error::Error as StdError;

use crate::{
    DriverError,
    spi::{BoxFuture, blocking},
};

/// The future of a statement that a library `D` sends.
pub type Sent<'a, D, T> = BoxFuture<'a, Result<T, DriverError<<D as TableDriver>::Error>>>;

/// The return type of a call over a library `D`: a [`BoxFuture`] of this result, or the result if the library's calls
/// block.
pub type Answer<'a, D, T, E> = <<D as TableDriver>::Kind as Kind>::Answer<'a, Result<T, E>>;

/// Whether a library's calls return futures or block: [`Awaited`] or [`Blocking`].
pub trait Kind: 'static {
    /// The return type of a call.
    type Answer<'a, T: Send + 'a>;

    /// Turns the future of a call into its return value.
    fn answer<'a, T: Send + 'a>(call: impl Future<Output = T> + Send + 'a) -> Self::Answer<'a, T>;
}

/// Calls that return a [`BoxFuture`].
#[derive(Debug)]
pub enum Awaited {}

impl Kind for Awaited {
    type Answer<'a, T: Send + 'a> = BoxFuture<'a, T>;

    fn answer<'a, T: Send + 'a>(call: impl Future<Output = T> + Send + 'a) -> BoxFuture<'a, T> {
        Box::pin(call)
    }
}

/// Calls that block and return the outcome itself.
#[derive(Debug)]
pub enum Blocking {}

impl Kind for Blocking {
    type Answer<'a, T: Send + 'a> = T;

    fn answer<'a, T: Send + 'a>(call: impl Future<Output = T> + Send + 'a) -> T {
        blocking(call)
    }
}

/// A library over which a table can be [followed](crate::follower) and [partitioned](crate::partitions). An
/// adapter implements this trait; it translates, and sends each statement once.
pub trait TableDriver: Sized + 'static {
    /// The library's error.
    type Error: StdError + Send + Sync + 'static;
    /// The pool, connection or transaction over which the statements of a call are sent.
    type Source<'c>: Send;
    /// How its calls return.
    type Kind: Kind;

    /// Sends a query without parameters, which is not prepared by name, and returns the first column of its rows.
    ///
    /// # Errors
    ///
    /// Returns the error of the library or the database, together with its meaning.
    fn texts<'a>(source: &'a mut Self::Source<'_>, sql: String) -> Sent<'a, Self, Vec<String>>;

    /// Sends a script without parameters, which is not prepared.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`texts`](Self::texts).
    fn run<'a>(source: &'a mut Self::Source<'_>, sql: String) -> Sent<'a, Self, ()>;

    /// Returns a connection to its pool, or closes it if it `is_lost`. Does nothing by default: the connection is the
    /// user's.
    fn release(source: &mut Self::Source<'_>, is_lost: bool) {
        let _ = (source, is_lost);
    }
}
