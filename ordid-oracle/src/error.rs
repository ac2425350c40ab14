//! The crate's one error type.

use std::{fmt, ops::Range};

use ordid_core::unit_of_work::{Action, Chunk, Failure, Table};

use crate::failure::{
    DEADLOCK, PARENT_MISSING, UNIQUE, commit_failure, failed_row, failure, first, has_one_of,
};

/// DPI-1047: the client library was not found.
const CLIENT_MISSING: i32 = 1047;

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
    /// Whether it is not known what became of a COMMIT.
    unknown: bool,
    retries: u32,
}

#[derive(Debug)]
enum Kind {
    Plan(ordid_core::Error),
    Connection(&'static str),
    Library(oracle::Error),
    Begin(oracle::Error),
    Record(oracle::Error),
    Bind(oracle::Error),
    Statement(oracle::Error),
    Count(Count),
    Commit(oracle::Error),
    Probe(oracle::Error),
}

/// Rows of a chunk of which another number was there than one of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count {
    /// How many rows had the first such key.
    pub(crate) found: u64,
    /// How many keys of the chunk it was besides.
    pub(crate) more: usize,
}

/// Where in the flush it happened.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) action: Action,
    pub(crate) table: &'static str,
    pub(crate) chunk: usize,
    pub(crate) rows: Range<usize>,
    pub(crate) key: Option<String>,
}

impl Place {
    pub(crate) fn of(table: &Table, chunk: &Chunk) -> Self {
        Self {
            action: chunk.action,
            table: table.name(),
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

    /// The connection is in a state in which nothing is sent, and what to do about it.
    pub(crate) fn connection(message: &'static str) -> Self {
        Self::new(Kind::Connection(message), None)
    }

    pub(crate) fn begin(source: oracle::Error) -> Self {
        Self::new(Kind::Begin(source), None)
    }

    /// The flush's own row.
    pub(crate) fn record(source: oracle::Error) -> Self {
        Self::new(Kind::Record(source), None)
    }

    pub(crate) fn bind(source: oracle::Error, place: Place) -> Self {
        Self::new(Kind::Bind(source), Some(place))
    }

    /// What the database said of a chunk; the key is that of the first row that it refused.
    pub(crate) fn statement(
        source: oracle::Error,
        mut place: Place,
        key: impl FnOnce(usize) -> String,
    ) -> Self {
        place.key = failed_row(&source).map(key);
        Self::new(Kind::Statement(source), Some(place))
    }

    /// A row to be changed was not there, or more than one.
    pub(crate) fn count(count: Count, place: Place) -> Self {
        Self::new(Kind::Count(count), Some(place))
    }

    pub(crate) fn commit(source: oracle::Error) -> Self {
        Self::new(Kind::Commit(source), None)
    }

    /// It could not be asked what became of a COMMIT.
    pub(crate) fn probe(source: oracle::Error) -> Self {
        Self::new(Kind::Probe(source), None)
    }

    /// A connection could not be made for the flush.
    pub(crate) fn of_connecting(mut self) -> Self {
        if !self.is_client_missing()
            && let Kind::Library(source) = self.0.kind
        {
            self.0.kind = Kind::Begin(source);
        }
        self
    }

    /// It is not known what became of a COMMIT.
    pub(crate) fn into_unknown(mut self) -> Self {
        self.0.unknown = true;
        self.0.place = None;
        self
    }

    pub(crate) fn set_retries(&mut self, retries: u32) {
        self.0.retries = retries;
    }

    /// What it means for the flush.
    pub(crate) fn failure(&self) -> Failure {
        match &self.0.kind {
            Kind::Plan(_) | Kind::Connection(_) | Kind::Count(_) => Failure::Refused,
            Kind::Library(error)
            | Kind::Begin(error)
            | Kind::Record(error)
            | Kind::Bind(error)
            | Kind::Statement(error)
            | Kind::Probe(error) => failure(error),
            Kind::Commit(error) => commit_failure(error),
        }
    }

    /// Returns what failed to be done with the rows.
    pub fn action(&self) -> Option<Action> {
        self.0.place.as_ref().map(|place| place.action)
    }

    /// Returns the table whose rows failed.
    pub fn table(&self) -> Option<&str> {
        self.0.place.as_ref().map(|place| place.table)
    }

    /// Returns which chunk failed, of the [`action`](Self::action) and table, from 0.
    pub fn chunk(&self) -> Option<usize> {
        self.0.place.as_ref().map(|place| place.chunk)
    }

    /// Returns which rows the failed chunk held, of those that the [`action`](Self::action) is done
    /// with in the table, counted from 0 in the order in which they are sent.
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

    /// Returns whether the answer to COMMIT was lost, or an error that leaves its outcome open, and it
    /// could not be found out: the rows are all there, or will be, or none is.
    ///
    /// Flush again, over another connection: as long as nothing is added, the next
    /// [`flush`](crate::UnitOfWork::flush) or [`flush_with`](crate::UnitOfWork::flush_with) begins
    /// with the question whether they are there. A row is never written twice, since it carries the
    /// same key.
    ///
    /// An error of [`flush_in`](crate::UnitOfWork::flush_in) never has it: COMMIT is yours there.
    pub fn is_commit_unknown(&self) -> bool {
        self.0.unknown
    }

    /// Returns whether the same flush may succeed another time: a deadlock, a serialization failure, a
    /// lock that did not come in time, too many sessions.
    pub fn is_transient(&self) -> bool {
        self.failure() == Failure::Transient
    }

    /// Returns whether the connection is gone, or none could be made: connect anew.
    pub fn is_connection_lost(&self) -> bool {
        self.as_oracle()
            .is_some_and(|error| failure(error) == Failure::Lost)
    }

    /// Returns how many times the flush was begun anew before it was given up: see
    /// [`with_retry`](crate::UnitOfWork::with_retry).
    pub fn retries(&self) -> u32 {
        self.0.retries
    }

    /// Returns whether a row that was to be updated or deleted is not in the database, or a policy hides
    /// it. [`key`](Self::key) is the key of the first such row.
    pub fn is_missing_row(&self) -> bool {
        matches!(self.0.kind, Kind::Count(Count { found: 0, .. }))
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
            | Kind::Record(error)
            | Kind::Bind(error)
            | Kind::Statement(error)
            | Kind::Commit(error)
            | Kind::Probe(error) => Some(error),
            Kind::Plan(_) | Kind::Connection(_) | Kind::Count(_) => None,
        }
    }

    fn has_code(&self, code: i32) -> bool {
        self.as_oracle()
            .is_some_and(|error| has_one_of(error, &[code]))
    }
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
            kind if self.0.unknown => {
                f.write_str(
                    "the answer to COMMIT was lost, so either all rows are written or none is; \
                     flush again over another connection to find out",
                )?;
                match kind {
                    Kind::Connection(message) => write!(f, ": {message}"),
                    _ => self
                        .as_oracle()
                        .map_or(Ok(()), |error| write!(f, ": {error}")),
                }
            }
            Kind::Plan(error) => write!(f, "cannot plan the flush, nothing was sent: {error}"),
            Kind::Connection(message) => {
                write!(f, "cannot begin the flush, nothing was sent: {message}")
            }
            Kind::Library(error) if self.is_client_missing() => write!(f, "{INSTALL}: {error}"),
            Kind::Library(error) => write!(f, "{error}"),
            Kind::Begin(error) => write!(f, "cannot begin the flush, nothing was written: {error}"),
            Kind::Record(error) => write!(
                f,
                "cannot record the flush, nothing was written: updates, deletes and `with_record` need \
                 the table `ordid_flushes`, which `ordid_oracle::flushes_table` declares: {error}"
            ),
            Kind::Commit(error) => write!(f, "cannot commit, nothing was written: {error}"),
            Kind::Probe(error) => write!(f, "cannot look for the rows: {error}"),
            Kind::Bind(_) | Kind::Statement(_) | Kind::Count(_) => Ok(()),
        }?;
        if let Some(place) = &self.0.place {
            place.fmt(f, matches!(self.0.kind, Kind::Bind(_)))?;
            match &self.0.kind {
                Kind::Bind(error) => write!(f, ": {error}"),
                Kind::Statement(error) => match (first(error), error.batch_errors()) {
                    (Some(row), Some(rows)) => {
                        write!(f, ": {row}")?;
                        more_rows(f, rows.len() - 1)
                    }
                    _ => write!(f, ": {error}"),
                },
                Kind::Count(Count { found: 0, more }) => {
                    f.write_str(": there is no such row")?;
                    more_rows(f, *more)
                }
                Kind::Count(Count { found, more }) => {
                    write!(f, ": {found} rows have this key")?;
                    more_rows(f, *more)
                }
                _ => Ok(()),
            }?;
        }
        match self.0.retries {
            0 => Ok(()),
            retries => write!(f, " (tried {} times)", u64::from(retries) + 1),
        }
    }
}

/// How many rows of the chunk failed besides the first.
fn more_rows(f: &mut fmt::Formatter<'_>, more: usize) -> fmt::Result {
    match more {
        0 => Ok(()),
        more => write!(f, " (and {more} more rows of the chunk)"),
    }
}

impl Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>, binds: bool) -> fmt::Result {
        let cannot = match self.action {
            _ if binds => "bind a row into",
            Action::Insert => "insert into",
            Action::Update | Action::FixUp { .. } | Action::Unlink { .. } => "update",
            Action::Delete => "delete from",
        };
        write!(
            f,
            "cannot {cannot} {}, chunk {} (rows {} to {})",
            self.table,
            self.chunk,
            self.rows.start,
            self.rows.end - 1
        )?;
        if let Some(key) = &self.key {
            write!(f, ", key {key}")?;
        }
        f.write_str(", nothing was written")
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.kind {
            Kind::Plan(error) => Some(error),
            Kind::Connection(_) | Kind::Count(_) => None,
            // Its own text is already this one's.
            Kind::Library(error) => error.source(),
            Kind::Begin(error)
            | Kind::Record(error)
            | Kind::Bind(error)
            | Kind::Statement(error)
            | Kind::Commit(error)
            | Kind::Probe(error) => Some(error),
        }
    }
}

#[cfg(test)]
#[allow(
    deprecated,
    reason = "the library has no other way to make such errors"
)]
mod tests;
