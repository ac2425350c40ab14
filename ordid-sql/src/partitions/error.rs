//! The error of partitions.

use std::{error::Error as StdError, fmt};

use crate::cause::Cause;

/// The reason why [`Partitions`](super::Partitions) were not listed or created.
///
/// It is opaque: ask it with the `is_` predicates, print it for people. `E` is the error of the database library that
/// the adapter is for.
#[derive(Debug)]
pub struct PartitionError<E>(Box<Inner<E>>);

#[derive(Debug)]
struct Inner<E> {
    /// The quoted name of the table.
    table: String,
    /// An error of core says that a bound is not a key, or that the scheme cannot hold a time.
    cause: Cause<E>,
}

impl<E> PartitionError<E> {
    pub(super) fn new(table: String, cause: Cause<E>) -> Self {
        Self(Box::new(Inner { table, cause }))
    }

    /// Returns whether the same call may succeed another time. For example, there was a deadlock, a lock was not
    /// granted in time, or the pool had no free connection.
    pub fn is_transient(&self) -> bool {
        self.0.cause.is_transient()
    }

    /// Returns whether the connection was lost or could not be made. If the same call is made again, it finds the
    /// partitions that were created.
    pub fn is_connection_lost(&self) -> bool {
        self.0.cause.is_lost()
    }

    /// Returns whether a partition has bounds that are not keys of the key type, or not those that its name says.
    pub fn is_unexpected_bound(&self) -> bool {
        matches!(&self.0.cause, Cause::Core(error) if error.is_parse())
    }

    /// Returns the error of the database library, if this was caused by one.
    pub fn driver(&self) -> Option<&E> {
        self.0.cause.driver()
    }
}

impl<E: fmt::Display> fmt::Display for PartitionError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "partitions of {}: {}", self.0.table, self.0.cause)
    }
}

impl<E: StdError + 'static> StdError for PartitionError<E> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.cause.source()
    }
}
