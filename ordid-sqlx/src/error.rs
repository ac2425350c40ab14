//! The crate's one error type.

use std::{fmt, ops::Range};

use ordid_core::unit_of_work::{Action, Chunk, Failure, Flushed, Table};
use sqlx::error::{BoxDynError, DatabaseError};

use crate::failure::{commit_failure, failure};

/// Why a unit of work was not flushed. Nothing of it is in the database, unless
/// [`is_commit_unknown`](Self::is_commit_unknown) says that this cannot be known, or
/// [`shards`](Self::shards) that it is in some of several.
///
/// It is opaque: ask it where and why, print it for people. [`source`](std::error::Error::source)
/// is SQLx's error.
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
    Journal(ordid_core::Error),
    /// A transaction is open on the connection.
    Open,
    Begin(sqlx::Error),
    Record(sqlx::Error),
    Bind(BoxDynError),
    Statement(sqlx::Error),
    /// How many rows it changed, and how many it was for.
    Count(u64, usize),
    Commit(sqlx::Error),
    Release(sqlx::Error),
    Probe(sqlx::Error),
    /// What became of each shard, of which one failed at least.
    Shards(Vec<Result<Flushed, Error>>),
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
    fn new(kind: Kind, place: Option<Place>) -> Self {
        Self(Box::new(Inner {
            kind,
            place,
            unknown: false,
            retries: 0,
        }))
    }

    /// A transaction is open on the connection.
    pub(crate) fn open_transaction() -> Self {
        Self::new(Kind::Open, None)
    }

    pub(crate) fn begin(source: sqlx::Error) -> Self {
        Self::new(Kind::Begin(source), None)
    }

    /// The flush's own row.
    pub(crate) fn record(source: sqlx::Error) -> Self {
        Self::new(Kind::Record(source), None)
    }

    pub(crate) fn commit(source: sqlx::Error) -> Self {
        Self::new(Kind::Commit(source), None)
    }

    /// The savepoint of a flush inside the user's transaction, which is not committed yet.
    pub(crate) fn release(source: sqlx::Error) -> Self {
        Self::new(Kind::Release(source), None)
    }

    /// What became of each shard, of which one failed at least.
    pub(crate) fn of_shards(outcomes: Vec<Result<Flushed, Self>>) -> Self {
        Self::new(Kind::Shards(outcomes), None)
    }

    /// It could not be asked what became of a COMMIT.
    pub(crate) fn probe(source: sqlx::Error) -> Self {
        Self::new(Kind::Probe(source), None)
    }

    pub(crate) fn statement(source: sqlx::Error, place: Place) -> Self {
        Self::new(Kind::Statement(source), Some(place))
    }

    /// A statement changed another number of rows than it was for.
    pub(crate) fn count(changed: u64, rows: usize, place: Place) -> Self {
        Self::new(Kind::Count(changed, rows), Some(place))
    }

    pub(crate) fn bind(source: BoxDynError, place: Place) -> Self {
        Self::new(Kind::Bind(source), Some(place))
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
            Kind::Plan(_) | Kind::Journal(_) | Kind::Open | Kind::Bind(_) | Kind::Count(..) => {
                Failure::Refused
            }
            Kind::Begin(error)
            | Kind::Record(error)
            | Kind::Statement(error)
            | Kind::Release(error)
            | Kind::Probe(error) => failure(error),
            Kind::Commit(error) => commit_failure(error),
            // All of them have to succeed another time.
            Kind::Shards(outcomes) => {
                let failures = || failed(outcomes).map(|(_, error)| error.failure());
                let refused = |it: &Failure| matches!(it, Failure::Refused | Failure::Duplicate);
                let found = failures().find(refused).or_else(|| failures().next());
                found.unwrap_or(Failure::Refused)
            }
        }
    }

    /// Whether the database refused a value, so that the same rows would be refused again and the
    /// row can be found.
    pub(crate) fn refuses_a_row(&self) -> bool {
        match &self.0.kind {
            Kind::Statement(error) => error.as_database_error().is_some_and(is_about_a_row),
            Kind::Count(..) => true,
            _ => false,
        }
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

    /// Returns whether the journal could not be read or written, or does not have what was asked for;
    /// nothing was sent.
    pub fn is_journal(&self) -> bool {
        matches!(self.0.kind, Kind::Journal(_))
    }

    /// Returns whether the answer to COMMIT was lost and asking the database did not tell, in as many
    /// attempts as [`with_retry`](crate::UnitOfWork::with_retry) gave it: the rows are all there, or
    /// will be, or none is.
    ///
    /// Flush again: as long as nothing is added, the next [`flush`](crate::UnitOfWork::flush) begins
    /// with the question whether they are there. A row is never written twice, since it carries the
    /// same key.
    ///
    /// An error of [`flush_in`](crate::UnitOfWork::flush_in) never has it: no COMMIT was sent, so what
    /// it wrote is gone with the connection, or with the savepoint. Of your own COMMIT after it, SQLx's
    /// error says the same: one without
    /// [`as_database_error`](sqlx::Error::as_database_error) leaves the outcome open.
    pub fn is_commit_unknown(&self) -> bool {
        self.0.unknown
    }

    /// Returns whether the same flush may succeed another time: a deadlock, a serialization failure, a
    /// lock that did not come in time, a busy database; or a pool without a free connection, which has
    /// waited itself, so that the flush does not try again.
    pub fn is_transient(&self) -> bool {
        self.failure() == Failure::Transient
            || matches!(self.as_sqlx(), Some(sqlx::Error::PoolTimedOut))
    }

    /// Returns whether the connection was lost, the server ended it, or went read-only: flush again
    /// when it can be reached.
    pub fn is_connection_lost(&self) -> bool {
        self.failure() == Failure::Lost
    }

    /// Returns whether [`flush_on`](crate::UnitOfWork::flush_on) met a transaction that was open already on
    /// the connection. It is as it was.
    pub fn is_transaction_state(&self) -> bool {
        match &self.0.kind {
            Kind::Open => true,
            // SQLite's own words.
            Kind::Begin(sqlx::Error::Database(error)) => {
                error.message() == "cannot start a transaction within a transaction"
            }
            _ => false,
        }
    }

    /// Returns how many times the flush was begun anew before it was given up: see
    /// [`with_retry`](crate::UnitOfWork::with_retry).
    pub fn retries(&self) -> u32 {
        self.0.retries
    }

    /// Returns whether a row that was to be updated or deleted is not in the database, or a trigger, a
    /// rule or row-level security passed it over. [`key`](Self::key) is its key.
    pub fn is_missing_row(&self) -> bool {
        matches!(self.0.kind, Kind::Count(changed, rows) if u64::try_from(rows).is_ok_and(|rows| changed < rows))
    }

    /// Returns whether a primary or unique key was already taken.
    pub fn is_unique_violation(&self) -> bool {
        self.as_database_error()
            .is_some_and(DatabaseError::is_unique_violation)
    }

    /// Returns whether a row's parent does not exist.
    pub fn is_foreign_key_violation(&self) -> bool {
        self.as_database_error()
            .is_some_and(DatabaseError::is_foreign_key_violation)
    }

    /// Returns what became of each shard of a
    /// [`ShardedUnitOfWork`](crate::ShardedUnitOfWork) of which some failed: what was written where it
    /// succeeded, and the error where it did not. Table, key and whether the
    /// [commit is unknown](Self::is_commit_unknown) are in these errors. The whole
    /// [is transient](Self::is_transient) if no shard refused its rows.
    pub fn shards(&self) -> Option<&[Result<Flushed, Self>]> {
        match &self.0.kind {
            Kind::Shards(outcomes) => Some(outcomes),
            _ => None,
        }
    }

    /// Returns SQLx's error, where it is one.
    pub fn as_sqlx(&self) -> Option<&sqlx::Error> {
        match &self.0.kind {
            Kind::Begin(error)
            | Kind::Record(error)
            | Kind::Statement(error)
            | Kind::Commit(error)
            | Kind::Release(error)
            | Kind::Probe(error) => Some(error),
            Kind::Plan(_)
            | Kind::Journal(_)
            | Kind::Open
            | Kind::Bind(_)
            | Kind::Count(..)
            | Kind::Shards(_) => None,
        }
    }

    fn as_database_error(&self) -> Option<&(dyn DatabaseError + 'static)> {
        self.as_sqlx()?.as_database_error()
    }
}

/// The shards that failed, and why.
fn failed(outcomes: &[Result<Flushed, Error>]) -> impl Iterator<Item = (usize, &Error)> {
    let errors = outcomes.iter().map(|outcome| outcome.as_ref().err());
    errors
        .enumerate()
        .filter_map(|(shard, error)| Some((shard, error?)))
}

fn is_about_a_row(error: &(dyn DatabaseError + 'static)) -> bool {
    // SQLSTATE classes 22 (data exception) and 23 (integrity constraint violation); SQLite has
    // codes of its own, which SQLx sorts into kinds.
    let class = error
        .code()
        .is_some_and(|code| code.len() == 5 && (code.starts_with("22") || code.starts_with("23")));
    class || !matches!(error.kind(), sqlx::error::ErrorKind::Other)
}

impl From<ordid_core::Error> for Error {
    fn from(error: ordid_core::Error) -> Self {
        let kind = match error.is_journal() {
            true => Kind::Journal(error),
            false => Kind::Plan(error),
        };
        Self::new(kind, None)
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
            Kind::Journal(error) => write!(f, "cannot use the journal, nothing was sent: {error}"),
            Kind::Open => f.write_str(
                "a transaction is open on this connection, nothing was sent: flush inside it with \
                 `flush_in`, or end it first",
            ),
            Kind::Begin(error) => write!(f, "cannot begin the flush, nothing was written: {error}"),
            Kind::Record(error) => write!(
                f,
                "cannot record the flush, nothing was written: updates, deletes and `with_record` need \
                 the table `ordid_flushes`, which `ordid_sqlx::flushes_table` declares: {error}"
            ),
            Kind::Bind(_) | Kind::Statement(_) | Kind::Count(..) => Ok(()),
            Kind::Commit(error) => write!(f, "cannot commit, nothing was written: {error}"),
            Kind::Release(error) => write!(
                f,
                "cannot release the savepoint of the flush, nothing was written: {error}"
            ),
            Kind::Probe(error) => write!(f, "cannot look for the rows: {error}"),
            Kind::Shards(outcomes) => {
                write!(
                    f,
                    "{} of {} shards failed, and the rows of the others are written",
                    failed(outcomes).count(),
                    outcomes.len()
                )?;
                failed(outcomes)
                    .try_for_each(|(shard, error)| write!(f, "; shard {shard}: {error}"))
            }
        }?;
        if let Some(place) = &self.0.place {
            place.fmt(f, matches!(self.0.kind, Kind::Bind(_)))?;
        }
        match &self.0.kind {
            Kind::Bind(error) => write!(f, ": {error}"),
            Kind::Statement(error) => write!(f, ": {error}"),
            Kind::Count(changed, rows) if self.is_missing_row() => match self.key() {
                Some(_) => f.write_str(": there is no such row"),
                None => write!(f, ": {changed} of {rows} rows were found"),
            },
            Kind::Count(changed, rows) => write!(f, ": {changed} rows have these {rows} keys"),
            _ if self.0.unknown => match self.as_sqlx() {
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
            Kind::Plan(error) | Kind::Journal(error) => Some(error),
            Kind::Begin(error)
            | Kind::Record(error)
            | Kind::Statement(error)
            | Kind::Commit(error)
            | Kind::Release(error)
            | Kind::Probe(error) => Some(error),
            Kind::Bind(error) => Some(error.as_ref()),
            Kind::Open | Kind::Count(..) => None,
            Kind::Shards(outcomes) => failed(outcomes).next().map(|(_, error)| error as _),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_not_there_is_told() {
        let place = |key| Place {
            action: Action::Delete,
            table: "orders",
            chunk: 1,
            rows: 1_000..1_003,
            row: None,
            key,
        };
        let error = Error::count(2, 3, place(None));
        assert!(error.is_missing_row() && error.refuses_a_row());
        assert_eq!(error.action(), Some(Action::Delete));
        let text = "cannot delete from orders, chunk 1 (rows 1000 to 1002), nothing was written: 2 \
                    of 3 rows were found";
        assert_eq!(error.to_string(), text);
        let error = Error::count(0, 1, place(Some("7".into())));
        let text = "cannot delete from orders, chunk 1 (rows 1000 to 1002), key 7, nothing was \
                    written: there is no such row";
        assert_eq!(error.to_string(), text);
        let error = Error::count(4, 3, place(None));
        assert!(!error.is_missing_row());
        assert!(error.to_string().ends_with(": 4 rows have these 3 keys"));
    }

    #[test]
    fn only_what_was_not_found_out_is_unknown() {
        let mut error = Error::commit(sqlx::Error::WorkerCrashed).into_unknown();
        error.set_retries(3);
        assert!(error.is_commit_unknown() && error.is_connection_lost() && !error.is_transient());
        assert_eq!(
            error.to_string(),
            "the answer to COMMIT was lost, so either all rows are written or none is; flush again \
             to find out: attempted to communicate with a crashed background worker (tried 4 times)"
        );
        assert_eq!(error.retries(), 3);
        // A savepoint's rows are not committed, whatever became of it.
        let error = Error::release(sqlx::Error::WorkerCrashed);
        assert!(!error.is_commit_unknown());
        assert!(error.as_sqlx().is_some());
        assert!(
            error
                .to_string()
                .starts_with("cannot release the savepoint of the flush, nothing was written: ")
        );
        let error = Error::begin(sqlx::Error::PoolTimedOut);
        assert!(error.is_transient() && !error.is_connection_lost());
    }
}
