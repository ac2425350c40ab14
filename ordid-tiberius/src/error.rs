//! The crate's one error type.

use ordid_sql::classify::sql_server::DEADLOCK;

ordid_sql::error_type! {
    /// Why a unit of work was not flushed. It is a [`FlushError`](ordid_sql::FlushError) and answers as
    /// that does; its [`driver`](ordid_sql::FlushError::driver) is tiberius' error.
    tiberius::error::Error
}

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
