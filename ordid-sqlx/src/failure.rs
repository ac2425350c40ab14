//! What a driver's error means for the flush: whether another time it may succeed.
//!
//! A limit or a person that ended a statement (a statement's time-out, `pg_cancel_backend`) is not
//! gone against: that is refused. A server that has become read-only is as good as lost: behind the
//! address of a cluster, another connection reaches the one that now writes.
//!
//! # References
//!
//! - [PostgreSQL's SQLSTATEs](https://www.postgresql.org/docs/current/errcodes-appendix.html)
//! - [MySQL's numbers](https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html)
//! - [MariaDB's numbers](https://mariadb.com/docs/server/reference/error-codes/mariadb-error-code-reference)
//! - [SQLite's result codes](https://www.sqlite.org/rescode.html)

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
        return postgres(error.code());
    }
    #[cfg(feature = "mysql")]
    if let Some(error) = error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
        return mysql(error.number(), error.message(), is_commit);
    }
    #[cfg(feature = "sqlite")]
    if error
        .try_downcast_ref::<sqlx::sqlite::SqliteError>()
        .is_some()
    {
        let code = error.code().and_then(|code| code.parse().ok());
        return code.map_or(Failure::Refused, |code| sqlite(code, is_commit));
    }
    let _ = is_commit;
    Failure::Refused
}

/// By SQLSTATE. Databases that speak PostgreSQL's protocol use the same.
#[cfg(feature = "postgres")]
fn postgres(code: &str) -> Failure {
    match code {
        "23505" => Failure::Duplicate,
        "40001" // serialization failure
        | "40P01" // deadlock
        | "55P03" // lock not available
        | "53300" // too many connections
        => Failure::Transient,
        "40003" // statement completion unknown: not PostgreSQL's own
        | "57P01" | "57P02" | "57P03" // shut down, crashed, starting
        | "57P05" | "25P03" | "25P04" // ended by a time-out of the session or the transaction
        | "25006" // read-only
        => Failure::Lost,
        _ if code.starts_with("08") => Failure::Lost,
        _ => Failure::Refused,
    }
}

/// By number: MySQL's SQLSTATEs are coarser.
#[cfg(feature = "mysql")]
fn mysql(number: u16, message: &str, is_commit: bool) -> Failure {
    match number {
        1317 // query interrupted, as when the connection is killed
        | 1180 // error during COMMIT
        if is_commit => Failure::Lost,
        1205 // lock wait time-out
        | 1213 | 1614 // deadlock
        | 3572 // NOWAIT
        | 1020 // record has changed since last read: MariaDB's snapshot isolation
        | 1317
        | 1040 | 1203 // too many connections, of all or of a user
        | 1637 // too many concurrent transactions
        | 1047 // Galera: the node is not ready
        | 3101 // group replication rolled back
        => Failure::Transient,
        1053 // shutting down
        | 1152..=1161 // aborted, packets that cannot be read or written
        | 1184 // aborted
        | 1836 // read-only
        | 1927 // MariaDB: the connection was killed
        | 4031 // closed after being idle
        => Failure::Lost,
        // Also about other options.
        1290 if message.contains("read-only") || message.contains("read_only") => Failure::Lost,
        _ => Failure::Refused,
    }
}

/// By extended result code; the lowest byte is the primary one.
#[cfg(feature = "sqlite")]
fn sqlite(code: i32, is_commit: bool) -> Failure {
    const BUSY: i32 = 5;
    const LOCKED: i32 = 6;
    const CONSTRAINT_ROWID: i32 = 2579;
    const IOERR_FSYNC: i32 = 1034;
    const IOERR_DIR_FSYNC: i32 = 1290;
    const IOERR_TRUNCATE: i32 = 1546;

    match code & 0xff {
        // What ends a journal failed after the rows were written, or not before the next crash.
        _ if is_commit && matches!(code, IOERR_FSYNC | IOERR_DIR_FSYNC | IOERR_TRUNCATE) => {
            Failure::Lost
        }
        BUSY | LOCKED => Failure::Transient,
        _ if code == CONSTRAINT_ROWID => Failure::Duplicate,
        _ => Failure::Refused,
    }
}

#[cfg(all(test, feature = "postgres", feature = "mysql", feature = "sqlite"))]
mod tests {
    use Failure::{Duplicate, Lost, Refused, Transient};

    use super::*;

    #[test]
    fn postgres_is_told_by_sqlstate() {
        for (codes, expected) in [
            (&["40001", "40P01", "55P03", "53300"][..], Transient),
            (
                &["57P01", "57P02", "57P03", "57P05", "25P03", "25P04"],
                Lost,
            ),
            (
                &[
                    "08000", "08003", "08006", "08007", "08P01", "40003", "25006",
                ],
                Lost,
            ),
            (&["23505"], Duplicate),
            // Foreign key, cut off, no such table, disk full, canceled, database dropped.
            (
                &["23503", "22001", "42P01", "53100", "57014", "57P04"],
                Refused,
            ),
        ] {
            for code in codes {
                assert_eq!(postgres(code), expected, "{code}");
            }
        }
    }

    #[test]
    fn mysql_is_told_by_number() {
        for (numbers, expected) in [
            (
                &[1205, 1213, 1614, 3572, 1020, 1317, 1040, 1203, 1047, 3101][..],
                Transient,
            ),
            (&[1053, 1158, 1160, 1184, 1836, 1927, 4031], Lost),
            // Foreign key, unknown table, statement's time-out (MariaDB, MySQL), another option.
            (&[1452, 1146, 1969, 3024, 1290], Refused),
        ] {
            for number in numbers {
                assert_eq!(mysql(*number, "", false), expected, "{number}");
            }
        }
        let message = "The MySQL server is running with the --read-only option so it cannot execute \
                       this statement";
        assert_eq!(mysql(1290, message, false), Lost);
    }

    #[test]
    fn what_may_have_been_committed_is_lost() {
        for number in [1317, 1180, 1053, 1927] {
            assert_eq!(mysql(number, "", true), Lost, "{number}");
        }
        // Galera refuses at COMMIT, and has rolled back.
        assert_eq!(mysql(1213, "", true), Transient);
        for error in [sqlx::Error::WorkerCrashed, sqlx::Error::RowNotFound] {
            assert_eq!(commit_failure(&error), Lost);
        }
    }

    #[test]
    fn sqlite_is_told_by_the_primary_code() {
        for (codes, expected) in [
            // Busy, also in recovery, with an old snapshot, after a time-out; locked, also by a shared
            // cache and a virtual table.
            (&[5, 261, 517, 773, 6, 262, 518][..], Transient),
            (&[2579], Duplicate),
            // NOT NULL, foreign key, read-only, disk full, I/O.
            (&[1299, 787, 8, 13, 10, 1, 1034, 1290, 1546], Refused),
        ] {
            for code in codes {
                assert_eq!(sqlite(*code, false), expected, "{code}");
            }
        }
        // An I/O error of COMMIT that may come after the rows; others come before.
        assert!(
            [1034, 1290, 1546]
                .iter()
                .all(|code| sqlite(*code, true) == Lost)
        );
        assert_eq!(sqlite(778, true), Refused);
        assert_eq!(sqlite(5, true), Transient);
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
