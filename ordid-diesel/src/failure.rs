//! What Diesel's error means for the flush.
//!
//! Diesel sorts the errors of databases into kinds, and keeps SQLSTATEs and numbers to itself. Where a kind
//! says too little, [`ordid_sql::classify`] knows errors by their texts, which are English unless the server
//! has other `lc_messages`: then a lock time-out, and where a language has its own word a deadlock, are refused and not
//! tried again.

use diesel::result::{DatabaseErrorKind as Kind, Error};
use ordid_sql::{
    DriverError, Failure,
    classify::{ErrorKind, Report},
};

use crate::{backend::Backend, connection::engine};

/// Takes an error with what it means; `is_commit` says that it is the answer to COMMIT.
pub(crate) fn classify<DB: Backend>(error: Error, is_commit: bool) -> DriverError<Error> {
    let classified = match &error {
        Error::DatabaseError(kind, information) => engine::<DB>().classify(&Report {
            kind: kind_of(*kind),
            constraint: information.constraint_name(),
            column: information.column_name(),
            message: information.message(),
            is_commit,
            ..Report::default()
        }),
        // A transaction could not be rolled back.
        Error::BrokenTransactionManager | Error::RollbackErrorOnCommit { .. } => {
            return DriverError::new(error, Failure::Lost);
        }
        // COMMIT was carried out or not, unless the database says that it was not.
        _ if is_commit => return DriverError::new(error, Failure::Lost),
        _ => return DriverError::new(error, Failure::Refused),
    };
    classified.of(error)
}

const fn kind_of(kind: Kind) -> Option<ErrorKind> {
    match kind {
        Kind::UniqueViolation => Some(ErrorKind::Unique),
        Kind::ForeignKeyViolation | Kind::RestrictViolation => Some(ErrorKind::ForeignKey),
        Kind::NotNullViolation => Some(ErrorKind::NotNull),
        Kind::CheckViolation => Some(ErrorKind::Check),
        Kind::ExclusionViolation => Some(ErrorKind::Constraint),
        Kind::SerializationFailure => Some(ErrorKind::Serialization),
        Kind::ReadOnlyTransaction => Some(ErrorKind::ReadOnly),
        Kind::ClosedConnection | Kind::UnableToSendCommand => Some(ErrorKind::Closed),
        _ => None,
    }
}

#[cfg(all(test, feature = "postgres", feature = "mysql", feature = "sqlite"))]
mod tests {
    use Failure::{Duplicate, Lost, Refused, Transient};
    use diesel::{mysql::Mysql, pg::Pg, sqlite::Sqlite};

    use super::*;

    fn error(kind: Kind, message: &str) -> Error {
        Error::DatabaseError(kind, Box::new(message.to_owned()))
    }

    fn failure<DB: Backend>(error: Error) -> Failure {
        classify::<DB>(error, false).failure
    }

    fn commit_failure<DB: Backend>(error: Error) -> Failure {
        classify::<DB>(error, true).failure
    }

    fn refuses_a_row<DB: Backend>(error: Error) -> bool {
        classify::<DB>(error, false).refuses_a_row
    }

    #[test]
    fn kinds_say_it_on_every_backend() {
        for (kind, expected) in [
            (Kind::UniqueViolation, Duplicate),
            (Kind::ForeignKeyViolation, Refused),
            (Kind::CheckViolation, Refused),
            (Kind::ClosedConnection, Lost),
            (Kind::UnableToSendCommand, Lost),
        ] {
            let error = || error(kind, "as the test asks");
            let found = [
                failure::<Pg>(error()),
                failure::<Mysql>(error()),
                failure::<Sqlite>(error()),
            ];
            assert_eq!(found, [expected; 3], "{kind:?}");
        }
        let serialization = || error(Kind::SerializationFailure, "as the test asks");
        assert_eq!(failure::<Pg>(serialization()), Transient);
        assert_eq!(failure::<Mysql>(serialization()), Transient);
        assert_eq!(failure::<Pg>(Error::BrokenTransactionManager), Lost);
        assert_eq!(failure::<Pg>(Error::NotFound), Refused);
    }

    /// The texts of each engine are tested beside their tables, in `ordid-sql`.
    #[test]
    fn texts_say_what_kinds_do_not() {
        let unknown = |message| error(Kind::Unknown, message);
        assert_eq!(failure::<Pg>(unknown("deadlock detected")), Transient);
        let lost = unknown("Lost connection to server during query");
        assert_eq!(failure::<Mysql>(lost), Lost);
        assert_eq!(failure::<Sqlite>(unknown("database is locked")), Transient);
        assert_eq!(failure::<Sqlite>(unknown("disk I/O error")), Refused);
    }

    #[test]
    fn what_is_about_a_row_is_looked_for() {
        let unknown = |message| error(Kind::Unknown, message);
        let too_long = unknown("value too long for type character varying(10)");
        assert!(refuses_a_row::<Pg>(too_long));
        let check = unknown("CONSTRAINT `CONSTRAINT_1` failed for `shop`.`orders`");
        assert!(refuses_a_row::<Mysql>(check));
        assert!(refuses_a_row::<Sqlite>(unknown(
            "UNIQUE constraint failed: orders.id"
        )));
        let no_table = unknown("relation \"orders\" does not exist");
        assert!(!refuses_a_row::<Pg>(no_table));
    }

    #[test]
    fn what_may_have_been_committed_is_lost() {
        let unknown = |message| error(Kind::Unknown, message);
        let rollback = Error::RollbackErrorOnCommit {
            rollback_error: Box::new(Error::NotInTransaction),
            commit_error: Box::new(unknown("deadlock detected")),
        };
        assert_eq!(commit_failure::<Pg>(rollback), Lost);
        assert_eq!(commit_failure::<Mysql>(unknown("anything")), Lost);
        assert_eq!(commit_failure::<Sqlite>(unknown("disk I/O error")), Lost);
        // The database has rolled back.
        let deadlock =
            unknown("Deadlock found when trying to get lock; try restarting transaction");
        assert_eq!(commit_failure::<Mysql>(deadlock), Transient);
        let foreign = error(Kind::ForeignKeyViolation, "violates");
        assert_eq!(commit_failure::<Pg>(foreign), Refused);
        assert_eq!(
            commit_failure::<Sqlite>(unknown("database is locked")),
            Transient
        );
        // It may as well be a server that goes down, in its own language.
        assert_eq!(commit_failure::<Pg>(unknown("ein Text")), Lost);
    }
}
