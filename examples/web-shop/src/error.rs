//! Why the shop did not do what it was asked for.

use std::fmt;

use diesel::result::{DatabaseErrorKind, Error as DieselError};

/// Whose fault it is, and what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// There is no such thing.
    NotFound,
    /// Something else has this key, or this unique value.
    Taken,
    /// It was understood, and is against the rules.
    Refused,
    /// Another time it may work.
    Busy,
    /// The shop's own fault.
    Failed,
}

/// What went wrong, as the client or the operator sees it.
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

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Puts in front what was being done.
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

/// Returns whose fault an error of the database is.
fn kind_of(error: &DieselError) -> Kind {
    match error {
        DieselError::NotFound => Kind::NotFound,
        DieselError::DatabaseError(DatabaseErrorKind::UniqueViolation, _) => Kind::Taken,
        DieselError::DatabaseError(
            DatabaseErrorKind::ForeignKeyViolation
            | DatabaseErrorKind::CheckViolation
            | DatabaseErrorKind::NotNullViolation,
            _,
        ) => Kind::Refused,
        DieselError::DatabaseError(DatabaseErrorKind::ClosedConnection, _) => Kind::Busy,
        _ => Kind::Failed,
    }
}

impl From<DieselError> for Error {
    fn from(error: DieselError) -> Self {
        Self::new(kind_of(&error), error)
    }
}

impl From<diesel::r2d2::PoolError> for Error {
    fn from(error: diesel::r2d2::PoolError) -> Self {
        Self::new(Kind::Busy, format_args!("no connection: {error}"))
    }
}

/// A flush says by itself which row of which table it was.
impl From<ordid_diesel::Error> for Error {
    fn from(error: ordid_diesel::Error) -> Self {
        let kind =
            if error.is_transient() || error.is_connection_lost() || error.is_commit_unknown() {
                Kind::Busy
            } else {
                error.driver().map_or(Kind::Failed, kind_of)
            };
        Self::new(kind, error)
    }
}
