//! Transactions: how they begin, and what is sent in them.
//!
//! SQLx 0.9 loses count of a transaction that is dropped while it begins, on PostgreSQL, MySQL and MariaDB,
//! and on the latter two of what is dropped while it is prepared: whoever gets that connection next writes
//! into a transaction that nobody ends. SeaORM lends no connection that could be closed instead. So what
//! is under way when a flush is dropped is carried to its end by the runtime, where that is known.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use sea_orm::{
    ConnAcquireErr, ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr,
    ExecResult, QueryResult, SqliteTransactionMode, Statement, TransactionOptions,
    TransactionTrait,
};

pub(super) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

mod sealed {
    pub trait Sealed {
        /// What the transactions of a flush are its own on.
        fn pool(&self) -> Option<&sea_orm::DatabaseConnection>;
    }
}

/// What rows are written to in a transaction: a `DatabaseConnection`, or a `DatabaseTransaction`, in
/// which it is a savepoint.
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

/// Returns whether it is a transaction of the user's.
pub(crate) fn is_transaction<C: Begin>(on: &C) -> bool {
    on.pool().is_none()
}

/// How to have constraints checked at COMMIT, those that are declared `DEFERRABLE`.
pub(super) fn defer(backend: DbBackend) -> Option<&'static str> {
    match backend {
        DbBackend::Postgres => Some("SET CONSTRAINTS ALL DEFERRED"),
        DbBackend::Sqlite => Some("PRAGMA defer_foreign_keys = ON"),
        _ => None,
    }
}

/// Begins a transaction that will write, in which constraints are checked at COMMIT if it `defers`.
pub(crate) async fn begin<C: Begin>(on: &C, defers: bool) -> Result<Open, DbErr> {
    let transaction = match on.pool() {
        Some(pool) => {
            let pool = pool.clone();
            kept(Box::pin(async move { begun(&pool, true, defers).await })).await
        }
        None => begun(on, false, defers).await,
    };
    Ok(Open {
        backend: on.get_database_backend(),
        is_own: !is_transaction(on),
        transaction: Some(transaction?),
    })
}

async fn begun<C>(on: &C, is_own: bool, defers: bool) -> Result<DatabaseTransaction, DbErr>
where
    C: ConnectionTrait + TransactionTrait<Transaction = DatabaseTransaction>,
{
    let backend = on.get_database_backend();
    let mode = (backend == DbBackend::Sqlite && is_own)
        // A deferred transaction that reads first and writes later can fail with SQLITE_BUSY at
        // once, however long the busy timeout; one that means to write says so.
        .then_some(SqliteTransactionMode::Immediate);
    let transaction = on
        .begin_with_options(TransactionOptions {
            sqlite_transaction_mode: mode,
            ..TransactionOptions::default()
        })
        .await?;
    if defers && let Some(defer) = defer(backend) {
        transaction.execute_unprepared(defer).await?;
    }
    Ok(transaction)
}

/// Returns whether a query has a row.
pub(super) async fn is_found<C: Begin>(on: &C, select: Statement) -> Result<bool, DbErr> {
    let found = match on.pool() {
        Some(pool) => {
            let pool = pool.clone();
            kept(Box::pin(async move { pool.query_one_raw(select).await })).await
        }
        None => on.query_one_raw(select).await,
    };
    Ok(found?.is_some())
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
    pub(crate) const fn backend(&self) -> DbBackend {
        self.backend
    }

    /// Sends a statement.
    pub(crate) async fn execute(&mut self, statement: Statement) -> Result<ExecResult, DbErr> {
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
        // A savepoint goes with the user's transaction, which panics if it is dropped while in use.
        let (transaction, done) = match self.is_own {
            true => kept(under_way).await,
            false => under_way.await,
        };
        self.transaction = Some(transaction);
        done
    }

    pub(crate) async fn commit(mut self) -> Result<(), DbErr> {
        let transaction = self.transaction.take().ok_or_else(gone)?;
        match self.is_own {
            true => kept(Box::pin(transaction.commit())).await,
            false => transaction.commit().await,
        }
    }

    pub(crate) async fn rollback(mut self) -> Result<(), DbErr> {
        let transaction = self.transaction.take().ok_or_else(gone)?;
        match self.is_own {
            true => kept(Box::pin(transaction.rollback())).await,
            false => transaction.rollback().await,
        }
    }
}

/// Only where what it was lent to was dropped, and with it whoever would ask.
fn gone() -> DbErr {
    DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed)
}

/// Something under way that is carried to its end also when it is dropped.
struct Kept<T: Send + 'static>(Option<BoxFuture<'static, T>>);

fn kept<T: Send + 'static>(under_way: BoxFuture<'static, T>) -> Kept<T> {
    Kept(Some(under_way))
}

impl<T: Send + 'static> Future for Kept<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(under_way) = &mut self.0 else {
            return Poll::Pending;
        };
        let outcome = under_way.as_mut().poll(context);
        if outcome.is_ready() {
            self.0 = None;
        }
        outcome
    }
}

impl<T: Send + 'static> Drop for Kept<T> {
    fn drop(&mut self) {
        let under_way = self.0.take();
        #[cfg(feature = "runtime-tokio")]
        if let Some(under_way) = under_way
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            // What it returns is dropped with it: a transaction is rolled back.
            runtime.spawn(under_way);
        }
        #[cfg(not(feature = "runtime-tokio"))]
        drop(under_way);
    }
}
