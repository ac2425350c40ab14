//! The crate's one error type.

use std::{error::Error as StdError, fmt, ops::Range};

use diesel::result::{DatabaseErrorKind, Error as DieselError};
use ordid_core::unit_of_work::{Action, Chunk, Failure, Table};

use crate::{
    backend::Backend,
    failure::{commit_failure, failure, refuses_a_row},
};

/// Why a unit of work was not flushed. Nothing of it is in the database, unless
/// [`is_commit_unknown`](Self::is_commit_unknown) says that this cannot be known.
///
/// It is opaque: ask it where and why, print it for people. [`source`](std::error::Error::source)
/// is Diesel's error.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: Kind,
    place: Option<Place>,
    /// What it means for the flush.
    failure: Failure,
    /// Whether it is about what is in a row.
    refuses_a_row: bool,
    /// Whether it is not known what became of a COMMIT.
    unknown: bool,
    retries: u32,
}

#[derive(Debug)]
enum Kind {
    Plan(ordid_core::Error),
    /// The connection is in a state in which nothing is sent, and what to do about it.
    Connection(&'static str),
    Connect(Box<dyn StdError + Send + Sync>),
    Begin(DieselError),
    Record(DieselError),
    Statement(DieselError),
    /// How many rows it changed, and how many it was for.
    Count(usize, usize),
    Commit(DieselError),
    Release(DieselError),
    Probe(DieselError),
}

/// Where in the flush it happened.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) action: Action,
    pub(crate) table: &'static str,
    pub(crate) chunk: usize,
    pub(crate) rows: Range<usize>,
    /// Which of them, where a statement was for one.
    pub(crate) row: Option<usize>,
    pub(crate) key: Option<String>,
}

impl Place {
    pub(crate) fn of(table: &Table, chunk: &Chunk) -> Self {
        Self {
            action: chunk.action,
            table: table.name(),
            chunk: chunk.number,
            rows: chunk.rows.clone(),
            row: None,
            key: None,
        }
    }
}

impl Error {
    fn new(kind: Kind, failure: Failure) -> Self {
        Self(Box::new(Inner {
            kind,
            place: None,
            failure,
            refuses_a_row: false,
            unknown: false,
            retries: 0,
        }))
    }

    fn at(mut self, place: Place) -> Self {
        self.0.place = Some(place);
        self
    }

    pub(crate) fn connection(message: &'static str) -> Self {
        Self::new(Kind::Connection(message), Failure::Refused)
    }

    /// No connection could be made.
    pub(crate) fn connect(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(Kind::Connect(source.into()), Failure::Lost)
    }

    pub(crate) fn begin<DB: Backend>(source: DieselError) -> Self {
        let failure = failure::<DB>(&source);
        Self::new(Kind::Begin(source), failure)
    }

    /// The flush's own row.
    pub(crate) fn record<DB: Backend>(source: DieselError) -> Self {
        let failure = failure::<DB>(&source);
        Self::new(Kind::Record(source), failure)
    }

    pub(crate) fn commit<DB: Backend>(source: DieselError) -> Self {
        let failure = commit_failure::<DB>(&source);
        Self::new(Kind::Commit(source), failure)
    }

    /// The savepoint of a flush inside the user's transaction, which is not committed yet.
    pub(crate) fn release<DB: Backend>(source: DieselError) -> Self {
        let failure = failure::<DB>(&source);
        Self::new(Kind::Release(source), failure)
    }

    /// It could not be asked what became of a COMMIT.
    pub(crate) fn probe<DB: Backend>(source: DieselError) -> Self {
        let failure = failure::<DB>(&source);
        Self::new(Kind::Probe(source), failure)
    }

    pub(crate) fn statement<DB: Backend>(source: DieselError, place: Place) -> Self {
        let failure = failure::<DB>(&source);
        let refuses_a_row = refuses_a_row::<DB>(&source);
        let mut error = Self::new(Kind::Statement(source), failure).at(place);
        error.0.refuses_a_row = refuses_a_row;
        error
    }

    /// A statement changed another number of rows than it was for.
    pub(crate) fn count(changed: usize, rows: usize, place: Place) -> Self {
        let mut error = Self::new(Kind::Count(changed, rows), Failure::Refused).at(place);
        error.0.refuses_a_row = true;
        error
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
        self.0.failure
    }

    /// Whether the database refused a value, so that the same rows would be refused again and the
    /// row can be found.
    pub(crate) fn refuses_a_row(&self) -> bool {
        self.0.refuses_a_row
    }

    /// Returns which row it was, where that is known.
    pub(crate) fn row(&self) -> Option<usize> {
        self.0.place.as_ref()?.row
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
    /// with in the table, counted from 0 in the order in which they are sent.
    pub fn rows(&self) -> Option<Range<usize>> {
        self.0.place.as_ref().map(|place| place.rows.clone())
    }

    /// Returns the key of the row that failed, as text, where it could be found.
    pub fn key(&self) -> Option<&str> {
        self.0.place.as_ref()?.key.as_deref()
    }

    /// Returns whether the unit of work could not be planned; nothing was sent.
    pub fn is_plan(&self) -> bool {
        matches!(self.0.kind, Kind::Plan(_))
    }

    /// Returns whether the connection was refused as it is: it has a transaction open that
    /// [`flush`](crate::UnitOfWork::flush) would not be one of its own in, or none for
    /// [`flush_in`](crate::UnitOfWork::flush_in). Nothing was sent.
    pub fn is_connection_state(&self) -> bool {
        matches!(self.0.kind, Kind::Connection(_))
    }

    /// Returns whether the answer to COMMIT was lost and the database was not or could not be asked:
    /// the rows are all there, or will be, or none is.
    ///
    /// Flush again, over a connection that works: as long as nothing is added, the next
    /// [`flush`](crate::UnitOfWork::flush) begins with the question whether they are there. A row is
    /// never written twice, since it carries the same key.
    ///
    /// An error of [`flush_in`](crate::UnitOfWork::flush_in) never has it: that question belongs to
    /// your COMMIT.
    pub fn is_commit_unknown(&self) -> bool {
        self.0.unknown
    }

    /// Returns whether the same flush may succeed another time: a deadlock, a serialization failure, a
    /// lock that did not come in time, a busy database.
    pub fn is_transient(&self) -> bool {
        self.failure() == Failure::Transient
    }

    /// Returns whether the connection was lost or could not be made, or the server went read-only:
    /// flush again over another one.
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
        matches!(self.0.kind, Kind::Count(changed, rows) if changed < rows)
    }

    /// Returns whether a primary or unique key was already taken.
    pub fn is_unique_violation(&self) -> bool {
        self.failure() == Failure::Duplicate
    }

    /// Returns whether a row's parent does not exist.
    pub fn is_foreign_key_violation(&self) -> bool {
        matches!(
            self.as_diesel(),
            Some(DieselError::DatabaseError(
                DatabaseErrorKind::ForeignKeyViolation,
                _
            ))
        )
    }

    /// Returns Diesel's error, where it is one.
    pub fn as_diesel(&self) -> Option<&DieselError> {
        match &self.0.kind {
            Kind::Begin(error)
            | Kind::Record(error)
            | Kind::Statement(error)
            | Kind::Commit(error)
            | Kind::Release(error)
            | Kind::Probe(error) => Some(error),
            Kind::Plan(_) | Kind::Connection(_) | Kind::Connect(_) | Kind::Count(..) => None,
        }
    }
}

impl From<ordid_core::Error> for Error {
    fn from(error: ordid_core::Error) -> Self {
        Self::new(Kind::Plan(error), Failure::Refused)
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
            Kind::Connection(message) => {
                write!(f, "cannot begin the flush, nothing was sent: {message}")
            }
            Kind::Connect(error) => {
                write!(
                    f,
                    "cannot connect for the flush, nothing was written: {error}"
                )
            }
            Kind::Begin(error) => write!(f, "cannot begin the flush, nothing was written: {error}"),
            Kind::Record(error) => write!(
                f,
                "cannot record the flush, nothing was written: updates and deletes need the table \
                 `ordid_flushes`, which `ordid_diesel::flushes_table` declares: {error}"
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
            place.fmt(f)?;
        }
        match &self.0.kind {
            Kind::Statement(error) => write!(f, ": {error}"),
            Kind::Count(changed, rows) if self.is_missing_row() => match self.key() {
                Some(_) => f.write_str(": there is no such row"),
                None => write!(f, ": {changed} of {rows} rows were found"),
            },
            Kind::Count(changed, rows) => write!(f, ": {changed} rows have these {rows} keys"),
            _ if self.0.unknown => match self.as_diesel() {
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

impl Place {
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

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.0.kind {
            Kind::Plan(error) => Some(error),
            Kind::Connect(error) => Some(error.as_ref()),
            Kind::Begin(error)
            | Kind::Record(error)
            | Kind::Statement(error)
            | Kind::Commit(error)
            | Kind::Release(error)
            | Kind::Probe(error) => Some(error),
            Kind::Connection(_) | Kind::Count(..) => None,
        }
    }
}
