//! What Diesel's error means for the flush: whether another time it may succeed.
//!
//! Diesel sorts the errors of databases into kinds, and keeps SQLSTATEs and numbers to itself. Where a
//! kind says too little, each backend knows errors by their texts, which are English unless the server
//! was told otherwise (`lc_messages`): then a deadlock on PostgreSQL, and a lock wait time-out on
//! MySQL and MariaDB, are refused and not tried again.

use diesel::result::{DatabaseErrorKind, Error};
use ordid_core::unit_of_work::{DriverError, Failure, Violation};

use crate::backend::Backend;

/// Takes an error of anything but COMMIT with what it means.
pub(crate) fn judge<DB: Backend>(error: Error) -> DriverError<Error> {
    let failure = failure::<DB>(&error);
    judged::<DB>(error, failure)
}

/// Takes an error of COMMIT with what it means.
pub(crate) fn judge_commit<DB: Backend>(error: Error) -> DriverError<Error> {
    let failure = commit_failure::<DB>(&error);
    judged::<DB>(error, failure)
}

fn judged<DB: Backend>(error: Error, failure: Failure) -> DriverError<Error> {
    let violation = match (failure, &error) {
        (Failure::Duplicate, _) => Some(Violation::Unique),
        (_, Error::DatabaseError(DatabaseErrorKind::ForeignKeyViolation, _)) => {
            Some(Violation::ForeignKey)
        }
        _ => None,
    };
    DriverError {
        refuses_a_row: refuses_a_row::<DB>(&error),
        violation,
        ..DriverError::new(error, failure)
    }
}

/// Returns what an error of anything but COMMIT means.
fn failure<DB: Backend>(error: &Error) -> Failure {
    of(error, DB::failure)
}

/// Returns what an error of COMMIT means: it was carried out or not, unless the database says that it
/// was not.
fn commit_failure<DB: Backend>(error: &Error) -> Failure {
    match error {
        Error::DatabaseError(..) => of(error, DB::commit_failure),
        _ => Failure::Lost,
    }
}

fn of(error: &Error, of_database: impl Fn(DatabaseErrorKind, &str) -> Failure) -> Failure {
    match error {
        Error::DatabaseError(kind, information) => match kind {
            DatabaseErrorKind::UniqueViolation => Failure::Duplicate,
            DatabaseErrorKind::ClosedConnection | DatabaseErrorKind::UnableToSendCommand => {
                Failure::Lost
            }
            _ if is_about_a_row(*kind) => Failure::Refused,
            kind => of_database(*kind, information.message()),
        },
        // A transaction could not be rolled back.
        Error::BrokenTransactionManager | Error::RollbackErrorOnCommit { .. } => Failure::Lost,
        _ => Failure::Refused,
    }
}

/// Whether a row was refused for what is in it.
fn refuses_a_row<DB: Backend>(error: &Error) -> bool {
    match error {
        Error::DatabaseError(kind, information) => {
            let text = information.message();
            is_about_a_row(*kind)
                || failure::<DB>(error) == Failure::Duplicate
                || DB::REFUSALS.iter().any(|it| text.starts_with(it))
        }
        _ => false,
    }
}

fn is_about_a_row(kind: DatabaseErrorKind) -> bool {
    matches!(
        kind,
        DatabaseErrorKind::UniqueViolation
            | DatabaseErrorKind::ForeignKeyViolation
            | DatabaseErrorKind::RestrictViolation
            | DatabaseErrorKind::NotNullViolation
            | DatabaseErrorKind::CheckViolation
            | DatabaseErrorKind::ExclusionViolation
    )
}

#[cfg(all(test, feature = "postgres", feature = "mysql", feature = "sqlite"))]
mod tests {
    use Failure::{Duplicate, Lost, Refused, Transient};
    use diesel::{mysql::Mysql, pg::Pg, sqlite::Sqlite};

    use super::*;

    fn error(kind: DatabaseErrorKind, message: &str) -> Error {
        Error::DatabaseError(kind, Box::new(message.to_owned()))
    }

    #[test]
    fn kinds_say_it_on_every_backend() {
        use DatabaseErrorKind as Kind;
        for (kind, expected) in [
            (Kind::UniqueViolation, Duplicate),
            (Kind::ForeignKeyViolation, Refused),
            (Kind::CheckViolation, Refused),
            (Kind::ClosedConnection, Lost),
            (Kind::UnableToSendCommand, Lost),
        ] {
            let error = error(kind, "as the test asks");
            let found = [
                failure::<Pg>(&error),
                failure::<Mysql>(&error),
                failure::<Sqlite>(&error),
            ];
            assert_eq!(found, [expected; 3], "{kind:?}");
        }
        let serialization = error(Kind::SerializationFailure, "as the test asks");
        assert_eq!(failure::<Pg>(&serialization), Transient);
        assert_eq!(failure::<Mysql>(&serialization), Transient);
        assert_eq!(failure::<Pg>(&Error::BrokenTransactionManager), Lost);
        assert_eq!(failure::<Pg>(&Error::NotFound), Refused);
    }

    #[test]
    fn texts_say_what_kinds_do_not() {
        let unknown = |message| error(DatabaseErrorKind::Unknown, message);
        for (message, expected) in [
            ("deadlock detected", Transient),
            ("canceling statement due to lock timeout", Transient),
            ("terminating connection due to administrator command", Lost),
            ("canceling statement due to statement timeout", Refused),
            ("relation \"orders\" does not exist", Refused),
        ] {
            assert_eq!(failure::<Pg>(&unknown(message)), expected, "{message}");
        }
        for (message, expected) in [
            (
                "Lock wait timeout exceeded; try restarting transaction",
                Transient,
            ),
            ("Lost connection to MySQL server during query", Lost),
            ("Lost connection to server during query", Lost),
            ("Server has gone away", Lost),
            (
                "Input/output error: Input/output error: Broken pipe (os error 32)",
                Lost,
            ),
            ("Driver error: `Connection to the server is closed.'", Lost),
            (
                "The MariaDB server is running with the --read-only option so it cannot execute \
                 this statement",
                Lost,
            ),
            ("Data too long for column 'name' at row 1", Refused),
        ] {
            assert_eq!(failure::<Mysql>(&unknown(message)), expected, "{message}");
        }
        for (message, expected) in [
            ("database is locked", Transient),
            ("database table is locked: orders", Transient),
            ("UNIQUE constraint failed: orders.id", Duplicate),
            ("disk I/O error", Refused),
        ] {
            assert_eq!(failure::<Sqlite>(&unknown(message)), expected, "{message}");
        }
    }

    #[test]
    fn what_is_about_a_row_is_looked_for() {
        let unknown = |message| error(DatabaseErrorKind::Unknown, message);
        let too_long = unknown("value too long for type character varying(10)");
        assert!(refuses_a_row::<Pg>(&too_long));
        let check = unknown("CONSTRAINT `CONSTRAINT_1` failed for `shop`.`orders`");
        assert!(refuses_a_row::<Mysql>(&check));
        assert!(refuses_a_row::<Sqlite>(&unknown(
            "UNIQUE constraint failed: orders.id"
        )));
        let no_table = unknown("relation \"orders\" does not exist");
        assert!(!refuses_a_row::<Pg>(&no_table));
    }

    #[test]
    fn what_may_have_been_committed_is_lost() {
        let unknown = |message| error(DatabaseErrorKind::Unknown, message);
        let rollback = Error::RollbackErrorOnCommit {
            rollback_error: Box::new(Error::NotInTransaction),
            commit_error: Box::new(unknown("deadlock detected")),
        };
        assert_eq!(commit_failure::<Pg>(&rollback), Lost);
        assert_eq!(commit_failure::<Mysql>(&unknown("anything")), Lost);
        assert_eq!(commit_failure::<Sqlite>(&unknown("disk I/O error")), Lost);
        // The database has rolled back.
        let deadlock =
            unknown("Deadlock found when trying to get lock; try restarting transaction");
        assert_eq!(commit_failure::<Mysql>(&deadlock), Transient);
        let foreign = error(DatabaseErrorKind::ForeignKeyViolation, "violates");
        assert_eq!(commit_failure::<Pg>(&foreign), Refused);
        assert_eq!(
            commit_failure::<Sqlite>(&unknown("database is locked")),
            Transient
        );
        assert_eq!(
            commit_failure::<Pg>(&unknown("raised by a trigger")),
            Refused
        );
    }
}
