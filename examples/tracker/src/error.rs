//! The errors of the tracker.

use std::{
    fmt,
    io::{self, Write as _},
};

use crate::model::Issue;

/// The kinds of errors, each of which has a status of HTTP.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// The request cannot be read.
    Unreadable,
    /// The requested object does not exist.
    NotFound,
    /// Another row has this unique value.
    Taken,
    /// The issue has changed since it was read.
    Stale(Box<Stale>),
    /// The request was understood, but breaks a rule of the tracker.
    Refused,
    /// The same request may succeed later.
    Busy,
    /// The request failed for a reason that the client cannot change.
    Failed,
}

/// An edit of an issue that has changed since the client read it.
#[derive(Debug, Clone)]
pub(crate) struct Stale {
    pub(crate) read_version: i64,
    /// The current issue.
    pub(crate) issue: Issue,
}

/// An error, with a text for the client or the operator.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    message: String,
}

impl Error {
    pub(crate) fn new(kind: Kind, message: impl fmt::Display) -> Self {
        Self {
            kind,
            message: message.to_string(),
        }
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Returns the text that a client may read. The others may contain texts of the database, so they are written to
    /// standard error for the operator instead.
    pub(crate) fn for_client(&self) -> String {
        let instead = match self.kind {
            Kind::Failed => "internal error",
            Kind::Busy => "busy, try again",
            _ => return self.to_string(),
        };
        let _ = writeln!(io::stderr(), "tracker: {self}");
        instead.to_owned()
    }

    pub(crate) fn not_found(what: impl fmt::Display) -> Self {
        Self::new(Kind::NotFound, format_args!("no {what} here"))
    }

    pub(crate) fn refused(why: impl fmt::Display) -> Self {
        Self::new(Kind::Refused, why)
    }

    /// Puts a text in front of the message that says what was being done.
    #[must_use]
    pub fn context(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        let kind = match &error {
            sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::Io(_) => Kind::Busy,
            _ => Kind::Failed,
        };
        Self::new(kind, error)
    }
}

/// Errors that a client can do something about have texts of the tracker, not of the database.
impl From<ordid_sqlx::Error> for Error {
    fn from(error: ordid_sqlx::Error) -> Self {
        let is_busy = error.is_transient()
            || error.is_connection_lost()
            || error.is_commit_unknown()
            || error.is_timeout();
        match () {
            () if is_busy => Self::new(Kind::Busy, error),
            () if error.is_unique_violation() => {
                let table = error.table().unwrap_or("these rows");
                Self::new(
                    Kind::Taken,
                    format_args!("another one of {table} has this name or key"),
                )
            }
            () if error.is_missing_row() => Self::not_found("such row"),
            () if error.is_foreign_key_violation() => {
                Self::refused("what it refers to is not there, or others refer to it")
            }
            () => Self::new(Kind::Failed, error),
        }
    }
}

impl From<ordid::Error> for Error {
    fn from(error: ordid::Error) -> Self {
        Self::new(Kind::Unreadable, error)
    }
}
