//! Why partitions were not listed or created.

use std::{error::Error as StdError, fmt};

use crate::cause::Cause;

/// Why [`Partitions`](super::Partitions) were not listed or created.
///
/// It is opaque: ask it with the `is_` predicates, print it for people. `E` is the error of the database library that
/// the adapter is for.
#[derive(Debug)]
pub struct PartitionError<E>(Box<Inner<E>>);

#[derive(Debug)]
struct Inner<E> {
    /// Quoted.
    table: String,
    /// An error of core says that a bound is no key, or that a time is none of the scheme's.
    cause: Cause<E>,
}

impl<E> PartitionError<E> {
    pub(super) fn new(table: String, cause: Cause<E>) -> Self {
        Self(Box::new(Inner { table, cause }))
    }

    /// Returns whether the same call may succeed another time: a deadlock, a lock that did not come in time, a pool
    /// without a free connection.
    pub fn is_transient(&self) -> bool {
        self.0.cause.is_transient()
    }

    /// Returns whether the connection was lost or could not be made. The same call finds what was created.
    pub fn is_connection_lost(&self) -> bool {
        self.0.cause.is_lost()
    }

    /// Returns whether a partition has bounds that are not keys of the key type.
    pub fn is_unexpected_bound(&self) -> bool {
        matches!(&self.0.cause, Cause::Core(error) if error.is_parse())
    }

    /// Returns the error of the database library, where it is one.
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
