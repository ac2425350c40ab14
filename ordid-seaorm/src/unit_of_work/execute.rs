//! Carries a flush out, step by step.

use std::{pin::Pin, time::Instant};

use futures_timer::Delay;
use ordid_core::unit_of_work::{Chunk, FlushRun, Flushed, Outcome, Plan, Step, observe::Span};
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr,
    SqliteTransactionMode, TransactionOptions, TransactionTrait,
};

use super::{
    UnitOfWork,
    record::{is_there, record},
    statement::Rows,
};
use crate::{
    Error,
    failure::{judge, judge_commit},
};

type Run = FlushRun<DbErr>;

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
    let defer = match backend {
        DbBackend::Postgres => "SET CONSTRAINTS ALL DEFERRED",
        DbBackend::Sqlite => "PRAGMA defer_foreign_keys = ON",
        _ => return Ok(transaction),
    };
    if defers {
        transaction.execute_unprepared(defer).await?;
    }
    Ok(transaction)
}

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl UnitOfWork {
    /// Boxed, because the compiler cannot tell otherwise that the future may move between threads.
    pub(crate) fn flush_on<'a, C: Begin>(
        &'a mut self,
        on: &'a C,
    ) -> BoxFuture<'a, Result<Flushed, Error>> {
        let span = Span::new(self.batches.tables().len(), self.len());
        Box::pin(span.clone().around(async move {
            let plan = self.planned(on.get_database_backend())?;
            let mut run = match C::IS_TRANSACTION {
                true => Run::inside(plan),
                false => Run::new(plan, self.retry, self.doubt.as_ref()),
            };
            let outcome = self.carry_out(on, &mut run).await;
            match run.ended(outcome, &mut self.doubt, &span) {
                Ok(flushed) => {
                    if !C::IS_TRANSACTION {
                        self.clear();
                    }
                    Ok(flushed)
                }
                Err(mut failed) => {
                    let found = match failed.sought(&self.batches) {
                        Some(rows) => locate(self.rows(), on, &failed.plan, &rows).await,
                        None => None,
                    };
                    Err(failed.located(found))
                }
            }
        }))
    }

    async fn carry_out<C: Begin>(&mut self, on: &C, run: &mut Run) -> Outcome {
        let mut transaction = None;
        loop {
            match (run.step(), &mut transaction) {
                (Step::Begin, _) => {
                    run.restart();
                    match begin(on, run.plan().defers()).await {
                        Ok(begun) => {
                            transaction = Some(begun);
                            run.succeeded();
                        }
                        Err(error) => run.failed(Error::begin(judge(error)), None),
                    }
                }
                (Step::Record, Some(open)) => {
                    let recorded = record(open, run.id()).await;
                    let failed = |error| Error::record("ordid_seaorm", judge(error));
                    run.done(recorded.map_err(failed), None);
                }
                (Step::Send(chunk), Some(open)) => {
                    let started = Instant::now();
                    let sent = self.rows().send(open, &chunk).await;
                    if let Ok(statements) = sent {
                        let name = self.batches.table(chunk.table).name();
                        run.count_all(name, &chunk, statements, started.elapsed());
                        run.report(name, &chunk, &mut self.observer);
                    }
                    run.done(sent.map(drop), Some(chunk));
                }
                (Step::Commit, open) => match open.take() {
                    Some(open) => {
                        run.commits(&mut self.doubt);
                        let committed = open.commit().await.map_err(|error| match run.is_own() {
                            true => Error::commit(judge_commit(error)),
                            false => Error::release(judge(error)),
                        });
                        run.committed(committed, &mut self.doubt);
                    }
                    None => run.give_up(),
                },
                (Step::Rollback, open) => {
                    // Over a connection that is lost nothing comes back: the server rolls back by itself.
                    if let Some(open) = open.take()
                        && !run.has_lost_connection()
                    {
                        // Its own failure says no more: the server drops what is not committed.
                        let _ = open.rollback().await;
                    }
                    run.succeeded();
                }
                (Step::Probe, _) => {
                    run.probes();
                    let found = is_there(self.rows(), on, run.plan(), run.id()).await;
                    run.probed(found.map_err(|error| Error::probe(judge(error))));
                }
                (Step::Sleep(delay), _) => {
                    run.waits(delay);
                    Delay::new(delay).await;
                    run.succeeded();
                }
                (Step::Done { outcome }, _) => return outcome,
                // A transaction is open whenever one of the others is wanted.
                (_, None) | (_, Some(_)) => run.give_up(),
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
