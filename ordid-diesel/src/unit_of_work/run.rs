//! Carries a flush out, step by step.

use std::{thread::sleep, time::Instant};

use diesel::{
    Connection,
    connection::{LoadConnection, TransactionManager},
};
use ordid_core::{
    KeyType as _,
    unit_of_work::{Batches, Chunk, Failure, Flush, Flushed, Outcome, Plan, Step, Tally},
    uuid::Uuid,
};

use super::{
    UnitOfWork,
    locate::locate,
    statement::{Shape, Statement, send},
};
use crate::{backend::Backend, entity::Binder, error::Error};

/// A COMMIT was sent, and its answer was not seen.
#[derive(Debug)]
pub(super) struct Doubt {
    /// What the flush is recorded by.
    id: Uuid,
    /// What will have been written.
    flushed: Flushed,
}

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
    let depth = depth.map_err(Error::begin::<C::Backend>)?;
    match (wanted, depth) {
        (Scope::Transaction, None) => Ok(Scope::Transaction),
        (Scope::Savepoint, Some(_)) => Ok(Scope::Savepoint),
        (Scope::Savepoint, None) => Err(Error::connection(
            "the connection has no transaction open: call `flush`",
        )),
        // An open transaction is broken for a pool, unless it is a test's.
        (Scope::Transaction, Some(_)) => {
            match Manager::<C>::is_broken_transaction_manager(connection) {
                false => Ok(Scope::Savepoint),
                true => Err(Error::connection(
                    "the connection has a transaction open: commit it first, or call `flush_in`",
                )),
            }
        }
    }
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

    fn done(&mut self, outcome: Result<(), Error>, rows: Option<Chunk>) {
        match outcome {
            Ok(()) => self.flush.succeeded(),
            Err(error) => {
                self.note(&error);
                self.error = Some((error, rows));
            }
        }
    }

    /// Reports that a probe failed. Why the rows were refused says more than that, should it end there.
    fn probe_failed(&mut self, error: Error) {
        self.note(&error);
        self.error.get_or_insert((error, None));
    }

    fn note(&mut self, error: &Error) {
        self.flush.failed(error.failure());
        self.cause = Some(error.failure());
    }

    fn has_lost_connection(&self) -> bool {
        self.cause == Some(Failure::Lost)
    }

    /// The error of a flush that wrote nothing, or perhaps nothing.
    fn into_error(self, outcome: Outcome) -> (Error, Option<Chunk>) {
        let unsaid = || {
            let error = Error::connection("the flush ended without a reason");
            (error, None)
        };
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

impl<DB: Backend> UnitOfWork<DB> {
    /// Flushes in a transaction of its own, over connections from there.
    pub(super) fn flush_over<C, S>(&mut self, mut source: S) -> Result<Flushed, Error>
    where
        C: LoadConnection<Backend = DB>,
        S: Source<C>,
    {
        let plan = self.planned()?;
        // Before anything is sent, and where there is no connection it is a matter of retries.
        let scope = match source.get() {
            Ok(connection) => scope(connection, Scope::Transaction)?,
            Err(_) => Scope::Transaction,
        };
        let flush = match (scope, &self.doubt) {
            (Scope::Savepoint, _) => Flush::in_transaction(plan.clone()),
            (Scope::Transaction, Some(_)) => Flush::resumed(plan.clone()),
            (Scope::Transaction, None) => Flush::new(plan.clone()),
        };
        let flush = flush.with_retry(self.retry);
        let flush = if source.has_another() {
            flush
        } else {
            flush.on_one_connection()
        };
        let id = self
            .doubt
            .as_ref()
            .map_or_else(Uuid::generate, |doubt| doubt.id);
        let flushed = self.run(&mut source, Run::new(plan, flush, id), scope)?;
        self.clear();
        Ok(flushed)
    }

    /// Flushes in a savepoint of the open transaction.
    pub(super) fn flush_inside<C>(&mut self, connection: &mut C) -> Result<Flushed, Error>
    where
        C: LoadConnection<Backend = DB>,
    {
        let plan = self.planned()?;
        let scope = scope(connection, Scope::Savepoint)?;
        let flush = Flush::in_transaction(plan.clone());
        let run = Run::new(plan, flush, Uuid::nil());
        self.run(&mut One(connection), run, scope)
    }

    fn run<C, S>(&mut self, source: &mut S, mut run: Run, scope: Scope) -> Result<Flushed, Error>
    where
        C: LoadConnection<Backend = DB>,
        S: Source<C>,
    {
        let shapes: Vec<Shape<DB>> = self.shapes.iter().map(|shape| shape()).collect();
        let outcome = loop {
            match run.flush.step() {
                Step::Done { outcome } => break outcome,
                Step::Sleep(delay) => {
                    source.release();
                    sleep(delay);
                    run.flush.succeeded();
                    continue;
                }
                step => {
                    let connection = match source.get() {
                        Ok(connection) => connection,
                        Err(error) if step == Step::Probe => {
                            run.probe_failed(error);
                            continue;
                        }
                        Err(error) => {
                            run.done(Err(error), None);
                            continue;
                        }
                    };
                    self.execute(step, connection, &shapes, &mut run, scope);
                }
            }
            // It is closed, or goes back to its pool, which finds it broken.
            if run.has_lost_connection() && run.flush.step() != Step::Rollback {
                source.release();
            }
        };
        let retries = run.flush.retries();
        match outcome {
            Outcome::Committed => {
                // Perhaps by an earlier attempt, or an earlier flush.
                let doubt = self.doubt.take();
                let mut flushed = match doubt {
                    Some(doubt) => doubt.flushed,
                    None => run.tally.flushed(),
                };
                flushed.retries = retries;
                flushed.elapsed = run.tally.elapsed();
                Ok(flushed)
            }
            Outcome::Unknown => Err(run.into_error(outcome).0),
            Outcome::Nothing => {
                self.doubt = None;
                let plan = run.plan.clone();
                let (error, rows) = run.into_error(outcome);
                let Some(rows) = rows.filter(|_| error.refuses_a_row()) else {
                    return Err(error);
                };
                let Ok(connection) = source.get() else {
                    return Err(error);
                };
                Err(located(
                    &self.batches,
                    &shapes,
                    connection,
                    &plan,
                    error,
                    &rows,
                ))
            }
        }
    }

    fn execute<C: LoadConnection<Backend = DB>>(
        &mut self,
        step: Step,
        connection: &mut C,
        shapes: &[Shape<DB>],
        run: &mut Run,
        scope: Scope,
    ) {
        match step {
            Step::Begin => {
                run.tally.restart();
                run.cause = None;
                let begun = begin(connection, run.plan.defers());
                run.done(begun, None);
            }
            Step::Record => {
                let recorded = record(connection, run.id);
                run.done(recorded, None);
            }
            Step::Send(chunk) => {
                let started = Instant::now();
                let table = self.batches.table(chunk.table);
                let shape = &shapes[chunk.table];
                let sent = send(&self.batches, &table, shape, &chunk, connection);
                if let Ok(statements) = sent {
                    let (rows, elapsed) = (chunk.rows.len(), started.elapsed());
                    run.tally.count(table.name(), &chunk, rows, 0, elapsed);
                    run.tally.add_statements(&chunk, statements - 1);
                    let progress = run.tally.progress(table.name(), &chunk);
                    if let Some(observer) = &mut self.observer {
                        observer(progress);
                    }
                }
                run.done(sent.map(drop), Some(chunk));
            }
            Step::Commit => {
                let committed = Manager::<C>::commit_transaction(connection);
                let committed = committed.map_err(|error| match scope {
                    Scope::Transaction => Error::commit::<DB>(error),
                    Scope::Savepoint => Error::release::<DB>(error),
                });
                run.done(committed, None);
                if run.flush.is_in_doubt() {
                    run.lost_commit = run.error.take().map(|(error, _)| error);
                    self.doubt = Some(Doubt {
                        id: run.id,
                        flushed: run.tally.flushed(),
                    });
                }
            }
            Step::Rollback => {
                // Its own failure says no more: the server drops what is not committed. After COMMIT,
                // Diesel has rolled back itself.
                let _ = rollback(connection);
                run.flush.succeeded();
            }
            Step::Probe => {
                run.cause = None;
                match is_there(&self.batches, shapes, connection, &run.plan, run.id) {
                    Ok(found) => run.flush.probed(found),
                    Err(error) => run.probe_failed(Error::probe::<DB>(error)),
                }
            }
            // Core may add steps; what is not known cannot be carried out.
            _ => run.flush.failed(Failure::Refused),
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
    Manager::<C>::begin_transaction(connection).map_err(Error::begin::<C::Backend>)?;
    if defers && let Some(defer) = C::Backend::DEFER {
        let deferred = connection.batch_execute(defer);
        if let Err(error) = deferred {
            let _ = rollback(connection);
            return Err(Error::begin::<C::Backend>(error));
        }
    }
    Ok(())
}

pub(super) fn rollback<C: Connection>(connection: &mut C) -> diesel::QueryResult<()> {
    Manager::<C>::rollback_transaction(connection)
}

/// Inserts the row of a flush.
fn record<C: Connection<Backend: Backend>>(connection: &mut C, id: Uuid) -> Result<(), Error> {
    let shape = Shape::of_flushes();
    let values = [C::Backend::flush_id(id)];
    let recorded = C::Backend::execute(connection, Statement::insert(&shape, &values));
    recorded.map(drop).map_err(Error::record::<C::Backend>)
}

/// Looks for the row of a flush or, where it has none, for the first of its rows.
fn is_there<DB: Backend, C: LoadConnection<Backend = DB>>(
    batches: &Batches<Binder<DB>>,
    shapes: &[Shape<DB>],
    connection: &mut C,
    plan: &Plan,
    id: Uuid,
) -> diesel::QueryResult<bool> {
    match plan.chunks().next().filter(|_| plan.only_inserts()) {
        Some(first) => {
            let shape = &shapes[first.table];
            let mut binder = shape.binder();
            binder.begin_key();
            batches.write_key(first.table, first.rows.start, &mut binder);
            DB::exists(connection, Statement::exists(shape, binder.columns()))
        }
        None => {
            let shape = Shape::of_flushes();
            let values = [DB::flush_id(id)];
            DB::exists(connection, Statement::exists(&shape, &values))
        }
    }
}

/// Finds the row that an error is about.
fn located<DB: Backend, C: LoadConnection<Backend = DB>>(
    batches: &Batches<Binder<DB>>,
    shapes: &[Shape<DB>],
    connection: &mut C,
    plan: &Plan,
    mut error: Error,
    rows: &Chunk,
) -> Error {
    let found = match error.row() {
        Some(row) => Some(batches.key_text(rows, row)),
        None => locate(batches, shapes, connection, plan, rows),
    };
    if let Some(key) = found {
        error.set_row(rows.clone(), key);
    }
    error
}
