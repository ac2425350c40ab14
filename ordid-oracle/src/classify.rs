//! What an error of the client library means for a flush. What the database's own mean is found in `ordid-sql`.

use oracle::DbError;
use ordid_sql::{
    DriverError, EngineProfile, Failure,
    classify::{Report, oracle::has_one_of as report_has_one_of},
};

/// DPI-1047: the client library was not found.
pub(crate) const CLIENT_MISSING: i32 = 1047;

const INSTALL: &str = "\
    ordid-oracle needs Oracle's client library when it runs: download the \"Basic\" or \"Basic Light\" \
    package of Oracle Instant Client, 12.1 or later, for this processor from \
    https://www.oracle.com/database/technologies/instant-client/downloads.html, unpack it, and put \
    its folder into the loader's path: on Linux into a file in /etc/ld.so.conf.d, then run ldconfig, \
    or into LD_LIBRARY_PATH (Debian's package libaio1 is needed too); on Windows into PATH; on macOS \
    give it to `oracle::InitParams::oracle_client_lib_dir`";

/// ODPI-C's own: not connected, closed, dead.
const LOST_CLIENT: [i32; 3] = [1010, 1067, 1080];

/// Takes an error of anything but COMMIT with what it means.
pub(crate) fn classify(error: oracle::Error) -> DriverError<oracle::Error> {
    of(error, false)
}

/// Takes an error of COMMIT with what it means.
pub(crate) fn classify_commit(error: oracle::Error) -> DriverError<oracle::Error> {
    of(error, true)
}

fn of(error: oracle::Error, is_commit: bool) -> DriverError<oracle::Error> {
    let report = report(&error, is_commit);
    let mut classified = EngineProfile::ORACLE.classify(&report);
    let client = error.dpi_code();
    if client.is_some_and(|code| LOST_CLIENT.contains(&code)) {
        classified.failure = Failure::Lost;
    }
    // Oracle's own word for an outage: roll back, connect anew and do it again.
    if matches!(classified.failure, Failure::Refused | Failure::Duplicate)
        && !is_commit
        && first(&error).is_some_and(DbError::is_recoverable)
    {
        classified.failure = Failure::Lost;
    }
    let text = match (first(&error), error.batch_errors()) {
        _ if client == Some(CLIENT_MISSING) => Some(format!("{INSTALL}: {error}")),
        // The others' rows are but counted.
        (Some(row), Some(_)) => Some(row.to_string()),
        _ => None,
    };
    DriverError {
        text,
        ..classified.of(error)
    }
}

fn report(error: &oracle::Error, is_commit: bool) -> Report<'_> {
    let first = first(error);
    Report {
        number: first.map(|error| error.code().into()),
        message: first.map_or("", DbError::message),
        is_commit,
        ..Report::default()
    }
}

/// Returns whether the database said one of these, also behind an error of its own: a trigger's for one.
pub(crate) fn has_one_of(error: &oracle::Error, wanted: &[i64]) -> bool {
    report_has_one_of(&report(error, false), wanted)
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

#[cfg(test)]
#[allow(
    deprecated,
    reason = "the library has no other way to make such errors"
)]
mod tests {
    use Failure::{Duplicate, Lost, Refused};

    use super::*;

    fn database(code: i32, offset: u32) -> DbError {
        let text = format!("ORA-{code:05}: as the test asks");
        DbError::new(code, offset, text, "", "")
    }

    #[test]
    fn errors_of_the_client_library_are_known() {
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
            assert_eq!(classify(error).failure, expected, "{text}");
        }
    }

    #[test]
    fn the_first_row_of_a_batch_tells() {
        let rows = vec![database(2291, 700), database(1, 234), database(60, 900)];
        let error = oracle::Error::BatchErrors(rows);
        assert_eq!(failed_rows(&error), Some((234, 2)));
        assert_eq!(classify(error).failure, Duplicate);
        assert_eq!(
            failed_rows(&oracle::Error::OciError(database(3113, 0))),
            None
        );
    }
}
