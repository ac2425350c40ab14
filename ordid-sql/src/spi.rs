//! What an adapter implements for its library. The executor has the loops; an adapter translates.
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

use std::{
    error::Error as StdError,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use ordid_core::{clock::Delay, uuid::Uuid};

use crate::{Action, DriverError, EngineProfile, FlushError, PendingRows, Plan, RowSink, Table, copy};
pub use crate::{
    bulk::{BulkFailure, BulkRows, Fed},
    text::{Statement, StatementKind, TableNames},
};

/// An error of anything.
pub type BoxedError = Box<dyn StdError + Send + Sync>;

/// The sink that a library's entities write their fields to: it keeps the parameters of one statement.
pub trait RowBinder: RowSink + Send + Sized + 'static {
    /// What stands in the text in the place of each parameter, where the library writes the placeholders
    /// itself.
    const PLACEHOLDER: Option<char> = None;

    /// Whether it keeps values by column. Then it takes the columns of a row in their own order, whatever
    /// their order in the text ([`Statement::columns`]).
    const BY_COLUMN: bool = false;

    /// Whether rows may have values for other columns than those before them: [`into_runs`](Self::into_runs).
    const HAS_RUNS: bool = false;

    /// Makes room for so many rows of a table, each with so many values.
    fn with_room(entity: Self::Entity, rows: usize, values: usize) -> Self;

    /// Says what the rows are for, before the first of them: a row may have values for other columns of an
    /// update than of an insert.
    fn begin_rows(&mut self, action: Action) {
        let _ = action;
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

/// Rows that follow each other and have values for the same columns.
#[derive(Debug)]
pub struct RunOfRows<B> {
    /// How many they are.
    pub rows: usize,
    /// The columns that have values, where those are not all that the action takes.
    pub columns: Option<Vec<usize>>,
    /// The values.
    pub values: B,
}

/// What a flush is all or nothing in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionScope {
    /// A transaction of its own.
    Transaction,
    /// A savepoint in the user's transaction.
    Savepoint,
}

/// How a transaction begins.
#[derive(Debug, Clone, Copy)]
pub struct Begin {
    /// A transaction, or a savepoint in the user's.
    pub scope: TransactionScope,
    /// The statement that opens a transaction, where the library's own is not it.
    pub statement: Option<&'static str>,
    /// The statement after which constraints are checked at COMMIT, where they have to be.
    pub defer: Option<&'static str>,
    /// Whether rows will be sent by the bulk command.
    pub uses_bulk: bool,
}

/// How many rows a statement changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// So many.
    Rows(u64),
    /// So many for each row whose values were bound.
    OfEach(Vec<u64>),
}

/// Why a statement failed.
#[derive(Debug)]
pub struct StatementFailure<D> {
    /// What the library says.
    pub error: DriverError<D>,
    /// Whether a value could not be bound, so that nothing was sent.
    pub is_binding: bool,
    /// Which of the statement's rows it was, and how many others failed, where the library says so.
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
    /// How the rows of a table go by the engine's bulk command; [`Infallible`](std::convert::Infallible)
    /// where there is none.
    type Bulk: Send;
    /// A transaction or a savepoint.
    type Transaction<'c>: FlushTransaction<Error = Self::Error, Binder = Self::Binder, Bulk = Self::Bulk>
    where
        Self: 'c;

    /// The adapter's crate, for messages.
    const ADAPTER: &'static str;

    /// The most chunks that one bulk command takes.
    const MAX_BULK_CHUNKS: usize = copy::MAX_CHUNKS;

    /// Finds out, before anything is sent over a connection, whether a flush can begin there, and in
    /// what: a library whose tests run in a transaction takes a savepoint of that.
    ///
    /// # Errors
    ///
    /// What stands in the way: an error without a driver's error ends the flush.
    fn check(
        &mut self,
        wanted: TransactionScope,
    ) -> impl Future<Output = Result<TransactionScope, FlushError<Self::Error>>> + Send {
        async move { Ok(wanted) }
    }

    /// Finds which tables' rows go by the bulk command, before a transaction of the flush's own begins: a
    /// question that the server refuses would spoil that.
    fn bulk(
        &mut self,
        rows: &PendingRows<Self::Binder>,
        plan: &Plan,
    ) -> impl Future<Output = Vec<Option<Self::Bulk>>> + Send {
        let _ = (rows, plan);
        async { Vec::new() }
    }

    /// Begins a transaction, or a savepoint in the one that is open.
    ///
    /// # Errors
    ///
    /// Why it could not be begun; then no transaction of the flush is open.
    fn begin(
        &mut self,
        begin: Begin,
    ) -> impl Future<Output = Result<Self::Transaction<'_>, FlushError<Self::Error>>> + Send;

    /// Returns whether a query has a row, in no transaction.
    ///
    /// # Errors
    ///
    /// What the library says.
    fn exists(
        &mut self,
        query: &Statement,
        values: Self::Binder,
    ) -> impl Future<Output = Result<bool, DriverError<Self::Error>>> + Send;

    /// Returns whether client and server still agree on what comes next over the connection.
    fn is_usable(&self) -> bool {
        true
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

    /// Sends a statement. The first poll hands it over, if the library can do that: then the next one is
    /// bound while the database works on this one.
    ///
    /// # Errors
    ///
    /// What the library says.
    fn execute(
        &mut self,
        statement: &Statement,
        values: Self::Binder,
    ) -> impl Future<Output = Result<Changed, StatementFailure<Self::Error>>> + Send;

    /// Sends rows by the bulk command, as many as there are to be [fed](BulkRows::feed).
    ///
    /// # Errors
    ///
    /// Why a row could not be bound, or what the library says.
    fn send_bulk(
        &mut self,
        bulk: &mut Self::Bulk,
        rows: &mut BulkRows<'_, Self::Binder, Self::Error>,
    ) -> impl Future<Output = Result<(), BulkFailure<Self::Error>>> + Send {
        let _ = (bulk, rows);
        async { Ok(()) }
    }

    /// Commits the transaction, or releases the savepoint.
    ///
    /// # Errors
    ///
    /// What the library says, classified as an error of COMMIT where it is one.
    fn commit(self) -> impl Future<Output = Result<(), DriverError<Self::Error>>> + Send;

    /// Rolls the transaction or the savepoint back. Over a connection that `is_lost`, or is about to be, nothing
    /// may come back: the server rolls back by itself what is not committed.
    ///
    /// # Errors
    ///
    /// What the library says: the connection is not used again.
    fn rollback(
        self,
        is_lost: bool,
    ) -> impl Future<Output = Result<(), DriverError<Self::Error>>> + Send;
}

/// A connection, and whether it is another one than before; or why there is none.
pub type Connected<'c, C> = Result<(&'c mut C, bool), FlushError<ErrorOf<C>>>;

/// Where a flush gets its connections.
pub trait ConnectionSource: Send {
    /// The connection.
    type Connection: FlushConnection;

    /// Returns the profile of the engine that its connections lead to, as far as it is known without one.
    fn engine(&self) -> EngineProfile;

    /// Returns the connection, opened where there is none, and whether it is another one than before.
    /// `after_loss` says that the last one was lost: others may be lost with it.
    ///
    /// # Errors
    ///
    /// Why there is none: [`FlushError::begin`] or [`FlushError::connect`].
    fn get(
        &mut self,
        after_loss: bool,
    ) -> impl Future<Output = Connected<'_, Self::Connection>> + Send;

    /// Gives the connection back while the flush waits: others may need it.
    fn release(&mut self) {}

    /// Closes the connection: it is lost, or nobody knows what comes over it next.
    fn discard(&mut self) {}

    /// Returns whether another connection can be had.
    fn may_reconnect(&self) -> bool;

    /// Waits between two attempts.
    fn pause(&self, delay: Duration) -> impl Future<Output = ()> + Send {
        Delay::new(delay)
    }
}

/// Runs a flush of a library whose calls block: all its futures are ready when they are polled.
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
