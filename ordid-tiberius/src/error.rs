//! The crate's one error type.

use std::{fmt, ops::Range};

use ordid_core::unit_of_work::{Action, Chunk, Failure, Table};
use tiberius::error::TokenError;

use crate::failure::{DEADLOCK, DUPLICATE, commit_failure, failure, is_about_a_row};

/// Why a unit of work was not flushed. Nothing of it is in the database, unless
/// [`is_commit_unknown`](Self::is_commit_unknown) says that this cannot be known.
///
/// It is opaque: ask it where and why, print it for people. [`source`](std::error::Error::source)
/// is tiberius' error.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: Kind,
    place: Option<Place>,
    /// Whether it is not known what became of a commit.
    unknown: bool,
    retries: u32,
}

#[derive(Debug)]
enum Kind {
    Plan(ordid_core::Error),
    Flavour {
        wanted: &'static str,
        found: String,
    },
    OpenTransaction,
    NoTransaction,
    Begin(tiberius::error::Error),
    Record(tiberius::error::Error),
    Statement(tiberius::error::Error),
    /// How many rows it changed, and how many it was for.
    Count(u64, usize),
    Commit(tiberius::error::Error),
    Probe(tiberius::error::Error),
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
    pub(crate) fn of(table: &Table, chunk: &Chunk) -> Self {
        Self {
            action: chunk.action,
            table: table.name(),
            chunk: chunk.number,
            rows: chunk.rows.clone(),
            key: None,
        }
    }

    /// The row is known.
    pub(crate) fn with_key(mut self, key: String) -> Self {
        self.key = Some(key);
        self
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

    pub(crate) fn begin(source: tiberius::error::Error) -> Self {
        Self::new(Kind::Begin(source), None)
    }

    /// The flush's own row.
    pub(crate) fn record(source: tiberius::error::Error) -> Self {
        Self::new(Kind::Record(source), None)
    }

    pub(crate) fn commit(source: tiberius::error::Error) -> Self {
        Self::new(Kind::Commit(source), None)
    }

    /// It could not be asked what became of a commit.
    pub(crate) fn probe(source: tiberius::error::Error) -> Self {
        Self::new(Kind::Probe(source), None)
    }

    pub(crate) fn flavour(wanted: &'static str, version: &str) -> Self {
        let found = version.lines().next().unwrap_or_default().to_owned();
        Self::new(Kind::Flavour { wanted, found }, None)
    }

    pub(crate) fn open_transaction() -> Self {
        Self::new(Kind::OpenTransaction, None)
    }

    pub(crate) fn no_transaction() -> Self {
        Self::new(Kind::NoTransaction, None)
    }

    pub(crate) fn statement(source: tiberius::error::Error, place: Place) -> Self {
        Self::new(Kind::Statement(source), Some(place))
    }

    /// A statement changed another number of rows than it was for.
    pub(crate) fn count(changed: u64, rows: usize, place: Place) -> Self {
        Self::new(Kind::Count(changed, rows), Some(place))
    }

    /// It is not known what became of a commit.
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
            Kind::Commit(error) => commit_failure(error),
            Kind::Begin(error)
            | Kind::Record(error)
            | Kind::Statement(error)
            | Kind::Probe(error) => failure(error),
            Kind::Plan(_)
            | Kind::Flavour { .. }
            | Kind::OpenTransaction
            | Kind::NoTransaction
            | Kind::Count(..) => Failure::Refused,
        }
    }

    /// Whether the server refused a value or has no such row, so that the same rows would be refused
    /// again and the row can be found.
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

    /// Returns whether the server is not of the unit of work's flavour: Babelfish in place of SQL
    /// Server, or the other way round. Nothing was sent.
    pub fn is_wrong_flavour(&self) -> bool {
        matches!(self.0.kind, Kind::Flavour { .. })
    }

    /// Returns whether a flush of its own met a transaction that was open already, or `flush_in` met
    /// none. Nothing was sent.
    pub fn is_transaction_state(&self) -> bool {
        matches!(self.0.kind, Kind::OpenTransaction | Kind::NoTransaction)
    }

    /// Returns whether the answer to the commit was lost, or an error that leaves its outcome open, and
    /// it could not be found out: the rows are all there, or will be, or none is.
    ///
    /// Flush again, over a new connection: as long as nothing is added, the next
    /// [`flush`](crate::UnitOfWork::flush) begins with the question whether they are there. A row is
    /// never written twice, since it carries the same key.
    /// [`flush_with`](crate::UnitOfWork::flush_with) asks by itself.
    pub fn is_commit_unknown(&self) -> bool {
        self.0.unknown
    }

    /// Returns whether the same flush may succeed another time, on the same client: a deadlock, a lock
    /// that did not come in time, a conflict under snapshot isolation, a busy server.
    pub fn is_transient(&self) -> bool {
        self.failure() == Failure::Transient
    }

    /// Returns whether the connection is gone, out of step with the server after a time-out, or leads to
    /// a server that went read-only: drop the client.
    pub fn is_connection_lost(&self) -> bool {
        self.failure() == Failure::Lost
    }

    /// Returns how many times the flush was begun anew before it was given up: see
    /// [`with_retry`](crate::UnitOfWork::with_retry).
    pub fn retries(&self) -> u32 {
        self.0.retries
    }

    /// Returns whether a row that was to be updated or deleted is not in the database, or an
    /// `INSTEAD OF` trigger or row-level security passed it over. [`key`](Self::key) is its key.
    pub fn is_missing_row(&self) -> bool {
        matches!(self.0.kind, Kind::Count(changed, rows) if u64::try_from(rows).is_ok_and(|rows| changed < rows))
    }

    /// Returns whether a primary or unique key was already taken: errors 2627 and 2601.
    pub fn is_unique_violation(&self) -> bool {
        self.code().is_some_and(|code| DUPLICATE.contains(&code))
    }

    /// Returns whether a row's parent does not exist, or a deleted row still has children: error 547
    /// that names a foreign key, or the word in the server's language. A `CHECK` constraint has the same
    /// number.
    pub fn is_foreign_key_violation(&self) -> bool {
        self.server_error().is_some_and(|error| {
            let message = error.message().to_uppercase();
            // Of a parent that is deleted or a key that is changed the server says REFERENCE.
            error.code() == 547
                && (message.contains("FOREIGN KEY") || message.contains("REFERENCE CONSTRAINT"))
        })
    }

    /// Returns whether the server chose the transaction as the victim of a deadlock, error 1205, and
    /// has rolled all of it back, also what was in it before `flush_in`.
    pub fn is_deadlock(&self) -> bool {
        self.code() == Some(DEADLOCK)
    }

    /// Returns the number of the server's error, as in `sys.messages`.
    pub fn code(&self) -> Option<u32> {
        self.as_tiberius()?.code()
    }

    /// Returns tiberius' error, where it is one.
    pub fn as_tiberius(&self) -> Option<&tiberius::error::Error> {
        match &self.0.kind {
            Kind::Begin(error)
            | Kind::Record(error)
            | Kind::Statement(error)
            | Kind::Commit(error)
            | Kind::Probe(error) => Some(error),
            Kind::Plan(_)
            | Kind::Flavour { .. }
            | Kind::OpenTransaction
            | Kind::NoTransaction
            | Kind::Count(..) => None,
        }
    }

    fn server_error(&self) -> Option<&TokenError> {
        match self.as_tiberius() {
            Some(tiberius::error::Error::Server(error)) => Some(error),
            _ => None,
        }
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
                "the answer to the commit was lost, so either all rows are written or none is; flush \
                 again over a new connection to find out",
            ),
            Kind::Plan(error) => write!(f, "cannot plan the flush, nothing was sent: {error}"),
            Kind::Flavour { wanted, found } => write!(
                f,
                "this unit of work is for {wanted}, nothing was sent: the server is `{found}`, \
                 which sorts uniqueidentifier in another order; use the UnitOfWork of its flavour, \
                 and name a column for it in the key types"
            ),
            Kind::OpenTransaction => f.write_str(
                "a transaction is open on this client, nothing was sent: flush inside it with \
                 `flush_in`, or end it first",
            ),
            Kind::NoTransaction => f.write_str(
                "no transaction is open on this client, nothing was sent: begin one, or use `flush`",
            ),
            Kind::Begin(error) => write!(f, "cannot begin the flush, nothing was written: {error}"),
            Kind::Record(error) => write!(
                f,
                "cannot record the flush, nothing was written: updates, deletes and `with_record` need \
                 the table `ordid_flushes`, which `ordid_tiberius::flushes_table` declares: {error}"
            ),
            Kind::Statement(_) | Kind::Count(..) => Ok(()),
            Kind::Commit(error) => write!(f, "cannot commit, nothing was written: {error}"),
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
            _ if self.0.unknown => match self.as_tiberius() {
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

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.kind {
            Kind::Plan(error) => Some(error),
            Kind::Begin(error)
            | Kind::Record(error)
            | Kind::Statement(error)
            | Kind::Commit(error)
            | Kind::Probe(error) => Some(error),
            Kind::Flavour { .. }
            | Kind::OpenTransaction
            | Kind::NoTransaction
            | Kind::Count(..) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(key: Option<&str>) -> Place {
        Place {
            action: Action::Delete,
            table: "orders",
            chunk: 1,
            rows: 1_000..1_003,
            key: key.map(str::to_owned),
        }
    }

    #[test]
    fn a_row_that_is_not_there_is_told() {
        let error = Error::count(2, 3, place(None));
        assert!(error.is_missing_row() && error.refuses_a_row());
        assert_eq!(error.action(), Some(Action::Delete));
        let text = "cannot delete from orders, chunk 1 (rows 1000 to 1002), nothing was written: 2 \
                    of 3 rows were found";
        assert_eq!(error.to_string(), text);
        let error = Error::count(0, 1, place(Some("7")));
        let text = "cannot delete from orders, chunk 1 (rows 1000 to 1002), key 7, nothing was \
                    written: there is no such row";
        assert_eq!(error.to_string(), text);
        let error = Error::count(4, 3, place(None));
        assert!(!error.is_missing_row());
        assert!(error.to_string().ends_with(": 4 rows have these 3 keys"));
    }

    #[test]
    fn only_what_was_not_found_out_is_unknown() {
        let lost = || tiberius::error::Error::Protocol("gone".into());
        let mut error = Error::commit(lost()).into_unknown();
        error.set_retries(3);
        assert!(error.is_commit_unknown() && error.is_connection_lost() && !error.is_transient());
        assert_eq!(
            error.to_string(),
            "the answer to the commit was lost, so either all rows are written or none is; flush \
             again over a new connection to find out: Protocol error: gone (tried 4 times)"
        );
        assert_eq!(error.retries(), 3);
        let error = Error::record(lost());
        assert!(error.is_connection_lost() && !error.is_commit_unknown());
        let error = error.to_string();
        assert!(error.contains("which `ordid_tiberius::flushes_table` declares: Protocol error"));
    }
}
