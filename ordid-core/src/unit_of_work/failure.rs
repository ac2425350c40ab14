//! What an error that a database names by a code means for the flush: whether another time it may
//! succeed.
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

use super::Failure;

impl Failure {
    /// By PostgreSQL's SQLSTATE. Databases that speak its protocol use the same. For adapters.
    #[doc(hidden)]
    pub fn of_postgres(sqlstate: &str) -> Self {
        match sqlstate {
            "23505" => Self::Duplicate,
            "40001" // serialization failure
            | "40P01" // deadlock
            | "55P03" // lock not available
            | "53300" // too many connections
            => Self::Transient,
            "40003" // statement completion unknown: not PostgreSQL's own
            | "57P01" | "57P02" | "57P03" // shut down, crashed, starting
            | "57P05" | "25P03" | "25P04" // ended by a time-out of the session or the transaction
            | "25006" // read-only
            => Self::Lost,
            _ if sqlstate.starts_with("08") => Self::Lost,
            _ => Self::Refused,
        }
    }

    /// By MySQL's and MariaDB's number: their SQLSTATEs are coarser. For adapters.
    #[doc(hidden)]
    pub fn of_mysql(number: u16, message: &str, is_commit: bool) -> Self {
        match number {
            1317 // query interrupted, as when the connection is killed
            | 1180 // error during COMMIT
            if is_commit => Self::Lost,
            1205 // lock wait time-out
            | 1213 | 1614 // deadlock
            | 3572 // NOWAIT
            | 1020 // record has changed since last read: MariaDB's snapshot isolation
            | 1317
            | 1040 | 1203 // too many connections, of all or of a user
            | 1637 // too many concurrent transactions
            | 1047 // Galera: the node is not ready
            | 3101 // group replication rolled back
            => Self::Transient,
            1053 // shutting down
            | 1152..=1161 // aborted, packets that cannot be read or written
            | 1184 // aborted
            | 1836 // read-only
            | 1927 // MariaDB: the connection was killed
            | 4031 // closed after being idle
            => Self::Lost,
            // Also about other options.
            1290 if message.contains("read-only") || message.contains("read_only") => Self::Lost,
            _ => Self::Refused,
        }
    }

    /// By SQLite's extended result code; the lowest byte is the primary one. For adapters.
    #[doc(hidden)]
    pub fn of_sqlite(code: i32, is_commit: bool) -> Self {
        const BUSY: i32 = 5;
        const LOCKED: i32 = 6;
        const CONSTRAINT_ROWID: i32 = 2579;
        const IOERR_FSYNC: i32 = 1034;
        const IOERR_DIR_FSYNC: i32 = 1290;
        const IOERR_TRUNCATE: i32 = 1546;

        match code & 0xff {
            // What ends a journal failed after the rows were written, or not before the next crash.
            _ if is_commit && matches!(code, IOERR_FSYNC | IOERR_DIR_FSYNC | IOERR_TRUNCATE) => {
                Self::Lost
            }
            BUSY | LOCKED => Self::Transient,
            _ if code == CONSTRAINT_ROWID => Self::Duplicate,
            _ => Self::Refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Failure::{self, Duplicate, Lost, Refused, Transient};

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
                assert_eq!(Failure::of_postgres(code), expected, "{code}");
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
                assert_eq!(Failure::of_mysql(*number, "", false), expected, "{number}");
            }
        }
        let message = "The MySQL server is running with the --read-only option so it cannot execute \
                       this statement";
        assert_eq!(Failure::of_mysql(1290, message, false), Lost);
    }

    #[test]
    fn what_may_have_been_committed_is_lost() {
        for number in [1317, 1180, 1053, 1927] {
            assert_eq!(Failure::of_mysql(number, "", true), Lost, "{number}");
        }
        // Galera refuses at COMMIT, and has rolled back.
        assert_eq!(Failure::of_mysql(1213, "", true), Transient);
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
                assert_eq!(Failure::of_sqlite(*code, false), expected, "{code}");
            }
        }
        // An I/O error of COMMIT that may come after the rows; others come before.
        assert!(
            [1034, 1290, 1546]
                .iter()
                .all(|code| Failure::of_sqlite(*code, true) == Lost)
        );
        assert_eq!(Failure::of_sqlite(778, true), Refused);
        assert_eq!(Failure::of_sqlite(5, true), Transient);
    }
}
