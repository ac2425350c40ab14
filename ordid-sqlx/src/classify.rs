//! What SQLx's errors mean for a flush. What the database's own mean is found in `ordid-sql`.

use ordid_sql::{
    DriverError, EngineProfile, Failure,
    classify::{Classified, Report},
};
use sqlx::error::DatabaseError;

use crate::Error;

/// Takes an error of anything but COMMIT with what it means.
pub(crate) fn classify(error: sqlx::Error) -> DriverError<sqlx::Error> {
    of(error, false)
}

/// Takes an error of COMMIT with what it means: it was carried out or not, unless the database says that it
/// was not.
pub(crate) fn classify_commit(error: sqlx::Error) -> DriverError<sqlx::Error> {
    of(error, true)
}

/// Returns what an error of a statement other than COMMIT means, by the same tables as a flush: whether the statement may
/// succeed another time on this connection ([`Failure::Transient`]), on another one ([`Failure::Lost`]), or not.
pub fn failure_of(error: &sqlx::Error) -> Failure {
    match error {
        sqlx::Error::Database(found) => classified(&**found, false).failure,
        _ => own(error, false),
    }
}

pub(crate) fn classified(found: &(dyn DatabaseError + 'static), is_commit: bool) -> Classified {
    let code = found.code();
    let (engine, number) = engine(found, code.as_deref());
    engine.classify(&Report {
        sqlstate: code.as_deref(),
        number,
        kind: kind(found.kind()),
        constraint: found.constraint(),
        column: column(found),
        is_fatal: is_fatal(found),
        message: found.message(),
        is_commit,
        ..Report::default()
    })
}

fn of(error: sqlx::Error, is_commit: bool) -> DriverError<sqlx::Error> {
    match &error {
        sqlx::Error::Database(found) => DriverError {
            text: text(&**found, &error),
            ..classified(&**found, is_commit).of(error)
        },
        _ => {
            let failure = own(&error, is_commit);
            DriverError {
                has_waited: matches!(error, sqlx::Error::PoolTimedOut),
                ..DriverError::new(error, failure)
            }
        }
    }
}

/// Returns whose error it is, and the number of MySQL and MariaDB, which is finer than their SQLSTATE, or SQLite's
/// code.
fn engine(
    error: &(dyn DatabaseError + 'static),
    code: Option<&str>,
) -> (EngineProfile, Option<i64>) {
    #[cfg(feature = "mysql")]
    if let Some(error) = error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
        return (EngineProfile::MYSQL, Some(error.number().into()));
    }
    #[cfg(feature = "sqlite")]
    if error
        .try_downcast_ref::<sqlx::sqlite::SqliteError>()
        .is_some()
    {
        let number = code.and_then(|code| code.parse().ok());
        return (EngineProfile::SQLITE, number);
    }
    let _ = (error, code);
    (EngineProfile::POSTGRES, None)
}

ordid_sql::sqlx_errors! { sqlx }

/// Says why no transaction could be begun.
pub(crate) fn not_begun(error: sqlx::Error) -> Error {
    // SQLite's own words, where one was begun behind SQLx's back.
    let open = "cannot start a transaction within a transaction";
    match error.as_database_error() {
        Some(error) if error.message() == open => Error::open_transaction("connection"),
        _ => Error::begin(classify(error)),
    }
}

/// Takes an error of a savepoint that was to begin.
pub(crate) fn savepoint_not_begun(error: sqlx::Error) -> Error {
    no_savepoint(classify(error), |error| Some(error))
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use ordid_sql::Failure::{Lost, Refused};

    use super::*;

    #[test]
    fn an_error_of_commit_that_is_not_the_databases_leaves_it_open() {
        for error in [sqlx::Error::WorkerCrashed, sqlx::Error::RowNotFound] {
            assert_eq!(classify_commit(error).failure, Lost);
        }
    }

    #[test]
    fn a_pool_that_waited_is_not_waited_for_again() {
        let error = Error::begin(classify(sqlx::Error::PoolTimedOut));
        assert!(error.is_transient() && error.failure() == Refused);
        let error = Error::commit(classify_commit(sqlx::Error::WorkerCrashed));
        assert!(error.is_connection_lost() && !error.is_transient());
        assert!(matches!(error.driver(), Some(sqlx::Error::WorkerCrashed)));
    }

    #[test]
    fn errors_of_sqlx_itself_are_known() {
        let io = sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into());
        for (error, expected) in [
            (io, Lost),
            (sqlx::Error::Protocol("unexpected".into()), Lost),
            (sqlx::Error::WorkerCrashed, Lost),
            (sqlx::Error::PoolTimedOut, Refused),
            (sqlx::Error::PoolClosed, Refused),
            (sqlx::Error::RowNotFound, Refused),
        ] {
            assert_eq!(failure_of(&error), expected);
            assert_eq!(own(&error, false), expected, "{error}");
        }
    }
}
