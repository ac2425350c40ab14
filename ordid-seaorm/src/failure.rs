//! What SeaORM's errors mean for the flush: whether another time it may succeed. `ordid-sql` looks the databases'
//! codes up.

use ordid_core::storage::{Dialect as _, dialect};
use ordid_sql::{DriverError, EngineProfile, Failure};
use sea_orm::{ConnAcquireErr, DbBackend, DbErr};
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
use {
    ordid_sql::classify::{Classified, ErrorKind, Report},
    sea_orm::{
        RuntimeErr, SqlErr,
        sqlx::{self, error::DatabaseError},
    },
};

use crate::Error;

/// Returns how the engine behaves that SeaORM is connected to.
pub(crate) fn engine(backend: DbBackend) -> Result<EngineProfile, Error> {
    match backend {
        DbBackend::Postgres => Ok(EngineProfile::POSTGRES),
        DbBackend::MySql => Ok(EngineProfile::MYSQL),
        DbBackend::Sqlite => Ok(EngineProfile::SQLITE),
        // SeaORM has learned of another one.
        _ => Err(Error::database(
            "SeaORM is connected to a database that is not known here",
            "ordid knows PostgreSQL, MySQL, MariaDB and SQLite",
        )),
    }
}

/// Refuses a database whose feature is off. Without the feature, its errors are not classified, so nothing would be
/// retried.
pub(crate) fn is_built_for(backend: DbBackend) -> Result<(), Error> {
    let (name, feature, is_on) = match backend {
        DbBackend::Postgres => ("PostgreSQL", "postgres", cfg!(feature = "postgres")),
        DbBackend::MySql => ("MySQL or MariaDB", "mysql", cfg!(feature = "mysql")),
        DbBackend::Sqlite => ("SQLite", "sqlite", cfg!(feature = "sqlite")),
        _ => return Ok(()),
    };
    if is_on {
        return Ok(());
    }
    Err(Error::database(
        format!("SeaORM is connected to {name}, which ordid-seaorm is not built for"),
        format!("turn on its feature: `cargo add ordid-seaorm --features {feature}`"),
    ))
}

/// Returns the database whose statements an engine is sent.
pub(crate) fn backend_of(engine: &EngineProfile) -> Option<DbBackend> {
    match engine.dialect() {
        dialect::Postgres::NAME => Some(DbBackend::Postgres),
        dialect::MySql::NAME => Some(DbBackend::MySql),
        dialect::Sqlite::NAME => Some(DbBackend::Sqlite),
        _ => None,
    }
}

#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
ordid_sql::sqlx_errors! { sqlx }

/// Returns SQLx's error in one of SeaORM.
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
fn sqlx_error(error: &DbErr) -> Option<&sqlx::Error> {
    match error {
        DbErr::Conn(RuntimeErr::SqlxError(inner))
        | DbErr::Exec(RuntimeErr::SqlxError(inner))
        | DbErr::Query(RuntimeErr::SqlxError(inner)) => Some(inner),
        _ => None,
    }
}

/// Takes an error of a savepoint that was to begin.
pub(crate) fn savepoint_not_begun(backend: DbBackend, error: DbErr) -> Error {
    let error = classify(backend, error, false);
    #[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
    return no_savepoint(error, sqlx_error);
    #[cfg(not(any(feature = "postgres", feature = "mysql", feature = "sqlite")))]
    Error::begin(error)
}

/// Takes an error with what it means: of COMMIT, that it was carried out or not, unless the database says that
/// it was not.
pub(crate) fn classify(backend: DbBackend, error: DbErr, is_commit: bool) -> DriverError<DbErr> {
    #[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
    if let Some(inner) = sqlx_error(&error) {
        let failure = match inner {
            sqlx::Error::Database(told) => {
                if let Ok(engine) = engine(backend) {
                    return DriverError {
                        text: text(&**told, &error),
                        ..of_database(&engine, &error, &**told, is_commit).of(error)
                    };
                }
                Failure::Refused
            }
            inner => own(inner, is_commit),
        };
        return DriverError::new(error, failure);
    }
    let _ = backend;
    let failure = match &error {
        DbErr::ConnectionAcquire(ConnAcquireErr::Timeout | ConnAcquireErr::ConnectionClosed) => {
            Failure::Refused
        }
        _ if is_commit => Failure::Lost,
        DbErr::Conn(_) => Failure::Lost,
        _ => Failure::Refused,
    };
    DriverError {
        has_waited: error == DbErr::ConnectionAcquire(ConnAcquireErr::Timeout),
        ..DriverError::new(error, failure)
    }
}

/// Says what an error of the database means.
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
fn of_database(
    engine: &EngineProfile,
    error: &DbErr,
    told: &(dyn DatabaseError + 'static),
    is_commit: bool,
) -> Classified {
    let code = told.code();
    let kind = match error.sql_err() {
        // SeaORM knows more of MySQL's numbers.
        Some(SqlErr::ForeignKeyConstraintViolation(_)) => Some(ErrorKind::ForeignKey),
        _ => kind(told.kind()),
    };
    #[cfg(feature = "mysql")]
    let number = told
        .try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>()
        .map(|error| error.number().into());
    #[cfg(not(feature = "mysql"))]
    let number = None;
    engine.classify(&Report {
        sqlstate: code.as_deref(),
        // SQLite's code is a number.
        number: number.or_else(|| code.as_deref()?.parse().ok()),
        kind,
        constraint: told.constraint(),
        column: column(told),
        is_fatal: is_fatal(told),
        message: told.message(),
        is_commit,
        ..Report::default()
    })
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
            let has_waited = error == DbErr::ConnectionAcquire(ConnAcquireErr::Timeout);
            for (is_commit, expected) in [(false, expected), (true, of_commit)] {
                let classified = classify(DbBackend::Sqlite, error.clone(), is_commit);
                assert_eq!(classified.failure, expected, "{error}");
                assert_eq!(classified.has_waited, has_waited, "{error}");
            }
        }
    }
}

#[cfg(test)]
mod feature_tests {
    use super::*;

    #[test]
    fn a_database_whose_feature_is_off_is_refused_by_its_name() {
        for (backend, feature, is_on) in [
            (DbBackend::Postgres, "postgres", cfg!(feature = "postgres")),
            (DbBackend::MySql, "mysql", cfg!(feature = "mysql")),
            (DbBackend::Sqlite, "sqlite", cfg!(feature = "sqlite")),
        ] {
            let text = is_built_for(backend).map_err(|error| error.to_string());
            let names = format!("`cargo add ordid-seaorm --features {feature}`");
            assert_eq!(text.is_ok(), is_on, "{feature}");
            assert!(
                text.err().is_none_or(|text| text.contains(&names)),
                "{feature}"
            );
        }
    }
}
