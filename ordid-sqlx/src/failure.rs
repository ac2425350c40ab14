//! What a driver's error means for the flush: whether another time it may succeed.
//! The codes are looked up in core.

use ordid_core::unit_of_work::Failure;
use sqlx::error::DatabaseError;

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
pub(crate) fn commit_failure(error: &sqlx::Error) -> Failure {
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
