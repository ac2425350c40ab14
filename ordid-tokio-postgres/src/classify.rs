//! What tokio-postgres' errors mean for a flush. What the database's own mean is found in `ordid-sql`.

use std::error::Error as _;

use ordid_sql::{DriverError, EngineProfile, Failure, classify::Report};
use tokio_postgres::{Error, error::Severity};

/// How the texts of tokio-postgres' errors begin that are about values or a message, and not about the connection. It
/// keeps their kinds to itself.
const OF_VALUES: [&str; 6] = [
    "error serializing parameter ",
    "error deserializing column ",
    "error encoding message",
    "invalid column ",
    "expected ",
    "query returned an unexpected number of ",
];

/// Takes an error of anything but COMMIT with what it means.
pub(crate) fn classify(error: Error) -> DriverError<Error> {
    of(error, false)
}

/// Takes an error of COMMIT with what it means: it was carried out or not, unless the database says that it was not.
pub(crate) fn classify_commit(error: Error) -> DriverError<Error> {
    of(error, true)
}

/// Takes an error after which the client takes the answer to one request for that to another.
pub(crate) fn classify_lost(error: Error) -> DriverError<Error> {
    DriverError {
        failure: Failure::Lost,
        ..of(error, false)
    }
}

fn of(error: Error, is_commit: bool) -> DriverError<Error> {
    let Some(found) = error.as_db_error() else {
        let failure = match is_of_values(&error) && !is_commit {
            true => Failure::Refused,
            false => Failure::Lost,
        };
        // The error's own text leaves out what is wrong.
        let text = error.source().map(|source| match is_of_values(&error) {
            true => source.to_string(),
            false => format!("{error}: {source}"),
        });
        return DriverError {
            text,
            ..DriverError::new(error, failure)
        };
    };
    let report = Report {
        sqlstate: Some(found.code().code()),
        constraint: found.constraint(),
        column: found.column(),
        is_fatal: matches!(
            found.parsed_severity(),
            Some(Severity::Fatal | Severity::Panic)
        ),
        message: found.message(),
        is_commit,
        ..Report::default()
    };
    let classified = EngineProfile::POSTGRES.classify(&report);
    // The error's own text says only that it is the database's.
    let text = found.message().to_owned();
    DriverError {
        text: Some(text),
        ..classified.of(error)
    }
}

fn is_of_values(error: &Error) -> bool {
    let text = error.to_string();
    OF_VALUES.iter().any(|begin| text.starts_with(begin))
}
