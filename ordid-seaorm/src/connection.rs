//! Transactions: how they begin, and what is sent in them.
//!
//! SQLx 0.9 loses count of a transaction that is dropped while it begins, on PostgreSQL, MySQL and MariaDB,
//! and on the latter two of what is dropped while it is prepared: whoever gets that connection next writes
//! into a transaction that nobody ends. SeaORM lends no connection that could be closed instead. So what
//! is under way when a flush is dropped is carried to its end by the runtime, where that is known. If nobody answers for
//! a while, the connection is closed, as the pool would miss it for good.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

#[cfg(feature = "runtime-tokio")]
use ordid_core::clock::Delay;
use ordid_sql::{
    DriverError, EngineProfile, Failure,
    classify::sqlite,
    spi::{
        self, BoxFuture, Changed, ConnectionSource, FlushConnection, FlushTransaction,
        StatementFailure, TransactionScope,
    },
};
use sea_orm::{
    ConnAcquireErr, ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr,
    ExecResult, QueryResult, SqliteTransactionMode, Statement, TransactionOptions,
    TransactionTrait, Value,
};

use crate::{
    Error,
    entity::Binder,
    failure::{classify, engine, is_built_for, savepoint_not_begun},
};

mod sealed {
    pub trait Sealed {
        /// What the transactions of a flush are its own on.
        fn pool(&self) -> Option<&sea_orm::DatabaseConnection>;
    }
}

/// What rows can be written to: a `DatabaseConnection`, in a transaction, or a `DatabaseTransaction`, in a
/// savepoint.
pub trait Begin:
    ConnectionTrait + TransactionTrait<Transaction = DatabaseTransaction> + Send + sealed::Sealed
{
}

impl sealed::Sealed for DatabaseConnection {
    fn pool(&self) -> Option<&DatabaseConnection> {
        Some(self)
    }
}

impl Begin for DatabaseConnection {}

impl sealed::Sealed for DatabaseTransaction {
    fn pool(&self) -> Option<&DatabaseConnection> {
        None
    }
}

impl Begin for DatabaseTransaction {}

/// Where a flush sends its statements.
pub(crate) struct Source<'c, C> {
    on: &'c C,
    backend: DbBackend,
    engine: EngineProfile,
}

impl<'c, C: Begin> Source<'c, C> {
    pub(crate) fn of(on: &'c C) -> Result<Self, Error> {
        let backend = on.get_database_backend();
        let engine = engine(backend)?;
        is_built_for(backend)?;
        Ok(Self {
            on,
            backend,
            engine,
        })
    }

    pub(crate) const fn backend(&self) -> DbBackend {
        self.backend
    }

    /// A transaction of the flush's own, or a savepoint in the user's.
    pub(crate) fn scope(&self) -> TransactionScope {
        match self.on.pool() {
            Some(_) => TransactionScope::Transaction,
            None => TransactionScope::Savepoint,
        }
    }
}

impl<C: Begin> ConnectionSource for Source<'_, C> {
    type Connection = Self;

    fn engine(&self) -> EngineProfile {
        self.engine
    }

    async fn get(&mut self, _: bool) -> Result<(&mut Self, bool), Error> {
        Ok((self, false))
    }

    /// Each transaction takes a connection from SeaORM's pool.
    fn may_reconnect(&self) -> bool {
        self.on.pool().is_some()
    }
}

impl<C: Begin> FlushConnection for Source<'_, C> {
    type Error = DbErr;
    type Binder = Binder;
    type Bulk = Infallible;
    type Transaction<'t>
        = Open
    where
        Self: 't;

    const ADAPTER: &'static str = "ordid_seaorm";

    /// SQLite may have ended the user's transaction, as `ON CONFLICT ROLLBACK` and a full disk do, and SeaORM does not know.
    /// A savepoint would begin another one.
    async fn check(&mut self, wanted: TransactionScope) -> Result<TransactionScope, Error> {
        if self.on.pool().is_none() && self.backend == DbBackend::Sqlite {
            match self.on.execute_unprepared(sqlite::ASK_OPEN).await {
                Ok(_) => return Err(Error::no_transaction("connection")),
                Err(error) if sqlite::says_open(&error.to_string()) => {}
                Err(error) => return Err(Error::begin(classify(self.backend, error, false))),
            }
        }
        Ok(wanted)
    }

    async fn begin(&mut self, begin: spi::Begin<'_>) -> Result<Open, Error> {
        let is_own = begin.scope == TransactionScope::Transaction;
        let mut options = TransactionOptions::default();
        if let Some(statement) = begin.statement {
            options.sqlite_transaction_mode = Some(mode(statement)?);
        }
        let backend = self.backend;
        let transaction = match self.on.pool() {
            Some(pool) => {
                let pool = pool.clone();
                let begun =
                    async move { begun(&pool, backend, options, begin.ask, begin.defer).await };
                kept(Box::pin(begun), backend).await
            }
            None => begun(self.on, backend, options, begin.ask, begin.defer).await,
        }?;
        Ok(Open {
            backend: self.backend,
            is_own,
            transaction: Some(transaction),
        })
    }
}

/// SeaORM sends no statement of ours to begin a transaction.
fn mode(statement: &str) -> Result<SqliteTransactionMode, Error> {
    match statement {
        "BEGIN DEFERRED" => Ok(SqliteTransactionMode::Deferred),
        "BEGIN IMMEDIATE" => Ok(SqliteTransactionMode::Immediate),
        "BEGIN EXCLUSIVE" => Ok(SqliteTransactionMode::Exclusive),
        other => Err(Error::database(
            format!("SeaORM cannot begin a transaction by `{other}`"),
            "leave `begin` of the engine's profile as it is",
        )),
    }
}

/// Begins a transaction on a pool, or a savepoint in a transaction.
async fn begun<C: Begin>(
    on: &C,
    backend: DbBackend,
    options: TransactionOptions,
    ask: Option<&str>,
    defer: Option<&str>,
) -> Result<DatabaseTransaction, Error> {
    let failed = |error| Error::begin(classify(backend, error, false));
    if let Some(ask) = ask {
        on.execute_unprepared(ask).await.map_err(failed)?;
    }
    let transaction = on.begin_with_options(options).await;
    let transaction = transaction.map_err(|error| match on.pool() {
        Some(_) => failed(error),
        None => savepoint_not_begun(backend, error),
    })?;
    if let Some(defer) = defer {
        let deferred = transaction.execute_unprepared(defer).await;
        deferred.map_err(failed)?;
    }
    Ok(transaction)
}

/// Binds the values of a statement.
fn statement(backend: DbBackend, statement: &spi::Statement, values: Binder) -> Statement {
    // A query without parameters may come with a binder that has a value: MySQL refuses one too many.
    let values = match statement.columns.is_empty() {
        true => Vec::new(),
        false => values.into_values(&statement.columns),
    };
    Statement::from_sql_and_values(backend, &*statement.sql, values)
}

/// Finds an integer that the database does not have, and which SeaORM's binder would meet with a panic.
fn too_large(backend: DbBackend, statement: &Statement) -> Option<(usize, DbErr)> {
    if backend == DbBackend::MySql {
        return None;
    }
    let mut values = statement.values.as_ref()?.0.iter().enumerate();
    values.find_map(|(position, value)| match value {
        Value::BigUnsigned(Some(number)) if i64::try_from(*number).is_err() => {
            let text = format!(
                "{number} is above {}, the largest integer of the database",
                i64::MAX
            );
            Some((position, DbErr::Type(text)))
        }
        _ => None,
    })
}

/// A transaction that is open, or a savepoint in the user's.
pub(crate) struct Open {
    backend: DbBackend,
    is_own: bool,
    /// `None` while it is lent.
    transaction: Option<DatabaseTransaction>,
}

/// A transaction that was lent, and what came of it.
type Back<T> = (DatabaseTransaction, Result<T, DbErr>);

impl Open {
    /// Sends a statement.
    pub(crate) async fn execute_raw(&mut self, statement: Statement) -> Result<ExecResult, DbErr> {
        self.lend(|transaction| {
            Box::pin(async move {
                let done = transaction.execute_raw(statement).await;
                (transaction, done)
            })
        })
        .await
    }

    /// Sends a query.
    pub(crate) async fn query_all(&mut self, query: Statement) -> Result<Vec<QueryResult>, DbErr> {
        self.lend(|transaction| {
            Box::pin(async move {
                let rows = transaction.query_all_raw(query).await;
                (transaction, rows)
            })
        })
        .await
    }

    async fn lend<T: Send + 'static>(
        &mut self,
        to: impl FnOnce(DatabaseTransaction) -> BoxFuture<'static, Back<T>>,
    ) -> Result<T, DbErr> {
        let under_way = to(self.transaction.take().ok_or_else(gone)?);
        let (transaction, done) = self.settled(under_way).await;
        self.transaction = Some(transaction);
        done
    }

    /// A savepoint goes with the user's transaction, which panics if it is dropped while in use.
    async fn settled<T: Send + 'static>(&self, under_way: BoxFuture<'static, T>) -> T {
        match self.is_own {
            true => kept(under_way, self.backend).await,
            false => under_way.await,
        }
    }

    async fn end(
        mut self,
        end: impl FnOnce(DatabaseTransaction) -> BoxFuture<'static, Result<(), DbErr>>,
    ) -> Result<(), DbErr> {
        let ending = end(self.transaction.take().ok_or_else(gone)?);
        self.settled(ending).await
    }
}

impl FlushTransaction for Open {
    type Error = DbErr;
    type Binder = Binder;
    type Bulk = Infallible;

    async fn execute(
        &mut self,
        statement: &spi::Statement,
        values: Binder,
    ) -> Result<Changed, StatementFailure<DbErr>> {
        let of_row = statement.columns.len().max(1);
        let statement = self::statement(self.backend, statement, values);
        if let Some((position, error)) = too_large(self.backend, &statement) {
            return Err(StatementFailure {
                error: DriverError::new(error, Failure::Refused),
                is_binding: true,
                row: Some((position / of_row, 0)),
            });
        }
        match self.execute_raw(statement).await {
            Ok(done) => Ok(Changed::Rows(done.rows_affected())),
            Err(error) => Err(classify(self.backend, error, false).into()),
        }
    }

    async fn exists(
        &mut self,
        query: &spi::Statement,
        values: Binder,
    ) -> Result<bool, DriverError<DbErr>> {
        let query = statement(self.backend, query, values);
        match self.query_all(query).await {
            Ok(rows) => Ok(!rows.is_empty()),
            Err(error) => Err(classify(self.backend, error, false)),
        }
    }

    async fn read(
        &mut self,
        query: &spi::Statement,
        mut values: Binder,
    ) -> Result<Vec<spi::ReadRow>, DriverError<DbErr>> {
        let readers = values.take_readers();
        let query = statement(self.backend, query, values);
        let rows = self.query_all(query).await.and_then(|rows| {
            let rows = rows.iter().map(|row| Binder::read_row(&readers, row));
            rows.collect()
        });
        rows.map_err(|error| classify(self.backend, error, false))
    }

    async fn commit(self) -> Result<(), DriverError<DbErr>> {
        let (backend, is_commit) = (self.backend, self.is_own);
        let committed = self.end(|open| Box::pin(open.commit())).await;
        committed.map_err(|error| classify(backend, error, is_commit))
    }

    async fn rollback(self, is_lost: bool) -> Result<(), DriverError<DbErr>> {
        // Over a connection that is lost nothing comes back.
        if is_lost {
            return Ok(());
        }
        let backend = self.backend;
        let rolled_back = self.end(|open| Box::pin(open.rollback())).await;
        rolled_back.map_err(|error| classify(backend, error, false))
    }
}

/// Only where what it was lent to was dropped, and with it whoever would ask.
fn gone() -> DbErr {
    DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed)
}

/// Something under way that is carried to its end also when it is dropped.
struct Kept<T: Send + 'static> {
    under_way: Option<BoxFuture<'static, T>>,
    /// Whether there is a network, which may be silent.
    is_remote: bool,
}

fn kept<T: Send + 'static>(under_way: BoxFuture<'static, T>, backend: DbBackend) -> Kept<T> {
    Kept {
        under_way: Some(under_way),
        is_remote: backend != DbBackend::Sqlite,
    }
}

impl<T: Send + 'static> Future for Kept<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(under_way) = &mut self.under_way else {
            return Poll::Pending;
        };
        let outcome = under_way.as_mut().poll(context);
        if outcome.is_ready() {
            self.under_way = None;
        }
        outcome
    }
}

impl<T: Send + 'static> Drop for Kept<T> {
    fn drop(&mut self) {
        let under_way = self.under_way.take();
        #[cfg(feature = "runtime-tokio")]
        if let Some(under_way) = under_way
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            // What it returns is dropped with it: a transaction is rolled back.
            match self.is_remote {
                true => runtime.spawn(ended_or_closed(under_way)),
                false => runtime.spawn(async { drop(under_way.await) }),
            };
        }
        #[cfg(not(feature = "runtime-tokio"))]
        drop((under_way, self.is_remote));
    }
}

/// Waits for the end for a while, and closes the connection if it does not come.
#[cfg(feature = "runtime-tokio")]
async fn ended_or_closed<T>(mut under_way: BoxFuture<'static, T>) {
    const SILENCE: std::time::Duration = std::time::Duration::from_secs(5);

    if Delay::within(SILENCE, &mut under_way).await.is_some() {
        return;
    }
    // SQLx gives a connection back to its pool by a task, which first waits for an answer for ever. Where the task is
    // dropped, the connection is closed, and the pool may open another.
    if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() {
        let entered = runtime.enter();
        drop(under_way);
        drop(entered);
        runtime.shutdown_background();
    }
}
