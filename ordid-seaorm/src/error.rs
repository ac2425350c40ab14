//! The crate's one error type.

use std::{fmt, ops::Range};

use ordid_core::unit_of_work::{Action, Chunk, Failure, Table};
use sea_orm::{ConnAcquireErr, DbErr, SqlErr};

use crate::failure::{failure, is_about_a_row};

/// Why rows were not written. Nothing of them is in the database, unless
/// [`is_commit_unknown`](Self::is_commit_unknown) says that this cannot be known.
///
/// It is opaque: ask it where and why, print it for people. [`source`](std::error::Error::source)
/// is SeaORM's error.
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
    Begin(DbErr),
    Record(DbErr),
    Statement(DbErr),
    /// How many rows it changed, and how many it was for.
    Count(u64, usize),
    Commit(DbErr),
    Release(DbErr),
    Probe(DbErr),
}

/// Where in the flush it happened.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    action: Action,
    table: &'static str,
    chunk: usize,
    rows: Range<usize>,
    key: Option<String>,
}

impl Place {
    /// A chunk of rows that are inserted.
    pub(crate) fn inserting(table: &'static str, chunk: usize, rows: Range<usize>) -> Self {
        Self {
            action: Action::Insert,
            table,
            chunk,
            rows,
            key: None,
        }
    }

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

    /// SeaORM has learned of a database that is not known here.
    pub(crate) fn unknown_database() -> Self {
        Self::begin(DbErr::BackendNotSupported {
            db: "of another kind",
            ctx: "ordid knows PostgreSQL, MySQL, MariaDB and SQLite",
        })
    }

    pub(crate) fn begin(source: DbErr) -> Self {
        Self::new(Kind::Begin(source), None)
    }

    /// The flush's own row.
    pub(crate) fn record(source: DbErr) -> Self {
        Self::new(Kind::Record(source), None)
    }

    pub(crate) fn commit(source: DbErr) -> Self {
        Self::new(Kind::Commit(source), None)
    }

    /// The savepoint of a flush inside the user's transaction, which is not committed yet.
    pub(crate) fn release(source: DbErr) -> Self {
        Self::new(Kind::Release(source), None)
    }

    /// It could not be asked what became of a COMMIT.
    pub(crate) fn probe(source: DbErr) -> Self {
        Self::new(Kind::Probe(source), None)
    }

    pub(crate) fn statement(source: DbErr, place: Place) -> Self {
        Self::new(Kind::Statement(source), Some(place))
    }

    /// A statement changed another number of rows than it was for.
    pub(crate) fn count(changed: u64, rows: usize, place: Place) -> Self {
        Self::new(Kind::Count(changed, rows), Some(place))
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
            Kind::Plan(_) | Kind::Count(..) => Failure::Refused,
            Kind::Begin(error)
            | Kind::Record(error)
            | Kind::Statement(error)
            | Kind::Release(error)
            | Kind::Probe(error) => failure(error, false),
            Kind::Commit(error) => failure(error, true),
        }
    }

    /// Whether the database refused a row, which can be found.
    pub(crate) fn refuses_a_row(&self) -> bool {
        match &self.0.kind {
            Kind::Statement(error) => is_about_a_row(error),
            Kind::Count(..) => true,
            _ => false,
        }
    }

    /// Narrows the place down to a row's chunk and its key.
    pub(crate) fn set_row(&mut self, chunk: Chunk, key: String) {
        if let Some(place) = &mut self.0.place {
            place.chunk = chunk.number;
            place.rows = chunk.rows;
            place.key = Some(key);
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
    /// with, in the order of sending.
    pub fn rows(&self) -> Option<Range<usize>> {
        self.0.place.as_ref().map(|place| place.rows.clone())
    }

    /// Returns the key of the row that was refused, as text, where it could be found.
    pub fn key(&self) -> Option<&str> {
        self.0.place.as_ref()?.key.as_deref()
    }

    /// Returns whether the rows could not be planned: nothing was sent.
    pub fn is_plan(&self) -> bool {
        matches!(self.0.kind, Kind::Plan(_))
    }

    /// Returns whether the answer to COMMIT was lost and asking the database did not tell: the rows
    /// are all there, or will be, or none is.
    ///
    /// Flush again: as long as nothing is added, the next [`flush`](crate::UnitOfWork::flush) begins
    /// with the question whether they are there. A row is never written twice, since it carries the
    /// same key.
    pub fn is_commit_unknown(&self) -> bool {
        self.0.unknown
    }

    /// Returns whether the same flush may succeed another time: a deadlock, a serialization failure, a
    /// lock that did not come in time, a busy database; or a pool without a free connection, which has
    /// waited itself, so that the flush does not try again.
    pub fn is_transient(&self) -> bool {
        let timeout = DbErr::ConnectionAcquire(ConnAcquireErr::Timeout);
        self.failure() == Failure::Transient || self.as_db_err() == Some(&timeout)
    }

    /// Returns whether the connection was lost, the server ended it, or went read-only: flush again
    /// when it can be reached.
    pub fn is_connection_lost(&self) -> bool {
        self.failure() == Failure::Lost
    }

    /// Returns how many times the flush was begun anew before it was given up: see
    /// [`with_retry`](crate::UnitOfWork::with_retry).
    pub fn retries(&self) -> u32 {
        self.0.retries
    }

    /// Returns whether a row that was to be updated or deleted is not in the database, or a trigger, a
    /// rule or row-level security passed it over. [`key`](Self::key) is its key.
    pub fn is_missing_row(&self) -> bool {
        matches!(self.0.kind, Kind::Count(changed, rows)
            if u64::try_from(rows).is_ok_and(|rows| changed < rows))
    }

    /// Returns whether a primary or unique key was already taken.
    pub fn is_unique_violation(&self) -> bool {
        matches!(self.sql_err(), Some(SqlErr::UniqueConstraintViolation(_)))
    }

    /// Returns whether a row's parent does not exist.
    pub fn is_foreign_key_violation(&self) -> bool {
        matches!(
            self.sql_err(),
            Some(SqlErr::ForeignKeyConstraintViolation(_))
        )
    }

    /// Returns SeaORM's error, where it is one.
    pub fn as_db_err(&self) -> Option<&DbErr> {
        match &self.0.kind {
            Kind::Begin(error)
            | Kind::Record(error)
            | Kind::Statement(error)
            | Kind::Commit(error)
            | Kind::Release(error)
            | Kind::Probe(error) => Some(error),
            Kind::Plan(_) | Kind::Count(..) => None,
        }
    }

    fn sql_err(&self) -> Option<SqlErr> {
        self.as_db_err()?.sql_err()
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
            _ if self.0.unknown => f.write_str(
                "the answer to COMMIT was lost, so either all rows are written or none is; flush \
                 again to find out",
            ),
            Kind::Plan(error) => write!(f, "cannot plan the flush, nothing was sent: {error}"),
            Kind::Begin(error) => write!(f, "cannot begin the flush, nothing was written: {error}"),
            Kind::Record(error) => write!(
                f,
                "cannot record the flush, nothing was written: updates and deletes need the table \
                 `ordid_flushes`, which `ordid_seaorm::flushes_table` declares: {error}"
            ),
            Kind::Statement(_) | Kind::Count(..) => Ok(()),
            Kind::Commit(error) => write!(f, "cannot commit, nothing was written: {error}"),
            Kind::Release(error) => write!(
                f,
                "cannot release the savepoint of the flush, nothing was written: {error}"
            ),
            Kind::Probe(error) => write!(f, "cannot look for the rows: {error}"),
        }?;
        if let Some(place) = &self.0.place {
            write!(f, "{place}")?;
        }
        match &self.0.kind {
            Kind::Statement(error) => write!(f, ": {error}"),
            Kind::Count(changed, rows) if self.is_missing_row() => match self.key() {
                Some(_) => f.write_str(": there is no such row"),
                None => write!(f, ": {changed} of {rows} rows were found"),
            },
            Kind::Count(changed, rows) => write!(f, ": {changed} rows have these {rows} keys"),
            _ if self.0.unknown => match self.as_db_err() {
                Some(error) => write!(f, ": {error}"),
                None => Ok(()),
            },
            _ => Ok(()),
        }?;
        match self.0.retries {
            0 => Ok(()),
            retries => write!(f, " (tried {} times)", u64::from(retries) + 1),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cannot = match self.action {
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
            _ => self.as_db_err().map(|error| error as _),
        }
    }
}
