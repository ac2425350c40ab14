//! The crate's one error type.

use std::{fmt, ops::Deref};

use ordid_sql::classify::oracle::DEADLOCK;

use crate::classify::{CLIENT_MISSING, classify, has_one_of};

/// Why a connection was not made or a unit of work was not flushed. It is a
/// [`FlushError`](ordid_sql::FlushError) and answers as that does; its
/// [`driver`](ordid_sql::FlushError::driver) is the `oracle` crate's error.
pub struct Error(FlushError);

pub(crate) type FlushError = ordid_sql::FlushError<oracle::Error>;

impl Error {
    /// Returns whether Oracle's client library was not found. The error's text says how to install
    /// it.
    pub fn is_client_missing(&self) -> bool {
        self.driver()
            .is_some_and(|error| error.dpi_code() == Some(CLIENT_MISSING))
    }

    /// Returns whether another transaction was in the way of this one and this one in the way of
    /// the other: ORA-00060.
    pub fn is_deadlock(&self) -> bool {
        self.driver()
            .is_some_and(|error| has_one_of(error, &[DEADLOCK]))
    }

    /// A connection could not be made for the flush.
    pub(crate) fn of_connecting(self) -> FlushError {
        match self.is_client_missing() {
            true => self.0,
            false => self.0.into_begin(),
        }
    }
}

impl Deref for Error {
    type Target = ordid_sql::FlushError<oracle::Error>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl From<FlushError> for Error {
    fn from(error: FlushError) -> Self {
        Self(error)
    }
}

impl From<oracle::Error> for Error {
    fn from(error: oracle::Error) -> Self {
        Self(FlushError::other(classify(error)))
    }
}

impl From<ordid_core::Error> for Error {
    fn from(error: ordid_core::Error) -> Self {
        Self(error.into())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

#[cfg(test)]
#[allow(
    deprecated,
    reason = "the library has no other way to make such errors"
)]
mod tests;
