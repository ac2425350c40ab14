//! Carries a flush out over connections of diesel-async: the steps of [`run`](super::run), and waits
//! where that one blocks.
//!
//! # Dropped futures
//!
//! A future that is dropped cannot roll back. So from its beginning to its end a transaction is kept from
//! the connection's transaction manager, which is left in error meanwhile: whoever goes on with the
//! connection after a flush was dropped can neither commit what was sent nor build on it, and a pool
//! closes it.

use std::{mem, time::Instant};

use diesel::{connection::TransactionManagerStatus, result::Error as DieselError};
use diesel_async::{AsyncConnection, TransactionManager};
use ordid_core::{
    clock::Delay,
    unit_of_work::{Batches, Chunk, Flushed, Plan, Step, observe::Span},
};

use super::{
    UnitOfWork,
    run::{Run, Scope},
    statement::{Bound, Known, Shapes, bind, check, recorded},
};
use crate::{
    Error,
    backend::Backend,
    entity::Binder,
    failure::{judge, judge_commit},
};

/// Where a flush gets its connection.
pub(super) trait AsyncSource<C: 'static>: Send {
    /// Returns the connection, made where there is none.
    fn get(&mut self) -> impl Future<Output = Result<&mut C, Error>> + Send;

    /// Others may need it meanwhile.
    fn release(&mut self);

    /// Whether another can be had.
    fn has_another(&self) -> bool;
}

/// The one that there is.
pub(super) struct One<'c, C>(pub(super) &'c mut C);

impl<C: Send + 'static> AsyncSource<C> for One<'_, C> {
    async fn get(&mut self) -> Result<&mut C, Error> {
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

impl<C, E, F, W> AsyncSource<C> for Made<C, F>
where
    C: Send + 'static,
    F: FnMut() -> W + Send,
    W: Future<Output = Result<C, E>> + Send,
    E: std::error::Error + Send + Sync + 'static,
{
    async fn get(&mut self) -> Result<&mut C, Error> {
        if self.open.is_none() {
            let made = (self.connect)().await.map_err(Error::connect)?;
            self.open = Some(made);
        }
        Ok(self.open.as_mut().expect("it was made"))
    }

    fn release(&mut self) {
        self.open = None;
    }

    fn has_another(&self) -> bool {
        true
    }
}

type Manager<C> = <C as AsyncConnection>::TransactionManager;

/// Finds out in what a flush is, or why it cannot be.
fn scope<C: AsyncConnection<Backend: Backend>>(
    connection: &mut C,
    wanted: Scope,
) -> Result<Scope, Error> {
    let depth = Manager::<C>::transaction_manager_status_mut(connection).transaction_depth();
    let failed = |error| Error::begin(judge::<C::Backend>(error));
    let is_open = depth.map_err(failed)?.is_some();
    let breaks = Manager::<C>::is_broken_transaction_manager(connection);
    if breaks && !is_open {
        // Its BEGIN or COMMIT was given up before there was an answer.
        return Err(failed(DieselError::BrokenTransactionManager));
    }
    wanted.found(is_open, || breaks)
}

/// An open transaction: see "Dropped futures".
struct Open(TransactionManagerStatus);

impl Open {
    /// Begins a transaction, or a savepoint in the one that is open, in which constraints are checked at
    /// COMMIT if it `defers`.
    async fn begin<C>(connection: &mut C, defers: bool) -> Result<Self, Error>
    where
        C: AsyncConnection<Backend: Backend> + 'static,
    {
        let begun = Manager::<C>::begin_transaction(connection).await;
        begun.map_err(|error| Error::begin(judge::<C::Backend>(error)))?;
        let open = Self::keep(connection);
        if defers && let Some(defer) = C::Backend::DEFER {
            let deferred = connection.batch_execute(defer).await;
            if let Err(error) = deferred {
                open.rollback(connection).await;
                return Err(Error::begin(judge::<C::Backend>(error)));
            }
        }
        Ok(open)
    }

    fn keep<C: AsyncConnection + 'static>(connection: &mut C) -> Self {
        let status = Manager::<C>::transaction_manager_status_mut(connection);
        Self(mem::replace(status, TransactionManagerStatus::InError))
    }

    fn give_back<C: AsyncConnection + 'static>(self, connection: &mut C) {
        *Manager::<C>::transaction_manager_status_mut(connection) = self.0;
    }

    async fn commit<C: AsyncConnection + 'static>(
        self,
        connection: &mut C,
    ) -> Result<(), DieselError> {
        self.give_back(connection);
        Manager::<C>::commit_transaction(connection).await
    }

    /// Its own failure says no more: the server drops what is not committed.
    async fn rollback<C: AsyncConnection + 'static>(self, connection: &mut C) {
        self.give_back(connection);
        let _ = Manager::<C>::rollback_transaction(connection).await;
    }
}

impl<DB: Backend> UnitOfWork<DB> {
    /// Flushes in a transaction of its own, over connections from there.
    pub(super) async fn flush_over_async<C, S>(&mut self, mut source: S) -> Result<Flushed, Error>
    where
        C: AsyncConnection<Backend = DB> + 'static,
        S: AsyncSource<C>,
    {
        let span = self.span();
        span.clone()
            .around(async move {
                let plan = self.planned()?;
                // Before anything is sent, and where there is no connection it is a matter of retries.
                let scope = match source.get().await {
                    Ok(connection) => scope(connection, Scope::Transaction).map(Ok)?,
                    Err(error) => Err(error),
                };
                let run = self.begun(plan, scope, source.has_another());
                let flushed = self.run_async(&mut source, run, &span).await?;
                self.clear();
                Ok(flushed)
            })
            .await
    }

    /// Flushes in a savepoint of the open transaction.
    pub(super) async fn flush_inside_async<C>(
        &mut self,
        connection: &mut C,
    ) -> Result<Flushed, Error>
    where
        C: AsyncConnection<Backend = DB> + 'static,
    {
        let span = self.span();
        span.clone()
            .around(async move {
                let plan = self.planned()?;
                scope(connection, Scope::Savepoint)?;
                let run = Run::inside(plan);
                self.run_async(&mut One(connection), run, &span).await
            })
            .await
    }

    async fn run_async<C, S>(
        &mut self,
        source: &mut S,
        mut run: Run,
        span: &Span,
    ) -> Result<Flushed, Error>
    where
        C: AsyncConnection<Backend = DB> + 'static,
        S: AsyncSource<C>,
    {
        let shapes = self.shapes();
        let mut open = None;
        let outcome = loop {
            match run.step() {
                Step::Done { outcome } => break outcome,
                Step::Sleep(delay) => {
                    source.release();
                    run.waits(delay);
                    Delay::new(delay).await;
                    run.succeeded();
                    continue;
                }
                step => match source.get().await {
                    Ok(connection) => {
                        self.execute_async(step, connection, &shapes, &mut run, &mut open)
                            .await;
                    }
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
            Some(rows) => match source.get().await {
                Ok(connection) => {
                    locate(&self.batches, &shapes, connection, &failed.plan, &rows).await
                }
                Err(_) => None,
            },
            None => None,
        };
        Err(failed.located(found))
    }

    async fn execute_async<C: AsyncConnection<Backend = DB> + 'static>(
        &mut self,
        step: Step,
        connection: &mut C,
        shapes: &Shapes<DB>,
        run: &mut Run,
        open: &mut Option<Open>,
    ) {
        match step {
            Step::Begin => {
                run.restart();
                let begun = Open::begin(connection, run.plan().defers()).await;
                run.done(begun.map(|begun| *open = Some(begun)), None);
            }
            Step::Record => {
                let flush = Known::flush(shapes, run.id());
                let outcome = connection.execute_returning_count(flush.insert()).await;
                run.done(recorded::<DB>(outcome), None);
            }
            Step::Send(chunk) => {
                let started = Instant::now();
                let table = self.batches.table(chunk.table);
                let bound = bind(&self.batches, &table, &shapes[chunk.table], &chunk);
                let sent = send(&bound, connection).await;
                if sent.is_ok() {
                    run.count_all(table.name(), &chunk, bound.len(), started.elapsed());
                    run.report(table.name(), &chunk, &mut self.observer);
                }
                run.done(sent, Some(chunk));
            }
            Step::Commit => {
                run.commits(&mut self.doubt);
                let committed = match open.take() {
                    Some(open) => open.commit(connection).await,
                    None => Err(DieselError::NotInTransaction),
                };
                let committed = committed.map_err(|error| match run.is_own() {
                    true => Error::commit(judge_commit::<DB>(error)),
                    false => Error::release(judge::<DB>(error)),
                });
                run.committed(committed, &mut self.doubt);
            }
            Step::Rollback => {
                // After COMMIT it has been taken: Diesel has rolled back itself.
                if let Some(open) = open.take() {
                    open.rollback(connection).await;
                }
                run.succeeded();
            }
            Step::Probe => {
                run.probes();
                let known = Known::of(&self.batches, shapes, run);
                let found = DB::exists_async(connection, known.exists()).await;
                run.probed(found.map_err(|error| Error::probe(judge::<DB>(error))));
            }
            // Core may add steps; what is not known cannot be carried out.
            _ => run.give_up(),
        }
    }
}

/// Sends the rows of a chunk.
async fn send<DB: Backend, C: AsyncConnection<Backend = DB> + 'static>(
    bound: &Bound<'_, DB>,
    connection: &mut C,
) -> Result<(), Error> {
    for number in 0..bound.len() {
        let (statement, rows, place) = bound.statement(number);
        let changed = connection.execute_returning_count(statement).await;
        check::<DB>(changed, rows, place)?;
    }
    Ok(())
}

/// As [`locate`](super::locate::locate).
async fn locate<DB: Backend, C: AsyncConnection<Backend = DB> + 'static>(
    batches: &Batches<Binder<DB>>,
    shapes: &Shapes<DB>,
    connection: &mut C,
    plan: &Plan,
    failed: &Chunk,
) -> Option<(Chunk, String)> {
    let open = Open::begin(connection, plan.defers()).await.ok()?;
    let found = replay(batches, shapes, connection, plan, failed).await;
    open.rollback(connection).await;
    found
}

async fn replay<DB: Backend, C: AsyncConnection<Backend = DB> + 'static>(
    batches: &Batches<Binder<DB>>,
    shapes: &Shapes<DB>,
    connection: &mut C,
    plan: &Plan,
    failed: &Chunk,
) -> Option<(Chunk, String)> {
    for (chunk, is_suspected) in plan.towards(failed) {
        let table = batches.table(chunk.table);
        let shape = &shapes[chunk.table];
        if !is_suspected {
            let bound = bind(batches, &table, shape, &chunk);
            send(&bound, connection).await.ok()?;
            continue;
        }
        for single in chunk.singly() {
            let bound = bind(batches, &table, shape, &single);
            if let Err(error) = send(&bound, connection).await {
                let key = batches.key_text(&chunk, single.rows.start);
                return error.refuses_a_row().then(|| (chunk.clone(), key));
            }
        }
    }
    None
}
