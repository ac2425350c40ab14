//! Carries a flush out, step by step.

use std::{thread::sleep, time::Instant};

use diesel::{
    Connection,
    connection::{LoadConnection, TransactionManager},
};
use ordid_core::{
    unit_of_work::{Batches, FlushRun, Flushed, Step, observe::Span},
    uuid::Uuid,
};

use super::{
    UnitOfWork,
    locate::locate,
    statement::{Shape, Statement, send},
};
use crate::{
    Error,
    backend::Backend,
    entity::Binder,
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

/// Finds out in what a flush is, or why it cannot be. A test transaction is taken for none.
fn scope<C: Connection<Backend: Backend>>(
    connection: &mut C,
    wanted: Scope,
) -> Result<Scope, Error> {
    let depth = Manager::<C>::transaction_manager_status_mut(connection).transaction_depth();
    let depth = depth.map_err(begin_failed::<C>)?;
    match (wanted, depth) {
        (Scope::Transaction, None) => Ok(Scope::Transaction),
        (Scope::Savepoint, Some(_)) => Ok(Scope::Savepoint),
        (Scope::Savepoint, None) => Err(Error::no_transaction("connection")),
        // An open transaction is broken for a pool, unless it is a test's.
        (Scope::Transaction, Some(_)) => {
            match Manager::<C>::is_broken_transaction_manager(connection) {
                false => Ok(Scope::Savepoint),
                true => Err(Error::open_transaction("connection")),
            }
        }
    }
}

type Run = FlushRun<diesel::result::Error>;

impl<DB: Backend> UnitOfWork<DB> {
    /// Flushes in a transaction of its own, over connections from there.
    pub(super) fn flush_over<C, S>(&mut self, mut source: S) -> Result<Flushed, Error>
    where
        C: LoadConnection<Backend = DB>,
        S: Source<C>,
    {
        self.observed(|work, span| {
            let plan = work.planned()?;
            // Before anything is sent, and where there is no connection it is a matter of retries.
            let scope = match source.get() {
                Ok(connection) => scope(connection, Scope::Transaction)?,
                Err(_) => Scope::Transaction,
            };
            let run = match scope {
                Scope::Transaction => {
                    Run::new(plan, work.retry, work.doubt.as_ref()).with_record(work.records)
                }
                Scope::Savepoint => Run::inside(plan),
            };
            let run = if source.has_another() {
                run
            } else {
                run.on_one_connection()
            };
            let flushed = work.run(&mut source, run, span)?;
            work.clear();
            Ok(flushed)
        })
    }

    /// Flushes in a savepoint of the open transaction.
    pub(super) fn flush_inside<C>(&mut self, connection: &mut C) -> Result<Flushed, Error>
    where
        C: LoadConnection<Backend = DB>,
    {
        self.observed(|work, span| {
            let plan = work.planned()?;
            scope(connection, Scope::Savepoint)?;
            work.run(&mut One(connection), Run::inside(plan), span)
        })
    }

    /// Flushes in a span.
    fn observed<T>(&mut self, flush: impl FnOnce(&mut Self, &Span) -> T) -> T {
        let span = Span::new(self.batches.tables().len(), self.len());
        span.in_scope(|| flush(self, &span))
    }

    fn run<C, S>(&mut self, source: &mut S, mut run: Run, span: &Span) -> Result<Flushed, Error>
    where
        C: LoadConnection<Backend = DB>,
        S: Source<C>,
    {
        let shapes: Vec<Shape<DB>> = self.shapes.iter().map(|shape| shape()).collect();
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
                    Ok(connection) => self.execute(step, connection, &shapes, &mut run),
                    Err(error) if step == Step::Probe => {
                        run.probed(Err(error));
                        continue;
                    }
                    Err(error) => {
                        run.failed(error, None);
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

    fn execute<C: LoadConnection<Backend = DB>>(
        &mut self,
        step: Step,
        connection: &mut C,
        shapes: &[Shape<DB>],
        run: &mut Run,
    ) {
        match step {
            Step::Begin => {
                run.restart();
                let begun = begin(connection, run.plan().defers());
                run.done(begun, None);
            }
            Step::Record => {
                let recorded = record(connection, run.id());
                run.done(recorded, None);
            }
            Step::Send(chunk) => {
                let started = Instant::now();
                let table = self.batches.table(chunk.table);
                let shape = &shapes[chunk.table];
                let sent = send(&self.batches, &table, shape, &chunk, connection);
                if let Ok(statements) = sent {
                    run.count_all(table.name(), &chunk, statements, started.elapsed());
                    run.report(table.name(), &chunk, &mut self.observer);
                }
                run.done(sent.map(drop), Some(chunk));
            }
            Step::Commit => {
                run.commits(&mut self.doubt);
                let committed = Manager::<C>::commit_transaction(connection);
                let committed = committed.map_err(|error| match run.is_own() {
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
                let found = is_there(&self.batches, shapes, connection, run);
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

/// Inserts the row of a flush.
fn record<C: Connection<Backend: Backend>>(connection: &mut C, id: Uuid) -> Result<(), Error> {
    let shape = Shape::of_flushes();
    let values = [C::Backend::flush_id(id)];
    let recorded = C::Backend::execute(connection, Statement::insert(&shape, &values));
    recorded
        .map(drop)
        .map_err(|error| Error::record("ordid_diesel", judge::<C::Backend>(error)))
}

/// Looks for the row of a flush where it writes one, otherwise for the first of its rows.
fn is_there<DB: Backend, C: LoadConnection<Backend = DB>>(
    batches: &Batches<Binder<DB>>,
    shapes: &[Shape<DB>],
    connection: &mut C,
    run: &Run,
) -> diesel::QueryResult<bool> {
    match run.plan().chunks().next().filter(|_| !run.records()) {
        Some(first) => {
            let shape = &shapes[first.table];
            let mut binder = shape.binder();
            binder.begin_key();
            batches.write_key(first.table, first.rows.start, &mut binder);
            DB::exists(connection, Statement::exists(shape, binder.columns()))
        }
        None => {
            let shape = Shape::of_flushes();
            let values = [DB::flush_id(run.id())];
            DB::exists(connection, Statement::exists(&shape, &values))
        }
    }
}
