//! Carries a flush out, step by step.
//!
//! Between the attempts the runtime's own timer would do, but SQLx runs on any of four runtimes and
//! keeps their timers to itself (`sqlx::__rt` is exempt from its semantic versioning). `futures-timer`
//! asks for none: it has a thread of its own, which the first retry starts.

use std::time::{Duration, Instant};

use futures_timer::Delay;
use ordid_core::{
    KeyType as _,
    unit_of_work::{
        Action, Batches, Chunk, Failure, Flush, Flushed, Outcome, Plan, Step, Tally,
        observe::{self, Span},
    },
    uuid::Uuid,
};
use sqlx::{Connection as _, Pool, Transaction};

use super::{
    UnitOfWork,
    begin::Beginning,
    journal::written_before,
    locate::locate,
    record::{is_there, record},
    statement::{Statements, bind, send},
    stream::prepare,
};
use crate::{
    backend::{Backend, Binder, BoxFuture},
    bulk::{Bulk, InStep, Lent},
    error::Error,
};

/// A COMMIT was sent, and its answer was not seen.
#[derive(Debug)]
pub(super) struct Doubt {
    /// What the flush is recorded by.
    id: Uuid,
    /// What will have been written.
    flushed: Flushed,
}

/// How far a flush is.
pub(super) struct Run {
    plan: Plan,
    pub(super) flush: Flush,
    pub(super) tally: Tally,
    /// What the flush is recorded by, over all attempts.
    id: Uuid,
    /// Why the last step failed that did, and for which rows.
    error: Option<(Error, Option<Chunk>)>,
    /// What that means; of this attempt only, while one is under way.
    cause: Option<Failure>,
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
            cause: None,
            lost_commit: None,
        }
    }

    fn failed(&mut self, error: Error, rows: Option<Chunk>) {
        self.note(&error);
        self.error = Some((error, rows));
    }

    /// Reports that a probe failed. Why the rows were refused says more than that, should it end there.
    fn probe_failed(&mut self, error: sqlx::Error) {
        let error = Error::probe(error);
        self.note(&error);
        self.error.get_or_insert((error, None));
    }

    fn note(&mut self, error: &Error) {
        let cause = error.failure();
        self.flush.failed(cause);
        self.cause = Some(cause);
    }

    fn has_lost_connection(&self) -> bool {
        self.cause == Some(Failure::Lost)
    }

    /// The error of a flush that wrote nothing, or perhaps nothing.
    fn into_error(self, outcome: Outcome) -> (Error, Option<Chunk>) {
        let unsaid = || (Error::begin(sqlx::Error::WorkerCrashed), None);
        let retries = self.flush.retries();
        let (mut error, rows) = match (outcome, self.lost_commit) {
            (Outcome::Unknown, Some(lost)) => (lost.into_unknown(), None),
            (Outcome::Unknown, None) => (self.error.unwrap_or_else(unsaid).0.into_unknown(), None),
            _ => self.error.unwrap_or_else(unsaid),
        };
        error.set_retries(retries);
        (error, rows)
    }
}

/// What differs between flushes over a pool, over a connection, and in the user's transaction.
#[derive(Clone, Copy)]
struct Way<'a> {
    begin: Option<&'static str>,
    /// Whether the transaction is the flush's own. What SQLx calls a commit is the release of a savepoint
    /// inside the user's.
    is_own: bool,
    /// Whose connection is closed should it get out of step, so that rows can be streamed.
    in_step: Option<&'a InStep>,
}

impl Way<'_> {
    fn not_committed(self, error: sqlx::Error) -> Error {
        if self.is_own {
            Error::commit(error)
        } else {
            Error::release(error)
        }
    }

    fn lose(self) {
        if let Some(in_step) = self.in_step {
            in_step.lose();
        }
    }
}

/// Why a flush wrote nothing, or perhaps nothing, and for which rows of its plan.
struct Failed {
    plan: Plan,
    error: (Error, Option<Chunk>),
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
            let run = self.begun(plan, |flush| flush)?;
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
                        .map_err(Error::begin)?;
                if is_open {
                    return Err(Error::open_transaction());
                }
            }
            let run = self.begun(plan, Flush::on_one_connection)?;
            self.run_over(connection, run, &span).await
        }))
    }

    /// Begins a flush in a transaction of its own, or takes up what an earlier one left.
    fn begun(&mut self, plan: Plan, with: impl FnOnce(Flush) -> Flush) -> Result<Run, Error> {
        let attempt = self.keeper.begin(&self.batches)?;
        if let Some(attempt) = &attempt
            && attempt.in_doubt
        {
            self.doubt.get_or_insert_with(|| Doubt {
                id: attempt.id,
                flushed: written_before(&self.batches),
            });
        }
        let (flush, id) = match (&self.doubt, attempt) {
            (Some(doubt), _) => (Flush::resumed(plan.clone()), doubt.id),
            (None, Some(attempt)) => (Flush::new(plan.clone()), attempt.id),
            (None, None) => (Flush::new(plan.clone()), Uuid::generate()),
        };
        let mut flush = with(flush.with_retry(self.retry));
        if self.records {
            flush = flush.with_record();
        }
        Ok(Run::new(plan, flush, id))
    }

    pub(super) fn flush_inside<'a>(
        &'a mut self,
        transaction: &'a mut Transaction<'_, DB>,
    ) -> BoxFuture<'a, Result<Flushed, Error>> {
        let span = Span::new(self.batches.tables().len(), self.len());
        Box::pin(span.clone().around(async move {
            let plan = self.planned()?;
            let flush = Flush::in_transaction(plan.clone());
            let mut run = Run::new(plan, flush, Uuid::nil());
            let way = Way {
                begin: None,
                is_own: false,
                in_step: None,
            };
            if run.flush.step() == Step::Begin {
                self.attempt(&mut *transaction, way, &mut run).await;
            }
            span.over(0);
            match run.flush.step() {
                Step::Done {
                    outcome: Outcome::Committed,
                } => Ok(run.tally.flushed()),
                _ => {
                    let plan = run.plan.clone();
                    let error = run.into_error(Outcome::Nothing);
                    Err(located(&self.batches, transaction, None, &plan, error).await)
                }
            }
        }))
    }

    async fn run(&mut self, pool: &Pool<DB>, mut run: Run, span: &Span) -> Result<Flushed, Error> {
        let mut lent: Option<Lent<DB>> = None;
        let outcome = loop {
            match run.flush.step() {
                Step::Sleep(delay) => {
                    observe::retried(run.cause, delay);
                    // Others may need the connection meanwhile.
                    lent = None;
                    Delay::new(delay).await;
                    run.flush.succeeded();
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
                            run.probe_failed(error);
                            continue;
                        }
                        Err(error) => {
                            run.failed(Error::begin(error), None);
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
                            is_own: true,
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
        match self.ended(outcome, run, span) {
            Ok(flushed) => Ok(flushed),
            Err(failed) if failed.error.0.refuses_a_row() => {
                let open = match lent {
                    Some(open) => Ok(open),
                    None => Lent::from(pool).await,
                };
                let Ok(mut open) = open else {
                    return Err(failed.error.0);
                };
                open.is_busy = !DB::SURVIVES_DROPS;
                let connection = &mut open.connection;
                let Failed { plan, error } = failed;
                let error = located(&self.batches, connection, DB::BEGIN, &plan, error).await;
                open.is_busy = false;
                Err(error)
            }
            Err(failed) => Err(failed.error.0),
        }
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
            is_own: true,
            in_step: None,
        };
        let outcome = loop {
            match run.flush.step() {
                Step::Sleep(delay) => {
                    observe::retried(run.cause, delay);
                    Delay::new(delay).await;
                    run.flush.succeeded();
                }
                Step::Done { outcome } => break outcome,
                Step::Probe => probe(&self.batches, connection, &mut run).await,
                _ => self.attempt(connection, way, &mut run).await,
            }
        };
        match self.ended(outcome, run, span) {
            Ok(flushed) => Ok(flushed),
            Err(Failed { plan, error }) => {
                Err(located(&self.batches, connection, way.begin, &plan, error).await)
            }
        }
    }

    /// Takes in how a flush ended: what is committed is forgotten.
    fn ended(&mut self, outcome: Outcome, run: Run, span: &Span) -> Result<Flushed, Failed> {
        let retries = run.flush.retries();
        span.over(retries);
        self.keeper.ended(outcome);
        match outcome {
            Outcome::Committed => {
                // Perhaps by an earlier attempt, or an earlier flush.
                let doubt = self.doubt.take();
                let mut flushed = doubt.map(|doubt| doubt.flushed).unwrap_or_default();
                flushed.retries = retries;
                flushed.elapsed = run.tally.elapsed();
                observe::committed(&flushed);
                self.clear();
                return Ok(flushed);
            }
            Outcome::Unknown => observe::unknown(),
            Outcome::Nothing => self.doubt = None,
        }
        Err(Failed {
            plan: run.plan.clone(),
            error: run.into_error(outcome),
        })
    }

    /// Carries the steps out from the beginning of a transaction to its end.
    async fn attempt(&mut self, connection: &mut DB::Connection, way: Way<'_>, run: &mut Run) {
        run.tally.restart();
        run.cause = None;
        let mut bulks = match way.in_step {
            Some(_) => prepare::<DB>(&self.batches.tables(), connection).await,
            None => run.plan.tables().map(|_| None).collect(),
        };
        let streams = bulks.iter().any(Option::is_some);
        let begin = DB::Bulk::BEGIN.filter(|_| streams).or(way.begin);
        let mut statements = Statements::new(&self.batches);
        let mut bound = None;
        let mut connection = Beginning::<DB>::on(connection);
        let begun = connection.begin(begin, run.plan.defers()).await;
        let mut transaction = match begun {
            Ok(transaction) => {
                run.flush.succeeded();
                Some(transaction)
            }
            Err(error) => {
                run.failed(Error::begin(error), None);
                if run.has_lost_connection() {
                    way.lose();
                }
                return;
            }
        };
        loop {
            match (run.flush.step(), &mut transaction) {
                (Step::Record, Some(open)) => match record::<DB>(&mut **open, run.id).await {
                    Ok(()) => run.flush.succeeded(),
                    Err(error) => run.failed(Error::record(error), None),
                },
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
                        let next = run.flush.upcoming();
                        let next = next.filter(|next| bulks[next.table].is_none());
                        bound = next.map(|next| bind(&self.batches, &next, &mut statements));
                    });
                    match sent.await {
                        Ok(statements) => {
                            run.flush.succeeded();
                            self.count(run, &chunk, chunk.rows.len(), 0, started.elapsed());
                            run.tally.add_statements(&chunk, statements - 1);
                            self.report(run, &chunk);
                        }
                        Err(error) => run.failed(error, Some(chunk)),
                    }
                }
                (Step::Commit, open) => match open.take() {
                    Some(open) => {
                        if way.is_own {
                            // Should this be dropped here.
                            self.doubt = Some(Doubt {
                                id: run.id,
                                flushed: run.tally.flushed(),
                            });
                        }
                        match open.commit().await {
                            Ok(()) => run.flush.succeeded(),
                            Err(error) => {
                                run.failed(way.not_committed(error), None);
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
                    run.flush.succeeded();
                }
                _ => break,
            }
        }
        if run.has_lost_connection() {
            way.lose();
        }
    }

    /// Counts what was sent by one statement or command, up to rows of this chunk.
    pub(super) fn count(
        &self,
        run: &mut Run,
        chunk: &Chunk,
        rows: usize,
        bulk: usize,
        elapsed: Duration,
    ) {
        let name = self.batches.table(chunk.table).name();
        run.tally.count(name, chunk, rows, bulk, elapsed);
    }

    /// Tells of a chunk that was sent.
    pub(super) fn report(&mut self, run: &mut Run, chunk: &Chunk) {
        let name = self.batches.table(chunk.table).name();
        let progress = run.tally.progress(name, chunk);
        if let Some(observer) = &mut self.observer {
            observer(progress);
        }
    }
}

/// Finds the row that an error is about.
async fn located<DB: Backend>(
    batches: &Batches<Binder<DB>>,
    connection: &mut DB::Connection,
    begin: Option<&'static str>,
    plan: &Plan,
    (mut error, rows): (Error, Option<Chunk>),
) -> Error {
    if let Some(rows) = rows
        && error.refuses_a_row()
    {
        let found = match error.row() {
            Some(row) => {
                let key = batches.key_text(&rows, row);
                Some((rows, key))
            }
            None => locate(batches, connection, begin, plan, &rows).await,
        };
        if let Some((chunk, key)) = found {
            error.set_row(chunk, key);
        }
    }
    error
}

/// Asks what became of a COMMIT.
async fn probe<DB: Backend>(
    batches: &Batches<Binder<DB>>,
    connection: &mut DB::Connection,
    run: &mut Run,
) {
    run.cause = None;
    match is_there(batches, connection, &run.plan, &run.flush, run.id).await {
        Ok(found) => run.flush.probed(found),
        Err(error) => run.probe_failed(error),
    }
}
