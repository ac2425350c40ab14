//! Carries a flush out, step by step.

use std::{pin::Pin, time::Instant};

use futures_timer::Delay;
use ordid_core::{
    KeyType as _,
    unit_of_work::{Chunk, Failure, Flush, Flushed, Outcome, Plan, Step, Tally},
    uuid::Uuid,
};
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr,
    SqliteTransactionMode, TransactionOptions, TransactionTrait,
};

use super::{
    UnitOfWork,
    record::{is_there, record},
    statement::Rows,
};
use crate::error::Error;

/// A COMMIT was sent, and its answer was not seen.
#[derive(Debug)]
pub(super) struct Doubt {
    /// What the flush is recorded by.
    id: Uuid,
    /// What will have been written.
    flushed: Flushed,
}

/// How far a flush is.
struct Run {
    plan: Plan,
    flush: Flush,
    tally: Tally,
    /// What the flush is recorded by, over all attempts.
    id: Uuid,
    /// Why the last step failed that did, and for which rows.
    error: Option<(Error, Option<Chunk>)>,
    /// Whether that is that the connection was lost.
    is_lost: bool,
    /// What COMMIT failed with where that leaves its outcome open.
    lost_commit: Option<Error>,
}

impl Run {
    fn new(plan: Plan, flush: Flush, id: Uuid) -> Self {
        Self {
            tally: Tally::new(&plan),
            plan,
            flush,
            id,
            error: None,
            is_lost: false,
            lost_commit: None,
        }
    }

    fn failed(&mut self, error: Error, rows: Option<Chunk>) {
        let failure = error.failure();
        self.flush.failed(failure);
        self.is_lost = failure == Failure::Lost;
        self.error = Some((error, rows));
    }

    /// Reports that a probe failed. Why the rows were refused says more than that, should it end there.
    fn probe_failed(&mut self, error: DbErr) {
        let error = Error::probe(error);
        self.flush.failed(error.failure());
        self.error.get_or_insert((error, None));
    }

    /// The error of a flush that wrote nothing, or perhaps nothing.
    fn into_error(self, outcome: Outcome) -> (Error, Option<Chunk>) {
        let retries = self.flush.retries();
        let unsaid = || (Error::begin(DbErr::RecordNotInserted), None);
        let (mut error, rows) = match (outcome, self.lost_commit) {
            (Outcome::Unknown, Some(lost)) => (lost.into_unknown(), None),
            (Outcome::Unknown, None) => (self.error.unwrap_or_else(unsaid).0.into_unknown(), None),
            _ => self.error.unwrap_or_else(unsaid),
        };
        error.set_retries(retries);
        (error, rows)
    }
}

mod sealed {
    pub trait Sealed {}
}

/// What rows are written to in a transaction: a `DatabaseConnection`, or a `DatabaseTransaction`, in
/// which it is a savepoint.
pub trait Begin:
    ConnectionTrait + TransactionTrait<Transaction = DatabaseTransaction> + Send + sealed::Sealed
{
    #[doc(hidden)]
    const IS_TRANSACTION: bool;
}

impl sealed::Sealed for DatabaseConnection {}

impl Begin for DatabaseConnection {
    const IS_TRANSACTION: bool = false;
}

impl sealed::Sealed for DatabaseTransaction {}

impl Begin for DatabaseTransaction {
    const IS_TRANSACTION: bool = true;
}

/// Begins a transaction that will write, in which constraints are checked at COMMIT if it `defers`.
pub(crate) async fn begin<C: Begin>(on: &C, defers: bool) -> Result<DatabaseTransaction, DbErr> {
    let backend = on.get_database_backend();
    let mode = (backend == DbBackend::Sqlite && !C::IS_TRANSACTION)
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

/// How to have constraints checked at COMMIT, those that are declared `DEFERRABLE`.
pub(super) fn defer(backend: DbBackend) -> Option<&'static str> {
    match backend {
        DbBackend::Postgres => Some("SET CONSTRAINTS ALL DEFERRED"),
        DbBackend::Sqlite => Some("PRAGMA defer_foreign_keys = ON"),
        _ => None,
    }
}

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl UnitOfWork {
    /// Boxed, because the compiler cannot tell otherwise that the future may move between threads.
    pub(crate) fn flush_on<'a, C: Begin>(
        &'a mut self,
        on: &'a C,
    ) -> BoxFuture<'a, Result<Flushed, Error>> {
        Box::pin(async move {
            let plan = self.planned(on.get_database_backend())?;
            let (flush, id) = if C::IS_TRANSACTION {
                (Flush::in_transaction(plan.clone()), Uuid::nil())
            } else {
                match &self.doubt {
                    Some(doubt) => (Flush::resumed(plan.clone()), doubt.id),
                    None => (Flush::new(plan.clone()), Uuid::generate()),
                }
            };
            let mut run = Run::new(plan, flush.with_retry(self.retry), id);
            let outcome = self.carry_out(on, &mut run).await;
            self.ended(on, run, outcome).await
        })
    }

    async fn carry_out<C: Begin>(&mut self, on: &C, run: &mut Run) -> Outcome {
        let mut transaction = None;
        loop {
            match (run.flush.step(), &mut transaction) {
                (Step::Begin, _) => {
                    run.tally.restart();
                    match begin(on, run.plan.defers()).await {
                        Ok(begun) => {
                            transaction = Some(begun);
                            run.flush.succeeded();
                        }
                        Err(error) => run.failed(Error::begin(error), None),
                    }
                }
                (Step::Record, Some(open)) => match record(open, run.id).await {
                    Ok(()) => run.flush.succeeded(),
                    Err(error) => run.failed(Error::record(error), None),
                },
                (Step::Send(chunk), Some(open)) => {
                    let started = Instant::now();
                    match self.rows().send(open, &chunk).await {
                        Ok(statements) => {
                            run.flush.succeeded();
                            let name = self.batches.table(chunk.table).name();
                            let rows = chunk.rows.len();
                            run.tally.count(name, &chunk, rows, 0, started.elapsed());
                            run.tally.add_statements(&chunk, statements - 1);
                            let progress = run.tally.progress(name, &chunk);
                            if let Some(observer) = &mut self.observer {
                                observer(progress);
                            }
                        }
                        Err(error) => run.failed(error, Some(chunk)),
                    }
                }
                (Step::Commit, open) => match open.take() {
                    Some(open) if C::IS_TRANSACTION => match open.commit().await {
                        Ok(()) => run.flush.succeeded(),
                        Err(error) => run.failed(Error::release(error), None),
                    },
                    Some(open) => {
                        // Should this be dropped here.
                        self.doubt = Some(Doubt {
                            id: run.id,
                            flushed: run.tally.flushed(),
                        });
                        match open.commit().await {
                            Ok(()) => run.flush.succeeded(),
                            Err(error) => {
                                run.failed(Error::commit(error), None);
                                if run.flush.is_in_doubt() {
                                    run.lost_commit = run.error.take().map(|(error, _)| error);
                                } else {
                                    self.doubt = None;
                                }
                            }
                        }
                    }
                    None => run.flush.failed(Failure::Refused),
                },
                (Step::Rollback, open) => {
                    // Over a connection that is lost nothing comes back: the server rolls back by itself.
                    if let Some(open) = open.take()
                        && !run.is_lost
                    {
                        // Its own failure says no more: the server drops what is not committed.
                        let _ = open.rollback().await;
                    }
                    run.flush.succeeded();
                }
                (Step::Probe, _) => match is_there(self.rows(), on, &run.plan, run.id).await {
                    Ok(found) => run.flush.probed(found),
                    Err(error) => run.probe_failed(error),
                },
                (Step::Sleep(delay), _) => {
                    Delay::new(delay).await;
                    run.flush.succeeded();
                }
                (Step::Done { outcome }, _) => return outcome,
                // A transaction is open whenever one of the others is wanted.
                (_, None) | (_, Some(_)) => run.flush.failed(Failure::Refused),
            }
        }
    }

    async fn ended<C: Begin>(
        &mut self,
        on: &C,
        run: Run,
        outcome: Outcome,
    ) -> Result<Flushed, Error> {
        match outcome {
            Outcome::Committed if C::IS_TRANSACTION => Ok(run.tally.flushed()),
            Outcome::Committed => {
                // Perhaps by an earlier attempt, or an earlier flush.
                let doubt = self.doubt.take();
                let mut flushed = doubt.map(|doubt| doubt.flushed).unwrap_or_default();
                flushed.retries = run.flush.retries();
                flushed.elapsed = run.tally.elapsed();
                self.clear();
                Ok(flushed)
            }
            Outcome::Unknown => Err(run.into_error(outcome).0),
            Outcome::Nothing => {
                if !C::IS_TRANSACTION {
                    self.doubt = None;
                }
                let plan = run.plan.clone();
                let (mut error, rows) = run.into_error(outcome);
                if let Some(rows) = rows
                    && error.refuses_a_row()
                    && let Some((chunk, key)) = locate(self.rows(), on, &plan, &rows).await
                {
                    error.set_row(chunk, key);
                }
                Err(error)
            }
        }
    }
}

/// Finds the row for which `failed` failed, and the chunk that it is of: sends everything before it
/// again, then row by row, and rolls back. `None` where this time no row fails.
async fn locate<C: Begin>(
    rows: Rows<'_>,
    on: &C,
    plan: &Plan,
    failed: &Chunk,
) -> Option<(Chunk, String)> {
    let transaction = begin(on, plan.defers()).await.ok()?;
    let found = replay(rows, &transaction, plan, failed).await;
    let _ = transaction.rollback().await;
    found
}

async fn replay(
    rows: Rows<'_>,
    transaction: &DatabaseTransaction,
    plan: &Plan,
    failed: &Chunk,
) -> Option<(Chunk, String)> {
    for chunk in plan.chunks() {
        if chunk != *failed {
            rows.send(transaction, &chunk).await.ok()?;
            continue;
        }
        for row in chunk.rows.clone() {
            let single = Chunk {
                rows: row..row + 1,
                ..chunk.clone()
            };
            if let Err(error) = rows.send(transaction, &single).await {
                let key = rows.batches.key_text(&chunk, row);
                return error.refuses_a_row().then_some((chunk, key));
            }
        }
        return None;
    }
    None
}
