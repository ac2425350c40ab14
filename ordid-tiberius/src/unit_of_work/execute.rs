//! Carries a flush out, step by step.

use std::time::Instant;

use futures_util::io::{AsyncRead, AsyncWrite};
use ordid_core::{
    clock::Delay,
    unit_of_work::{Action, Batches, FlushRun, Flushed, Outcome, Step, Unflushed, observe::Span},
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
    binder::Binder,
    error::FlushError,
    failure::{judge, judge_commit},
    flavour::{Flavour, Session},
};

pub(super) type Run = FlushRun<tiberius::error::Error>;

/// What is known of the client's connection.
#[derive(Debug, Default)]
struct Link {
    /// Whether the client was asked what it is connected to.
    is_checked: bool,
    is_lost: bool,
}

impl<D: Flavour> UnitOfWork<D> {
    /// Flushes in a transaction of its own, over other connections where there is a way to them.
    pub(super) async fn flush_over<S, C, F>(
        &mut self,
        client: &mut Client<S>,
        connect: Option<C>,
    ) -> Result<Flushed, FlushError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
        C: FnMut() -> F,
        F: Future<Output = tiberius::Result<Client<S>>>,
    {
        let span = Span::new(self.batches.tables().len(), self.len());
        let flush = async {
            let plan = self.planned()?;
            let run = Run::new(plan, self.retry, self.doubt.as_ref()).with_record(self.records);
            let run = match connect {
                Some(_) => run,
                None => run.on_one_connection(),
            };
            self.run(client, connect, run, &span).await
        };
        span.around(flush).await
    }

    /// Flushes after a savepoint in the transaction that is open.
    pub(super) async fn flush_inside<S>(
        &mut self,
        client: &mut Client<S>,
    ) -> Result<Flushed, FlushError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let span = Span::new(self.batches.tables().len(), self.len());
        let flush = async {
            let (mut run, mut link) = (Run::inside(self.planned()?), Link::default());
            if run.step() == Step::Begin {
                self.attempt(client, Scope::Savepoint, &mut link, &mut run)
                    .await;
            }
            let outcome = match run.step() {
                Step::Done { outcome } => outcome,
                _ => Outcome::Nothing,
            };
            match run.ended(outcome, &mut self.doubt, &span) {
                Ok(flushed) => Ok(flushed),
                Err(failed) => {
                    let batches = &self.batches;
                    Err(located(batches, client, Scope::Savepoint, &link, failed).await)
                }
            }
        };
        span.around(flush).await
    }

    async fn run<S, C, F>(
        &mut self,
        client: &mut Client<S>,
        mut connect: Option<C>,
        mut run: Run,
        span: &Span,
    ) -> Result<Flushed, FlushError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
        C: FnMut() -> F,
        F: Future<Output = tiberius::Result<Client<S>>>,
    {
        let mut link = Link::default();
        let outcome = loop {
            let step = run.step();
            match step {
                Step::Sleep(delay) => {
                    run.waits(delay);
                    Delay::new(delay).await;
                    run.succeeded();
                    continue;
                }
                Step::Done { outcome } => break outcome,
                _ => {}
            }
            if link.is_lost {
                let Some(connect) = &mut connect else {
                    // Only an older commit is asked for without a connection to ask on.
                    break Outcome::Unknown;
                };
                match connect().await {
                    Ok(other) => {
                        // The server rolls the old one back when it goes.
                        *client = other;
                        link = Link::default();
                    }
                    Err(error) if step == Step::Probe => {
                        run.probed(Err(FlushError::probe(judge(error))));
                        continue;
                    }
                    Err(error) => {
                        run.failed(begin_failed(error), None);
                        continue;
                    }
                }
            }
            if step == Step::Probe {
                self.probe(client, &mut link, &mut run).await?;
            } else {
                self.attempt(client, Scope::Transaction, &mut link, &mut run)
                    .await;
            }
        };
        match run.ended(outcome, &mut self.doubt, span) {
            Ok(flushed) => {
                self.clear();
                Ok(flushed)
            }
            Err(failed) => {
                let batches = &self.batches;
                Err(located(batches, client, Scope::Transaction, &link, failed).await)
            }
        }
    }

    /// Carries the steps out from the beginning of a transaction to its end.
    async fn attempt<S>(
        &mut self,
        client: &mut Client<S>,
        scope: Scope,
        link: &mut Link,
        run: &mut Run,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        run.restart();
        match Self::check(client, scope, link).await {
            Ok(()) => self.transact(client, scope, link, run).await,
            Err(error) => run.failed(error, None),
        }
        link.is_lost |= run.has_lost_connection();
    }

    async fn transact<S>(
        &mut self,
        client: &mut Client<S>,
        scope: Scope,
        link: &mut Link,
        run: &mut Run,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let mut loads = if D::LOADS && matches!(scope, Scope::Transaction) {
            prepare(&self.batches, run.plan(), client).await
        } else {
            Vec::new()
        };
        let mut statements = Statements::new(&self.batches);
        let mut begun = false;
        loop {
            match run.step() {
                Step::Begin if !begun => match scope.begin(client).await {
                    Ok(()) => {
                        begun = true;
                        run.succeeded();
                    }
                    Err(error) => return run.failed(begin_failed(error), None),
                },
                Step::Record => {
                    let recorded = record(client, run.id()).await;
                    let failed = |error| FlushError::record("ordid_tiberius", judge(error));
                    run.done(recorded.map_err(failed), None);
                }
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
                                let name = self.batches.table(chunk.table).name();
                                run.count_all(name, &chunk, 1, started.elapsed());
                                run.report(name, &chunk, &mut self.observer);
                            }
                            sent
                        }
                    };
                    match sent {
                        Ok(()) => run.succeeded(),
                        Err((error, rows)) => run.failed(error, Some(rows)),
                    }
                }
                Step::Commit => {
                    run.commits(&mut self.doubt);
                    let committed = scope.commit(client).await;
                    let failed = |error| FlushError::commit(judge_commit(error));
                    run.committed(committed.map_err(failed), &mut self.doubt);
                }
                Step::Rollback => {
                    // Where it fails, the server has rolled back, or will when the connection ends. The
                    // user's transaction may go on where the server's own word was that this is lost.
                    let is_over = run.has_lost_connection() && run.is_own();
                    if !is_over && let Err(error) = scope.roll_back(client).await {
                        link.is_lost |= begin_failed(error).is_connection_lost();
                    }
                    run.succeeded();
                }
                _ => return,
            }
        }
    }

    /// Refuses a server of another flavour, and a transaction that is open or, for a savepoint, is not.
    async fn check<S>(
        client: &mut Client<S>,
        scope: Scope,
        link: &mut Link,
    ) -> Result<(), FlushError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        if link.is_checked {
            return Ok(());
        }
        let session = Session::ask(client).await.map_err(begin_failed)?;
        if !D::is(&session.version) {
            return Err(wrong_flavour(D::NAME, &session.version));
        }
        match (scope, session.transactions) {
            (Scope::Savepoint, 0) => return Err(FlushError::no_transaction("client")),
            (Scope::Transaction, 1..) => return Err(FlushError::open_transaction("client")),
            _ => {}
        }
        link.is_checked = true;
        Ok(())
    }

    /// Asks what became of a commit. What it refuses to ask on leaves the doubt as it was.
    async fn probe<S>(
        &mut self,
        client: &mut Client<S>,
        link: &mut Link,
        run: &mut Run,
    ) -> Result<(), FlushError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        run.probes();
        match Self::check(client, Scope::Transaction, link).await {
            Err(error) if error.driver().is_none() => return Err(error),
            Err(error) => run.probed(Err(error)),
            Ok(()) => {
                let is_recorded = run.records();
                let found = is_there(&self.batches, client, run.plan(), is_recorded, run.id());
                let found = found.await;
                run.probed(found.map_err(|error| FlushError::probe(judge(error))));
            }
        }
        link.is_lost |= run.has_lost_connection();
        Ok(())
    }
}

/// Finds the row that an error is about.
async fn located<D: Flavour, S>(
    batches: &Batches<Binder<D>>,
    client: &mut Client<S>,
    scope: Scope,
    link: &Link,
    mut failed: Unflushed<tiberius::error::Error>,
) -> FlushError
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let found = match failed.sought(batches) {
        Some(rows) if !link.is_lost => locate(batches, client, scope, &failed.plan, &rows).await,
        _ => None,
    };
    failed.located(found)
}

fn begin_failed(error: tiberius::error::Error) -> FlushError {
    FlushError::begin(judge(error))
}

fn wrong_flavour(wanted: &str, version: &str) -> FlushError {
    let found = version.lines().next().unwrap_or_default();
    FlushError::database(
        format!("this unit of work is for {wanted}"),
        format!(
            "the server is `{found}`, which sorts uniqueidentifier in another order; use the \
             UnitOfWork of its flavour, and name a column for it in the key types"
        ),
    )
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
