//! What a driver's error means for the flush: whether another time it may succeed.
//! The codes are looked up in core.

use ordid_core::unit_of_work::{DriverError, Failure, Violation};
use sqlx::error::{DatabaseError, ErrorKind};

use crate::Error;

/// Takes an error of anything but COMMIT with what it means.
pub(crate) fn judge(error: sqlx::Error) -> DriverError<sqlx::Error> {
    let failure = failure(&error);
    judged(error, failure)
}

/// Takes an error of COMMIT with what it means.
pub(crate) fn judge_commit(error: sqlx::Error) -> DriverError<sqlx::Error> {
    let failure = commit_failure(&error);
    judged(error, failure)
}

fn judged(error: sqlx::Error, failure: Failure) -> DriverError<sqlx::Error> {
    let database = error.as_database_error();
    let violation = match database.map(DatabaseError::kind) {
        _ if failure == Failure::Duplicate => Some(Violation::Unique),
        Some(ErrorKind::UniqueViolation) => Some(Violation::Unique),
        Some(ErrorKind::ForeignKeyViolation) => Some(Violation::ForeignKey),
        _ => None,
    };
    DriverError {
        has_waited: matches!(error, sqlx::Error::PoolTimedOut),
        refuses_a_row: database.is_some_and(is_about_a_row),
        violation,
        ..DriverError::new(error, failure)
    }
}

/// Says why no transaction could be begun.
pub(crate) fn not_begun(error: sqlx::Error) -> Error {
    // SQLite's own words, where one was begun behind SQLx's back.
    let open = "cannot start a transaction within a transaction";
    match error.as_database_error() {
        Some(error) if error.message() == open => Error::open_transaction("connection"),
        _ => Error::begin(judge(error)),
    }
}

fn is_about_a_row(error: &(dyn DatabaseError + 'static)) -> bool {
    // SQLSTATE classes 22 (data exception) and 23 (integrity constraint violation); SQLite has
    // codes of its own, which SQLx sorts into kinds.
    let class = error
        .code()
        .is_some_and(|code| code.len() == 5 && (code.starts_with("22") || code.starts_with("23")));
    class || !matches!(error.kind(), ErrorKind::Other)
}

/// Returns what an error of anything but COMMIT means.
///
/// A pool that made or found no connection in the time that it is given has tried again itself.
pub(crate) fn failure(error: &sqlx::Error) -> Failure {
    match error {
        sqlx::Error::Database(error) => of_database(&**error, false),
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => Failure::Lost,
        _ => Failure::Refused,
    }
}

/// Returns what an error of COMMIT means: it was carried out or not, unless the database says that it
/// was not.
fn commit_failure(error: &sqlx::Error) -> Failure {
    match error {
        sqlx::Error::Database(error) => of_database(&**error, true),
        _ => Failure::Lost,
    }
}

fn of_database(error: &(dyn DatabaseError + 'static), is_commit: bool) -> Failure {
    if error.is_unique_violation() {
        return Failure::Duplicate;
    }
    #[cfg(feature = "postgres")]
    if let Some(error) = error.try_downcast_ref::<sqlx::postgres::PgDatabaseError>() {
        return Failure::of_postgres(error.code());
    }
    #[cfg(feature = "mysql")]
    if let Some(error) = error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
        return Failure::of_mysql(error.number(), error.message(), is_commit);
    }
    #[cfg(feature = "sqlite")]
    if error
        .try_downcast_ref::<sqlx::sqlite::SqliteError>()
        .is_some()
    {
        let code = error.code().and_then(|code| code.parse().ok());
        return code.map_or(Failure::Refused, |code| Failure::of_sqlite(code, is_commit));
    }
    let _ = is_commit;
    Failure::Refused
}

#[cfg(all(test, feature = "postgres", feature = "mysql", feature = "sqlite"))]
mod tests {
    use Failure::{Lost, Refused};

    use super::*;

    #[test]
    fn what_may_have_been_committed_is_lost() {
        for error in [sqlx::Error::WorkerCrashed, sqlx::Error::RowNotFound] {
            assert_eq!(commit_failure(&error), Lost);
        }
    }

    #[test]
    fn a_pool_that_waited_is_not_waited_for_again() {
        let error = Error::begin(judge(sqlx::Error::PoolTimedOut));
        assert!(error.is_transient() && error.failure() == Refused);
        let error = Error::commit(judge_commit(sqlx::Error::WorkerCrashed));
        assert!(error.is_connection_lost() && !error.is_transient());
        assert!(matches!(error.driver(), Some(sqlx::Error::WorkerCrashed)));
    }

    #[test]
    fn what_the_driver_says_itself() {
        let io = sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into());
        for (error, expected) in [
            (io, Lost),
            (sqlx::Error::Protocol("unexpected".into()), Lost),
            (sqlx::Error::WorkerCrashed, Lost),
            (sqlx::Error::PoolTimedOut, Refused),
            (sqlx::Error::PoolClosed, Refused),
            (sqlx::Error::RowNotFound, Refused),
        ] {
            assert_eq!(failure(&error), expected, "{error}");
        }
    }
}
