//! The crate's one error type.

use std::{fmt, ops::Range};

use oracle::DbError;
use ordid_core::unit_of_work::{Chunk, Failure};

/// DPI-1047: the client library was not found.
const CLIENT_MISSING: i32 = 1047;
/// ORA-00001: unique constraint violated.
const UNIQUE: i32 = 1;
/// ORA-00060: deadlock detected while waiting for resource.
const DEADLOCK: i32 = 60;
/// ORA-02091: transaction rolled back, by a deferred constraint for one.
const ROLLED_BACK: i32 = 2091;
/// ORA-02291: integrity constraint violated - parent key not found.
const PARENT_MISSING: i32 = 2291;

/// What another time may succeed.
///
/// # References
///
/// - [Oracle's error messages](https://docs.oracle.com/en/error-help/db/)
const TRANSIENT: &[i32] = &[
    DEADLOCK, 54,    // resource busy, NOWAIT or a time-out
    104,   // deadlock of the server's own processes
    2049,  // distributed transaction waiting for a lock
    4020,  // deadlock for an object of the dictionary
    4021,  // time-out waiting for one
    8177,  // cannot serialize
    30006, // WAIT ran out
];

/// The session is over, or what is left of it cannot be used.
const LOST: &[i32] = &[
    22, 28,   // no such session; killed
    1012, // not logged on
    1033, 1034, 1089, 1090, 1092, // starting, not there, shutting down
    2396, // idle for too long
    3113, 3114, 3135, // end of file, not connected, lost contact
    12152, 12153, 12170, 12514, 12528, 12537, 12541, 12547, 12571, // of the network
    25402, 25403, 25405, 25408, 25409, // failed over in the midst of a transaction
    41,    // resource plan ended the session
];

/// ODPI-C's own: not connected, closed, dead.
const LOST_CLIENT: &[i32] = &[1010, 1067, 1080];

const INSTALL: &str = "\
    ordid-oracle needs Oracle's client library when it runs: download the \"Basic\" or \"Basic Light\" \
    package of Oracle Instant Client, 12.1 or later, for this processor from \
    https://www.oracle.com/database/technologies/instant-client/downloads.html, unpack it, and put \
    its folder into the loader's path: on Linux into a file in /etc/ld.so.conf.d, then run ldconfig, \
    or into LD_LIBRARY_PATH (Debian's package libaio1 is needed too); on Windows into PATH; on macOS \
    give it to `oracle::InitParams::oracle_client_lib_dir`";

/// Why a connection was not made or a unit of work was not flushed. Nothing of the unit of work is
/// in the database, unless [`is_commit_unknown`](Self::is_commit_unknown) says that this cannot be
/// known.
///
/// It is opaque: ask it where and why, print it for people. [`source`](std::error::Error::source)
/// is the `oracle` crate's error.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: Kind,
    place: Option<Place>,
    /// Whether it is not known what became of COMMIT.
    unknown: bool,
    retries: u32,
}

#[derive(Debug)]
enum Kind {
    Plan(ordid_core::Error),
    Connection(&'static str),
    Library(oracle::Error),
    Begin(oracle::Error),
    Bind(oracle::Error),
    Insert(oracle::Error),
    Commit(oracle::Error),
}

/// Where in the flush it happened.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) table: &'static str,
    pub(crate) chunk: usize,
    pub(crate) rows: Range<usize>,
    pub(crate) key: Option<String>,
}

impl Place {
    pub(crate) fn of(table: &'static str, chunk: &Chunk) -> Self {
        Self {
            table,
            chunk: chunk.number,
            rows: chunk.rows.clone(),
            key: None,
        }
    }
}

impl Error {
    fn new(kind: Kind, place: Option<Place>) -> Self {
        Self(Box::new(Inner {
            kind,
            place,
            unknown: false,
            retries: 0,
        }))
    }

    pub(crate) fn set_unknown(&mut self) {
        self.0.unknown = true;
    }

    pub(crate) fn set_retries(&mut self, retries: u32) {
        self.0.retries = retries;
    }

    /// What it means for the flush. COMMIT was carried out or not, unless the database says that it has
    /// rolled back.
    pub(crate) fn failure(&self) -> Failure {
        if matches!(self.0.kind, Kind::Commit(_)) {
            return if self.has_code(ROLLED_BACK) {
                Failure::Refused
            } else {
                Failure::Lost
            };
        }
        if self.is_connection_lost() {
            Failure::Lost
        } else if self.has_one_of(TRANSIENT) {
            Failure::Transient
        } else if self.is_unique_violation() {
            Failure::Duplicate
        } else {
            Failure::Refused
        }
    }

    /// The connection is in a state in which nothing is sent, and what to do about it.
    pub(crate) fn connection(message: &'static str) -> Self {
        Self::new(Kind::Connection(message), None)
    }

    pub(crate) fn begin(source: oracle::Error) -> Self {
        Self::new(Kind::Begin(source), None)
    }

    pub(crate) fn bind(source: oracle::Error, place: Place) -> Self {
        Self::new(Kind::Bind(source), Some(place))
    }

    pub(crate) fn insert(source: oracle::Error, place: Place) -> Self {
        Self::new(Kind::Insert(source), Some(place))
    }

    pub(crate) fn commit(source: oracle::Error) -> Self {
        Self::new(Kind::Commit(source), None)
    }

    /// Returns the table whose insert failed.
    pub fn table(&self) -> Option<&str> {
        self.0.place.as_ref().map(|place| place.table)
    }

    /// Returns which chunk of the table failed, from 0.
    pub fn chunk(&self) -> Option<usize> {
        self.0.place.as_ref().map(|place| place.chunk)
    }

    /// Returns which rows of the table, counted from 0 in the order of their keys, the failed chunk
    /// held.
    pub fn rows(&self) -> Option<Range<usize>> {
        self.0.place.as_ref().map(|place| place.rows.clone())
    }

    /// Returns the key of the first row that failed, as text, where the failure was that of a row.
    pub fn key(&self) -> Option<&str> {
        self.0.place.as_ref()?.key.as_deref()
    }

    /// Returns whether the unit of work could not be planned; nothing was sent.
    pub fn is_plan(&self) -> bool {
        matches!(self.0.kind, Kind::Plan(_))
    }

    /// Returns whether the connection was refused as it is: it commits by itself, or has a
    /// transaction open that [`UnitOfWork::flush`](crate::UnitOfWork::flush) would commit too.
    /// Nothing was sent.
    pub fn is_connection_state(&self) -> bool {
        matches!(self.0.kind, Kind::Connection(_))
    }

    /// Returns whether Oracle's client library was not found. The error's text says how to install
    /// it.
    pub fn is_client_missing(&self) -> bool {
        self.as_oracle()
            .is_some_and(|error| error.dpi_code() == Some(CLIENT_MISSING))
    }

    /// Returns whether the answer to COMMIT was lost or an error that leaves its outcome open: the
    /// rows are all there, or none is. Looking for any one of the keys tells.
    pub fn is_commit_unknown(&self) -> bool {
        self.0.unknown
    }

    /// Returns whether the same flush may succeed another time, on the same connection: a deadlock, a
    /// serialization failure, a lock that did not come in time.
    pub fn is_transient(&self) -> bool {
        self.failure() == Failure::Transient
    }

    /// Returns whether the connection is gone: connect anew.
    pub fn is_connection_lost(&self) -> bool {
        let client = self.as_oracle().and_then(oracle::Error::dpi_code);
        client.is_some_and(|code| LOST_CLIENT.contains(&code)) || self.has_one_of(LOST)
    }

    /// Returns how many times the flush was begun anew before it was given up: see
    /// [`with_retry`](crate::UnitOfWork::with_retry).
    pub fn retries(&self) -> u32 {
        self.0.retries
    }

    /// Returns whether a primary or unique key was already taken: ORA-00001.
    pub fn is_unique_violation(&self) -> bool {
        self.has_code(UNIQUE)
    }

    /// Returns whether a row's parent does not exist: ORA-02291.
    pub fn is_foreign_key_violation(&self) -> bool {
        self.has_code(PARENT_MISSING)
    }

    /// Returns whether another transaction was in the way of this one and this one in the way of
    /// the other: ORA-00060.
    pub fn is_deadlock(&self) -> bool {
        self.has_code(DEADLOCK)
    }

    /// Returns the `oracle` crate's error, where it is one.
    pub fn as_oracle(&self) -> Option<&oracle::Error> {
        match &self.0.kind {
            Kind::Library(error)
            | Kind::Begin(error)
            | Kind::Bind(error)
            | Kind::Insert(error)
            | Kind::Commit(error) => Some(error),
            Kind::Plan(_) | Kind::Connection(_) => None,
        }
    }

    fn has_code(&self, code: i32) -> bool {
        self.has_one_of(&[code])
    }

    fn has_one_of(&self, wanted: &[i32]) -> bool {
        self.as_oracle().and_then(first).is_some_and(|error| {
            wanted.contains(&error.code())
                || codes(error.message()).any(|code| wanted.contains(&code))
        })
    }
}

/// Returns what the database said first: of the rows of a batch, the one that comes first.
fn first(error: &oracle::Error) -> Option<&DbError> {
    match error.batch_errors() {
        Some(rows) => rows.iter().min_by_key(|row| row.offset()),
        None => error.db_error(),
    }
}

/// Returns the position in its batch of the first row that failed, where the failure was a row's.
pub(crate) fn failed_row(error: &oracle::Error) -> Option<usize> {
    let row = error.batch_errors()?.iter().map(DbError::offset).min()?;
    usize::try_from(row).ok()
}

/// Returns the codes of a message: one error may stand behind another, each on a line of its own.
fn codes(message: &str) -> impl Iterator<Item = i32> + '_ {
    message.lines().filter_map(|line| {
        let (code, _) = line.strip_prefix("ORA-")?.split_once(':')?;
        code.parse().ok()
    })
}

impl From<oracle::Error> for Error {
    fn from(error: oracle::Error) -> Self {
        Self::new(Kind::Library(error), None)
    }
}

impl From<ordid_core::Error> for Error {
    fn from(error: ordid_core::Error) -> Self {
        Self::new(Kind::Plan(error), None)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.kind {
            Kind::Plan(error) => write!(f, "cannot plan the flush, nothing was sent: {error}"),
            Kind::Connection(message) => {
                write!(f, "cannot begin the flush, nothing was sent: {message}")
            }
            Kind::Library(error) if self.is_client_missing() => write!(f, "{INSTALL}: {error}"),
            Kind::Library(error) => write!(f, "{error}"),
            Kind::Begin(error) => write!(f, "cannot begin the flush, nothing was written: {error}"),
            Kind::Bind(_) => f.write_str("cannot bind a row"),
            Kind::Insert(_) => f.write_str("cannot insert"),
            Kind::Commit(error) if self.is_commit_unknown() => write!(
                f,
                "the answer to COMMIT was lost, so either all rows are written or none is; look \
                 for one of the keys: {error}"
            ),
            Kind::Commit(error) => write!(f, "cannot commit, nothing was written: {error}"),
        }?;
        if let Some(place) = &self.0.place {
            let Place {
                table,
                chunk,
                rows,
                key,
            } = place;
            write!(
                f,
                " into {table}, chunk {chunk} (rows {} to {})",
                rows.start,
                rows.end - 1
            )?;
            if let Some(key) = key {
                write!(f, ", key {key}")?;
            }
            f.write_str(", nothing was written")?;
        }
        match &self.0.kind {
            Kind::Bind(error) => write!(f, ": {error}"),
            Kind::Insert(error) => match (first(error), error.batch_errors()) {
                (Some(row), Some(rows)) if rows.len() > 1 => {
                    write!(f, ": {row} (and {} more rows of the chunk)", rows.len() - 1)
                }
                (Some(row), Some(_)) => write!(f, ": {row}"),
                _ => write!(f, ": {error}"),
            },
            _ => Ok(()),
        }?;
        match self.0.retries {
            0 => Ok(()),
            retries => write!(f, " (tried {} times)", u64::from(retries) + 1),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.kind {
            Kind::Plan(error) => Some(error),
            Kind::Connection(_) => None,
            // Its own text is already this one's.
            Kind::Library(error) => error.source(),
            Kind::Begin(error) | Kind::Bind(error) | Kind::Insert(error) | Kind::Commit(error) => {
                Some(error)
            }
        }
    }
}

#[cfg(test)]
#[allow(
    deprecated,
    reason = "the library has no other way to make such errors"
)]
mod tests {
    use super::*;

    fn database(code: i32, offset: u32, message: &str) -> DbError {
        DbError::new(code, offset, message, "", "")
    }

    fn oci(code: i32, message: &str) -> oracle::Error {
        oracle::Error::OciError(database(code, 0, message))
    }

    fn place() -> Place {
        Place {
            table: "ORDERS",
            chunk: 2,
            rows: 2_000..3_000,
            key: None,
        }
    }

    #[test]
    fn codes_say_what_it_was() {
        for (code, message, [unique, foreign, deadlock]) in [
            (
                1,
                "ORA-00001: unique constraint (A.B) violated",
                [true, false, false],
            ),
            (
                2291,
                "ORA-02291: integrity constraint (A.B) violated - parent key not found",
                [false, true, false],
            ),
            (
                60,
                "ORA-00060: deadlock detected while waiting for resource",
                [false, false, true],
            ),
            (
                1400,
                "ORA-01400: cannot insert NULL into (\"A\".\"B\")",
                [false; 3],
            ),
            // Behind a trigger's own error.
            (
                4088,
                "ORA-04088: error during execution of trigger\nORA-00001: unique constraint",
                [true, false, false],
            ),
        ] {
            let error = Error::insert(oci(code, message), place());
            assert_eq!(
                [
                    error.is_unique_violation(),
                    error.is_foreign_key_violation(),
                    error.is_deadlock()
                ],
                [unique, foreign, deadlock],
                "{message}"
            );
            assert!(!error.is_commit_unknown() && !error.is_client_missing());
            assert_eq!((error.key(), error.chunk()), (None, Some(2)));
        }
    }

    #[test]
    fn the_first_row_of_a_batch_tells() {
        let rows = vec![
            database(2291, 700, "ORA-02291: parent key not found"),
            database(1, 234, "ORA-00001: unique constraint (A.PK) violated"),
            database(1, 900, "ORA-00001: unique constraint (A.PK) violated"),
        ];
        let source = oracle::Error::BatchErrors(rows);
        assert_eq!(failed_row(&source), Some(234));
        let place = Place {
            key: Some("ord_1".to_owned()),
            ..place()
        };
        let error = Error::insert(source, place);
        assert!(error.is_unique_violation() && !error.is_foreign_key_violation());
        assert_eq!(
            error.to_string(),
            "cannot insert into ORDERS, chunk 2 (rows 2000 to 2999), key ord_1, nothing was \
             written: ORA-00001: unique constraint (A.PK) violated (and 2 more rows of the chunk)"
        );
        assert_eq!(failed_row(&oci(3113, "ORA-03113: end-of-file")), None);
    }

    #[test]
    fn codes_say_whether_another_time_may_succeed() {
        for (code, expected) in [
            (60, Failure::Transient),
            (8177, Failure::Transient),
            (54, Failure::Transient),
            (3113, Failure::Lost),
            (3114, Failure::Lost),
            (12170, Failure::Lost),
            (25408, Failure::Lost),
            (28, Failure::Lost),
            (1, Failure::Duplicate),
            (2291, Failure::Refused),
            (1013, Failure::Refused), // the user asked for it to stop
        ] {
            let message = format!("ORA-{code:05}: as the test asks");
            let error = Error::insert(oci(code, &message), place());
            assert_eq!(error.failure(), expected, "{code}");
            assert_eq!(error.is_transient(), expected == Failure::Transient);
            assert_eq!(error.is_connection_lost(), expected == Failure::Lost);
        }
        // Behind a trigger's own.
        let text = "ORA-04088: error during execution of trigger\nORA-00060: deadlock detected";
        let mut error = Error::insert(oci(4088, text), place());
        assert!(error.is_transient());
        error.set_retries(4);
        assert!(error.to_string().ends_with(" (tried 5 times)"));
    }

    #[test]
    fn a_commit_is_unknown_unless_the_database_rolled_back() {
        let refused = Error::commit(oci(
            2091,
            "ORA-02091: transaction rolled back\nORA-02291: integrity constraint (A.B) violated",
        ));
        assert!(refused.is_foreign_key_violation());
        assert_eq!(refused.failure(), Failure::Refused);
        assert!(
            refused
                .to_string()
                .starts_with("cannot commit, nothing was written: ")
        );
        let text = "ORA-03113: end-of-file on communication channel";
        let mut lost = Error::commit(oci(3113, text));
        assert_eq!(lost.failure(), Failure::Lost);
        lost.set_unknown();
        assert!(lost.is_commit_unknown());
        assert!(
            lost.to_string()
                .starts_with("the answer to COMMIT was lost")
        );
    }
}
