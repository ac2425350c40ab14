//! The crate's one error type.

use std::{fmt, ops::Range};

use ordid_core::unit_of_work::{Chunk, Failure};
use tiberius::error::TokenError;

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
    /// Whether it is not known what became of the commit.
    unknown: bool,
    retries: u32,
}

#[derive(Debug)]
enum Kind {
    Plan(ordid_core::Error),
    Flavour { wanted: &'static str, found: String },
    OpenTransaction,
    NoTransaction,
    Begin(tiberius::error::Error),
    Insert(tiberius::error::Error),
    Commit(tiberius::error::Error),
}

/// Where in the flush it happened.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) table: &'static str,
    pub(crate) chunk: usize,
    pub(crate) rows: Range<usize>,
    pub(crate) key: Option<String>,
}

/// Errors about a value or a constraint, by their numbers in `sys.messages`: the same rows would be
/// refused again.
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

/// Chosen as the victim of a deadlock.
const DEADLOCK: u32 = 1205;

/// What another time may succeed, by number in `sys.messages`.
///
/// # References
///
/// - [Database Engine events and errors](https://learn.microsoft.com/sql/relational-databases/errors-events/database-engine-events-and-errors)
/// - [Transient errors of Azure SQL](https://learn.microsoft.com/azure/azure-sql/database/troubleshoot-common-errors-issues)
const TRANSIENT: &[u32] = &[
    DEADLOCK, 1204, 1222, // no lock to give; a lock did not come in time
    3960, 3961, // another transaction was first, under snapshot isolation
    8645, 8651, // no memory for the statement in time
    10928, 10929, 40501, 40613, 49918, 49919, 49920, // Azure: too busy, or moving
    41301, 41302, 41305, 41325,
    41839, // memory-optimized tables: another transaction was first
];

/// The server ends the session, whatever the severity: it is being killed, is shutting down, or moves
/// to another machine.
const ENDS_THE_SESSION: &[u32] = &[596, 6005, 40197];

/// The server ends the connection after an error of this severity or above.
const FATAL: u8 = 20;

impl Error {
    pub(crate) fn begin(source: tiberius::error::Error) -> Self {
        Self::without_place(Kind::Begin(source))
    }

    pub(crate) fn commit(source: tiberius::error::Error) -> Self {
        Self::without_place(Kind::Commit(source))
    }

    pub(crate) fn flavour(wanted: &'static str, version: &str) -> Self {
        Self::without_place(Kind::Flavour {
            wanted,
            found: version.lines().next().unwrap_or_default().to_owned(),
        })
    }

    pub(crate) fn open_transaction() -> Self {
        Self::without_place(Kind::OpenTransaction)
    }

    pub(crate) fn no_transaction() -> Self {
        Self::without_place(Kind::NoTransaction)
    }

    pub(crate) fn insert(source: tiberius::error::Error, place: Place) -> Self {
        Self(Box::new(Inner {
            kind: Kind::Insert(source),
            place: Some(place),
            unknown: false,
            retries: 0,
        }))
    }

    fn without_place(kind: Kind) -> Self {
        Self(Box::new(Inner {
            kind,
            place: None,
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

    /// What it means for the flush. A commit was carried out or not, unless the server says that it was
    /// not.
    pub(crate) fn failure(&self) -> Failure {
        if self.is_unique_violation() {
            Failure::Duplicate
        } else if self.is_connection_lost() {
            Failure::Lost
        } else if self.code().is_some_and(|code| TRANSIENT.contains(&code)) {
            Failure::Transient
        } else if matches!(self.0.kind, Kind::Commit(_)) && self.server_error().is_none() {
            Failure::Lost
        } else {
            Failure::Refused
        }
    }

    /// Whether the server refused a value, so that the same rows would be refused again and the row
    /// can be found.
    pub(crate) fn refuses_a_row(&self) -> bool {
        matches!(self.0.kind, Kind::Insert(_))
            && self.code().is_some_and(|code| ABOUT_A_ROW.contains(&code))
    }

    /// Narrows the place down to a row's chunk and its key.
    pub(crate) fn set_row(&mut self, chunk: Chunk, key: String) {
        if let Some(place) = &mut self.0.place {
            place.chunk = chunk.number;
            place.rows = chunk.rows;
            place.key = Some(key);
        }
    }

    /// Returns the table whose insert failed.
    pub fn table(&self) -> Option<&str> {
        self.0.place.as_ref().map(|place| place.table)
    }

    /// Returns which chunk of the table failed, from 0.
    pub fn chunk(&self) -> Option<usize> {
        self.0.place.as_ref().map(|place| place.chunk)
    }

    /// Returns which rows of the table, counted from 0 in the order in which they are sent, the
    /// failed chunk held.
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

    /// Returns whether `flush` met a transaction that was open already, or `flush_in` met none.
    /// Nothing was sent.
    pub fn is_transaction_state(&self) -> bool {
        matches!(self.0.kind, Kind::OpenTransaction | Kind::NoTransaction)
    }

    /// Returns whether the answer to the commit was lost or an error that leaves its outcome open:
    /// the rows are all there, or none is. Looking for any one of the keys tells.
    pub fn is_commit_unknown(&self) -> bool {
        self.0.unknown
    }

    /// Returns whether the same flush may succeed another time, on the same client: a deadlock, a lock
    /// that did not come in time, a conflict under snapshot isolation, a busy server.
    pub fn is_transient(&self) -> bool {
        self.failure() == Failure::Transient
    }

    /// Returns how many times the flush was begun anew before it was given up: see
    /// [`with_retry`](crate::UnitOfWork::with_retry).
    pub fn retries(&self) -> u32 {
        self.0.retries
    }

    /// Returns whether a primary or unique key was already taken: errors 2627 and 2601.
    pub fn is_unique_violation(&self) -> bool {
        matches!(self.code(), Some(2627 | 2601))
    }

    /// Returns whether a row's parent does not exist: error 547 that names a foreign key, or the
    /// word in the server's language. A `CHECK` constraint has the same number.
    pub fn is_foreign_key_violation(&self) -> bool {
        self.server_error().is_some_and(|error| {
            error.code() == 547 && error.message().to_uppercase().contains("FOREIGN KEY")
        })
    }

    /// Returns whether the server chose the transaction as the victim of a deadlock, error 1205, and
    /// has rolled all of it back, also what was in it before `flush_in`.
    pub fn is_deadlock(&self) -> bool {
        self.code() == Some(DEADLOCK)
    }

    /// Returns whether the connection is gone, or out of step with the server after a time-out: drop
    /// the client.
    pub fn is_connection_lost(&self) -> bool {
        use tiberius::error::Error::{Io, Protocol, Routing, Server, Tls};

        match self.as_tiberius() {
            Some(Io { .. } | Protocol(_) | Routing { .. } | Tls(_)) => true,
            Some(Server(error)) => {
                error.class() >= FATAL || ENDS_THE_SESSION.contains(&error.code())
            }
            _ => false,
        }
    }

    /// Returns the number of the server's error, as in `sys.messages`.
    pub fn code(&self) -> Option<u32> {
        self.as_tiberius()?.code()
    }

    /// Returns tiberius' error, where it is one.
    pub fn as_tiberius(&self) -> Option<&tiberius::error::Error> {
        match &self.0.kind {
            Kind::Begin(error) | Kind::Insert(error) | Kind::Commit(error) => Some(error),
            Kind::Plan(_) | Kind::Flavour { .. } | Kind::OpenTransaction | Kind::NoTransaction => {
                None
            }
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
        Self::without_place(Kind::Plan(error))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.kind {
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
            Kind::Insert(_) => f.write_str("cannot insert"),
            Kind::Commit(error) if self.is_commit_unknown() => write!(
                f,
                "the answer to the commit was lost, so either all rows are written or none is; \
                 look for one of the keys: {error}"
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
            Kind::Insert(error) => write!(f, ": {error}"),
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
            Kind::Begin(error) | Kind::Insert(error) | Kind::Commit(error) => Some(error),
            Kind::Flavour { .. } | Kind::OpenTransaction | Kind::NoTransaction => None,
        }
    }
}
