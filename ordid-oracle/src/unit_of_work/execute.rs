//! Carries a flush out, step by step.

use std::{thread::sleep, time::Instant};

use oracle::Connection;
use ordid_core::unit_of_work::{Chunk, FlushRun, Flushed, Outcome, Step, observe::Span};

use super::{
    UnitOfWork,
    record::{is_there, record},
    statement::send,
    transaction::{Connections, Open, Scope},
};
use crate::{error::FlushError, failure::judge};

type Run = FlushRun<oracle::Error>;

impl UnitOfWork {
    /// Flushes in a transaction of its own; where an earlier flush left its COMMIT in doubt, after a look
    /// at what became of it.
    pub(super) fn flush_over(
        &mut self,
        connections: Connections<'_>,
    ) -> Result<Flushed, FlushError> {
        self.observed(|work, span| {
            let plan = work.planned()?;
            let run = Run::new(plan, work.retry, work.doubt.as_ref()).with_record(work.records);
            let mut run = match connections {
                Connections::One(_) => run.on_one_connection(),
                Connections::Made { .. } => run,
            };
            let outcome = work.run(connections, &mut run);
            let flushed = run.ended(outcome, &mut work.doubt, span);
            let flushed = flushed.map_err(|failed| failed.error)?;
            work.clear();
            Ok(flushed)
        })
    }

    /// Flushes behind a savepoint of the transaction that is open.
    pub(super) fn flush_inside(&mut self, connection: &Connection) -> Result<Flushed, FlushError> {
        self.observed(|work, span| {
            let mut run = Run::inside(work.planned()?);
            let outcome = work.run(Connections::One(connection), &mut run);
            let flushed = run.ended(outcome, &mut work.doubt, span);
            flushed.map_err(|failed| failed.error)
        })
    }

    /// Flushes in a span.
    fn observed<T>(&mut self, flush: impl FnOnce(&mut Self, &Span) -> T) -> T {
        let span = Span::new(self.batches.tables().len(), self.len());
        span.in_scope(|| flush(self, &span))
    }

    fn run(&mut self, mut connections: Connections<'_>, run: &mut Run) -> Outcome {
        loop {
            match run.step() {
                Step::Sleep(delay) => {
                    run.waits(delay);
                    sleep(delay);
                    run.succeeded();
                }
                Step::Done { outcome } => return outcome,
                step => match (step, connections.get()) {
                    (Step::Probe, Ok(connection)) => self.probe(connection, run),
                    (_, Ok(connection)) => self.attempt(connection, run),
                    (_, Err(error)) => run.unconnected(error),
                },
            }
            if run.has_lost_connection() {
                connections.lose();
            }
        }
    }

    /// Carries the steps out from the beginning of a transaction to its end.
    fn attempt(&mut self, connection: &Connection, run: &mut Run) {
        run.restart();
        let mut open = match Open::begin(connection, Scope::of(run), run.plan().defers()) {
            Ok(open) => Some(open),
            Err(error) => return run.failed(error, None),
        };
        run.succeeded();
        loop {
            let done = match run.step() {
                Step::Record => record(connection, run.id())
                    .map_err(|error| FlushError::record("ordid_oracle", judge(error))),
                Step::Send(chunk) => self.send(connection, run, &chunk),
                Step::Commit => {
                    run.commits(&mut self.doubt);
                    let committed = open.take().map_or(Ok(()), Open::commit);
                    run.committed(committed, &mut self.doubt);
                    continue;
                }
                Step::Rollback => {
                    drop(open.take());
                    Ok(())
                }
                _ => return,
            };
            // The database says which row it was.
            run.done(done, None);
        }
    }

    fn send(
        &mut self,
        connection: &Connection,
        run: &mut Run,
        chunk: &Chunk,
    ) -> Result<(), FlushError> {
        let started = Instant::now();
        send(&self.batches, connection, chunk)?;
        let name = self.batches.table(chunk.table).name();
        run.count_all(name, chunk, 1, started.elapsed());
        run.report(name, chunk, &mut self.observer);
        Ok(())
    }

    /// Asks what became of a COMMIT.
    fn probe(&mut self, connection: &Connection, run: &mut Run) {
        run.probes();
        let is_recorded = run.records();
        let found = is_there(&self.batches, connection, run.plan(), is_recorded, run.id());
        run.probed(found.map_err(|error| FlushError::probe(judge(error))));
    }
}
