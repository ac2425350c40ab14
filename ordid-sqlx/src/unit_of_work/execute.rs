//! Carries a flush out, step by step.
//!
//! Between the attempts the runtime's own timer would do, but SQLx runs on any of four runtimes and
//! keeps their timers to itself (`sqlx::__rt` is exempt from its semantic versioning). Core's `Delay`
//! asks for none.

use std::time::Instant;

use ordid_core::{
    clock::Delay,
    unit_of_work::{
        Action, Batches, Doubt, FlushRun, Flushed, Outcome, Plan, Step, Unflushed, observe::Span,
    },
};
use sqlx::{Connection as _, Pool, Transaction};

use super::{
    UnitOfWork,
    begin::Beginning,
    locate::locate,
    record::{is_there, record},
    statement::{Statements, bind, send},
    stream::prepare,
};
use crate::{
    Error,
    backend::{Backend, Binder, BoxFuture},
    bulk::{Bulk, InStep, Lent},
    failure::{judge, judge_commit, not_begun},
};

pub(super) type Run = FlushRun<sqlx::Error>;
type Failed = Unflushed<sqlx::Error>;

/// What differs between flushes over a pool, over a connection, and in the user's transaction.
#[derive(Clone, Copy)]
struct Way<'a> {
    begin: Option<&'static str>,
    /// Whose connection is closed should it get out of step, so that rows can be streamed.
    in_step: Option<&'a InStep>,
}

impl Way<'_> {
    fn lose(self) {
        if let Some(in_step) = self.in_step {
            in_step.lose();
        }
    }
}

impl<DB: Backend> UnitOfWork<DB> {
    /// Boxed, because the compiler cannot tell otherwise that the future may move between threads.
    pub(super) fn flush_to<'a>(
        &'a mut self,
        pool: &'a Pool<DB>,
    ) -> BoxFuture<'a, Result<Flushed, Error>> {
        let span = Span::new(self.batches.tables().len(), self.len());
        Box::pin(span.clone().around(async move {
            let plan = self.planned()?;
            let run = self.begun(plan)?;
            self.run(pool, run, &span).await
        }))
    }

    pub(super) fn flush_over<'a>(
        &'a mut self,
        connection: &'a mut DB::Connection,
    ) -> BoxFuture<'a, Result<Flushed, Error>> {
        let span = Span::new(self.batches.tables().len(), self.len());
        Box::pin(span.clone().around(async move {
            let plan = self.planned()?;
            if !plan.is_empty() {
                let is_open = connection.is_in_transaction()
                    || DB::has_transaction(connection)
                        .await
                        .map_err(|error| Error::begin(judge(error)))?;
                if is_open {
                    return Err(Error::open_transaction("connection"));
                }
            }
            let run = self.begun(plan)?.on_one_connection();
            self.run_over(connection, run, &span).await
        }))
    }

    /// Begins a flush in a transaction of its own, or takes up what an earlier one left.
    fn begun(&mut self, plan: Plan) -> Result<Run, Error> {
        let attempt = self.keeper.begin(&self.batches)?;
        if let Some(attempt) = &attempt
            && attempt.in_doubt
        {
            let tables = self.batches.tables();
            self.doubt
                .get_or_insert_with(|| Doubt::of_earlier_run(attempt, &tables));
        }
        let run = Run::new(plan, self.retry, self.doubt.as_ref()).with_record(self.records);
        Ok(match &attempt {
            Some(attempt) => run.with_attempt(attempt),
            None => run,
        })
    }

    pub(super) fn flush_inside<'a>(
        &'a mut self,
        transaction: &'a mut Transaction<'_, DB>,
    ) -> BoxFuture<'a, Result<Flushed, Error>> {
        let span = Span::new(self.batches.tables().len(), self.len());
        Box::pin(span.clone().around(async move {
            let mut run = Run::inside(self.planned()?);
            let way = Way {
                begin: None,
                in_step: None,
            };
            if run.step() == Step::Begin {
                self.attempt(&mut *transaction, way, &mut run).await;
            }
            let outcome = match run.step() {
                Step::Done { outcome } => outcome,
                _ => Outcome::Nothing,
            };
            match run.ended(outcome, &mut self.doubt, &span) {
                Ok(flushed) => Ok(flushed),
                Err(failed) => Err(located(&self.batches, transaction, None, failed).await),
            }
        }))
    }

    async fn run(&mut self, pool: &Pool<DB>, mut run: Run, span: &Span) -> Result<Flushed, Error> {
        let mut lent: Option<Lent<DB>> = None;
        let outcome = loop {
            match run.step() {
                Step::Sleep(delay) => {
                    run.waits(delay);
                    // Others may need the connection meanwhile.
                    lent = None;
                    Delay::new(delay).await;
                    run.succeeded();
                }
                Step::Done { outcome } => break outcome,
                step => {
                    let open = match lent.take() {
                        Some(open) => Ok(open),
                        None if run.has_lost_connection() => Lent::tested(pool).await,
                        None => Lent::from(pool).await,
                    };
                    let is_probe = step == Step::Probe;
                    let mut open = match open {
                        Ok(open) => open,
                        Err(error) if is_probe => {
                            run.probed(Err(Error::probe(judge(error))));
                            continue;
                        }
                        Err(error) => {
                            run.failed(Error::begin(judge(error)), None);
                            continue;
                        }
                    };
                    open.is_busy = !DB::SURVIVES_DROPS;
                    if is_probe {
                        probe(&self.batches, &mut open.connection, &mut run).await;
                        if run.has_lost_connection() {
                            open.in_step.lose();
                        }
                    } else {
                        let way = Way {
                            begin: DB::BEGIN,
                            in_step: Some(&open.in_step),
                        };
                        self.attempt(&mut open.connection, way, &mut run).await;
                    }
                    open.is_busy = false;
                    if !open.in_step.is_lost() {
                        lent = Some(open);
                    }
                }
            }
        };
        let mut failed = match self.ended(outcome, run, span) {
            Ok(flushed) => return Ok(flushed),
            Err(failed) => failed,
        };
        let Some(rows) = failed.sought(&self.batches) else {
            return Err(failed.error);
        };
        let open = match lent {
            Some(open) => Ok(open),
            None => Lent::from(pool).await,
        };
        let Ok(mut open) = open else {
            return Err(failed.error);
        };
        open.is_busy = !DB::SURVIVES_DROPS;
        let connection = &mut open.connection;
        let found = locate(&self.batches, connection, DB::BEGIN, &failed.plan, &rows).await;
        open.is_busy = false;
        Err(failed.located(found))
    }

    /// As [`run`](Self::run), over the one connection that there is.
    async fn run_over(
        &mut self,
        connection: &mut DB::Connection,
        mut run: Run,
        span: &Span,
    ) -> Result<Flushed, Error> {
        let way = Way {
            begin: DB::BEGIN,
            in_step: None,
        };
        let outcome = loop {
            match run.step() {
                Step::Sleep(delay) => {
                    run.waits(delay);
                    Delay::new(delay).await;
                    run.succeeded();
                }
                Step::Done { outcome } => break outcome,
                Step::Probe => probe(&self.batches, connection, &mut run).await,
                _ => self.attempt(connection, way, &mut run).await,
            }
        };
        match self.ended(outcome, run, span) {
            Ok(flushed) => Ok(flushed),
            Err(failed) => Err(located(&self.batches, connection, way.begin, failed).await),
        }
    }

    /// Takes in how a flush ended: what is committed is forgotten.
    fn ended(&mut self, outcome: Outcome, run: Run, span: &Span) -> Result<Flushed, Failed> {
        self.keeper.ended(outcome);
        let flushed = run.ended(outcome, &mut self.doubt, span)?;
        self.clear();
        Ok(flushed)
    }

    /// Carries the steps out from the beginning of a transaction to its end.
    async fn attempt(&mut self, connection: &mut DB::Connection, way: Way<'_>, run: &mut Run) {
        run.restart();
        let mut bulks = match way.in_step {
            Some(_) => prepare::<DB>(&self.batches.tables(), connection).await,
            None => run.plan().tables().map(|_| None).collect(),
        };
        let streams = bulks.iter().any(Option::is_some);
        let begin = DB::Bulk::BEGIN.filter(|_| streams).or(way.begin);
        let mut statements = Statements::new(&self.batches);
        let mut bound = None;
        let mut connection = Beginning::<DB>::on(connection);
        let begun = connection.begin(begin, run.plan().defers()).await;
        let mut transaction = match begun {
            Ok(transaction) => {
                run.succeeded();
                Some(transaction)
            }
            Err(error) => {
                run.failed(not_begun(error), None);
                if run.has_lost_connection() {
                    way.lose();
                }
                return;
            }
        };
        loop {
            match (run.step(), &mut transaction) {
                (Step::Record, Some(open)) => {
                    let recorded = record::<DB>(&mut **open, run.id()).await;
                    let failed = |error| Error::record("ordid_sqlx", judge(error));
                    run.done(recorded.map_err(failed), None);
                }
                (Step::Send(chunk), Some(open)) => {
                    if chunk.action == Action::Insert
                        && let Some(in_step) = way.in_step
                        && let Some(bulk) = bulks[chunk.table].take()
                    {
                        let streamed = self.stream(&mut **open, bulk, run, in_step);
                        if let Err((error, rows)) = streamed.await {
                            run.failed(error, Some(rows));
                        }
                        continue;
                    }
                    let started = Instant::now();
                    let now = match bound.take() {
                        Some(bound) => bound,
                        None => bind(&self.batches, &chunk, &mut statements),
                    };
                    // While the database works on this chunk, the next one is bound.
                    let sent = send(&mut **open, now, || {
                        let next = run.upcoming();
                        let next = next.filter(|next| bulks[next.table].is_none());
                        bound = next.map(|next| bind(&self.batches, &next, &mut statements));
                    });
                    let sent = sent.await;
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
                        // What SQLx calls a commit is the release of a savepoint inside the user's
                        // transaction.
                        let committed = open.commit().await.map_err(|error| match run.is_own() {
                            true => Error::commit(judge_commit(error)),
                            false => Error::release(judge(error)),
                        });
                        run.committed(committed, &mut self.doubt);
                    }
                    None => run.give_up(),
                },
                (Step::Rollback, open) => {
                    // A connection that is lost will be closed, which rolls back as well.
                    let is_lost =
                        way.in_step.is_some_and(InStep::is_lost) || run.has_lost_connection();
                    if let Some(open) = open.take()
                        && !is_lost
                        // Its own failure says no more: the server drops what is not committed.
                        && open.rollback().await.is_err()
                    {
                        way.lose();
                    }
                    run.succeeded();
                }
                _ => break,
            }
        }
        if run.has_lost_connection() {
            way.lose();
        }
    }
}

/// Finds the row that an error is about.
async fn located<DB: Backend>(
    batches: &Batches<Binder<DB>>,
    connection: &mut DB::Connection,
    begin: Option<&'static str>,
    mut failed: Failed,
) -> Error {
    let found = match failed.sought(batches) {
        Some(rows) => locate(batches, connection, begin, &failed.plan, &rows).await,
        None => None,
    };
    failed.located(found)
}

/// Asks what became of a COMMIT.
async fn probe<DB: Backend>(
    batches: &Batches<Binder<DB>>,
    connection: &mut DB::Connection,
    run: &mut Run,
) {
    run.probes();
    let is_recorded = run.records();
    let found = is_there(batches, connection, run.plan(), is_recorded, run.id()).await;
    run.probed(found.map_err(|error| Error::probe(judge(error))));
}
