//! Carries a flush out, step by step.

use std::time::{Duration, Instant};

use futures_timer::Delay;
use futures_util::io::{AsyncRead, AsyncWrite};
use ordid_core::{
    KeyType as _,
    unit_of_work::{
        Action, Chunk, Failure, Flush, Flushed, Outcome, Plan, Step, Table, Tally,
        observe::{self, Span},
    },
    uuid::Uuid,
};
use tiberius::Client;

use super::{
    UnitOfWork,
    load::prepare,
    locate::locate,
    record::{is_there, record},
    statement::{Statements, send},
};
use crate::{
    error::Error,
    flavour::{Flavour, Session},
};

/// A commit was sent, and its answer was not seen.
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
    tally: Tally,
    /// What the flush is recorded by, over all attempts.
    id: Uuid,
    /// Whether the client was asked what it is connected to.
    is_checked: bool,
    /// Whether the client's connection was lost.
    is_lost: bool,
    /// Why the last step failed that did, and for which rows.
    error: Option<(Error, Option<Chunk>)>,
    /// What that means; of this attempt only, while one is under way.
    cause: Option<Failure>,
    /// What the commit failed with where that leaves its outcome open.
    lost_commit: Option<Error>,
}

impl Run {
    fn new(plan: Plan, flush: Flush, id: Uuid) -> Self {
        Self {
            tally: Tally::new(&plan),
            plan,
            flush,
            id,
            is_checked: false,
            is_lost: false,
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
    fn probe_failed(&mut self, error: Error) {
        self.note(&error);
        self.error.get_or_insert((error, None));
    }

    fn note(&mut self, error: &Error) {
        let cause = error.failure();
        self.flush.failed(cause);
        self.cause = Some(cause);
        self.is_lost |= cause == Failure::Lost;
    }

    fn reconnected(&mut self) {
        self.is_lost = false;
        self.is_checked = false;
    }

    /// Counts what one statement or load sent, up to rows of this chunk.
    pub(super) fn count(
        &mut self,
        table: &Table,
        chunk: &Chunk,
        rows: usize,
        bulk: usize,
        elapsed: Duration,
    ) {
        self.tally.count(table.name(), chunk, rows, bulk, elapsed);
    }

    /// The error of a flush that wrote nothing, or perhaps nothing.
    fn into_error(self, outcome: Outcome) -> (Error, Option<Chunk>) {
        let unsaid = || {
            let error = tiberius::error::Error::Protocol("the flush stopped".into());
            (Error::begin(error), None)
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

impl<D: Flavour> UnitOfWork<D> {
    /// Flushes in a transaction of its own, over other connections where there is a way to them.
    pub(super) async fn flush_over<S, C, F>(
        &mut self,
        client: &mut Client<S>,
        connect: Option<C>,
    ) -> Result<Flushed, Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
        C: FnMut() -> F,
        F: Future<Output = tiberius::Result<Client<S>>>,
    {
        let span = Span::new(self.batches.tables().len(), self.len());
        let flush = async {
            let plan = self.planned()?;
            let (flush, id) = match &self.doubt {
                Some(doubt) => (Flush::resumed(plan.clone()), doubt.id),
                None => (Flush::new(plan.clone()), Uuid::generate()),
            };
            let mut flush = flush.with_retry(self.retry);
            if self.records {
                flush = flush.with_record();
            }
            if connect.is_none() {
                flush = flush.on_one_connection();
            }
            let run = Run::new(plan, flush, id);
            self.run(client, connect, run, &span).await
        };
        span.around(flush).await
    }

    /// Flushes after a savepoint in the transaction that is open.
    pub(super) async fn flush_inside<S>(&mut self, client: &mut Client<S>) -> Result<Flushed, Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let span = Span::new(self.batches.tables().len(), self.len());
        let flush = async {
            let plan = self.planned()?;
            let flush = Flush::in_transaction(plan.clone());
            let mut run = Run::new(plan, flush, Uuid::nil());
            if run.flush.step() == Step::Begin {
                self.attempt(client, Scope::Savepoint, &mut run).await;
            }
            span.over(0);
            let committed = Step::Done {
                outcome: Outcome::Committed,
            };
            if run.flush.step() == committed {
                return Ok(run.tally.flushed());
            }
            Err(self.failed(client, Scope::Savepoint, run).await)
        };
        span.around(flush).await
    }

    async fn run<S, C, F>(
        &mut self,
        client: &mut Client<S>,
        mut connect: Option<C>,
        mut run: Run,
        span: &Span,
    ) -> Result<Flushed, Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
        C: FnMut() -> F,
        F: Future<Output = tiberius::Result<Client<S>>>,
    {
        let outcome = loop {
            let step = run.flush.step();
            match step {
                Step::Sleep(delay) => {
                    observe::retried(run.cause, delay);
                    Delay::new(delay).await;
                    run.flush.succeeded();
                    continue;
                }
                Step::Done { outcome } => break outcome,
                _ => {}
            }
            if run.is_lost {
                let Some(connect) = &mut connect else {
                    // Only an older commit is asked for without a connection to ask on.
                    break Outcome::Unknown;
                };
                match connect().await {
                    Ok(other) => {
                        // The server rolls the old one back when it goes.
                        *client = other;
                        run.reconnected();
                    }
                    Err(error) if step == Step::Probe => {
                        run.probe_failed(Error::probe(error));
                        continue;
                    }
                    Err(error) => {
                        run.failed(Error::begin(error), None);
                        continue;
                    }
                }
            }
            if step == Step::Probe {
                self.probe(client, &mut run).await?;
            } else {
                self.attempt(client, Scope::Transaction, &mut run).await;
            }
        };
        let retries = run.flush.retries();
        span.over(retries);
        match outcome {
            Outcome::Committed => {
                // Perhaps by an earlier attempt, or an earlier flush.
                let doubt = self.doubt.take();
                let mut flushed = doubt.map(|doubt| doubt.flushed).unwrap_or_default();
                flushed.retries = retries;
                flushed.elapsed = run.tally.elapsed();
                observe::committed(&flushed);
                self.clear();
                Ok(flushed)
            }
            Outcome::Unknown => {
                observe::unknown();
                Err(run.into_error(outcome).0)
            }
            Outcome::Nothing => {
                self.doubt = None;
                Err(self.failed(client, Scope::Transaction, run).await)
            }
        }
    }

    /// Carries the steps out from the beginning of a transaction to its end.
    async fn attempt<S>(&mut self, client: &mut Client<S>, scope: Scope, run: &mut Run)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        run.tally.restart();
        run.cause = None;
        if let Err(error) = Self::check(client, scope, run).await {
            return run.failed(error, None);
        }
        let mut loads = if D::LOADS && matches!(scope, Scope::Transaction) {
            prepare(&self.batches, &run.plan, client).await
        } else {
            Vec::new()
        };
        let mut statements = Statements::new(&self.batches);
        let mut begun = false;
        loop {
            match run.flush.step() {
                Step::Begin if !begun => match scope.begin(client).await {
                    Ok(()) => {
                        begun = true;
                        run.flush.succeeded();
                    }
                    Err(error) => return run.failed(Error::begin(error), None),
                },
                Step::Record => match record(client, run.id).await {
                    Ok(()) => run.flush.succeeded(),
                    Err(error) => run.failed(Error::record(error), None),
                },
                Step::Send(chunk) => {
                    let load = loads.get_mut(chunk.table);
                    let load = load.filter(|_| chunk.action == Action::Insert);
                    let sent = match load.and_then(Option::take) {
                        Some(load) => self.load(client, &load, run).await,
                        None => {
                            let started = Instant::now();
                            let sent = send(&self.batches, client, &chunk, &mut statements).await;
                            let sent = sent.map_err(|error| (error, chunk.clone()));
                            if sent.is_ok() {
                                let table = self.batches.table(chunk.table);
                                run.count(&table, &chunk, chunk.rows.len(), 0, started.elapsed());
                                self.report(run, &chunk);
                            }
                            sent
                        }
                    };
                    match sent {
                        Ok(()) => run.flush.succeeded(),
                        Err((error, rows)) => run.failed(error, Some(rows)),
                    }
                }
                Step::Commit => {
                    if matches!(scope, Scope::Transaction) {
                        // Should this be dropped here.
                        self.doubt = Some(Doubt {
                            id: run.id,
                            flushed: run.tally.flushed(),
                        });
                    }
                    match scope.commit(client).await {
                        Ok(()) => run.flush.succeeded(),
                        Err(error) => {
                            run.failed(Error::commit(error), None);
                            if run.flush.is_in_doubt() {
                                run.lost_commit = run.error.take().map(|(error, _)| error);
                            } else {
                                self.doubt = None;
                            }
                        }
                    }
                }
                Step::Rollback => {
                    // Where it fails, the server has rolled back, or will when the connection ends. The
                    // user's transaction may go on where the server's own word was that this is lost.
                    let is_over = run.is_lost && matches!(scope, Scope::Transaction);
                    if !is_over && let Err(error) = scope.roll_back(client).await {
                        run.is_lost |= Error::begin(error).is_connection_lost();
                    }
                    run.flush.succeeded();
                }
                _ => return,
            }
        }
    }

    /// Refuses a server of another flavour, and a transaction that is open or, for a savepoint, is not.
    async fn check<S>(client: &mut Client<S>, scope: Scope, run: &mut Run) -> Result<(), Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        if run.is_checked {
            return Ok(());
        }
        let session = Session::ask(client).await.map_err(Error::begin)?;
        if !D::is(&session.version) {
            return Err(Error::flavour(D::NAME, &session.version));
        }
        match (scope, session.transactions) {
            (Scope::Savepoint, 0) => return Err(Error::no_transaction()),
            (Scope::Transaction, 1..) => return Err(Error::open_transaction()),
            _ => {}
        }
        run.is_checked = true;
        Ok(())
    }

    /// Asks what became of a commit. What it refuses to ask on leaves the doubt as it was.
    async fn probe<S>(&mut self, client: &mut Client<S>, run: &mut Run) -> Result<(), Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        run.cause = None;
        match Self::check(client, Scope::Transaction, run).await {
            Err(error) if error.as_tiberius().is_none() => return Err(error),
            Err(error) => {
                run.probe_failed(error);
                return Ok(());
            }
            Ok(()) => {}
        }
        let is_recorded = run.flush.records();
        match is_there(&self.batches, client, &run.plan, is_recorded, run.id).await {
            Ok(found) => run.flush.probed(found),
            Err(error) => run.probe_failed(Error::probe(error)),
        }
        Ok(())
    }

    /// Returns why nothing was written, and for which row.
    async fn failed<S>(&mut self, client: &mut Client<S>, scope: Scope, run: Run) -> Error
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let (plan, is_lost) = (run.plan.clone(), run.is_lost);
        let (mut error, rows) = run.into_error(Outcome::Nothing);
        if let Some(rows) = rows
            && !is_lost
            && error.refuses_a_row()
            && let Some((chunk, key)) = locate(&self.batches, client, scope, &plan, &rows).await
        {
            error.set_row(chunk, key);
        }
        error
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

/// What a flush begins and ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scope {
    /// A transaction of its own.
    Transaction,
    /// A savepoint in the user's.
    Savepoint,
}

impl Scope {
    pub(super) async fn begin<S>(self, client: &mut Client<S>) -> tiberius::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        match self {
            Self::Transaction => client.begin_transaction().await,
            // By statement: tiberius 0.13 counts the name of its request in characters, where the
            // protocol counts bytes.
            Self::Savepoint => batch(client, "SAVE TRANSACTION [ordid_flush]").await,
        }
    }

    async fn commit<S>(self, client: &mut Client<S>) -> tiberius::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        match self {
            Self::Transaction => client.commit_transaction().await,
            // A savepoint is not released.
            Self::Savepoint => Ok(()),
        }
    }

    pub(super) async fn roll_back<S>(self, client: &mut Client<S>) -> tiberius::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        match self {
            Self::Transaction => client.rollback_transaction().await,
            Self::Savepoint => batch(client, "ROLLBACK TRANSACTION [ordid_flush]").await,
        }
    }
}

async fn batch<S>(client: &mut Client<S>, sql: &str) -> tiberius::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    client.simple_query(sql).await?.into_results().await?;
    Ok(())
}
