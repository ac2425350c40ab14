//! The crate's one error type.

use std::{fmt, ops::Deref};

use ordid_sql::{FlushError, classify::sql_server::DEADLOCK};

/// Why a unit of work was not flushed. It is a [`FlushError`] and answers as that does; its
/// [`driver`](FlushError::driver) is tiberius' error.
pub struct Error(FlushError<tiberius::error::Error>);

impl Error {
    /// Returns whether the server chose the transaction as the victim of a deadlock, error 1205, and
    /// has rolled all of it back, also what was in it before `flush_in`.
    pub fn is_deadlock(&self) -> bool {
        self.code().map(i64::from) == Some(DEADLOCK)
    }

    /// Returns the number of the server's error, as in `sys.messages`.
    pub fn code(&self) -> Option<u32> {
        self.driver()?.code()
    }
}

impl Deref for Error {
    type Target = FlushError<tiberius::error::Error>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl From<FlushError<tiberius::error::Error>> for Error {
    fn from(error: FlushError<tiberius::error::Error>) -> Self {
        Self(error)
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
