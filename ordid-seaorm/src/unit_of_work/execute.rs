//! Carries a flush out, step by step.

use std::time::Instant;

use ordid_core::{
    clock::Delay,
    unit_of_work::{Chunk, FlushRun, Flushed, Outcome, Plan, Step, observe::Span},
};
use sea_orm::DbErr;

use super::{
    UnitOfWork,
    open::{Begin, BoxFuture, Open, begin, is_found, is_transaction},
    record::{record, whether_there},
    statement::{LastInsert, Rows},
};
use crate::{
    Error,
    failure::{judge, judge_commit},
};

type Run = FlushRun<DbErr>;

impl UnitOfWork {
    /// Boxed, because the compiler cannot tell otherwise that the future may move between threads.
    pub(crate) fn flush_on<'a, C: Begin>(
        &'a mut self,
        on: &'a C,
    ) -> BoxFuture<'a, Result<Flushed, Error>> {
        let span = Span::new(self.batches.tables().len(), self.len());
        Box::pin(span.clone().around(async move {
            let plan = self.planned(on.get_database_backend())?;
            let mut run = match is_transaction(on) {
                true => Run::inside(plan),
                false => Run::new(plan, self.retry, self.doubt.as_ref()).with_record(self.records),
            };
            let outcome = self.carry_out(on, &mut run).await;
            match run.ended(outcome, &mut self.doubt, &span) {
                Ok(flushed) => {
                    if !is_transaction(on) {
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
        let mut last = LastInsert::default();
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
                    let recorded = open.execute(record(open.backend(), run.id())).await;
                    let failed = |error| Error::record("ordid_seaorm", judge(error));
                    run.done(recorded.map(drop).map_err(failed), None);
                }
                (Step::Send(chunk), Some(open)) => {
                    let started = Instant::now();
                    let sent = self.rows().send(open, &chunk, &mut last).await;
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
                    let backend = on.get_database_backend();
                    let select = whether_there(self.rows(), backend, run);
                    let found = is_found(on, select).await;
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
    let mut open = begin(on, plan.defers()).await.ok()?;
    let found = replay(rows, &mut open, plan, failed).await;
    let _ = open.rollback().await;
    found
}

async fn replay(
    rows: Rows<'_>,
    open: &mut Open,
    plan: &Plan,
    failed: &Chunk,
) -> Option<(Chunk, String)> {
    let mut last = LastInsert::default();
    for (chunk, is_suspected) in plan.towards(failed) {
        if !is_suspected {
            rows.send(open, &chunk, &mut last).await.ok()?;
            continue;
        }
        for single in chunk.singly() {
            if let Err(error) = rows.send(open, &single, &mut last).await {
                let key = rows.batches.key_text(&chunk, single.rows.start);
                return error.refuses_a_row().then(|| (chunk.clone(), key));
            }
        }
    }
    None
}
