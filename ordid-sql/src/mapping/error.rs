//! Why a mapping table did not answer.

use std::{error::Error as StdError, fmt};

use crate::{DriverError, Failure, cause::Cause};

/// Why a [`MappingTable`](super::MappingTable) was not read or written.
///
/// It is opaque: ask it with the `is_` predicates, print it for people. `E` is the error of the database library that
/// the adapter is for.
#[derive(Debug)]
pub struct MappingError<E>(Box<Inner<E>>);

#[derive(Debug)]
struct Inner<E> {
    /// Quoted.
    table: String,
    kind: Kind<E>,
    retries: u32,
}

#[derive(Debug)]
enum Kind<E> {
    /// An error of core says that a row cannot be one of such a table.
    Cause(Cause<E>),
    /// A UUID that is there for an insert and not for a look-up.
    Elusive { uuid: String },
}

/// The same before the table's name and the attempts are known.
#[derive(Debug)]
pub(super) struct Failed<E>(Kind<E>);

impl<E> From<DriverError<E>> for Failed<E> {
    fn from(error: DriverError<E>) -> Self {
        Self(Kind::Cause(error.into()))
    }
}

impl<E> From<ordid_core::Error> for Failed<E> {
    fn from(error: ordid_core::Error) -> Self {
        Self(Kind::Cause(error.into()))
    }
}

impl<E> Failed<E> {
    pub(super) fn elusive(uuid: impl fmt::Display) -> Self {
        let uuid = uuid.to_string();
        Self(Kind::Elusive { uuid })
    }

    pub(super) fn failure(&self) -> Failure {
        match &self.0 {
            Kind::Cause(Cause::Driver(source)) => source.failure,
            Kind::Cause(Cause::Core(_)) | Kind::Elusive { .. } => Failure::Refused,
        }
    }

    pub(super) fn of(self, table: &str, retries: u32) -> MappingError<E> {
        let (table, kind) = (table.to_owned(), self.0);
        MappingError(Box::new(Inner {
            table,
            kind,
            retries,
        }))
    }
}

impl<E> MappingError<E> {
    /// Returns whether the same call may succeed another time: a deadlock, a serialization failure, a lock
    /// that did not come in time, a busy database, a pool without a free connection.
    ///
    /// In a transaction of yours, most databases have ended that: begin it anew.
    pub fn is_transient(&self) -> bool {
        matches!(&self.0.kind, Kind::Cause(cause) if cause.is_transient())
    }

    /// Returns whether the connection was lost or could not be made, or the server went read-only. What was
    /// being inserted may be there: outside of a transaction of yours, the same call over another
    /// connection finds it.
    pub fn is_connection_lost(&self) -> bool {
        matches!(&self.0.kind, Kind::Cause(cause) if cause.is_lost())
    }

    /// Returns whether the table has a row that a mapping table cannot have: NULL, another length than 16
    /// bytes, another hash, a UUID twice, a key of another scheme. The text says which and why.
    pub fn is_unexpected_row(&self) -> bool {
        matches!(self.0.kind, Kind::Cause(Cause::Core(_)))
    }

    /// Returns the error of the database library, where it is one.
    pub fn driver(&self) -> Option<&E> {
        match &self.0.kind {
            Kind::Cause(cause) => cause.driver(),
            Kind::Elusive { .. } => None,
        }
    }
}

impl<E: fmt::Display> fmt::Display for MappingError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mapping table {}: ", self.0.table)?;
        match &self.0.kind {
            Kind::Cause(cause) => cause.fmt(f),
            Kind::Elusive { uuid } => write!(
                f,
                "the UUID {uuid} was refused by an insert and is not found: a CHECK or a trigger \
                 refuses it, the ids are used up, or its row is deleted again and again"
            ),
        }?;
        match self.0.retries {
            0 => Ok(()),
            retries => write!(f, " (tried {} times)", u64::from(retries) + 1),
        }
    }
}

impl<E: StdError + 'static> StdError for MappingError<E> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.0.kind {
            Kind::Cause(cause) => cause.source(),
            Kind::Elusive { .. } => None,
        }
    }
}
