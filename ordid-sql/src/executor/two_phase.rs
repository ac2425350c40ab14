//! Carries out the part of one shard in a two-phase commit: see [`two_phase`](crate::two_phase) for the protocol.

use std::{sync::Arc, time::Duration};

use ordid_core::uuid::Uuid;

use super::{Result, deadline::Deadline, no_values, read::read_committed, reads, statements_of};
use crate::{
    DriverError, Failure, FlushError, Flushed, Markers, Retry, Work,
    flush_error::NoProbe,
    lock_waits,
    marker::{self, may_be_removed},
    observe::{self, Span},
    spi::{
        Begin, ConnectionSource, FlushConnection, FlushTransaction, RowBinder, Statement,
        TransactionScope,
    },
    text::Writer,
    two_phase::{Coordinator, Decision, Stage, TwoPhase},
};

/// What became of a prepared transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It was ended now.
    Now,
    /// There is none with this id, or none any more.
    Gone,
}

impl<B: RowBinder> Work<B> {
    /// Writes the rows of a shard together with those of others, or not at all.
    pub(super) async fn flush_part<S>(
        &mut self,
        source: &mut S,
        coordinator: &Arc<Coordinator>,
        decides: bool,
    ) -> Result<Flushed, S::Connection>
    where
        S: ConnectionSource<Connection: FlushConnection<Binder = B>>,
    {
        match decides {
            true => self.decide(source, coordinator).await,
            false => self.take_part(source, coordinator).await,
        }
    }

    /// Commits the shard that decides, once all others are prepared.
    async fn decide<S>(
        &mut self,
        source: &mut S,
        coordinator: &Coordinator,
    ) -> Result<Flushed, S::Connection>
    where
        S: ConnectionSource<Connection: FlushConnection<Binder = B>>,
    {
        if !coordinator.are_prepared().await {
            return Err(match coordinator.decision() {
                Decision::Unknown => FlushError::unsaid().into_unknown(),
                _ => FlushError::rolled_back(),
            });
        }
        let span = Span::new(self.rows.tables().len(), self.rows.len());
        let flush = self.flush_told(source, TransactionScope::Transaction);
        let flushed = span.over(flush).await;
        coordinator.decide(match &flushed {
            Ok(_) => Decision::Commit,
            Err(error) if error.is_commit_unknown() => Decision::Unknown,
            // An earlier COMMIT may have been carried out.
            Err(_) if self.unresolved.is_some() => Decision::Unknown,
            Err(_) => Decision::Abort,
        });
        flushed
    }

    /// Prepares the rows of a shard, and commits or rolls them back as the decision says. The span ends then.
    async fn take_part<S>(
        &mut self,
        source: &mut S,
        coordinator: &Coordinator,
    ) -> Result<Flushed, S::Connection>
    where
        S: ConnectionSource<Connection: FlushConnection<Binder = B>>,
    {
        let span = Span::new(self.rows.tables().len(), self.rows.len());
        span.over(self.prepared_part(source, coordinator)).await
    }

    async fn prepared_part<S>(
        &mut self,
        source: &mut S,
        coordinator: &Coordinator,
    ) -> Result<Flushed, S::Connection>
    where
        S: ConnectionSource<Connection: FlushConnection<Binder = B>>,
    {
        if let Some(part) = &self.part
            && let (Stage::Vanished, Some(gid)) = (&part.stage, part.gid())
        {
            coordinator.vote();
            return Err(FlushError::prepared_vanished(&gid));
        }
        let is_prepared =
            |it: &Self| matches!(&it.part, Some(part) if matches!(part.stage, Stage::Prepared(_)));
        if !is_prepared(self)
            && let Err(error) = self.flush_told(source, TransactionScope::Transaction).await
        {
            coordinator.decide(Decision::Abort);
            // No decision will ever commit what is perhaps prepared.
            let error = error.into_not_prepared();
            return Err(match self.roll_back_prepared(source).await {
                Ok(()) => error,
                Err(_) => error.with_prepared_left(),
            });
        }
        coordinator.vote();
        source.release();
        match coordinator.decided().await {
            Decision::Commit => self.commit_prepared(source).await,
            Decision::Abort | Decision::Open => Err(match self.roll_back_prepared(source).await {
                Ok(()) => FlushError::rolled_back(),
                Err(_) => FlushError::rolled_back().with_prepared_left(),
            }),
            Decision::Unknown => Err(FlushError::undecided()),
        }
    }

    /// Commits what is prepared, as the flush is decided.
    async fn commit_prepared<S>(&mut self, source: &mut S) -> Result<Flushed, S::Connection>
    where
        S: ConnectionSource<Connection: FlushConnection<Binder = B>>,
    {
        let (gid, marker, flushed) = match &self.part {
            Some(part) => match (&part.stage, part.gid()) {
                (Stage::Prepared(flushed), Some(gid)) => (gid, part.marker(), flushed.clone()),
                _ => return Err(FlushError::undecided()),
            },
            None => return Err(FlushError::undecided()),
        };
        let ended = self.end_prepared(source, &gid, true).await;
        let committed = match ended {
            Ok(Ended::Now) => Ok(()),
            // A recovery may have committed it, or an attempt whose answer was lost.
            Ok(Ended::Gone) => match self.is_marked(source, marker).await {
                Ok(true) => Ok(()),
                // If it was committed, its marker row may have been removed since.
                Ok(false) if may_be_removed(marker) => {
                    let removed = Some(NoProbe::MarkerRemoved);
                    Err(FlushError::unsaid().into_unknown().without_probe(removed))
                }
                Ok(false) => {
                    self.unresolved = None;
                    if let Some(part) = &mut self.part {
                        part.stage = Stage::Vanished;
                    }
                    Err(FlushError::prepared_vanished(&gid))
                }
                Err(error) => Err(error.into_unfinished(&gid)),
            },
            Err(error) => Err(error.into_unfinished(&gid)),
        };
        committed?;
        self.read_back(source).await;
        observe::committed(&flushed);
        self.clear();
        Ok(flushed)
    }

    /// Rolls back what may be prepared. What cannot be rolled back now is by the next flush, or by a recovery.
    async fn roll_back_prepared<S>(&mut self, source: &mut S) -> Result<(), S::Connection>
    where
        S: ConnectionSource<Connection: FlushConnection<Binder = B>>,
    {
        self.part_failed();
        self.end_leftovers(source).await
    }

    /// Rolls back what earlier flushes have left, which were not committed.
    pub(super) async fn end_leftovers<S>(&mut self, source: &mut S) -> Result<(), S::Connection>
    where
        S: ConnectionSource<Connection: FlushConnection<Binder = B>>,
    {
        while let Some(gid) = self.leftovers.last().cloned() {
            self.end_prepared(source, &gid, false).await?;
            self.leftovers.pop();
        }
        Ok(())
    }

    /// Ends a prepared transaction, in as many attempts as a flush has.
    async fn end_prepared<S>(
        &mut self,
        source: &mut S,
        gid: &str,
        commits: bool,
    ) -> Result<Ended, S::Connection>
    where
        S: ConnectionSource<Connection: FlushConnection<Binder = B>>,
    {
        let values = || no_values(&self.rows);
        end_prepared(source, gid, commits, self.retry, self.deadline, &values).await
    }

    /// Returns whether there is a marker row with this key.
    async fn is_marked<S>(&mut self, source: &mut S, marker: Uuid) -> Result<bool, S::Connection>
    where
        S: ConnectionSource<Connection: FlushConnection<Binder = B>>,
    {
        let engine = self.engine_for(source.engine())?;
        let values = || no_values(&self.rows);
        let asked = async {
            let (connection, _) = source.get(false).await?;
            let mut open = connection.begin(Begin::PLAIN).await?;
            let found = match lock_waits::bound(&mut open, &engine, lock_waits::IN_DOUBT, values)
                .await
            {
                Ok(own_waits) => {
                    let writer = Writer::of::<B>(&engine);
                    let found = is_committed(&mut open, writer, marker, &values).await;
                    let given_back = lock_waits::give_back(&mut open, own_waits.as_ref(), values);
                    given_back.await.and(found)
                }
                Err(error) => Err(error),
            };
            let _ = open.rollback(found.is_err()).await;
            found.map_err(FlushError::probe)
        };
        let deadline = Deadline::new(self.deadline);
        match deadline.bound(asked).await {
            Some(found) => found,
            None => {
                source.discard();
                Err(FlushError::timeout(self.deadline.unwrap_or_default()))
            }
        }
    }

    /// Fills the fields that the database has filled. They are committed, also if they cannot be read.
    async fn read_back<S>(&mut self, source: &mut S)
    where
        S: ConnectionSource<Connection: FlushConnection<Binder = B>>,
    {
        let Ok(engine) = self.engine_for(source.engine()) else {
            return;
        };
        let Ok(plan) = self.rows.plan(&engine) else {
            return;
        };
        if !reads(&self.rows, &plan) {
            return;
        }
        let asked = async {
            let (connection, _) = source.get(false).await.ok()?;
            let mut open = connection.begin(Begin::PLAIN).await.ok()?;
            let statements = statements_of(&self.rows, Writer::of::<B>(&engine));
            let read = read_committed(&self.rows, &mut open, &plan, &statements).await;
            let _ = open.rollback(read.is_err()).await;
            read.ok()
        };
        match Deadline::new(self.deadline).bound(asked).await {
            Some(Some(read)) => read.fill(),
            // Perhaps an answer is still due on it.
            Some(None) | None => source.discard(),
        }
    }

    /// Forgets the part of a flush that is not committed and will not be. What may be prepared is a leftover.
    pub(crate) fn part_failed(&mut self) {
        if let Some(part) = self.part.take() {
            self.leftovers.extend(part.prepared_gid());
            self.unresolved = None;
        }
    }

    /// Returns the markers that flushes write: each part of a two-phase commit has some.
    pub(super) fn markers_of(&self) -> Markers {
        match self.part {
            Some(_) => Markers::All,
            None => self.markers,
        }
    }
}

/// Refuses a server on which no transaction can be prepared, or found again, before rows are sent.
pub(super) async fn check_server<C: FlushConnection>(
    open: &mut C::Transaction<'_>,
    two_phase: TwoPhase,
    values: impl Fn() -> C::Binder,
) -> Result<(), C> {
    for query in two_phase.abilities() {
        let answer = open.read(&Statement::query(*query), values()).await;
        let answer = answer.map_err(|error| FlushError::not_listed(two_phase, error))?;
        if answer.first().is_some_and(|it| it.text == TwoPhase::NONE) {
            let (what, remedy) = match two_phase {
                TwoPhase::Xa => (
                    "this MariaDB server rolls back what a connection has prepared when it is closed",
                    "take MariaDB 10.5.2 or later, or leave `two_phase_commit` out",
                ),
                _ => (
                    "this PostgreSQL server prepares no transactions, as its `max_prepared_transactions` is 0",
                    "set it to the number of flushes that run at once, and restart the server, or leave \
                     `two_phase_commit` out",
                ),
            };
            return Err(FlushError::database(what, remedy));
        }
    }
    Ok(())
}

/// Prepares the transaction. The second value says whether the connection must not be used again.
pub(super) async fn prepare<T: FlushTransaction>(
    mut open: T,
    two_phase: TwoPhase,
    gid: &str,
    values: impl Fn() -> T::Binder,
) -> (std::result::Result<(), FlushError<T::Error>>, bool) {
    for sql in two_phase.prepare(gid) {
        if let Err(failed) = open.execute(&Statement::query(sql), values()).await {
            let is_lost = failed.error.failure == Failure::Lost;
            let rolled_back = roll_back(open, two_phase, Some(gid), is_lost, None, values).await;
            let is_spoilt = rolled_back.is_err();
            return (Err(FlushError::prepare(failed.error)), is_spoilt);
        }
    }
    // The library ends a transaction that the server no longer has. So it gets another one, as the server would warn.
    // MariaDB, and MySQL without `xa_detach_on_prepare`, begin none while the connection is there. So it is closed.
    let begun = open.execute(&Statement::query("BEGIN"), values()).await;
    let is_spoilt = match begun {
        Ok(_) => open.commit().await.is_err(),
        Err(_) => true,
    };
    (Ok(()), is_spoilt)
}

/// Rolls a transaction back, which may have begun in the engine's way for one that is to be prepared: then `ROLLBACK` does
/// not end it. If it fails, the connection must not be used again.
pub(super) async fn roll_back<T: FlushTransaction>(
    mut open: T,
    two_phase: TwoPhase,
    gid: Option<&str>,
    is_lost: bool,
    own_waits: Option<Statement>,
    values: impl Fn() -> T::Binder,
) -> std::result::Result<(), DriverError<T::Error>> {
    if !is_lost {
        // If this fails, the connection keeps the short waits of the flush. The rollback of the rows is more important.
        let _ = lock_waits::give_back(&mut open, own_waits.as_ref(), &values).await;
    }
    if let (false, Some([end, rollback])) = (is_lost, gid.and_then(|gid| two_phase.abandon(gid))) {
        // It has ended where it could not be prepared, or was a victim of a deadlock.
        let _ = open.execute(&Statement::query(end), values()).await;
        let rolled_back = open.execute(&Statement::query(rollback), values()).await;
        if let Err(failed) = rolled_back {
            let _ = open.rollback(true).await;
            return Err(failed.error);
        }
    }
    open.rollback(is_lost).await
}

/// Returns whether there is a prepared transaction with this id.
pub(super) async fn is_prepared<T: FlushTransaction>(
    open: &mut T,
    two_phase: TwoPhase,
    gid: &str,
    values: T::Binder,
) -> std::result::Result<bool, DriverError<T::Error>> {
    let query = Statement::query(two_phase.find(gid));
    let found = open.read(&query, values).await?;
    Ok(found.iter().any(|row| row.text == gid))
}

/// Finds out whether a marker row is committed, by inserting it and rolling back. A query may be answered by a standby that is
/// behind, and says then that there is none; what is inserted is compared where the row would be, and waits for whoever is
/// about to commit it. Bound the waits for locks before. The transaction is another one afterwards.
pub(crate) async fn is_committed<T: FlushTransaction>(
    open: &mut T,
    writer: Writer<'_>,
    marker: Uuid,
    values: impl Fn() -> T::Binder,
) -> std::result::Result<bool, DriverError<T::Error>> {
    let found = match marker::insert(open, writer, marker).await {
        Ok(_) => false,
        Err(error) if error.failure == Failure::Duplicate => true,
        Err(error) => return Err(error),
    };
    for sql in ["ROLLBACK", "BEGIN"] {
        let executed = open.execute(&Statement::query(sql), values()).await;
        executed.map_err(|failed| failed.error)?;
    }
    Ok(found)
}

/// Ends a prepared transaction, in as many attempts as these settings allow.
pub(crate) async fn end_prepared<S: ConnectionSource>(
    source: &mut S,
    gid: &str,
    commits: bool,
    retry: Retry,
    within: Option<Duration>,
    values: &(impl Fn() -> <S::Connection as FlushConnection>::Binder + Sync),
) -> Result<Ended, S::Connection> {
    let deadline = Deadline::new(within);
    let two_phase = source.engine().two_phase;
    let mut was_lost = false;
    for failures in 1.. {
        let attempt = end_once(source, gid, commits, was_lost, values);
        let error = match deadline.bound(attempt).await {
            Some(Ok(ended)) => return Ok(ended),
            Some(Err(error)) => error,
            None => {
                source.discard();
                return Err(FlushError::timeout(within.unwrap_or_default()));
            }
        };
        let is_lost = error.failure() == Failure::Lost;
        if is_lost {
            source.discard();
        }
        was_lost |= is_lost;
        let may_again = match error.failure() {
            Failure::Lost => source.may_reconnect(),
            Failure::Transient => true,
            Failure::Refused | Failure::Duplicate => false,
        };
        // What holds it for a moment is a connection of the flush's own. That is no failure.
        let is_held = two_phase.is_bound() && error.failure() == Failure::Transient;
        let more = || is_held.then(|| Retry::DEFAULT.delay(failures)).flatten();
        match retry.delay(failures).or_else(more) {
            Some(delay) if may_again && !deadline.is_over() => {
                source.release();
                source.pause(deadline.shorten(delay)).await;
            }
            _ => return Err(error),
        }
    }
    Err(FlushError::unsaid())
}

/// Refuses a connection inside a transaction of its user, which would be ended with what is prepared. It may have been
/// begun since the last flush.
pub(crate) async fn check_alone<C: FlushConnection>(connection: &mut C) -> Result<(), C> {
    match connection.check(TransactionScope::Transaction).await? {
        TransactionScope::Transaction => Ok(()),
        TransactionScope::Savepoint => Err(FlushError::state(
            "a transaction is open on this connection",
            "end it first, as prepared transactions are ended outside of any other",
        )),
    }
}

/// Ends a prepared transaction at one attempt.
async fn end_once<S: ConnectionSource>(
    source: &mut S,
    gid: &str,
    commits: bool,
    was_lost: bool,
    values: &(impl Fn() -> <S::Connection as FlushConnection>::Binder + Sync),
) -> Result<Ended, S::Connection> {
    let two_phase = source.engine().two_phase;
    let (connection, _) = source.get(was_lost).await?;
    check_alone(connection).await?;
    let mut open = connection.begin(Begin::PLAIN).await?;
    let ended = end_in(&mut open, two_phase, gid, commits, values).await;
    let is_lost = matches!(&ended, Err(error) if error.failure == Failure::Lost);
    let rolled_back = open.rollback(is_lost).await;
    if rolled_back.is_err() {
        source.discard();
    }
    ended.map_err(FlushError::begin)
}

/// A prepared transaction is ended outside of any other, and a library lends connections in transactions only. So that
/// one is ended, and there is another one for the library to end.
async fn end_in<T: FlushTransaction>(
    open: &mut T,
    two_phase: TwoPhase,
    gid: &str,
    commits: bool,
    values: &(impl Fn() -> T::Binder + Sync),
) -> std::result::Result<Ended, DriverError<T::Error>> {
    let statement = |sql: String| Statement::query(sql);
    let rollback = Statement::query("ROLLBACK");
    open.execute(&rollback, values())
        .await
        .map_err(|it| it.error)?;
    let ended = open
        .execute(&statement(two_phase.end(gid, commits)), values())
        .await;
    let error = match ended {
        Err(failed) if failed.error.failure == Failure::Lost => return Err(failed.error),
        Err(failed) => Some(failed.error),
        Ok(_) => None,
    };
    let begin = Statement::query("BEGIN");
    open.execute(&begin, values())
        .await
        .map_err(|it| it.error)?;
    let Some(error) = error else {
        return Ok(Ended::Now);
    };
    match is_prepared(open, two_phase, gid, values()).await? {
        // Another session may be ending it, or is closed and the server has not noticed. If it is a privilege that is missing,
        // that is told in the end.
        true => Err(DriverError {
            failure: Failure::Transient,
            ..error
        }),
        false => Ok(Ended::Gone),
    }
}
