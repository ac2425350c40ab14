//! Carries a flush out, step by step.

use std::{thread::sleep, time::Instant};

use oracle::{Connection, ErrorKind};
use ordid_core::{
    KeyType as _,
    unit_of_work::{
        Chunk, Failure, Flush, Flushed, Outcome, Plan, Step, Tally,
        observe::{self, Span},
    },
    uuid::Uuid,
};

use super::{
    UnitOfWork,
    record::{is_there, record},
    statement::send,
    transaction::{Connections, Open, Scope},
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
    scope: Scope,
    tally: Tally,
    /// What the flush is recorded by, over all attempts.
    id: Uuid,
    /// Why the last step failed that did.
    error: Option<Error>,
    /// What that means; of this attempt only, while one is under way.
    cause: Option<Failure>,
    /// What COMMIT failed with where that leaves its outcome open.
    lost_commit: Option<Error>,
}

impl Run {
    fn new(plan: Plan, flush: Flush, scope: Scope, id: Uuid) -> Self {
        Self {
            tally: Tally::new(&plan),
            plan,
            flush,
            scope,
            id,
            error: None,
            cause: None,
            lost_commit: None,
        }
    }

    fn failed(&mut self, error: Error) {
        self.note(&error);
        self.error = Some(error);
    }

    /// Reports that a probe failed. Why the rows were refused says more than that, should it end there.
    fn probe_failed(&mut self, error: Error) {
        self.note(&error);
        self.error.get_or_insert(error);
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
    fn into_error(self, outcome: Outcome) -> Error {
        let unsaid = || Error::begin(oracle::Error::new(ErrorKind::Other, "nothing failed"));
        let retries = self.flush.retries();
        let mut error = match (outcome, self.lost_commit) {
            (Outcome::Unknown, Some(lost)) => lost.into_unknown(),
            (Outcome::Unknown, None) => self.error.unwrap_or_else(unsaid).into_unknown(),
            _ => self.error.unwrap_or_else(unsaid),
        };
        error.set_retries(retries);
        error
    }
}

impl UnitOfWork {
    /// Flushes in a transaction of its own; where an earlier flush left its COMMIT in doubt, after a look
    /// at what became of it.
    pub(super) fn flush_over(&mut self, connections: Connections<'_>) -> Result<Flushed, Error> {
        self.observed(|work, span| work.flush_all(connections, span))
    }

    fn flush_all(&mut self, connections: Connections<'_>, span: &Span) -> Result<Flushed, Error> {
        let plan = self.planned()?;
        let (flush, id) = match &self.doubt {
            Some(doubt) => (Flush::resumed(plan.clone()), doubt.id),
            None => (Flush::new(plan.clone()), Uuid::generate()),
        };
        let flush = flush.with_retry(self.retry);
        let flush = if self.records {
            flush.with_record()
        } else {
            flush
        };
        let flush = match connections {
            Connections::One(_) => flush.on_one_connection(),
            Connections::Made { .. } => flush,
        };
        let mut run = Run::new(plan, flush, Scope::Transaction, id);
        let outcome = self.run(connections, &mut run);
        span.over(run.flush.retries());
        match outcome {
            Outcome::Committed => {
                // Perhaps by an earlier attempt, or an earlier flush.
                let doubt = self.doubt.take();
                let mut flushed = doubt.map(|doubt| doubt.flushed).unwrap_or_default();
                flushed.retries = run.flush.retries();
                flushed.elapsed = run.tally.elapsed();
                observe::committed(&flushed);
                self.clear();
                Ok(flushed)
            }
            Outcome::Unknown => {
                observe::unknown();
                Err(run.into_error(outcome))
            }
            Outcome::Nothing => {
                self.doubt = None;
                Err(run.into_error(outcome))
            }
        }
    }

    /// Flushes behind a savepoint of the transaction that is open.
    pub(super) fn flush_inside(&mut self, connection: &Connection) -> Result<Flushed, Error> {
        self.observed(|work, span| {
            let plan = work.planned()?;
            let flush = Flush::in_transaction(plan.clone());
            let mut run = Run::new(plan, flush, Scope::Savepoint, Uuid::nil());
            let outcome = work.run(Connections::One(connection), &mut run);
            span.over(run.flush.retries());
            match outcome {
                Outcome::Committed => Ok(run.tally.flushed()),
                outcome => Err(run.into_error(outcome)),
            }
        })
    }

    /// Flushes in a span.
    fn observed<T>(&mut self, flush: impl FnOnce(&mut Self, &Span) -> T) -> T {
        let span = Span::new(self.batches.tables().len(), self.len());
        span.in_scope(|| flush(self, &span))
    }

    fn run(&mut self, mut connections: Connections<'_>, run: &mut Run) -> Outcome {
        loop {
            match run.flush.step() {
                Step::Sleep(delay) => {
                    observe::retried(run.cause, delay);
                    sleep(delay);
                    run.flush.succeeded();
                }
                Step::Done { outcome } => return outcome,
                step => match (step, connections.get()) {
                    (Step::Probe, Ok(connection)) => self.probe(connection, run),
                    (_, Ok(connection)) => self.attempt(connection, run),
                    (Step::Probe, Err(error)) => run.probe_failed(error),
                    (_, Err(error)) => run.failed(error),
                },
            }
            if run.has_lost_connection() {
                connections.lose();
            }
        }
    }

    /// Carries the steps out from the beginning of a transaction to its end.
    fn attempt(&mut self, connection: &Connection, run: &mut Run) {
        run.tally.restart();
        run.cause = None;
        let mut open = match Open::begin(connection, run.scope, run.plan.defers()) {
            Ok(open) => Some(open),
            Err(error) => return run.failed(error),
        };
        run.flush.succeeded();
        loop {
            let done = match run.flush.step() {
                Step::Record => record(connection, run.id).map_err(Error::record),
                Step::Send(chunk) => self.send(connection, run, &chunk),
                Step::Commit => {
                    self.commit(open.take(), run);
                    continue;
                }
                Step::Rollback => {
                    drop(open.take());
                    Ok(())
                }
                _ => return,
            };
            match done {
                Ok(()) => run.flush.succeeded(),
                Err(error) => run.failed(error),
            }
        }
    }

    fn send(&mut self, connection: &Connection, run: &mut Run, chunk: &Chunk) -> Result<(), Error> {
        let started = Instant::now();
        send(&self.batches, connection, chunk)?;
        let name = self.batches.table(chunk.table).name();
        let rows = chunk.rows.len();
        run.tally.count(name, chunk, rows, 0, started.elapsed());
        let progress = run.tally.progress(name, chunk);
        if let Some(observer) = &mut self.observer {
            observer(progress);
        }
        Ok(())
    }

    fn commit(&mut self, open: Option<Open<'_>>, run: &mut Run) {
        if run.scope == Scope::Transaction {
            self.doubt = Some(Doubt {
                id: run.id,
                flushed: run.tally.flushed(),
            });
        }
        match open.map_or(Ok(()), Open::commit) {
            Ok(()) => run.flush.succeeded(),
            Err(error) => {
                run.failed(error);
                if run.flush.is_in_doubt() {
                    run.lost_commit = run.error.take();
                } else {
                    self.doubt = None;
                }
            }
        }
    }

    /// Asks what became of a COMMIT.
    fn probe(&mut self, connection: &Connection, run: &mut Run) {
        run.cause = None;
        let is_recorded = run.flush.records();
        match is_there(&self.batches, connection, &run.plan, is_recorded, run.id) {
            Ok(found) => run.flush.probed(found),
            Err(error) => run.probe_failed(Error::probe(error)),
        }
    }
}
