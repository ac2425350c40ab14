//! Carries a flush out, step by step, over any library.

mod bound;
mod bulks;
mod chunks;
mod deadline;
mod locate;
mod probe;
mod protected;
mod read;
mod staged;
mod stale;
pub(crate) mod two_phase;
mod upsert;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use self::{
    bound::{bind, send},
    bulks::bulks,
    chunks::{ChunkOf, OneTransaction},
    deadline::Deadline,
    locate::{Search, ends_the_users, locate},
    probe::probe,
    protected::can_tell,
    read::{Read, read, reads},
    staged::{Staged, Staging, clear, takes_bulk},
    stale::found_version,
    two_phase::{check_server, prepare, roll_back},
    upsert::{Writes, upsert},
};
pub(crate) use self::{
    protected::{OF_PROCESS, ProtectedTables},
    upsert::Sent,
};
use crate::{
    Action, Attempt, DriverError, Failure, FlushError, FlushFailure, FlushRun, Flushed, Markers,
    Marks, NotBulk, Outcome, PendingRows, Plan, Step, UnresolvedCommit, UpsertStep, Work,
    flush_error::Rest,
    lock_waits, marker,
    observe::{self, Span},
    spi::{
        Begin, ConnectionSource, FlushConnection, FlushTransaction, RowBinder, Statement,
        TransactionScope,
    },
    text::{Sees, Statements, Writer},
    two_phase::{Part, Stage, TwoPhase},
};

type Run<C> = FlushRun<<C as FlushConnection>::Error>;
type Result<T, C> = std::result::Result<T, FlushError<<C as FlushConnection>::Error>>;

/// The state of a flush's connection.
#[derive(Debug, Default)]
struct Link {
    /// Whether the connection was checked: the flush can begin there.
    is_checked: bool,
    /// Whether the last connection was lost.
    was_lost: bool,
    /// Whether the flush begins a transaction or a savepoint there, once the connection was asked.
    scope: Option<TransactionScope>,
    /// Whether the server does not have the bulk command.
    refuses_bulk: bool,
}

impl<B: RowBinder> Work<B> {
    /// Writes all rows over connections from `source`, in the flush's own transaction or in a savepoint of the
    /// user's. After its own transaction is committed, the unit of work is empty.
    ///
    /// # Errors
    ///
    /// Why nothing was written, or perhaps nothing: see [`FlushError`].
    #[expect(
        clippy::manual_async_fn,
        reason = "it is found to be `Send` here, for any source: later, where the lifetimes in a source are \
                  erased, the compiler does not find it so"
    )]
    pub fn flush<S>(
        &mut self,
        mut source: S,
        wanted: TransactionScope,
    ) -> impl Future<Output = Result<Flushed, S::Connection>> + Send + use<'_, B, S>
    where
        S: ConnectionSource<Connection: FlushConnection<Binder = B>>,
    {
        async move {
            if let (Some(part), TransactionScope::Transaction) = (&self.part, wanted) {
                let (coordinator, decides) = (Arc::clone(&part.coordinator), part.decides());
                // Boxed, as other parts below are: the future of a plain flush would have room for all of them, and where
                // calls block it is on the thread's stack.
                let part = Box::pin(self.flush_part(&mut source, &coordinator, decides));
                return part.await;
            }
            let span = Span::new(self.rows.tables().len(), self.rows.len());
            let flush = async {
                let flushed = self.flush_told(&mut source, wanted).await;
                flushed.map_err(|error| match &self.chunked {
                    Some(chunked) => chunked.explain(error),
                    None => error,
                })
            };
            span.over(flush).await
        }
    }

    /// An error that comes before the question for an earlier COMMIT leaves its outcome unknown.
    async fn flush_told<S>(
        &mut self,
        source: &mut S,
        wanted: TransactionScope,
    ) -> Result<Flushed, S::Connection>
    where
        S: ConnectionSource<Connection: FlushConnection<Binder = B>>,
    {
        let flushed = self.flush_rows(source, wanted).await;
        flushed.map_err(|error| match wanted {
            TransactionScope::Transaction if self.is_in_doubt() => error.into_still_unknown(),
            _ => error,
        })
    }

    async fn flush_rows<S>(
        &mut self,
        source: &mut S,
        wanted: TransactionScope,
    ) -> Result<Flushed, S::Connection>
    where
        S: ConnectionSource<Connection: FlushConnection<Binder = B>>,
    {
        if wanted == TransactionScope::Transaction {
            Box::pin(self.end_leftovers(source)).await?;
        }
        let mut engine = self.engine_for(source.engine())?;
        let prepares = self.part.as_ref().is_some_and(|part| !part.decides());
        if prepares {
            // PostgreSQL prepares no transaction that has used one, nor does MySQL since 8.0.29; `CREATE` and `DROP` are
            // refused in one of XA.
            engine.temporary_tables = false;
        }
        let plan = self.planned(&engine, wanted)?;
        if engine.splits_by_key {
            let rising = self.rows.tables().into_iter();
            let rising = rising.filter(|it| it.rises && it.rows > 0);
            rising.for_each(|it| observe::hot_spot(it.name, &engine));
        }
        let writer = Writer::of::<B>(&engine);
        self.check_size(&plan, &engine, wanted)?;
        if let (Some(limits), TransactionScope::Transaction) = (self.limits, wanted) {
            let flushed = self.flush_chunks(source, &plan, limits.on(&engine), writer);
            return Box::pin(flushed).await;
        }
        self.check_whole(&plan)?;
        let marks = self.marks(writer, &plan, wanted);
        if wanted == TransactionScope::Transaction && self.markers == Markers::None {
            self.keeper
                .check_markers(needs_marker(&self.rows, writer, &plan))?;
        }
        // A journal that has rows in doubt refuses rows that were added since: its own error says how to get the others back.
        if wanted == TransactionScope::Transaction && !self.keeper.is_in_doubt() {
            self.check_unchanged()?;
        }
        // Before a connection is waited for: whatever ends the process meanwhile leaves the rows in the journal.
        let unresolved = self.unresolved.as_ref().map(UnresolvedCommit::id);
        let attempt = match wanted {
            TransactionScope::Transaction => self.keeper.begin(&self.rows, marks, unresolved)?,
            TransactionScope::Savepoint => None,
        };
        // In the user's transaction nothing can be asked first.
        if wanted == TransactionScope::Savepoint {
            self.check_out_of_doubt()?;
        }
        let deadline = match wanted {
            TransactionScope::Transaction => Deadline::new(self.deadline),
            TransactionScope::Savepoint => Deadline::new(None),
        };
        let transaction = OneTransaction {
            plan,
            wanted,
            marks,
            attempt,
            chunk: None,
        };
        let mut link = Link::default();
        let flushed = Box::pin(self.flush_once(source, transaction, writer, deadline, &mut link));
        let flushed = flushed.await?;
        match &mut self.part {
            Some(part) if prepares => part.stage = Stage::Prepared(flushed.clone()),
            _ if wanted == TransactionScope::Transaction => self.clear(),
            _ => {}
        }
        Ok(flushed)
    }

    /// Writes the rows of one transaction.
    async fn flush_once<S>(
        &mut self,
        source: &mut S,
        transaction: OneTransaction,
        writer: Writer<'_>,
        deadline: Deadline,
        link: &mut Link,
    ) -> Result<Flushed, S::Connection>
    where
        S: ConnectionSource<Connection: FlushConnection<Binder = B>>,
    {
        let OneTransaction {
            plan,
            wanted,
            marks,
            attempt,
            chunk,
        } = transaction;
        let was_in_doubt = attempt.as_ref().is_some_and(|it| it.in_doubt);
        // The chunk before has asked the same connection.
        let mut scope = link.scope.unwrap_or(wanted);
        let mut unconnected = None;
        if !plan.is_empty() {
            // If there is no connection, that was the first attempt.
            let connected = connect(&self.rows, source, &mut scope, link);
            let connected = deadline.bound(connected).await;
            match connected.map(|it| it.map(drop)) {
                Some(Ok(())) => {}
                // The flush ends where it begins.
                None => source.discard(),
                Some(Err(error)) if error.is_final() => {
                    self.not_begun(was_in_doubt);
                    return Err(error);
                }
                Some(Err(error)) => unconnected = Some(error),
            }
        }
        link.scope = Some(scope);
        if scope == TransactionScope::Savepoint && !writer.engine.savepoints && !plan.is_empty() {
            self.not_begun(was_in_doubt);
            return Err(FlushError::state(
                format!(
                    "{} has no savepoints, so a flush inside a transaction cannot be undone by itself (see {})",
                    writer.engine.name, writer.engine.guide
                ),
                "flush in a transaction of its own, by `flush`",
            ));
        }
        if self.part.is_some() && scope == TransactionScope::Savepoint {
            self.not_begun(was_in_doubt);
            return Err(FlushError::state(
                "the transaction of a test is open on this connection",
                "leave `two_phase_commit` out, or test over connections without one",
            ));
        }
        // MariaDB ends what is prepared over the connection that has prepared it, or once that is closed, which is not ours.
        let takes_part = self.part.as_ref().is_some_and(|part| !part.decides());
        if takes_part && writer.engine.two_phase.is_bound() && !source.may_reconnect() {
            self.not_begun(was_in_doubt);
            return Err(FlushError::state(
                "a transaction that is prepared by XA is ended over another connection, and the flush has only this one",
                "let it make connections, or take them from a pool, as by `flush_with`",
            ));
        }
        let mut run = match scope {
            TransactionScope::Transaction => {
                let run = self.begun::<S::Connection>(plan, attempt.as_ref(), chunk);
                match marks {
                    Marks::NotKnownYet => run.which_asks(),
                    Marks::Yes => run.which_marks(&self.rows),
                    Marks::No => run,
                }
            }
            TransactionScope::Savepoint => FlushRun::inside(plan),
        };
        // The flush does not learn whether the user's transaction is committed, so it reads nothing inside it.
        if wanted == TransactionScope::Transaction && reads(&self.rows, run.plan()) {
            run = run.with_reading();
        }
        if !source.may_reconnect() {
            run = run.on_one_connection();
        }
        if link.refuses_bulk {
            run.bulks_no_more();
        }
        if let Some(error) = unconnected {
            link.was_lost = error.is_connection_lost();
            run.unconnected(error);
        }
        let outcome = loop {
            deadline.check(&mut run);
            match run.step() {
                Step::Done { outcome } => break run.outcome(outcome),
                Step::Sleep(delay) => {
                    source.release();
                    run.waits(delay);
                    source.pause(deadline.shorten(delay)).await;
                    run.succeeded();
                }
                step => {
                    let going = async {
                        let connected = connect(&self.rows, source, &mut scope, link).await;
                        let connection = match connected {
                            Ok(connection) => connection,
                            Err(error) => {
                                link.was_lost |= error.is_connection_lost();
                                run.unconnected(error);
                                return;
                            }
                        };
                        let is_spoilt = match step {
                            Step::Probe => {
                                let gid = self.part.as_ref().and_then(Part::gid);
                                let gid = gid.as_deref();
                                let within = self.lock_waits::<S::Connection>(deadline, true);
                                probe(
                                    &self.rows,
                                    self.protected,
                                    connection,
                                    writer,
                                    gid,
                                    within,
                                    &mut run,
                                )
                                .await
                            }
                            _ => {
                                self.attempt(connection, scope, writer, deadline, &mut run)
                                    .await
                            }
                        };
                        link.was_lost = run.has_lost_connection();
                        if link.was_lost || is_spoilt || !connection.is_usable() {
                            source.discard();
                        }
                    };
                    if deadline.bound(going).await.is_none() {
                        // An answer is still under way there.
                        source.discard();
                        deadline.end(&mut run);
                    }
                }
            }
        };
        link.refuses_bulk = !run.may_bulk();
        // Inside the transaction of a test, a flush gets a savepoint instead of its own transaction.
        if run.is_own() || (wanted == TransactionScope::Transaction && !was_in_doubt) {
            self.keeper.ended(outcome);
        }
        let failure = match run.ended(outcome, &mut self.unresolved) {
            Ok(flushed) => return Ok(flushed),
            Err(failure) => failure,
        };
        let within = self.lock_waits::<S::Connection>(deadline, self.unresolved.is_some());
        let mut failure = failure;
        let rows = &mut self.rows;
        let locating = locate_row(rows, source, scope, writer, link, within, &mut failure);
        if deadline.bound(locating).await.is_none() {
            source.discard();
        }
        Err(failure.error)
    }

    /// Says that an attempt ends before anything is sent.
    fn not_begun(&mut self, was_in_doubt: bool) {
        if !was_in_doubt {
            self.keeper.ended(Outcome::Nothing);
        }
    }

    /// Returns whether a flush writes a marker row if it begins its transaction itself.
    fn marks(&self, writer: Writer<'_>, plan: &Plan, wanted: TransactionScope) -> Marks {
        match self.markers_of() {
            _ if wanted == TransactionScope::Savepoint => Marks::No,
            Markers::None => Marks::No,
            Markers::All => Marks::Yes,
            Markers::Changes if needs_marker(&self.rows, writer, plan) => Marks::Yes,
            Markers::Changes if self.protected.has_to_ask(&self.rows, writer, plan) => {
                Marks::NotKnownYet
            }
            Markers::Changes => Marks::No,
        }
    }

    /// Begins a flush in a transaction of its own, or resumes one whose COMMIT is unresolved.
    fn begun<C: FlushConnection>(
        &mut self,
        plan: Plan,
        attempt: Option<&Attempt>,
        chunk: Option<ChunkOf>,
    ) -> Run<C> {
        if let Some(attempt) = attempt
            && attempt.in_doubt
        {
            let tables = self.rows.tables();
            self.unresolved
                .get_or_insert_with(|| UnresolvedCommit::of_earlier_run(attempt, &plan, &tables));
        }
        let markers = match chunk {
            Some(_) => Markers::All,
            None => self.markers_of(),
        };
        let run = FlushRun::new(plan, self.retry, markers, self.unresolved.as_ref())
            .with_shared_keys(self.markers == Markers::All);
        let run = match attempt {
            Some(attempt) => run.with_attempt(attempt),
            None => run,
        };
        match chunk {
            Some(chunk) => run.of_chunk(chunk.marker, chunk.before, chunk.total),
            None => match &self.part {
                Some(part) => run.of_part(part.marker(), part.fence(), !part.decides()),
                None => run,
            },
        }
    }

    /// Returns how long the statements of a transaction may wait for locks; `None` if they wait as the session is set.
    fn lock_waits<C: FlushConnection>(
        &self,
        deadline: Deadline,
        is_in_doubt: bool,
    ) -> Option<Duration> {
        // Two flushes that wait for each other on different shards are a deadlock that no server sees.
        lock_waits::limit(
            is_in_doubt || self.part.is_some(),
            deadline.left(),
            C::BLOCKS,
        )
    }

    /// Carries out the steps of one transaction. Returns whether the connection must not be used again.
    async fn attempt<C>(
        &mut self,
        connection: &mut C,
        scope: TransactionScope,
        writer: Writer<'_>,
        deadline: Deadline,
        run: &mut Run<C>,
    ) -> bool
    where
        C: FlushConnection<Binder = B>,
    {
        run.restart();
        if run.has_to_ask() {
            let asked = self.protected;
            let answer = asked.ask(&self.rows, connection, writer, run.plan()).await;
            match answer {
                Ok(is_protected) => {
                    if let Err(error) = self.keeper.decided(!is_protected) {
                        run.failed(error.into(), None);
                        return false;
                    }
                    run.answered(is_protected, &self.rows);
                }
                Err((error, is_spoilt)) => {
                    run.failed(error, None);
                    return is_spoilt;
                }
            }
        }
        let (mut bulks, mut ways) = bulks(&self.rows, connection, scope, writer.engine, run).await;
        let (two_phase, gid) = (
            writer.engine.two_phase,
            self.part.as_ref().and_then(Part::gid),
        );
        let gid = gid.as_deref();
        let start = gid.and_then(|gid| two_phase.begin(gid));
        let usual = Begin::of(scope, writer.engine);
        let begin = Begin {
            statement: start.as_deref().or(usual.statement),
            defer: writer.engine.defer.filter(|_| run.plan().defers()),
            uses_bulk: bulks.iter().any(Option::is_some),
            ..usual
        };
        let mut transaction = match connection.begin(begin).await {
            Ok(transaction) => {
                run.succeeded();
                Some(transaction)
            }
            Err(mut error) => {
                if ends_the_users(scope, writer.engine, error.failure()) {
                    error.set_rest(Rest::Over);
                }
                run.failed(error, None);
                return false;
            }
        };
        let mut own_waits = None;
        let within = self.lock_waits::<C>(deadline, run.is_unresolved());
        if let (Some(open), Some(within), TransactionScope::Transaction) =
            (&mut transaction, within, scope)
        {
            let values = || no_values(&self.rows);
            match lock_waits::bound(open, writer.engine, within, values).await {
                Ok(own) => own_waits = own,
                // The attempt is rolled back, as after a statement of the flush.
                Err(error) => run.failed(FlushError::begin(error), None),
            }
        }
        let durable = two_phase.durable();
        if let (Some(open), Some(_), Some(sql)) = (&mut transaction, run.fence(), durable)
            && !matches!(run.step(), Step::Rollback)
        {
            let values = no_values(&self.rows);
            if let Err(failed) = open.execute(&Statement::query(sql), values).await {
                run.failed(FlushError::begin(failed.error), None);
            }
        }
        if let (Some(open), Some(_)) = (&mut transaction, gid)
            && !matches!(run.step(), Step::Rollback)
            && let Err(error) = check_server::<C>(open, two_phase, || no_values(&self.rows)).await
        {
            run.failed(error, None);
        }
        let mut is_spoilt = false;
        let mut statements = statements_of(&self.rows, writer);
        let (mut staging, mut writes) = (Staging::default(), Writes::default());
        let mut bound = None;
        let mut values = Read::default();
        loop {
            if matches!(run.step(), Step::Send(_)) && deadline.check(run) {
                let values = || no_values(&self.rows);
                let rolled_back = match transaction {
                    Some(open) => roll_back(open, two_phase, gid, false, own_waits, values).await,
                    None => Ok(()),
                };
                if rolled_back.is_err() {
                    run.not_rolled_back();
                }
                return rolled_back.is_err();
            }
            match (run.step(), &mut transaction) {
                (Step::Record, Some(_)) if run.is_too_late() => {}
                (Step::Record, Some(open)) => {
                    let mut kept = marker::insert(open, writer, run.id()).await;
                    let mut is_fenced = false;
                    if let (Ok(true), Some(fence)) = (&kept, run.fence()) {
                        kept = marker::insert(open, writer, fence).await;
                        is_fenced =
                            matches!(&kept, Err(error) if error.failure == Failure::Duplicate);
                    }
                    let marked_for = run.marked_for();
                    let written = match kept {
                        Ok(true) => Ok(()),
                        Ok(false) => Err(FlushError::marker_left_out(C::ADAPTER)),
                        Err(_) if is_fenced => Err(FlushError::recovered()),
                        Err(error) => Err(FlushError::record(C::ADAPTER, writer.engine, error)
                            .needed_by(marked_for)),
                    };
                    run.done(written, None);
                    run.recorded(&mut self.unresolved);
                }
                (Step::Send(chunk), Some(open)) => {
                    let not_bulk =
                        ways.not_bulk(chunk.table, chunk.action, || run.rows_together(0));
                    let bulk = bulks.get_mut(chunk.table).and_then(Option::as_mut);
                    if let (None, Some(bulk)) = (not_bulk, bulk) {
                        let sent = self.send_bulk::<C>(open, bulk, &mut statements, run).await;
                        if sent == Err(NotBulk::Refused) {
                            let values = || no_values(&self.rows);
                            return start_over::<C>(
                                transaction.take(),
                                two_phase,
                                gid,
                                own_waits,
                                values,
                                run,
                            )
                            .await;
                        }
                        ways.0[chunk.table] = sent.map(|()| C::MIN_BULK_ROWS_AGAIN);
                        continue;
                    }
                    if scope == TransactionScope::Transaction {
                        let together = || run.rows_together(0);
                        let asked = writes.ask(&self.rows, open, &chunk, &statements, together);
                        if let Err(error) = asked.await {
                            run.failed(error, Some(chunk));
                            continue;
                        }
                    }
                    let planned = chunk;
                    let written = writes.of(&self.rows, &planned, &statements);
                    let chunk = written.unwrap_or_else(|| planned.clone());
                    let least = writer.engine.stages_from().filter(|_| run.may_stage());
                    let least_now = run.stages_from(&chunk, statements.table(chunk.table), least);
                    if staging.may_take(&chunk, least_now, || run.rows_together(0)) {
                        let (rows, observer) = (&mut self.rows, &mut self.observer);
                        let takes_bulk =
                            takes_bulk::<C>(statements.table(chunk.table), chunk.action);
                        let bulk = bulks.get_mut(chunk.table).and_then(Option::as_mut);
                        let bulk = bulk.filter(|_| takes_bulk);
                        let written = &mut statements;
                        let sent = staging.send(rows, open, bulk, run, deadline, observer, written);
                        match sent.await {
                            Staged::Not => {}
                            Staged::Sent => continue,
                            Staged::Stopped => {
                                clear(&self.rows, open, writer).await;
                                continue;
                            }
                            Staged::Failed(error, chunk) => {
                                let failure = error.failure();
                                if failure != Failure::Lost {
                                    clear(&self.rows, open, writer).await;
                                }
                                if matches!(failure, Failure::Transient | Failure::Lost) {
                                    run.failed(error, Some(chunk));
                                    continue;
                                }
                                run.stages_no_more();
                                let values = || no_values(&self.rows);
                                return start_over::<C>(
                                    transaction.take(),
                                    two_phase,
                                    gid,
                                    own_waits,
                                    values,
                                    run,
                                )
                                .await;
                            }
                        }
                    }
                    let started = Instant::now();
                    if let Action::Upsert {
                        step: UpsertStep::Find,
                        ..
                    } = chunk.action
                    {
                        let sent = upsert(&mut self.rows, open, &chunk, &mut statements);
                        match sent.await {
                            Ok(sent) => {
                                run.upserted(&self.rows, &chunk, sent, started.elapsed());
                                let name = self.rows.table(chunk.table).name();
                                run.report(name, &chunk, &mut self.observer);
                                run.succeeded();
                            }
                            Err((error, found)) => run.upsert_failed(error, found, chunk),
                        }
                        continue;
                    }
                    let now = match bound.take() {
                        Some(bound) => bound,
                        None => bind(&self.rows, &chunk, &mut statements),
                    };
                    // While the database works on this chunk, the next one is bound.
                    let sent = send(&self.rows, open, now, &mut statements, |statements| {
                        let next = run.upcoming().map(|next| {
                            let written = writes.of(&self.rows, &next, statements);
                            written.unwrap_or(next)
                        });
                        let next = next.filter(|next| {
                            let asks = next.action.asks();
                            if asks || staging.may_take(next, least, || run.rows_together(1)) {
                                return false;
                            }
                            let together = || run.rows_together(1);
                            ways.not_bulk(next.table, next.action, together).is_some()
                        });
                        bound = next.map(|next| bind(&self.rows, &next, statements));
                    });
                    let sent = sent.await;
                    if let Ok(count) = sent {
                        let name = self.rows.table(chunk.table).name();
                        run.count_all(name, &chunk, count, started.elapsed());
                        if let Some(reason) = not_bulk {
                            run.not_bulk(&chunk, reason);
                        }
                        run.report(name, &chunk, &mut self.observer);
                    }
                    run.done(sent.map(drop), Some(planned));
                }
                (Step::Read, Some(open)) => {
                    match read(&self.rows, open, run.plan(), &statements, Sees::Own).await {
                        Ok(read) => {
                            values = read;
                            values.count(run);
                            run.succeeded();
                        }
                        Err(error) => run.failed(error, None),
                    }
                }
                (Step::Commit, open) => match open.take() {
                    Some(mut ready) => {
                        let values_of_none = || no_values(&self.rows);
                        let own = own_waits.as_ref();
                        let given_back = lock_waits::give_back(&mut ready, own, values_of_none);
                        if let Err(error) = given_back.await {
                            is_spoilt = true;
                            run.cannot_commit(match gid {
                                Some(_) => FlushError::prepare(error),
                                None => FlushError::commit(error),
                            });
                            *open = Some(ready);
                            continue;
                        }
                        run.commits(&mut self.unresolved);
                        if let (Some(gid), Some(part)) = (gid, &mut self.part) {
                            part.stage = Stage::Sent;
                            let values = || no_values(&self.rows);
                            let prepared = prepare(ready, two_phase, gid, values).await;
                            is_spoilt |= prepared.1;
                            run.committed(prepared.0, &mut self.unresolved);
                            continue;
                        }
                        let committed = ready.commit().await.map_err(|error| {
                            let error = match run.is_own() {
                                true => writer.engine.of_commit(error),
                                false => error,
                            };
                            let is_over = ends_the_users(scope, writer.engine, error.failure);
                            let mut error = match run.is_own() {
                                true => FlushError::commit(error),
                                false => FlushError::release(error),
                            };
                            if is_over {
                                error.set_rest(Rest::Over);
                            }
                            error
                        });
                        if committed.is_ok() {
                            values.fill();
                            values = Read::default();
                        }
                        run.committed(committed, &mut self.unresolved);
                    }
                    None => run.give_up(),
                },
                (Step::Rollback, open) => {
                    let is_lost = run.has_lost_connection();
                    let values = || no_values(&self.rows);
                    let rolled_back = match open.take() {
                        // Its own failure says no more: the server drops what is not committed.
                        Some(open) => {
                            let own = own_waits.take();
                            roll_back(open, two_phase, gid, is_lost, own, values).await
                        }
                        None => Ok(()),
                    };
                    let is_open = rolled_back.is_err();
                    match is_open {
                        true => run.not_rolled_back(),
                        false => run.succeeded(),
                    }
                    return is_open || is_spoilt;
                }
                _ => return is_spoilt,
            }
        }
    }
}

/// Rolls back an attempt, so that the next one sends the rows in another way. Returns whether the connection must not be
/// used again.
async fn start_over<C: FlushConnection>(
    transaction: Option<C::Transaction<'_>>,
    two_phase: TwoPhase,
    gid: Option<&str>,
    own_waits: Option<Statement>,
    values: impl Fn() -> C::Binder,
    run: &mut Run<C>,
) -> bool {
    let rolled_back = match transaction {
        Some(open) => roll_back(open, two_phase, gid, false, own_waits, values).await,
        None => Ok(()),
    };
    match rolled_back {
        Ok(()) => {
            run.starts_over();
            false
        }
        Err(error) => {
            // The other way was not tried.
            let error = DriverError {
                failure: Failure::Lost,
                ..error
            };
            run.failed(FlushError::begin(error), None);
            run.not_rolled_back();
            true
        }
    }
}

/// Returns whether only a marker row can tell that a flush was committed.
fn needs_marker<B: RowBinder>(rows: &PendingRows<B>, writer: Writer<'_>, plan: &Plan) -> bool {
    !plan.only_inserts() || !(plan.is_empty() || can_tell(rows, writer, plan))
}

/// Returns the values of a query without parameters.
fn no_values<B: RowBinder>(rows: &PendingRows<B>) -> B {
    B::with_room(rows.entity(0), 0, 0)
}

/// Returns the statements of a flush of these rows, none of which is written yet.
pub(crate) fn statements_of<'a, B: RowBinder>(
    rows: &PendingRows<B>,
    writer: Writer<'a>,
) -> Statements<'a> {
    let tables = rows.tables().into_iter().enumerate();
    let tables = tables.map(|(number, table)| {
        let names = B::names(rows.entity(number), &table, writer.engine);
        (table, names)
    });
    Statements::new(writer, tables.collect())
}

/// Finds the row that an error is about.
async fn locate_row<B, S>(
    rows: &mut PendingRows<B>,
    source: &mut S,
    mut scope: TransactionScope,
    writer: Writer<'_>,
    link: &mut Link,
    within: Option<Duration>,
    failure: &mut FlushFailure<<S::Connection as FlushConnection>::Error>,
) where
    B: RowBinder,
    S: ConnectionSource<Connection: FlushConnection<Binder = B>>,
{
    let failed = failure.failed_rows(rows);
    let is_known = failure.stale_row(rows).is_none() && failed.is_none();
    // Without the user's transaction, each statement of the search would be committed by itself.
    let is_over = failure.error.is_transaction_over();
    if is_known || is_over || (link.was_lost && !source.may_reconnect()) {
        return;
    }
    let Ok(connection) = connect(rows, source, &mut scope, link).await else {
        return;
    };
    let mut search = Search::within(scope);
    if let Some(failed) = failed {
        let found = locate(
            rows,
            connection,
            writer,
            within,
            &failure.plan,
            &failed,
            &mut search,
        );
        let found = found.await;
        if let Some((chunk, row)) = found {
            failure.set_row(rows, chunk, row);
            failure.error.set_no_race();
        }
    }
    if !search.is_spoilt
        && search.rest == Rest::None
        && let Some((chunk, row)) = failure.stale_row(rows)
    {
        let version = found_version(rows, connection, writer, &chunk, row, &mut search).await;
        failure.error.set_found_version(version);
    }
    if search.rest != Rest::None {
        failure.error.set_rest(search.rest);
    }
    if search.is_spoilt {
        source.discard();
    }
}

/// Returns a connection on which the flush can begin.
async fn connect<'s, B: RowBinder, S>(
    rows: &PendingRows<B>,
    source: &'s mut S,
    scope: &mut TransactionScope,
    link: &mut Link,
) -> Result<&'s mut S::Connection, S::Connection>
where
    S: ConnectionSource<Connection: FlushConnection<Binder = B>>,
{
    let (connection, is_new) = source.get(link.was_lost).await?;
    if is_new || !link.is_checked {
        link.is_checked = false;
        *scope = connection.check(*scope).await?;
        connection.prepare_for(rows);
        link.is_checked = true;
        link.was_lost = false;
    }
    Ok(connection)
}

#[cfg(test)]
mod tests;
