//! The cause of an error that occurs when a table is read or written outside of a flush.

use std::{error::Error as StdError, fmt};

use crate::{DriverError, Failure};

/// An error of the database library, or an error of core about the database's answer.
#[derive(Debug)]
pub(crate) enum Cause<E> {
    Driver(DriverError<E>),
    Core(ordid_core::Error),
}

impl<E> Cause<E> {
    /// Returns whether the same call may succeed another time.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, Self::Driver(source) if source.failure == Failure::Transient || source.has_waited)
    }

    /// Returns whether the connection was lost or could not be made.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self, Self::Driver(source) if source.failure == Failure::Lost)
    }

    pub(crate) fn driver(&self) -> Option<&E> {
        match self {
            Self::Driver(source) => Some(&source.error),
            Self::Core(_) => None,
        }
    }
}

impl<E: StdError + 'static> Cause<E> {
    /// Returns the source of the error. The text of the error itself is part of the text of the error around it.
    pub(crate) fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Driver(source) => source.error.source(),
            Self::Core(error) => error.source(),
        }
    }
}

impl<E: fmt::Display> fmt::Display for Cause<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Driver(source) => source.write_text(f),
            Self::Core(error) => error.fmt(f),
        }
    }
}

impl<E> From<DriverError<E>> for Cause<E> {
    fn from(error: DriverError<E>) -> Self {
        Self::Driver(error)
    }
}

impl<E> From<ordid_core::Error> for Cause<E> {
    fn from(error: ordid_core::Error) -> Self {
        Self::Core(error)
    }
}
