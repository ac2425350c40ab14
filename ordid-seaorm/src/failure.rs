//! What SeaORM's errors mean for the flush: whether another time it may succeed. The databases' codes
//! are looked up in core.

use ordid_core::unit_of_work::{DriverError, Failure, Violation};
use sea_orm::{ConnAcquireErr, DbErr, SqlErr};
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
use sea_orm::{
    RuntimeErr,
    sqlx::{self, error::DatabaseError},
};

use crate::Error;

/// Returns SQLx's error inside of one of SeaORM's.
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
pub(crate) fn as_sqlx(error: &DbErr) -> Option<&sqlx::Error> {
    match error {
        DbErr::Conn(RuntimeErr::SqlxError(error))
        | DbErr::Exec(RuntimeErr::SqlxError(error))
        | DbErr::Query(RuntimeErr::SqlxError(error)) => Some(error),
        _ => None,
    }
}

/// Takes an error of anything but COMMIT with what it means.
pub(crate) fn judge(error: DbErr) -> DriverError<DbErr> {
    let failure = failure(&error, false);
    judged(error, failure)
}

/// Takes an error of COMMIT with what it means.
pub(crate) fn judge_commit(error: DbErr) -> DriverError<DbErr> {
    let failure = failure(&error, true);
    judged(error, failure)
}

/// SeaORM has learned of a database that is not known here.
pub(crate) fn unknown_database() -> Error {
    Error::database(
        "SeaORM is connected to a database that is not known here",
        "ordid knows PostgreSQL, MySQL, MariaDB and SQLite",
    )
}

fn judged(error: DbErr, failure: Failure) -> DriverError<DbErr> {
    let violation = match error.sql_err() {
        Some(SqlErr::UniqueConstraintViolation(_)) => Some(Violation::Unique),
        Some(SqlErr::ForeignKeyConstraintViolation(_)) => Some(Violation::ForeignKey),
        _ => None,
    };
    DriverError {
        has_waited: error == DbErr::ConnectionAcquire(ConnAcquireErr::Timeout),
        refuses_a_row: is_about_a_row(&error),
        violation,
        ..DriverError::new(error, failure)
    }
}

/// Returns what an error means: of COMMIT, that it was carried out or not, unless the database says that
/// it was not.
///
/// A pool that made or found no connection in the time that it is given has tried again itself.
fn failure(error: &DbErr, is_commit: bool) -> Failure {
    #[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
    if let Some(error) = as_sqlx(error) {
        return match error {
            sqlx::Error::Database(error) => of_database(&**error, is_commit),
            _ if is_commit => Failure::Lost,
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::WorkerCrashed
            | sqlx::Error::BeginFailed => Failure::Lost,
            _ => Failure::Refused,
        };
    }
    match error {
        DbErr::ConnectionAcquire(ConnAcquireErr::Timeout | ConnAcquireErr::ConnectionClosed) => {
            Failure::Refused
        }
        _ if is_commit => Failure::Lost,
        DbErr::Conn(_) => Failure::Lost,
        _ => Failure::Refused,
    }
}

#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
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

/// Returns whether the database refused a value or a constraint, so that the row can be found.
fn is_about_a_row(error: &DbErr) -> bool {
    #[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
    if let Some(sqlx::Error::Database(error)) = as_sqlx(error) {
        // SQLSTATE classes 22 (data exception) and 23 (integrity constraint violation); SQLite has
        // codes of its own, which SQLx sorts into kinds.
        let class = error.code().is_some_and(|code| {
            code.len() == 5 && (code.starts_with("22") || code.starts_with("23"))
        });
        return class || !matches!(error.kind(), sqlx::error::ErrorKind::Other);
    }
    let _ = error;
    false
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;

    #[test]
    fn what_seaorm_and_the_driver_say_themselves() {
        let sqlx = |error: sqlx::Error| DbErr::Query(RuntimeErr::SqlxError(error.into()));
        let io = || sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into());
        for (error, expected, of_commit) in [
            (sqlx(io()), Failure::Lost, Failure::Lost),
            (
                sqlx(sqlx::Error::WorkerCrashed),
                Failure::Lost,
                Failure::Lost,
            ),
            (
                sqlx(sqlx::Error::RowNotFound),
                Failure::Refused,
                Failure::Lost,
            ),
            (
                DbErr::ConnectionAcquire(ConnAcquireErr::Timeout),
                Failure::Refused,
                Failure::Refused,
            ),
            (DbErr::RecordNotInserted, Failure::Refused, Failure::Lost),
        ] {
            assert_eq!(failure(&error, false), expected, "{error}");
            assert_eq!(failure(&error, true), of_commit, "{error}");
        }
    }
}
