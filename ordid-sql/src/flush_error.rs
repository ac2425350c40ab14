//! Why a flush failed, in the same words for every adapter.

use std::{error::Error as StdError, ops::Range, time::Duration};

use crate::{
    Action, Chunk, EngineProfile, Failure, Flushed, Table,
    classify::{Names, ShownValue},
    flush_run::MarkedFor,
    two_phase::Decision,
};
use ordid_core::Error;

mod text;
mod two_phase;

type BoxedError = Box<dyn StdError + Send + Sync>;

/// Why a unit of work was not flushed. None of its changes are in the database, with three exceptions:
/// [`is_commit_unknown`](Self::is_commit_unknown) says that this cannot be known, [`shards`](Self::shards) says that
/// some of several databases have their rows, and [`committed_chunks`](Self::committed_chunks) says that the first rows
/// are committed.
///
/// It is opaque: ask it where and why, print it for people. `D` is the error of the database library
/// that the adapter is for: [`driver`](Self::driver), which is also the
/// [`source`](std::error::Error::source).
#[derive(Debug)]
pub struct FlushError<D>(Box<Inner<D>>);

#[derive(Debug)]
struct Inner<D> {
    kind: Kind<D>,
    source: Source<D>,
    place: Option<Place>,
    /// Whether it is not known what became of a COMMIT.
    is_unknown: bool,
    /// The versions of rows that were not found.
    stale: Option<Stale>,
    /// Whether a row with a version was not found though it is there as it was read.
    is_left_out: bool,
    /// Why a flush cannot find it out, if it cannot.
    stays_unknown: Option<NoProbe>,
    /// Whether another transaction may be the cause, so that it may succeed another time.
    is_race: bool,
    rest: Rest,
    retries: u32,
    /// How many chunks are committed, of a flush in chunks, and what was written.
    chunks: Option<(u64, Flushed)>,
}

/// What failed.
#[derive(Debug)]
enum Kind<D> {
    Plan,
    Journal,
    /// The connection is in a state in which nothing is sent.
    State(Hindrance),
    /// The database is not one that the unit of work is for.
    Database(Hindrance),
    /// Something else than a flush.
    Other,
    Connect,
    Begin,
    /// Old marker rows could not be deleted.
    Removal,
    Record {
        adapter: &'static str,
        /// What creates the table, if it is missing.
        missing: Option<&'static str>,
        /// Why a flush that only inserts writes a marker row.
        marked_for: Option<MarkedFor>,
    },
    Bind,
    /// The columns that the database fills could not be read.
    Read,
    Statement,
    Count {
        changed: u64,
        rows: usize,
    },
    /// A row is larger than a message to the server may be.
    TooLarge {
        bytes: usize,
        limit: usize,
        setting: Option<&'static str>,
    },
    Commit,
    Release,
    Probe,
    Timeout(Duration),
    /// The transaction could not be prepared.
    Prepare,
    /// What is prepared could not be listed, which perhaps needs this privilege.
    NotListed(&'static str),
    /// The part of a shard was rolled back, as the flush was not committed.
    RolledBack,
    /// The part of a shard is prepared, and nobody knows whether the flush is committed.
    Undecided,
    /// The flush is committed, and the part of a shard is prepared under this id.
    Unfinished(String),
    /// The flush is committed, and somebody has rolled back what the shard had prepared under this id.
    Vanished(String),
    /// Somebody has rolled back what the other shards had prepared.
    Recovered,
    /// The flush began too long ago to decide.
    TooLate,
    /// What became of each shard, of which one failed at least, and of the whole if that is all or nothing.
    Shards(Vec<Result<Flushed, FlushError<D>>>, Option<Decision>),
}

/// The version that a row was read with, if it is known which row, and the one that it has.
#[derive(Debug)]
struct Stale {
    read: Option<String>,
    found: FoundVersion,
}

/// What the database has in the place of a row that was not found with its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FoundVersion {
    /// It could not be asked.
    Unknown,
    /// There is no row with this key.
    NoRow,
    /// The row has this version.
    Found(String),
}

/// Why no flush finds out what became of a COMMIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoProbe {
    /// It was to write no marker row.
    WithoutRecord,
    /// Its marker row may have been removed.
    MarkerRemoved,
    /// The flush did not come so far. The next one may.
    NotAsked,
}

/// The state that a failed rollback left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// It did not fail.
    None,
    /// The flush's own transaction is open.
    Open,
    /// The user's transaction has ended, and with it the savepoint.
    Over,
    /// A prepared transaction may be left.
    Prepared,
}

/// What stands in the way, and what to do about it.
#[derive(Debug)]
struct Hindrance {
    what: String,
    remedy: String,
}

#[derive(Debug)]
enum Source<D> {
    None,
    Core(Error),
    Driver(DriverError<D>),
    Boxed(BoxedError),
}

/// A driver's error, and what its adapter makes of it. For adapters.
#[derive(Debug)]
pub struct DriverError<D> {
    /// The driver's error.
    pub error: D,
    /// What it means for the flush.
    pub failure: Failure,
    /// Whether a later flush may succeed although this one does not try again: what has waited itself,
    /// as a pool without a free connection.
    pub has_waited: bool,
    /// Whether it is about what is in a row, which can be found.
    pub refuses_a_row: bool,
    /// Which constraint it says was violated, where that is one that is asked for.
    pub violation: Option<Violation>,
    /// Where its text has the value that was refused.
    pub shows_value: ShownValue,
    /// The names that the database tells.
    pub names: Names,
    /// Whether it says that a table does not exist.
    pub is_missing_table: bool,
    /// Whether it says that the server does not have such a statement.
    pub is_unsupported: bool,
    /// Whether something went wrong within the server, and not with what it was asked.
    pub is_of_server: bool,
    /// What to print in place of the error's own text.
    pub text: Option<String>,
}

/// A constraint that an error is asked for. For adapters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Violation {
    /// A primary or unique key is taken.
    Unique,
    /// A row's parent does not exist, or a deleted row still has children.
    ForeignKey,
}

impl<D> DriverError<D> {
    /// Takes an error that is about nothing in a row.
    pub fn new(error: D, failure: Failure) -> Self {
        Self {
            error,
            failure,
            has_waited: false,
            refuses_a_row: false,
            violation: None,
            shows_value: ShownValue::Nowhere,
            names: Names::default(),
            is_missing_table: false,
            is_unsupported: false,
            is_of_server: false,
            text: None,
        }
    }
}

/// Where in the flush it happened. For adapters.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct Place {
    pub action: Action,
    pub table: &'static str,
    pub chunk: usize,
    pub rows: Range<usize>,
    /// Which of them, where a statement was for one.
    pub row: Option<usize>,
    pub key: Option<String>,
    /// How many rows of the chunk failed besides the one with this key.
    pub more: usize,
}

impl Place {
    pub fn new(action: Action, table: &'static str, chunk: usize, rows: Range<usize>) -> Self {
        Self {
            action,
            table,
            chunk,
            rows,
            row: None,
            key: None,
            more: 0,
        }
    }

    pub fn of(table: &Table, chunk: &Chunk) -> Self {
        Self::new(chunk.action, table.name(), chunk.number, chunk.rows.clone())
    }

    /// The row is known.
    #[must_use]
    pub fn with_key(mut self, key: String) -> Self {
        self.key = Some(key);
        self
    }
}

/// How adapters make it, where a flush cannot begin.
impl<D> FlushError<D> {
    fn new(kind: Kind<D>, source: Source<D>) -> Self {
        Self(Box::new(Inner {
            kind,
            source,
            place: None,
            is_unknown: false,
            stale: None,
            is_left_out: false,
            stays_unknown: None,
            is_race: false,
            rest: Rest::None,
            retries: 0,
            chunks: None,
        }))
    }

    fn at(mut self, place: Place) -> Self {
        self.0.place = Some(place);
        self
    }

    /// The connection is in a state in which nothing is sent: say in which, and what to do.
    pub fn state(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (what, remedy) = (what.into(), remedy.into());
        Self::new(Kind::State(Hindrance { what, remedy }), Source::None)
    }

    /// Makes the error for a connection on which a transaction is open although the flush needs its own.
    pub fn open_transaction(connection: &str) -> Self {
        Self::state(
            format!("a transaction is open on this {connection}"),
            "flush inside it with `flush_in`, or end it first",
        )
    }

    /// No transaction is open where the flush was to be inside one.
    pub fn no_transaction(connection: &str) -> Self {
        Self::state(
            format!("no transaction is open on this {connection}"),
            "begin one, or use `flush`",
        )
    }

    /// The database is not one that the unit of work is for: say which it is for, which it is, and what
    /// to do.
    pub fn database(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (what, remedy) = (what.into(), remedy.into());
        Self::new(Kind::Database(Hindrance { what, remedy }), Source::None)
    }

    /// No connection could be made.
    pub fn connect(source: impl Into<BoxedError>) -> Self {
        Self::new(Kind::Connect, Source::Boxed(source.into()))
    }

    /// The flush could not be begun.
    pub fn begin(source: DriverError<D>) -> Self {
        Self::new(Kind::Begin, Source::Driver(source))
    }
}

/// How the executor makes it, and what adapters offer beside a unit of work.
#[doc(hidden)]
impl<D> FlushError<D> {
    /// Something else than a flush failed.
    pub fn other(source: DriverError<D>) -> Self {
        Self::new(Kind::Other, Source::Driver(source))
    }

    /// What [`other`](Self::other) made was that no flush could be begun.
    #[must_use]
    pub fn into_begin(mut self) -> Self {
        if let Kind::Other = self.0.kind {
            self.0.kind = Kind::Begin;
        }
        self
    }

    /// The flush's own row could not be written; `adapter` is the crate that declares its table.
    pub fn record(adapter: &'static str, engine: &EngineProfile, source: DriverError<D>) -> Self {
        let missing = source.is_missing_table.then(|| engine.flushes_table());
        let kind = Kind::Record {
            adapter,
            missing,
            marked_for: None,
        };
        Self::new(kind, Source::Driver(source))
    }

    /// The database accepted the marker row, but did not keep it; `adapter` is the crate that declares its table.
    pub(crate) fn marker_left_out(adapter: &'static str) -> Self {
        let kind = Kind::Record {
            adapter,
            missing: None,
            marked_for: None,
        };
        let why = "a trigger, a rule or a view left the row out, and it has to be there";
        Self::new(kind, Source::Boxed(why.into()))
    }

    /// Old marker rows could not be deleted; `adapter` is the crate that declares their table.
    pub(crate) fn removal(
        adapter: &'static str,
        engine: &EngineProfile,
        source: DriverError<D>,
    ) -> Self {
        match source.is_missing_table {
            true => Self::record(adapter, engine, source),
            false => Self::new(Kind::Removal, Source::Driver(source)),
        }
    }

    /// Says of [`record`](Self::record) why a flush that only inserts needs it.
    pub(crate) fn needed_by(mut self, reason: Option<MarkedFor>) -> Self {
        if let Kind::Record { marked_for, .. } = &mut self.0.kind {
            *marked_for = reason;
        }
        self
    }

    /// A value could not be bound, by its own fault.
    pub fn bind(source: impl Into<BoxedError>, place: Place) -> Self {
        Self::new(Kind::Bind, Source::Boxed(source.into())).at(place)
    }

    /// The driver could not bind a value.
    pub fn bind_by_driver(source: DriverError<D>, place: Place) -> Self {
        Self::new(Kind::Bind, Source::Driver(source)).at(place)
    }

    /// Makes the error for columns that the database fills and that could not be read.
    pub fn read(source: DriverError<D>, place: Place) -> Self {
        Self::new(Kind::Read, Source::Driver(source)).at(place)
    }

    /// Makes the error for an answer that does not fit the query.
    pub(crate) fn misread(source: impl Into<BoxedError>, place: Place) -> Self {
        Self::new(Kind::Read, Source::Boxed(source.into())).at(place)
    }

    /// A statement failed.
    pub fn statement(source: DriverError<D>, place: Place) -> Self {
        Self::new(Kind::Statement, Source::Driver(source)).at(place)
    }

    /// A statement changed another number of rows than it was for.
    pub fn count(changed: u64, rows: usize, place: Place) -> Self {
        Self::new(Kind::Count { changed, rows }, Source::None).at(place)
    }

    /// A row's values have more bytes than the server takes.
    pub(crate) fn too_large(
        bytes: usize,
        limit: usize,
        setting: Option<&'static str>,
        place: Place,
    ) -> Self {
        let kind = Kind::TooLarge {
            bytes,
            limit,
            setting,
        };
        Self::new(kind, Source::None).at(place)
    }

    /// The time that the flush was given is over.
    pub(crate) fn timeout(within: Duration) -> Self {
        Self::new(Kind::Timeout(within), Source::None)
    }

    /// As [`timeout`](Self::timeout), after this failure.
    pub(crate) fn into_timeout(mut self, within: Duration) -> Self {
        self.0.kind = Kind::Timeout(within);
        self.0.place = None;
        self
    }

    /// COMMIT failed.
    pub fn commit(source: DriverError<D>) -> Self {
        Self::new(Kind::Commit, Source::Driver(source))
    }

    /// The savepoint of a flush inside the user's transaction, which is not committed yet, could not be
    /// released.
    pub fn release(source: DriverError<D>) -> Self {
        Self::new(Kind::Release, Source::Driver(source))
    }

    /// It could not be asked what became of a COMMIT.
    pub fn probe(source: DriverError<D>) -> Self {
        Self::new(Kind::Probe, Source::Driver(source))
    }

    /// What became of each shard, of which one failed at least.
    pub fn of_shards(outcomes: Vec<Result<Flushed, Self>>) -> Self {
        Self::new(Kind::Shards(outcomes, None), Source::None)
    }

    /// The flush ended, and nothing has said why.
    pub(crate) fn unsaid() -> Self {
        Self::new(Kind::Begin, Source::None)
    }

    /// It is not known what became of a COMMIT.
    #[must_use]
    pub fn into_unknown(mut self) -> Self {
        self.0.is_unknown = true;
        self.0.place = None;
        self
    }

    /// Nothing was asked, so what became of an earlier COMMIT is not known yet.
    #[must_use]
    pub(crate) fn into_still_unknown(mut self) -> Self {
        if !self.0.is_unknown {
            self.0.is_unknown = true;
            self.0.stays_unknown = Some(NoProbe::NotAsked);
        }
        self
    }

    /// If there is a reason, no flush can find it out either.
    #[must_use]
    pub(crate) fn without_probe(mut self, reason: Option<NoProbe>) -> Self {
        self.0.stays_unknown = reason;
        self
    }

    /// Says that the user's transaction has ended, and with it what was before the savepoint that could not be made. For
    /// adapters.
    #[must_use]
    pub fn with_transaction_over(mut self) -> Self {
        self.set_rest(Rest::Over);
        self
    }

    pub(crate) fn set_rest(&mut self, rest: Rest) {
        self.0.rest = rest;
    }

    /// Says which chunks before it are committed.
    #[must_use]
    pub(crate) fn after_chunks(mut self, chunks: u64, flushed: Flushed) -> Self {
        self.0.chunks = (chunks > 0).then_some((chunks, flushed));
        self
    }

    pub(crate) fn set_retries(&mut self, retries: u32) {
        self.0.retries = retries;
    }

    /// Narrows the place down to a row's chunk and its key.
    pub fn set_row(&mut self, chunk: &Chunk, row: usize, key: String) {
        if let Some(place) = &mut self.0.place {
            place.chunk = chunk.number;
            place.rows = chunk.rows.clone();
            place.row = Some(row);
            place.key = Some(key);
        }
    }

    /// Says that rows have other versions than they were read with, or are gone, and with which one this row was read.
    pub(crate) fn set_stale(&mut self, read: Option<String>) {
        self.0.stale = Some(Stale {
            read,
            found: FoundVersion::Unknown,
        });
    }

    /// Says which version the row has. If there is none, it is the one that the row was read with, and something else has
    /// left the row out.
    pub(crate) fn set_found_version(&mut self, found: Option<FoundVersion>) {
        self.0.is_left_out = found.is_none();
        let stale = self.0.stale.take().zip(found);
        self.0.stale = stale.map(|(stale, found)| Stale { found, ..stale });
    }

    /// Returns which row it was, if that is known.
    pub(crate) fn row(&self) -> Option<usize> {
        self.0.place.as_ref()?.row
    }

    /// Another transaction may have inserted or deleted a row between the question for it and the change.
    #[must_use]
    pub(crate) fn into_race(mut self) -> Self {
        self.0.is_race =
            matches!(self.0.kind, Kind::Count { .. }) || self.failure() == Failure::Duplicate;
        self
    }

    /// The same row is refused when it is sent again, so no other transaction is the cause.
    pub(crate) fn set_no_race(&mut self) {
        self.0.is_race = false;
    }

    /// What it means for the flush.
    pub fn failure(&self) -> Failure {
        if self.0.is_race {
            return Failure::Transient;
        }
        match (&self.0.source, &self.0.kind) {
            (Source::Driver(source), _) => source.failure,
            (_, Kind::Connect) => Failure::Lost,
            // All of them have to succeed another time.
            (_, Kind::Shards(outcomes, _)) => {
                let failures = || causes(outcomes).map(|(_, error)| error.failure());
                let refused = |it: &Failure| matches!(it, Failure::Refused | Failure::Duplicate);
                let found = failures().find(refused).or_else(|| failures().next());
                found.unwrap_or(Failure::Refused)
            }
            // By itself it would succeed another time.
            (_, Kind::RolledBack | Kind::Recovered | Kind::TooLate) => Failure::Transient,
            _ => Failure::Refused,
        }
    }

    /// Whether the database refused a value or has no such row, so that the same rows would be refused
    /// again and the row can be found.
    pub fn refuses_a_row(&self) -> bool {
        match (&self.0.kind, &self.0.source) {
            (Kind::Statement, Source::Driver(source)) => source.refuses_a_row,
            (Kind::Count { .. }, _) => true,
            _ => false,
        }
    }

    /// Whether the database refused to take or to commit the rows, over a connection that works.
    pub(crate) fn refuses_the_rows(&self) -> bool {
        let sent = matches!(
            self.0.kind,
            Kind::Record { .. }
                | Kind::Bind
                | Kind::Read
                | Kind::Statement
                | Kind::Count { .. }
                | Kind::TooLarge { .. }
                | Kind::Prepare
                | Kind::Commit
        );
        sent && self.failure() != Failure::Lost
    }

    /// Whether the connection's state or the database is what stands in the way, so that another attempt would
    /// meet the same.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self.0.kind, Kind::State(_) | Kind::Database(_))
    }

    fn driver_error(&self) -> Option<&DriverError<D>> {
        match &self.0.source {
            Source::Driver(source) => Some(source),
            Source::None | Source::Core(_) | Source::Boxed(_) => None,
        }
    }
}

impl FoundVersion {
    fn version(&self) -> Option<&str> {
        match self {
            Self::Found(version) => Some(version),
            Self::Unknown | Self::NoRow => None,
        }
    }
}

impl<D> FlushError<D> {
    /// Returns what failed to be done with the rows.
    pub fn action(&self) -> Option<Action> {
        self.0.place.as_ref().map(|place| place.action)
    }

    /// Returns the table whose rows failed in the database. If the rows could not be planned ([`is_plan`](Self::is_plan)),
    /// only the text names the table and the key.
    pub fn table(&self) -> Option<&str> {
        self.0.place.as_ref().map(|place| place.table)
    }

    /// Returns which statement failed, of those that do this [`action`](Self::action) in this table, counted from 0. A flush
    /// `in_chunks` counts its transactions elsewhere: [`committed_chunks`](Self::committed_chunks).
    pub fn chunk(&self) -> Option<usize> {
        self.0.place.as_ref().map(|place| place.chunk)
    }

    /// Returns which rows the failed statement held, of those that the [`action`](Self::action) is done
    /// with in the table, counted from 0 in the order in which they are sent.
    pub fn rows(&self) -> Option<Range<usize>> {
        self.0.place.as_ref().map(|place| place.rows.clone())
    }

    /// Returns the key of the first row that failed, as text, where it could be found.
    pub fn key(&self) -> Option<&str> {
        self.0.place.as_ref()?.key.as_deref()
    }

    /// Returns whether the unit of work could not be planned; nothing was sent.
    pub fn is_plan(&self) -> bool {
        matches!(self.0.kind, Kind::Plan)
    }

    /// Returns whether the journal could not be read or written, or does not have what was asked for;
    /// nothing was sent.
    pub fn is_journal(&self) -> bool {
        matches!(self.0.kind, Kind::Journal)
    }

    /// Returns whether the flush refused the connection because of its state: a transaction is open although the flush
    /// needs its own, no transaction is open for `flush_in`, or the connection commits by itself after each statement.
    /// The connection is as it was, nothing was sent, and the text says what to do.
    pub fn is_connection_state(&self) -> bool {
        matches!(self.0.kind, Kind::State(_))
    }

    /// Returns whether the database is not one that the unit of work is for, as Babelfish in place of SQL
    /// Server; nothing was sent.
    pub fn is_wrong_database(&self) -> bool {
        matches!(self.0.kind, Kind::Database(_))
    }

    /// Returns whether the outcome of the COMMIT is unknown: its answer was lost, or an error left its outcome open,
    /// and the database was not or could not be asked, in as many attempts as `with_retry` gave the flush. Either all
    /// rows are there or will be, or none of them is.
    ///
    /// Flush again, over a connection that works, before you add, update or delete anything: the next flush begins
    /// with the question whether the rows are there. A row is never written twice, since it carries the same key. A
    /// flush after such a change fails, and sends nothing.
    ///
    /// A flush with updates, upserts or deletes `without_record` cannot ask: look for its changes yourself, and `clear`
    /// the unit of work. If the database would take the rows of a flush twice, and the flush wrote no marker row,
    /// flushing again resolves the outcome only if the rows are found: see `with_record`.
    ///
    /// An error of `flush_in` never has it: no COMMIT was sent, so what it wrote is gone with the
    /// connection, or with the savepoint. That question belongs to your own COMMIT after it.
    pub fn is_commit_unknown(&self) -> bool {
        self.0.is_unknown
    }

    /// Returns whether a flush with `two_phase_commit` is committed, and the rows of some shards are prepared and not yet
    /// committed there, as their databases could not be reached. [`shards`](Self::shards) says which ones. Nothing can
    /// roll them back but a person. Flushing again commits them, and so does `recover_prepared` by any program.
    ///
    /// Such an error is also [`is_commit_unknown`](Self::is_commit_unknown), so ask this first.
    pub fn is_prepared(&self) -> bool {
        match &self.0.kind {
            Kind::Unfinished(_) => true,
            Kind::Shards(outcomes, _) => failed(outcomes).any(|(_, error)| error.is_prepared()),
            _ => false,
        }
    }

    /// Returns whether the database has no table `ordid_flushes`; nothing was written. Updates, upserts, deletes, chunks and
    /// `with_record` need the table, and so do inserts alone if the database would take their rows twice or others may
    /// write their keys. The text has the statement that creates it.
    ///
    /// Diesel keeps the codes of PostgreSQL and MySQL to itself: there, the server has to speak English (`lc_messages`).
    /// Otherwise the text only says that the marker row could not be written, and where the table is declared.
    pub fn is_flushes_table_missing(&self) -> bool {
        matches!(
            self.0.kind,
            Kind::Record {
                missing: Some(_),
                ..
            }
        )
    }

    /// Returns whether the same flush may succeed another time: a deadlock, a serialization failure, a
    /// lock that did not come in time, a busy database; or a pool without a free connection, which has
    /// waited itself, so that the flush does not try again.
    pub fn is_transient(&self) -> bool {
        if let Kind::Shards(outcomes, _) = &self.0.kind
            && self.failure() == Failure::Refused
        {
            // A pool that has waited is not asked again by the flush, and may have a connection later.
            let all = || causes(outcomes).map(|(_, error)| error);
            return all().any(Self::is_transient)
                && all().all(|error| error.is_transient() || error.is_connection_lost());
        }
        self.failure() == Failure::Transient || self.driver_error().is_some_and(|it| it.has_waited)
    }

    /// Returns whether the connection was lost or could not be made, the server ended it or went
    /// read-only, or nobody knows what comes over it next: flush again over another one, when the server
    /// can be reached.
    pub fn is_connection_lost(&self) -> bool {
        self.failure() == Failure::Lost
    }

    /// Returns whether the flush did not end within the time that `with_deadline` of the unit of work gave it.
    pub fn is_timeout(&self) -> bool {
        matches!(self.0.kind, Kind::Timeout(_))
    }

    /// Returns whether a row is larger than what the server takes in one message, as MySQL's `max_allowed_packet`
    /// says. [`key`](Self::key) is its key.
    pub fn is_row_too_large(&self) -> bool {
        matches!(self.0.kind, Kind::TooLarge { .. })
    }

    /// Returns whether the server has ended your transaction, which the flush was inside. MySQL, MariaDB and SQL Server
    /// end it at a deadlock, under `innodb_rollback_on_timeout` also at a lock timeout, and under `XACT_ABORT` at any
    /// error. (If a trigger of SQL Server has begun another transaction since, roll that one back.) Nothing of your
    /// transaction is written, not even what you sent before the flush. The server would commit each statement that you
    /// send now, so begin another transaction and do all of it again.
    pub fn is_transaction_over(&self) -> bool {
        self.0.rest == Rest::Over
    }

    /// Returns how many chunks are committed, of a flush in chunks (`in_chunks` of the unit of work): whatever else the
    /// error says is about the chunk after them. Flushing again goes on with that chunk.
    pub fn committed_chunks(&self) -> u64 {
        self.0.chunks.as_ref().map_or(0, |(chunks, _)| *chunks)
    }

    /// Returns what the [committed chunks](Self::committed_chunks) have written, if there are some.
    pub fn committed(&self) -> Option<&Flushed> {
        self.0.chunks.as_ref().map(|(_, flushed)| flushed)
    }

    /// Returns how many times the flush was begun anew before it was given up: see `with_retry` of the
    /// unit of work.
    pub fn retries(&self) -> u32 {
        self.0.retries
    }

    /// Returns whether a row that was to be updated or deleted is not in the database, or a trigger, a
    /// rule, a view or row-level security passed a row over, also one that was inserted. [`key`](Self::key) is its key.
    ///
    /// It returns false if two upserted rows have the same values in the columns by which rows are found: then fewer rows
    /// are changed than were sent, although none is missing.
    ///
    /// It returns false if a row [is stale](Self::is_stale) and nobody knows whether it is there, for example because
    /// another transaction has locked it on MySQL.
    pub fn is_missing_row(&self) -> bool {
        let is_stale = self.0.stale.as_ref();
        // Two upserts of one row change fewer rows than there are upserts, and each succeeds by itself.
        let are_twins = self.action().is_some_and(Action::upserts) && self.key().is_none();
        let is_gone = is_stale.is_none_or(|it| it.found == FoundVersion::NoRow);
        self.passed_a_row_over() && is_gone && !are_twins
    }

    /// Returns whether the database has changed or inserted fewer rows than it was given.
    pub(crate) fn passed_a_row_over(&self) -> bool {
        matches!(self.0.kind, Kind::Count { changed, rows }
            if u64::try_from(rows).is_ok_and(|rows| changed < rows))
    }

    /// Returns whether a row that was to be updated or deleted has another version than it was read with, or is gone:
    /// somebody else has written it since. Nothing was written. [`key`](Self::key) is its key,
    /// [`read_version`](Self::read_version) and [`found_version`](Self::found_version) are the two versions. Read the
    /// row again, and decide what becomes of the change.
    ///
    /// It is asked of entities with a field that is `#[ordid(version)]`.
    pub fn is_stale(&self) -> bool {
        self.0.stale.is_some()
    }

    /// Returns the version that the row was read with, as text, if the flush [is stale](Self::is_stale) and the row is
    /// known.
    pub fn read_version(&self) -> Option<&str> {
        self.0.stale.as_ref()?.read.as_deref()
    }

    /// Returns the version that the row has, as text, if the flush [is stale](Self::is_stale), the row is there, and
    /// the database could be asked.
    pub fn found_version(&self) -> Option<&str> {
        self.0.stale.as_ref()?.found.version()
    }

    /// Returns whether a primary or unique key was already taken.
    pub fn is_unique_violation(&self) -> bool {
        self.violates(Violation::Unique)
    }

    /// Returns whether a row's parent does not exist, or a deleted row still has children.
    pub fn is_foreign_key_violation(&self) -> bool {
        self.violates(Violation::ForeignKey)
    }

    /// Returns the name of the constraint that was violated, or of the unique index, where the database tells it:
    /// without the schema or table in front of it. It is for programs that say to people what is wrong, as "this mail
    /// address is taken".
    ///
    /// | | unique | foreign key | check | not null |
    /// |---|---|---|---|---|
    /// | PostgreSQL | yes | yes | yes | no |
    /// | MySQL, MariaDB | yes, `PRIMARY` of a primary key | yes | yes | no |
    /// | SQLite | only of an index over expressions | no | yes; the expression if it has no name | no |
    /// | SQL Server, Babelfish | yes | yes | yes | no |
    /// | Oracle | yes | yes | yes | no |
    ///
    /// It is the name that the database has: some cut long names off, and MariaDB names a check that belongs to a column
    /// after the column. [`column`](Self::column) is there where no name is.
    ///
    /// # Example
    ///
    /// ```
    /// use ordid_sql::FlushError;
    ///
    /// fn text_for_people<D>(error: &FlushError<D>) -> &'static str {
    ///     match error.constraint() {
    ///         Some("customers_mail_key") => "this mail address is taken",
    ///         Some("orders_customer_fkey") => "there is no such customer",
    ///         _ => "the order could not be saved",
    ///     }
    /// }
    /// ```
    pub fn constraint(&self) -> Option<&str> {
        self.driver_error()?.names.constraint.as_deref()
    }

    /// Returns the name of the column that the error is about, where the database tells one.
    ///
    /// Every engine names a column that takes no NULL. MySQL, MariaDB and Oracle also name a column whose value is too
    /// long. MySQL and MariaDB name a column whose value is out of range. SQLite names the column of a unique key that
    /// has no other column. SQL Server names the column of a check, if the check is about one column. tokio-postgres
    /// names a column whose value has another type than the column.
    pub fn column(&self) -> Option<&str> {
        self.driver_error()?.names.column.as_deref()
    }

    fn violates(&self, violation: Violation) -> bool {
        self.driver_error()
            .is_some_and(|it| it.violation == Some(violation))
    }

    /// Returns what became of each shard of a unit of work over several databases, of which some failed:
    /// what was written where it succeeded, and the error where it did not. Table, key and whether the
    /// [commit is unknown](Self::is_commit_unknown) are in these errors. The whole
    /// [is transient](Self::is_transient) if no shard refused its rows.
    pub fn shards(&self) -> Option<&[Result<Flushed, Self>]> {
        match &self.0.kind {
            Kind::Shards(outcomes, _) => Some(outcomes),
            _ => None,
        }
    }

    /// Returns the error of the database library, where it is one.
    pub fn driver(&self) -> Option<&D> {
        self.driver_error().map(|it| &it.error)
    }
}

/// The shards that failed, and why.
fn failed<D>(
    outcomes: &[Result<Flushed, FlushError<D>>],
) -> impl Iterator<Item = (usize, &FlushError<D>)> {
    let errors = outcomes.iter().map(|outcome| outcome.as_ref().err());
    errors
        .enumerate()
        .filter_map(|(shard, error)| Some((shard, error?)))
}

/// The shards that failed by themselves, or all that failed, if there are none.
fn causes<D>(
    outcomes: &[Result<Flushed, FlushError<D>>],
) -> impl Iterator<Item = (usize, &FlushError<D>)> {
    let is_cause = |error: &FlushError<D>| !matches!(error.0.kind, Kind::RolledBack);
    let has_some = failed(outcomes).any(|(_, error)| is_cause(error));
    failed(outcomes).filter(move |(_, error)| !has_some || is_cause(error))
}

impl<D> From<Error> for FlushError<D> {
    fn from(error: Error) -> Self {
        let kind = match error.is_journal() {
            true => Kind::Journal,
            false => Kind::Plan,
        };
        Self::new(kind, Source::Core(error))
    }
}

impl<D: StdError + 'static> StdError for FlushError<D> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match (&self.0.source, &self.0.kind) {
            (Source::Core(error), _) => Some(error),
            // Its own text is already this one's.
            (Source::Driver(source), Kind::Other) => source.error.source(),
            (Source::Driver(source), _) => Some(&source.error),
            (Source::Boxed(error), _) => Some(error.as_ref()),
            (Source::None, Kind::Shards(outcomes, _)) => {
                causes(outcomes).next().map(|(_, error)| error as _)
            }
            (Source::None, _) => None,
        }
    }
}

#[cfg(test)]
mod tests;
