//! Why partitions were not listed or created.

use std::{error::Error as StdError, fmt};

use crate::{DriverError, Failure};

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
    kind: Kind<E>,
}

#[derive(Debug)]
pub(super) enum Kind<E> {
    Driver(DriverError<E>),
    /// A bound that is no key, a time that is none of the scheme's.
    Core(ordid_core::Error),
}

impl<E> From<DriverError<E>> for Kind<E> {
    fn from(error: DriverError<E>) -> Self {
        Self::Driver(error)
    }
}

impl<E> From<ordid_core::Error> for Kind<E> {
    fn from(error: ordid_core::Error) -> Self {
        Self::Core(error)
    }
}

impl<E> PartitionError<E> {
    pub(super) fn new(table: String, kind: Kind<E>) -> Self {
        Self(Box::new(Inner { table, kind }))
    }

    /// Returns whether the same call may succeed another time: a deadlock, a lock that did not come in time, a pool
    /// without a free connection.
    pub fn is_transient(&self) -> bool {
        matches!(&self.0.kind, Kind::Driver(source)
            if source.failure == Failure::Transient || source.has_waited)
    }

    /// Returns whether the connection was lost or could not be made. The same call finds what was created.
    pub fn is_connection_lost(&self) -> bool {
        matches!(&self.0.kind, Kind::Driver(source) if source.failure == Failure::Lost)
    }

    /// Returns whether a partition has bounds that are not keys of the key type.
    pub fn is_unexpected_bound(&self) -> bool {
        matches!(&self.0.kind, Kind::Core(error) if error.is_parse())
    }

    /// Returns the error of the database library, where it is one.
    pub fn driver(&self) -> Option<&E> {
        match &self.0.kind {
            Kind::Driver(source) => Some(&source.error),
            Kind::Core(_) => None,
        }
    }
}

impl<E: fmt::Display> fmt::Display for PartitionError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "partitions of {}: ", self.0.table)?;
        match &self.0.kind {
            Kind::Driver(source) => source.error.fmt(f),
            Kind::Core(error) => error.fmt(f),
        }
    }
}

impl<E: StdError + 'static> StdError for PartitionError<E> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        // Their own text is already this one's.
        match &self.0.kind {
            Kind::Driver(source) => source.error.source(),
            Kind::Core(error) => error.source(),
        }
    }
}
