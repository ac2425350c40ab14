//! Carries a flush out, step by step.

use std::{thread::sleep, time::Instant};

use diesel::{
    Connection,
    connection::{LoadConnection, TransactionManager},
};
#[cfg(feature = "copy")]
use ordid_core::unit_of_work::Action;
use ordid_core::unit_of_work::{FlushRun, Flushed, Plan, Step, observe::Span};

use super::{
    UnitOfWork,
    locate::locate,
    statement::{Known, Shapes, bind, recorded, send},
};
use crate::{
    Error,
    backend::Backend,
    failure::{judge, judge_commit},
};

/// Where a flush gets its connection.
pub(super) trait Source<C> {
    /// Returns the connection, made where there is none.
    fn get(&mut self) -> Result<&mut C, Error>;

    /// Others may need it meanwhile.
    fn release(&mut self);

    /// Whether another can be had.
    fn has_another(&self) -> bool;
}

/// The one that there is.
pub(super) struct One<'c, C>(pub(super) &'c mut C);

impl<C> Source<C> for One<'_, C> {
    fn get(&mut self) -> Result<&mut C, Error> {
        Ok(self.0)
    }

    fn release(&mut self) {}

    fn has_another(&self) -> bool {
        false
    }
}

/// One after the other.
pub(super) struct Made<C, F> {
    pub(super) connect: F,
    pub(super) open: Option<C>,
}

impl<C, E, F> Source<C> for Made<C, F>
where
    F: FnMut() -> Result<C, E>,
    E: std::error::Error + Send + Sync + 'static,
{
    fn get(&mut self) -> Result<&mut C, Error> {
        match &mut self.open {
            Some(open) => Ok(open),
            empty => Ok(empty.insert((self.connect)().map_err(Error::connect)?)),
        }
    }

    fn release(&mut self) {
        self.open = None;
    }

    fn has_another(&self) -> bool {
        true
    }
}

/// What a flush is all or nothing in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Transaction,
    Savepoint,
}

type Manager<C> = <C as Connection>::TransactionManager;

impl Scope {
    /// Finds out in what a flush is, or why it cannot be, where a transaction is open or none is. One that
    /// does not break the connection for a pool is a test's, and taken for none.
    pub(super) fn found(self, is_open: bool, breaks: impl FnOnce() -> bool) -> Result<Self, Error> {
        match (self, is_open) {
            (Self::Transaction, false) => Ok(Self::Transaction),
            (Self::Savepoint, true) => Ok(Self::Savepoint),
            (Self::Savepoint, false) => Err(Error::no_transaction("connection")),
            (Self::Transaction, true) if breaks() => Err(Error::open_transaction("connection")),
            (Self::Transaction, true) => Ok(Self::Savepoint),
        }
    }
}

fn scope<C: Connection<Backend: Backend>>(
    connection: &mut C,
    wanted: Scope,
) -> Result<Scope, Error> {
    let depth = Manager::<C>::transaction_manager_status_mut(connection).transaction_depth();
    let is_open = depth.map_err(begin_failed::<C>)?.is_some();
    wanted.found(is_open, || {
        Manager::<C>::is_broken_transaction_manager(connection)
    })
}

pub(super) type Run = FlushRun<diesel::result::Error>;

impl<DB: Backend> UnitOfWork<DB> {
    /// Flushes in a transaction of its own, over connections from there.
    pub(super) fn flush_over<C, S>(&mut self, mut source: S) -> Result<Flushed, Error>
    where
        C: LoadConnection<Backend = DB> + 'static,
        S: Source<C>,
    {
        self.observed(|work, span| {
            let plan = work.planned()?;
            // Before anything is sent, and where there is no connection it is a matter of retries.
            let scope = match source.get() {
                Ok(connection) => scope(connection, Scope::Transaction).map(Ok)?,
                Err(error) => Err(error),
            };
            let run = work.begun(plan, scope, source.has_another());
            let flushed = work.run(&mut source, run, span)?;
            work.clear();
            Ok(flushed)
        })
    }

    /// Flushes in a savepoint of the open transaction.
    pub(super) fn flush_inside<C>(&mut self, connection: &mut C) -> Result<Flushed, Error>
    where
        C: LoadConnection<Backend = DB> + 'static,
    {
        self.observed(|work, span| {
            let plan = work.planned()?;
            scope(connection, Scope::Savepoint)?;
            work.run(&mut One(connection), Run::inside(plan), span)
        })
    }

    /// Begins a flush in a transaction of its own, or takes up what an earlier one left; where there was
    /// no connection to find out in what, that was the first attempt.
    pub(super) fn begun(&self, plan: Plan, scope: Result<Scope, Error>, has_another: bool) -> Run {
        let mut run = match scope {
            Ok(Scope::Savepoint) => Run::inside(plan),
            Ok(Scope::Transaction) | Err(_) => {
                Run::new(plan, self.retry, self.doubt.as_ref()).with_record(self.records)
            }
        };
        if !has_another {
            run = run.on_one_connection();
        }
        if let Err(error) = scope {
            run.unconnected(error);
        }
        run
    }

    /// The span of a flush.
    pub(super) fn span(&self) -> Span {
        Span::new(self.batches.tables().len(), self.len())
    }

    /// Flushes in a span.
    fn observed<T>(&mut self, flush: impl FnOnce(&mut Self, &Span) -> T) -> T {
        let span = self.span();
        span.in_scope(|| flush(self, &span))
    }

    fn run<C, S>(&mut self, source: &mut S, mut run: Run, span: &Span) -> Result<Flushed, Error>
    where
        C: LoadConnection<Backend = DB> + 'static,
        S: Source<C>,
    {
        let mut shapes = self.shapes();
        let outcome = loop {
            match run.step() {
                Step::Done { outcome } => break outcome,
                Step::Sleep(delay) => {
                    source.release();
                    run.waits(delay);
                    sleep(delay);
                    run.succeeded();
                    continue;
                }
                step => match source.get() {
                    Ok(connection) => self.execute(step, connection, &mut shapes, &mut run),
                    Err(error) => {
                        run.unconnected(error);
                        continue;
                    }
                },
            }
            // It is closed, or goes back to its pool, which finds it broken.
            if run.has_lost_connection() && run.step() != Step::Rollback {
                source.release();
            }
        };
        let mut failed = match run.ended(outcome, &mut self.doubt, span) {
            Ok(flushed) => return Ok(flushed),
            Err(failed) => failed,
        };
        let found = match failed.sought(&self.batches) {
            Some(rows) => source.get().ok().and_then(|connection| {
                locate(&self.batches, &shapes, connection, &failed.plan, &rows)
            }),
            None => None,
        };
        Err(failed.located(found))
    }

    fn execute<C: LoadConnection<Backend = DB> + 'static>(
        &mut self,
        step: Step,
        connection: &mut C,
        shapes: &mut Shapes<DB>,
        run: &mut Run,
    ) {
        match step {
            Step::Begin => {
                run.restart();
                #[cfg(feature = "copy")]
                if run.is_own() {
                    shapes.targets = super::copy::targets(&self.batches, shapes, connection);
                }
                let begun = begin(connection, run.plan().defers());
                run.done(begun, None);
            }
            Step::Record => {
                let flush = Known::flush(shapes, run.id());
                let outcome = DB::execute(connection, flush.insert());
                run.done(recorded::<DB>(outcome), None);
            }
            #[cfg(feature = "copy")]
            Step::Send(chunk)
                if chunk.action == Action::Insert
                    && let Some(target) = shapes.target(chunk.table) =>
            {
                let shape = &shapes[chunk.table];
                if let Err((error, rows)) = self.copy(connection, shape, target, run) {
                    run.failed(error, rows);
                }
            }
            Step::Send(chunk) => {
                let started = Instant::now();
                let table = self.batches.table(chunk.table);
                let shape = &shapes[chunk.table];
                let bound = bind(&self.batches, &table, shape, &chunk);
                let sent = send(&bound, connection);
                if sent.is_ok() {
                    run.count_all(table.name(), &chunk, bound.len(), started.elapsed());
                    run.report(table.name(), &chunk, &mut self.observer);
                }
                run.done(sent, Some(chunk));
            }
            Step::Commit => {
                run.commits(&mut self.doubt);
                let committed = commit(connection).map_err(|error| match run.is_own() {
                    true => Error::commit(judge_commit::<DB>(error)),
                    false => Error::release(judge::<DB>(error)),
                });
                run.committed(committed, &mut self.doubt);
            }
            Step::Rollback => {
                // Its own failure says no more: the server drops what is not committed. After COMMIT,
                // Diesel has rolled back itself.
                let _ = rollback(connection);
                run.succeeded();
            }
            Step::Probe => {
                run.probes();
                let known = Known::of(&self.batches, shapes, run);
                let found = DB::exists(connection, known.exists());
                run.probed(found.map_err(|error| Error::probe(judge::<DB>(error))));
            }
            // Core may add steps; what is not known cannot be carried out.
            _ => run.give_up(),
        }
    }
}

/// Begins a transaction, or a savepoint in the one that is open, in which constraints are checked at
/// COMMIT if it `defers`.
///
/// SQLite's is not `BEGIN IMMEDIATE`: what it sends first writes, which takes the same lock and waits as
/// long for it.
pub(super) fn begin<C: Connection<Backend: Backend>>(
    connection: &mut C,
    defers: bool,
) -> Result<(), Error> {
    Manager::<C>::begin_transaction(connection).map_err(begin_failed::<C>)?;
    if defers && let Some(defer) = C::Backend::DEFER {
        let deferred = connection.batch_execute(defer);
        if let Err(error) = deferred {
            let _ = rollback(connection);
            return Err(begin_failed::<C>(error));
        }
    }
    Ok(())
}

fn begin_failed<C: Connection<Backend: Backend>>(error: diesel::result::Error) -> Error {
    Error::begin(judge::<C::Backend>(error))
}

pub(super) fn rollback<C: Connection>(connection: &mut C) -> diesel::QueryResult<()> {
    Manager::<C>::rollback_transaction(connection)
}

pub(super) fn commit<C: Connection>(connection: &mut C) -> diesel::QueryResult<()> {
    Manager::<C>::commit_transaction(connection)
}
