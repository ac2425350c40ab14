//! What tiberius' error means for the flush: whether another time it may succeed.
//!
//! A server that has become read-only is as good as lost: behind the address of a cluster, another
//! connection reaches the one that now writes.
//!
//! # References
//!
//! - [Database Engine events and errors](https://learn.microsoft.com/sql/relational-databases/errors-events/database-engine-events-and-errors)
//! - [Transient errors of Azure SQL](https://learn.microsoft.com/azure/azure-sql/database/troubleshoot-common-errors-issues)

use ordid_core::unit_of_work::{DriverError, Failure, Violation};
use tiberius::error::Error;

/// Chosen as the victim of a deadlock.
pub(crate) const DEADLOCK: u32 = 1205;

/// A unique index; a primary or unique key.
const DUPLICATE: &[u32] = &[2601, 2627];

/// What another time may succeed, by number in `sys.messages`.
const TRANSIENT: &[u32] = &[
    DEADLOCK, 1204, 1222, // no lock to give; a lock did not come in time
    3960, 3961, // another transaction was first, under snapshot isolation
    8645, 8651, // no memory for the statement in time
    921, 922, 4221, 18401, // the server or the database is starting
    10928, 10929, 40501, 40613, 49918, 49919, 49920, // Azure: too busy, or moving
    41301, 41302, 41305, 41325,
    41839, // memory-optimized tables: another transaction was first
];

/// The session is over, or can do no more here, whatever the severity.
const ENDS_THE_SESSION: &[u32] = &[
    596, 6005, // killed, shutting down
    976, 983, 3906,  // a replica that does not take it, a database that is read-only
    40197, // Azure: moves to another machine
];

/// The server ends the connection after an error of this severity or above.
const FATAL: u8 = 20;

/// Errors about a value or a constraint: the same rows would be refused again.
const ABOUT_A_ROW: &[u32] = &[
    220, 232, 8115, // arithmetic overflow
    241, 242, 245, 8114, // conversion failed
    515,  // NULL into a column that allows none
    547,  // CHECK or FOREIGN KEY
    2601, 2627, // unique index; primary or unique key
    2628, 8152, // text or bytes would be cut off
    4815, 4819, 4863, 4864, 4867, // a bulk load's length, order, cut-off, type, overflow
    8023, // a value that is none of its type
];

/// Takes an error of anything but a commit with what it means.
pub(crate) fn judge(error: Error) -> DriverError<Error> {
    let failure = failure(&error);
    judged(error, failure)
}

/// Takes an error of a commit with what it means.
pub(crate) fn judge_commit(error: Error) -> DriverError<Error> {
    let failure = commit_failure(&error);
    judged(error, failure)
}

fn judged(error: Error, failure: Failure) -> DriverError<Error> {
    DriverError {
        refuses_a_row: error.code().is_some_and(|code| ABOUT_A_ROW.contains(&code)),
        violation: match &error {
            Error::Server(error) => violation(error.code(), error.message()),
            _ => None,
        },
        ..DriverError::new(error, failure)
    }
}

fn violation(code: u32, message: &str) -> Option<Violation> {
    let names_a_foreign_key = || {
        let message = message.to_uppercase();
        // Of a parent that is deleted or a key that is changed the server says REFERENCE, or the
        // word of its language; a `CHECK` constraint has the same number.
        message.contains("FOREIGN KEY") || message.contains("REFERENCE CONSTRAINT")
    };
    match code {
        code if DUPLICATE.contains(&code) => Some(Violation::Unique),
        547 if names_a_foreign_key() => Some(Violation::ForeignKey),
        _ => None,
    }
}

/// Returns what an error of anything but a commit means.
pub(crate) fn failure(error: &Error) -> Failure {
    match error {
        Error::Server(error) => of_server(error.code(), error.class()),
        Error::Io { .. } | Error::Protocol(_) | Error::Routing { .. } | Error::Tls(_) => {
            Failure::Lost
        }
        _ => Failure::Refused,
    }
}

/// Returns what an error of a commit means: it was carried out or not, unless the server says that it
/// was not.
fn commit_failure(error: &Error) -> Failure {
    match error {
        Error::Server(error) => of_server(error.code(), error.class()),
        _ => Failure::Lost,
    }
}

fn of_server(code: u32, class: u8) -> Failure {
    if DUPLICATE.contains(&code) {
        Failure::Duplicate
    } else if class >= FATAL || ENDS_THE_SESSION.contains(&code) {
        Failure::Lost
    } else if TRANSIENT.contains(&code) {
        Failure::Transient
    } else {
        Failure::Refused
    }
}

#[cfg(test)]
mod tests {
    use Failure::{Duplicate, Lost, Refused, Transient};

    use super::*;

    #[test]
    fn the_server_is_told_by_number_and_severity() {
        for (codes, class, expected) in [
            (&[2601, 2627][..], 14, Duplicate),
            (TRANSIENT, 13, Transient),
            (&[596, 6005, 976, 983, 3906, 40197], 16, Lost),
            // The log is not available; a deadlock that ends the connection, too.
            (&[9001, 1205], 21, Lost),
            // Foreign key, no such table, log full, login failed, no such database.
            (&[547, 208, 9002, 18456, 4060], 16, Refused),
        ] {
            for code in codes {
                assert_eq!(of_server(*code, class), expected, "{code}");
            }
        }
    }

    #[test]
    fn what_tiberius_says_itself() {
        let io = Error::from(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
        for (error, expected) in [
            (io, Lost),
            (Error::Protocol("unexpected".into()), Lost),
            (Error::Tls("no".into()), Lost),
            (Error::BulkInput("too long".into()), Refused),
            (Error::Utf8, Refused),
        ] {
            assert_eq!(failure(&error), expected, "{error}");
            // Of a commit, nothing but the server's word ends the doubt.
            assert_eq!(commit_failure(&error), Lost, "{error}");
        }
    }
}
