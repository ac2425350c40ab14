//! The traits that an adapter implements for its library. The executor has the loops; an adapter translates.
//!
//! ```text
//! RowBinder          takes the fields of rows, as parameters of the library
//! ConnectionSource   where a flush gets its connections: a pool, one connection, a closure
//! FlushConnection    one open connection, for the length of a flush
//! FlushTransaction   an open transaction or savepoint on it; dropped, it is rolled back
//! ```
//!
//! A library whose calls block returns futures that are ready when they are first polled, and runs a flush
//! by [`blocking`].
//!
//! # Writing an adapter
//!
//! The set of adapters is open. The folder `tests/third-party` of the repository has a whole adapter that ordid does not
//! know. An adapter has four parts.
//!
//! ## Key types
//!
//! An adapter is a path with a macro `engine` and a module `engine`. For
//! `#[ordid(adapter = my_crate(memory = blob))]`, `#[derive(KeyType)]` writes these calls:
//!
//! ```text
//! my_crate::engine! { key: OrderId, Scheme }                                   once
//! my_crate::engine! { memory: OrderId, Scheme, my_crate::engine::memory::blob }  for each `engine = column`
//! my_crate::engine! { _: OrderId, Scheme, my_crate::engine::any::blob }        for a column without an engine
//! my_crate::engine! { all: OrderId, Scheme, Uuid }                             for `adapter = my_crate`
//! ```
//!
//! - The third argument is a type that implements
//!   [`NamedColumn`](ordid_core::storage::column::names::NamedColumn): a column, and the dialect whose rules it is
//!   checked against. Under `unordered(blob)` it is `Unordered<..>` around that type. The module re-exports modules of
//!   [`names`](ordid_core::storage::column::names), under the names of its engines.
//! - For `all`, the last argument is the name of the raw key: `Uuid`, `i64`, `u64`, `ObjectId`, `PushId` or `Key192`.
//!   [`Native`](ordid_core::storage::column::names::Native) is its usual column on a dialect.
//! - Each arm with a column calls [`assert_keeps_order`](ordid_core::storage::assert_keeps_order) in a `const`, and
//!   implements the adapter's own trait for the key type. Otherwise a column that loses the order would compile.
//! - The last arm takes any other engine, and is a `compile_error!` that names those that exist.
//! - A `macro_rules!` is exported as `#[macro_export] macro_rules! __engine`, and then as
//!   `pub use crate::__engine as engine`, beside `pub mod engine`. It names everything by `$crate`, since the user's
//!   crate may have neither the library nor ordid under its usual name. Its parameters and variables begin with `__`:
//!   the user's module may have a constant or a unit struct `value`. A feature of the adapter cannot be asked for inside
//!   its body: there, `cfg` would ask for the features of the user's crate.
//!
//! ## Rows
//!
//! The binder is a [`RowSink`] and a [`RowBinder`], and a [`Sink<T>`](ordid_core::Sink) for each type of a field that
//! the library can bind.
//!
//! - Each value asks a [`ColumnMask`](crate::ColumnMask), which [`RowSink::begin_row`] has begun, whether it is taken,
//!   is NULL, or is left out.
//! - [`RowSink::Entity`] carries to the binder what the library has to know of a table. It comes from the
//!   [`Registration`](crate::Registration) that a function `__register` of the adapter's own entity trait returns.
//! - The registration also says in which order rows are sent. The order of the index is
//!   [`Stores::compare`](ordid_core::storage::Stores::compare) of the key's column, also under `unordered(..)`.
//! - If the entity has a version ([`Table::version`]), an update and a delete have one value more, at the position behind
//!   all columns: the version that the row was read with. The text compares it, and takes a row only if it is the same. A
//!   binder that keeps values by column needs room for it.
//! - A [`Statement`] has its text, but not its table. A library that does not send the text takes the table from
//!   `Entity`. If the kind is [`SetNull`](StatementKind::SetNull), only the keys are bound: the column is that of the
//!   [`Action::Unlink`] which [`RowBinder::begin_rows`] announced.
//! - A statement of the kind [`Find`](StatementKind::Find) has values for some columns of each row, and asks which of
//!   these rows exist. [`FlushTransaction::read`] returns the number of each row that exists, counted from 0.
//! - A library that can read columns under `#[ordid(returning)]` implements [`Reads<T>`](ordid_core::Reads) for its
//!   binder, for each type `T` that it reads. Otherwise an entity with such a column does not compile, and
//!   [`FlushTransaction::read`] only has to return text.
//! - [`RowBinder::of_marker`] has no entity. The table of marker rows is `ordid_flushes`, whose one parameter is `id`;
//!   [`FlushDialect::FLUSHES_TABLE`](crate::FlushDialect::FLUSHES_TABLE) declares it.
//!
//! ## Connections
//!
//! These translate, and decide nothing: they have no loop, and send a statement once.
//!
//! - An error becomes a [`DriverError`] with its [`Failure`](crate::Failure).
//!   [`EngineProfile::classify`] knows the codes of each engine. `refuses_a_row` makes the executor look for the row;
//!   without it, [`FlushError::key`] is `None` for a duplicate. [`Failure::Lost`](crate::Failure::Lost) from
//!   [`FlushTransaction::commit`] means that the outcome is unknown, and makes it ask the database.
//! - [`FlushConnection::begin`] sends [`Begin::ask`] before a savepoint.
//! - A transaction that is dropped is rolled back. A flush that is dropped, and the search for a row that was refused,
//!   rely on it.
//! - [`FlushConnection::check`] refuses a connection on which a transaction is already open
//!   ([`FlushError::open_transaction`]) if a [`TransactionScope::Transaction`] is wanted.
//! - [`FlushTransaction::execute`] returns how many rows were *found*, not how many got other values: updates and
//!   deletes are counted.
//! - [`ConnectionSource::may_reconnect`] is true for a pool and false for one connection. After
//!   [`ConnectionSource::discard`] the next [`get`](ConnectionSource::get) of a pool opens another connection and says
//!   so, since the executor checks each once.
//! - [`OneConnection`] and [`MadeConnections`] are such sources, of a connection that users have and of a function.
//! - The profile is one of the constants of [`EngineProfile`], whose public fields may be changed in a `const` block. A
//!   profile of other words or codes is a change of this crate.
//!
//! ## Units of work
//!
//! A tuple struct around [`Work`](crate::Work) gets its functions from [`work_settings!`](crate::work_settings),
//! [`work_entities!`](crate::work_entities) and [`work_plan!`](crate::work_plan), and one around
//! [`Sharded`](crate::Sharded) from [`sharded_unit_of_work!`](crate::sharded_unit_of_work); with the feature `journal`,
//! there is `work_journal!`. The adapter itself writes `flush`, `flush_in` and the like, which call
//! [`Work::flush`](crate::Work::flush) with a source and a scope, or [`Sharded::flush`](crate::Sharded::flush) with a
//! source for each shard.
//!
//! The macros name `ordid_core` and `ordid_sql`, so the adapter depends on both under these names. The documentation
//! that they write has links to `crate::flushes_table`, which an adapter has at its root, and an example that needs
//! `ordid` to run.

use std::{
    error::Error as StdError,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use ordid_core::{clock::Delay, entity::AnyValue, uuid::Uuid};

use crate::{
    Action, DriverError, EngineProfile, FlushError, NotBulk, PendingRows, RowSink, Table, copy,
};
pub use crate::{
    bulk::{BulkFailure, BulkRows, Fed},
    source::{MadeConnections, OneConnection},
    text::{Statement, StatementKind, TableNames},
};

/// A boxed future. A `TableDriver` and a `MappingDriver` return one, since rustc cannot prove that an unnamed future over
/// the source of a call is `Send` (<https://github.com/rust-lang/rust/issues/100013>).
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An error of any type.
pub type BoxedError = Box<dyn StdError + Send + Sync>;

/// The sink that a library's entities write their fields to: it keeps the parameters of one statement.
pub trait RowBinder: RowSink + Send + Sized + 'static {
    /// The character that stands for each parameter in the text, if the library writes the placeholders
    /// itself.
    const PLACEHOLDER: Option<char> = None;

    /// Texts of at most so many bytes are kept prepared even if they are sent once, since this library sends others slowly.
    const KEEPS_UP_TO: usize = 0;

    /// Whether it keeps values by column. Then it takes the columns of a row in the order of the table,
    /// whatever their order in the text ([`Statement::columns`]).
    const BY_COLUMN: bool = false;

    /// Whether rows may have values for different columns: see [`into_runs`](Self::into_runs). The text of an
    /// update of one such row has the key last, so such a binder needs [`BY_COLUMN`](Self::BY_COLUMN), too.
    const HAS_RUNS: bool = false;

    /// Whether the library begins a transaction by the [statement](Begin::statement) that it is given, also by `XA START`,
    /// and does not lend a connection again on which a transaction could not be rolled back. Only then can a two-phase
    /// commit go over MySQL and MariaDB.
    const BEGINS_XA: bool = false;

    /// Makes an empty binder with room for this number of rows of a table, each with this number of values.
    fn with_room(entity: Self::Entity, rows: usize, values: usize) -> Self;

    /// Says what the rows are for, before the first of them: a row may have values for other columns of an
    /// update than of an insert.
    fn begin_rows(&mut self, action: Action) {
        let _ = action;
    }

    /// Says after how many bytes of values a statement is large enough: the [`end_row`](RowSink::end_row) of the row that
    /// reaches them returns [`RowEnd::TakenLast`](crate::RowEnd::TakenLast), and the rest of the rows goes into another
    /// binder. A binder that cannot tell how large its values are ignores it.
    fn limit(&mut self, bytes: usize) {
        let _ = bytes;
    }

    /// Returns how many bytes the values have that it has taken; 0 if it cannot tell.
    fn bytes(&self) -> usize {
        0
    }

    /// Says whether a table's rows are offered to the engine's bulk command, by the number of rows that are inserted, or that
    /// go [through a temporary table](FlushConnection::STAGES_BULK), and of the statements that they would take otherwise. The server is asked only about tables that are.
    ///
    /// # Errors
    ///
    /// [`NotBulk::NoCommand`], unless this is written anew, or [`NotBulk::FewRows`].
    fn offers_bulk(rows: usize, statements: usize) -> Result<(), NotBulk> {
        let _ = (rows, statements);
        Err(NotBulk::NoCommand)
    }

    /// Binds the key of a marker row.
    fn of_marker(id: Uuid) -> Self;

    /// Returns why a value could not be bound, if one could not.
    fn take_error(&mut self) -> Option<BoxedError> {
        None
    }

    /// Returns the names by which statements know a table.
    fn names(entity: Self::Entity, table: &Table, engine: &EngineProfile) -> TableNames {
        let _ = entity;
        TableNames::of(table, engine)
    }

    /// Divides the rows that it has taken into runs that have values for the same columns. A binder whose
    /// rows have values for all columns of the action is one run.
    fn into_runs(self, rows: usize) -> Vec<RunOfRows<Self>> {
        vec![RunOfRows {
            rows,
            columns: None,
            values: self,
        }]
    }
}

/// Consecutive rows that have values for the same columns.
#[derive(Debug)]
pub struct RunOfRows<B> {
    /// The number of rows.
    pub rows: usize,
    /// The columns that have values, if they are not all columns that the action takes.
    pub columns: Option<Vec<usize>>,
    /// The values.
    pub values: B,
}

/// Sets the savepoint of a flush inside the user's transaction. One name serves every flush: a savepoint of a name that is
/// taken hides the older one, or takes its place.
pub const SAVEPOINT: &str = "SAVEPOINT ordid_flush";
/// Releases it. Oracle and SQL Server release none.
pub const RELEASE: &str = "RELEASE SAVEPOINT ordid_flush";
/// Goes back to it.
pub const ROLL_BACK_TO: &str = "ROLLBACK TO SAVEPOINT ordid_flush";
/// Goes back to it, and releases it.
pub const UNDO: &str = "ROLLBACK TO SAVEPOINT ordid_flush; RELEASE SAVEPOINT ordid_flush";

/// The scope in which a flush is all or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionScope {
    /// The flush's own transaction.
    Transaction,
    /// A savepoint in the user's transaction.
    Savepoint,
}

/// How a transaction begins.
#[derive(Debug, Clone, Copy)]
pub struct Begin<'a> {
    /// A transaction, or a savepoint in the user's.
    pub scope: TransactionScope,
    /// The statement that opens a transaction, if it is not the library's own.
    pub statement: Option<&'a str>,
    /// A query that is sent right before a savepoint, and whose rows are dropped. A server that has ended the user's
    /// transaction may refuse the query, and forget the end if the savepoint comes first. Send both in one message if the
    /// library can.
    pub ask: Option<&'static str>,
    /// The statement that defers constraints to COMMIT, if the flush needs that.
    pub defer: Option<&'static str>,
    /// Whether rows will be sent by the bulk command.
    pub uses_bulk: bool,
}

impl Begin<'_> {
    /// A transaction by the library's own statement.
    pub(crate) const PLAIN: Self = Self {
        scope: TransactionScope::Transaction,
        statement: None,
        ask: None,
        defer: None,
        uses_bulk: false,
    };

    /// A transaction or a savepoint, as the engine needs it. No constraint is deferred, and no rows are loaded in bulk.
    #[must_use]
    pub fn of(scope: TransactionScope, engine: &EngineProfile) -> Self {
        let ask = engine.ask_before_savepoint;
        Self {
            scope,
            // In the user's transaction it would fail, or commit what is before it.
            statement: engine
                .begin
                .filter(|_| scope == TransactionScope::Transaction),
            ask: ask.filter(|_| scope == TransactionScope::Savepoint),
            ..Self::PLAIN
        }
    }
}

/// How many rows a statement changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// This number, over all rows of the statement.
    Rows(u64),
    /// A number for each row whose values were bound.
    OfEach(Vec<u64>),
}

impl Changed {
    /// Returns the number over all rows of the statement.
    pub(crate) fn total(&self) -> u64 {
        match self {
            Self::Rows(rows) => *rows,
            Self::OfEach(rows) => rows.iter().sum(),
        }
    }
}

/// A row that a query has found.
pub struct ReadRow {
    /// The first column, which is text; empty if it is NULL.
    pub text: String,
    /// The values of the other columns. Their types and their order are those of the calls of
    /// [`Reads::expect`](ordid_core::Reads::expect).
    pub values: Vec<AnyValue>,
}

/// Makes a row whose only column is this text.
impl From<String> for ReadRow {
    fn from(text: String) -> Self {
        Self {
            text,
            values: Vec::new(),
        }
    }
}

/// Why a statement failed.
#[derive(Debug)]
pub struct StatementFailure<D> {
    /// The library's error.
    pub error: DriverError<D>,
    /// Whether a value could not be bound, so that nothing was sent.
    pub is_binding: bool,
    /// The row of the statement that failed, and how many others failed, if the library reports them.
    pub row: Option<(usize, usize)>,
}

impl<D> From<DriverError<D>> for StatementFailure<D> {
    fn from(error: DriverError<D>) -> Self {
        Self {
            error,
            is_binding: false,
            row: None,
        }
    }
}

/// The library's error.
pub type ErrorOf<C> = <C as FlushConnection>::Error;

/// One open connection of a library, for the length of a flush.
pub trait FlushConnection: Send {
    /// The library's error.
    type Error: StdError + Send + Sync + 'static;
    /// The sink that entities write their fields to.
    type Binder: RowBinder;
    /// What the engine's bulk command needs to know of a table; [`Infallible`](std::convert::Infallible) if
    /// there is no such command.
    type Bulk: Send;
    /// A transaction or a savepoint.
    type Transaction<'c>: FlushTransaction<Error = Self::Error, Binder = Self::Binder, Bulk = Self::Bulk>
    where
        Self: 'c;

    /// The adapter's crate, for messages.
    const ADAPTER: &'static str;

    /// Whether its calls block. If they do, the thread sleeps between two attempts, so that every future is ready when
    /// it is first polled.
    const BLOCKS: bool = false;

    /// The most chunks that one bulk command takes.
    const MAX_BULK_CHUNKS: usize = copy::MAX_CHUNKS;

    /// From how many rows on a table goes by the bulk command again, after rows of another table came in between: those
    /// of tables that refer to each other in a circle do.
    const MIN_BULK_ROWS_AGAIN: usize = usize::MAX;

    /// Whether a bulk command can put the rows into another table than their own: see [`BulkRows::staged_table`]. Its binder
    /// must not have [runs](RowBinder::HAS_RUNS).
    const STAGES_BULK: bool = false;

    /// Checks that a flush can begin on this connection, before anything is sent, and returns the scope that it
    /// begins in: a library whose tests run in a transaction takes a savepoint of that.
    ///
    /// # Errors
    ///
    /// The connection's state or its database, if a flush cannot begin there. An error without a driver's error
    /// ends the flush.
    fn check(
        &mut self,
        wanted: TransactionScope,
    ) -> impl Future<Output = Result<TransactionScope, FlushError<Self::Error>>> + Send {
        async move { Ok(wanted) }
    }

    /// Tells a connection that was checked which rows the flush is for. A library that encodes a value for the type of its
    /// column notes the tables here, and asks for their types when a transaction begins.
    fn prepare_for(&mut self, rows: &PendingRows<Self::Binder>) {
        let _ = rows;
    }

    /// Finds out whether the rows of a table, given by its position, go by the bulk command. It is called for each table
    /// that [`RowBinder::offers_bulk`] offers, before the flush's own transaction begins, as a query that the server
    /// refuses would spoil that.
    ///
    /// # Errors
    ///
    /// Why they go by statements.
    fn bulk(
        &mut self,
        rows: &PendingRows<Self::Binder>,
        table: usize,
    ) -> impl Future<Output = Result<Self::Bulk, NotBulk>> + Send {
        let _ = (rows, table);
        async { Err(NotBulk::NoCommand) }
    }

    /// Begins a transaction, or a savepoint in the one that is open.
    ///
    /// # Errors
    ///
    /// The reason why it could not be begun; then no transaction of the flush is open.
    fn begin(
        &mut self,
        begin: Begin<'_>,
    ) -> impl Future<Output = Result<Self::Transaction<'_>, FlushError<Self::Error>>> + Send;

    /// Returns whether the protocol state of the connection is known, so that it can be used again.
    fn is_usable(&self) -> bool {
        true
    }

    /// Closes a connection that [`MadeConnections`] opened and that is lost, so that no pool lends it again. Without
    /// it, the connection is dropped.
    fn close(self)
    where
        Self: Sized,
    {
    }
}

/// A transaction or a savepoint that is open. Dropped, it is rolled back.
pub trait FlushTransaction: Send + Sized {
    /// The library's error.
    type Error: StdError + Send + Sync + 'static;
    /// The sink that entities write their fields to.
    type Binder: RowBinder;
    /// How the rows of a table go by the engine's bulk command.
    type Bulk: Send;

    /// Sends a statement. If the library can, the first poll hands the statement over: the next one is bound
    /// while the database works on this one.
    ///
    /// # Errors
    ///
    /// The library's error.
    fn execute(
        &mut self,
        statement: &Statement,
        values: Self::Binder,
    ) -> impl Future<Output = Result<Changed, StatementFailure<Self::Error>>> + Send;

    /// Sends a statement that changes a setting of the session. A library whose [`execute`](Self::execute) sends a statement
    /// in such a way that the server takes the setting back at its end writes this anew, as on SQL Server.
    ///
    /// # Errors
    ///
    /// The library's error.
    fn set(
        &mut self,
        statement: &Statement,
        values: Self::Binder,
    ) -> impl Future<Output = Result<(), DriverError<Self::Error>>> + Send {
        async move {
            let set = self.execute(statement, values).await;
            set.map(drop).map_err(|failed| failed.error)
        }
    }

    /// Returns whether a query has a row.
    ///
    /// # Errors
    ///
    /// The library's error.
    fn exists(
        &mut self,
        query: &Statement,
        values: Self::Binder,
    ) -> impl Future<Output = Result<bool, DriverError<Self::Error>>> + Send;

    /// Returns the rows of a query. `values` has the parameters. If the query is of the kind
    /// [`Read`](StatementKind::Read), calls of [`Reads::expect`](ordid_core::Reads::expect) have told `values` the
    /// types of the columns after the first. A query of any other kind has one column, or its last one is the text: that of
    /// `XA RECOVER` is.
    ///
    /// # Errors
    ///
    /// Returns the library's error, including its error if a value has another type.
    fn read(
        &mut self,
        query: &Statement,
        values: Self::Binder,
    ) -> impl Future<Output = Result<Vec<ReadRow>, DriverError<Self::Error>>> + Send;

    /// Sends rows by the bulk command, as long as there are rows to be [fed](BulkRows::feed). Rows that it does
    /// not ask for go by statements. Returns how many rows the server says that it took, if it says so.
    ///
    /// # Errors
    ///
    /// A row that could not be bound, or the library's error.
    fn send_bulk(
        &mut self,
        bulk: &mut Self::Bulk,
        rows: &mut BulkRows<'_, Self::Binder, Self::Error>,
    ) -> impl Future<Output = Result<Option<u64>, BulkFailure<Self::Error>>> + Send {
        let _ = (bulk, rows);
        async { Ok(None) }
    }

    /// Commits the transaction, or releases the savepoint.
    ///
    /// # Errors
    ///
    /// The library's error, classified as an error of COMMIT if it is one.
    fn commit(self) -> impl Future<Output = Result<(), DriverError<Self::Error>>> + Send;

    /// Rolls the transaction or the savepoint back. If the connection `is_lost`, or is about to be, the server may
    /// not answer: it rolls back by itself what is not committed.
    ///
    /// # Errors
    ///
    /// The library's error. The connection is not used again.
    fn rollback(
        self,
        is_lost: bool,
    ) -> impl Future<Output = Result<(), DriverError<Self::Error>>> + Send;
}

/// A connection, and whether it is another one than before; or why there is none.
pub type Connected<'c, C> = Result<(&'c mut C, bool), FlushError<ErrorOf<C>>>;

/// The source of a flush's connections.
pub trait ConnectionSource: Send {
    /// The connection.
    type Connection: FlushConnection;

    /// Returns the profile of the engine, as far as it is known without a connection.
    fn engine(&self) -> EngineProfile;

    /// Returns the connection, and whether it is another one than before. Opens one if there is none. If
    /// `after_loss`, the last connection was lost, and others of a pool may be lost, too.
    ///
    /// # Errors
    ///
    /// The reason why there is none: [`FlushError::begin`] or [`FlushError::connect`].
    fn get(
        &mut self,
        after_loss: bool,
    ) -> impl Future<Output = Connected<'_, Self::Connection>> + Send;

    /// Gives the connection back while the flush waits: others may need it.
    fn release(&mut self) {}

    /// Closes the connection: it is lost, or its protocol state is unknown.
    fn discard(&mut self) {}

    /// Returns whether another connection can be opened.
    fn may_reconnect(&self) -> bool;

    /// Waits between two attempts: by a timer, or as a sleeping thread where the library's calls
    /// [block](FlushConnection::BLOCKS).
    fn pause(&self, delay: Duration) -> impl Future<Output = ()> + Send {
        async move {
            if Self::Connection::BLOCKS {
                thread::sleep(delay);
            } else {
                Delay::new(delay).await;
            }
        }
    }
}

/// Runs a flush of a library whose calls block, so that all its futures are ready when they are first polled.
///
/// # Panics
///
/// If one of them is not.
pub fn blocking<T>(flush: impl Future<Output = T>) -> T {
    match pin!(flush).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("calls that block answer at once"),
    }
}
