//! What an error of the client library means for the flush: whether another time it may succeed.
//!
//! What a limit or a person ended (`ORA-01013`, a profile's limit) is not gone against: that is
//! refused.
//!
//! # References
//!
//! - [Oracle's error messages](https://docs.oracle.com/en/error-help/db/)
//! - ODPI-C's `dpiError.c`: the codes after which it holds a session for dead, all of which are here.

use oracle::DbError;
use ordid_core::unit_of_work::{DriverError, Failure, Violation};

/// DPI-1047: the client library was not found.
pub(crate) const CLIENT_MISSING: i32 = 1047;

const INSTALL: &str = "\
    ordid-oracle needs Oracle's client library when it runs: download the \"Basic\" or \"Basic Light\" \
    package of Oracle Instant Client, 12.1 or later, for this processor from \
    https://www.oracle.com/database/technologies/instant-client/downloads.html, unpack it, and put \
    its folder into the loader's path: on Linux into a file in /etc/ld.so.conf.d, then run ldconfig, \
    or into LD_LIBRARY_PATH (Debian's package libaio1 is needed too); on Windows into PATH; on macOS \
    give it to `oracle::InitParams::oracle_client_lib_dir`";

/// ORA-00001: unique constraint violated.
const UNIQUE: i32 = 1;
/// ORA-00060: deadlock detected while waiting for resource.
pub(crate) const DEADLOCK: i32 = 60;
/// ORA-02291, ORA-02292: integrity constraint violated - parent key not found, child record found.
const FOREIGN_KEY: &[i32] = &[2291, 2292];
/// ORA-02091: transaction rolled back, by a deferred constraint for one.
const ROLLED_BACK: i32 = 2091;

/// What another time may succeed.
const TRANSIENT: &[i32] = &[
    DEADLOCK, 54,    // resource busy, NOWAIT or a time-out
    104,   // deadlock of the server's own processes
    2049,  // distributed transaction waiting for a lock
    4020,  // deadlock for an object of the dictionary
    4021,  // time-out waiting for one
    8177,  // cannot serialize
    30006, // WAIT ran out
    18, 20, 2391, // too many sessions, processes, sessions of the user
    12516, 12518, 12519, 12520, // the listener has nobody to hand it over to
    24418, 24457, 24459, // the pool has no session left
];

/// The session is over, or what is left of it cannot be used, or none could be made.
const LOST: &[i32] = &[
    22, 28, 31, 45, // no such session; killed, or will be
    41, // resource plan ended the session
    378, 602, 603, 609,  // the server's process has failed
    1012, // not logged on
    1033, 1034, 1089, 1090, 1092, // starting, not there, shutting down
    1041, 1043, 3122, // the client's state is broken
    2396, // idle for too long
    3113, 3114, 3135, // end of file, not connected, lost contact
    3136, 3156, 12161, // time-out in the midst of a call
    12152, 12153, 12170, 12514, 12528, 12537, 12541, 12543, 12545, 12547, 12570, 12571,
    12583, // of the network
    25402, 25403, 25405, 25408, 25409, // failed over in the midst of a transaction
    27146, 28511, 56600, // other processes, other servers
];

/// ODPI-C's own: not connected, closed, dead.
const LOST_CLIENT: &[i32] = &[1010, 1067, 1080];

/// Takes an error of anything but COMMIT with what it means.
pub(crate) fn judge(error: oracle::Error) -> DriverError<oracle::Error> {
    let failure = failure(&error);
    judged(error, failure)
}

/// Takes an error of COMMIT with what it means.
pub(crate) fn judge_commit(error: oracle::Error) -> DriverError<oracle::Error> {
    let failure = commit_failure(&error);
    judged(error, failure)
}

fn judged(error: oracle::Error, failure: Failure) -> DriverError<oracle::Error> {
    let violation = if has_one_of(&error, &[UNIQUE]) {
        Some(Violation::Unique)
    } else if has_one_of(&error, FOREIGN_KEY) {
        Some(Violation::ForeignKey)
    } else {
        None
    };
    let text = match (first(&error), error.batch_errors()) {
        _ if error.dpi_code() == Some(CLIENT_MISSING) => Some(format!("{INSTALL}: {error}")),
        // The others' rows are but counted.
        (Some(row), Some(_)) => Some(row.to_string()),
        _ => None,
    };
    DriverError {
        violation,
        text,
        ..DriverError::new(error, failure)
    }
}

/// Returns what an error of anything but COMMIT means.
pub(crate) fn failure(error: &oracle::Error) -> Failure {
    if is_lost(error) {
        Failure::Lost
    } else if has_one_of(error, TRANSIENT) {
        Failure::Transient
    } else if first(error).is_some_and(DbError::is_recoverable) {
        // Oracle's own word for an outage: roll back, connect anew and do it again.
        Failure::Lost
    } else if has_one_of(error, &[UNIQUE]) {
        Failure::Duplicate
    } else {
        Failure::Refused
    }
}

/// Returns what an error of COMMIT means: it was carried out or not, unless the database says that it
/// has rolled back.
fn commit_failure(error: &oracle::Error) -> Failure {
    if !has_one_of(error, &[ROLLED_BACK]) {
        Failure::Lost
    } else if has_one_of(error, TRANSIENT) {
        Failure::Transient
    } else {
        Failure::Refused
    }
}

/// Returns whether the connection is gone.
fn is_lost(error: &oracle::Error) -> bool {
    let client = error.dpi_code();
    client.is_some_and(|code| LOST_CLIENT.contains(&code)) || has_one_of(error, LOST)
}

/// Returns whether the database said one of these, also behind an error of its own: a trigger's for
/// one.
pub(crate) fn has_one_of(error: &oracle::Error, wanted: &[i32]) -> bool {
    first(error).is_some_and(|error| {
        wanted.contains(&error.code()) || codes(error.message()).any(|code| wanted.contains(&code))
    })
}

/// Returns what the database said first: of the rows of a batch, the one that comes first.
fn first(error: &oracle::Error) -> Option<&DbError> {
    match error.batch_errors() {
        Some(rows) => rows.iter().min_by_key(|row| row.offset()),
        None => error.db_error(),
    }
}

/// Returns the position in its batch of the first row that failed, and how many others did, where the
/// failure was that of rows.
pub(crate) fn failed_rows(error: &oracle::Error) -> Option<(usize, usize)> {
    let rows = error.batch_errors()?;
    let first = rows.iter().map(DbError::offset).min()?;
    Some((usize::try_from(first).ok()?, rows.len() - 1))
}

/// Returns the codes of a message: one error may stand behind another, each on a line of its own.
fn codes(message: &str) -> impl Iterator<Item = i32> + '_ {
    message.lines().filter_map(|line| {
        let (code, _) = line.strip_prefix("ORA-")?.split_once(':')?;
        code.parse().ok()
    })
}

#[cfg(test)]
#[allow(
    deprecated,
    reason = "the library has no other way to make such errors"
)]
mod tests {
    use Failure::{Duplicate, Lost, Refused, Transient};

    use super::*;

    fn database(code: i32, offset: u32) -> DbError {
        DbError::new(
            code,
            offset,
            format!("ORA-{code:05}: as the test asks"),
            "",
            "",
        )
    }

    fn oci(code: i32) -> oracle::Error {
        oracle::Error::OciError(database(code, 0))
    }

    #[test]
    fn codes_say_whether_another_time_may_succeed() {
        for (codes, expected) in [
            (&[60, 54, 8177, 4020, 4021, 30006][..], Transient),
            // No session to be had.
            (&[18, 20, 2391, 12516, 12519, 24418, 24457], Transient),
            (&[28, 31, 603, 1012, 1089, 1092, 2396], Lost),
            (&[3113, 3114, 3135, 12170, 12541, 12570, 25408], Lost),
            (&[1], Duplicate),
            // Foreign key, children, check, NULL, no such table, cut off, stopped by the user, password.
            (&[2291, 2292, 2290, 1400, 942, 12899, 1013, 1017], Refused),
        ] {
            for code in codes {
                assert_eq!(failure(&oci(*code)), expected, "{code}");
            }
        }
    }

    #[test]
    fn what_stands_behind_another_error_counts() {
        let behind = |text: &str| {
            let text = format!("ORA-04088: error during execution of trigger\n{text}");
            oracle::Error::OciError(DbError::new(4088, 0, text, "", ""))
        };
        assert_eq!(failure(&behind("ORA-00060: deadlock detected")), Transient);
        assert_eq!(failure(&behind("ORA-00001: unique constraint")), Duplicate);
        assert_eq!(failure(&behind("ORA-01403: no data found")), Refused);
        // ODPI-C's own, which has the database's code in its text alone.
        for (text, expected) in [
            ("DPI-1010: not connected", Lost),
            ("DPI-1080: connection was closed by ORA-3113", Lost),
            (
                "DPI-1067: call timeout of 100 ms exceeded with ORA-3156",
                Lost,
            ),
            (
                "DPI-1047: Cannot locate a 64-bit Oracle Client library",
                Refused,
            ),
        ] {
            let error = oracle::Error::DpiError(DbError::new(0, 0, text, "", ""));
            assert_eq!(failure(&error), expected, "{text}");
        }
    }

    #[test]
    fn the_first_row_of_a_batch_tells() {
        let rows = vec![database(2291, 700), database(1, 234), database(60, 900)];
        let error = oracle::Error::BatchErrors(rows);
        assert_eq!(failed_rows(&error), Some((234, 2)));
        assert_eq!(failure(&error), Duplicate);
        assert_eq!(failed_rows(&oci(3113)), None);
    }

    #[test]
    fn a_commit_is_lost_unless_the_database_rolled_back() {
        for code in [3113, 3135, 12170, 600, 60] {
            assert_eq!(commit_failure(&oci(code)), Lost, "{code}");
        }
        for (behind, expected) in [(2291, Refused), (1, Refused), (60, Transient)] {
            let text = format!("ORA-02091: transaction rolled back\nORA-{behind:05}: behind it");
            let error = oracle::Error::OciError(DbError::new(2091, 0, text, "", ""));
            assert_eq!(commit_failure(&error), expected, "{behind}");
        }
    }
}
