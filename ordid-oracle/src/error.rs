//! The crate's one error type.

use ordid_sql::classify::oracle::DEADLOCK;

use crate::classify::{CLIENT_MISSING, classify, has_one_of};

pub(crate) type FlushError = ordid_sql::FlushError<oracle::Error>;

ordid_sql::error_type! {
    /// Why a connection was not made or a unit of work was not flushed. It is a
    /// [`FlushError`](ordid_sql::FlushError) and answers as that does; its
    /// [`driver`](ordid_sql::FlushError::driver) is the `oracle` crate's error.
    oracle::Error
}

impl Error {
    /// Returns whether Oracle's client library was not found. The error's text says how to install
    /// it.
    pub fn is_client_missing(&self) -> bool {
        self.driver()
            .is_some_and(|error| error.dpi_code() == Some(CLIENT_MISSING))
    }

    /// Returns whether this transaction and another one waited for each other: ORA-00060.
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

impl From<oracle::Error> for Error {
    fn from(error: oracle::Error) -> Self {
        Self(FlushError::other(classify(error)))
    }
}

#[cfg(test)]
#[allow(
    deprecated,
    reason = "the library has no other way to make such errors"
)]
mod tests;
