//! The progress of a flush: the state that is kept while the steps of a [`Flush`] are carried out, and the state
//! that one flush leaves to the next.

use std::time::Duration;

use crate::{
    Action, Attempt, Chunk, Failure, Flush, FlushError, Flushed, Markers, NotBulk, Outcome,
    PendingRows, Plan, Progress, Retry, RowSink, Step, Table, Tally, Upserted,
    executor::Sent,
    flush_error::{NoProbe, Rest},
    marker::may_be_removed,
    observe,
};
use ordid_core::{key::KeyType as _, uuid::Uuid};

/// A COMMIT whose answer was not seen. A flush leaves it to the next flush of the same rows.
#[derive(Debug, Clone)]
pub struct UnresolvedCommit {
    /// The key of the flush's marker row.
    id: Uuid,
    /// What the flush wrote if the COMMIT was carried out.
    flushed: Flushed,
    /// Which flushes wrote a marker row then.
    markers: Markers,
    /// Whether the unit of work has changed since.
    pub(crate) has_changed: bool,
}

impl UnresolvedCommit {
    /// Returns the key of the flush's marker row, if it wrote one.
    pub(crate) const fn id(&self) -> Uuid {
        self.id
    }

    /// Makes the unresolved commit of an earlier run of the program, which may have written the rows of these
    /// tables.
    pub fn of_earlier_run(attempt: &Attempt, plan: &Plan, tables: &[Table]) -> Self {
        Self {
            id: attempt.id,
            flushed: Tally::of_all(plan, tables),
            // A journal takes no changes without one.
            markers: match attempt.is_marked {
                true => Markers::All,
                false => Markers::Changes,
            },
            has_changed: false,
        }
    }

    #[cfg(test)]
    pub(crate) fn made_long_ago(&mut self) {
        self.id = Uuid::nil();
    }
}

/// The progress of a flush. It does no I/O: the executor asks for the [`step`](Self::step), carries it out, and
/// reports how it ended.
#[derive(Debug)]
pub struct FlushRun<D> {
    plan: Plan,
    flush: Flush,
    tally: Tally,
    /// Whether the transaction is the flush's own, not the user's.
    is_own: bool,
    /// The key of the marker row, the same over all attempts.
    id: Uuid,
    markers: Markers,
    /// Whether somebody else may write rows with the same keys: the program asked for a marker row.
    has_shared_keys: bool,
    /// Why the last step failed that did, and for which rows.
    error: Option<(FlushError<D>, Option<Chunk>)>,
    /// What that means; of this attempt only, while one is under way.
    cause: Option<Failure>,
    /// What COMMIT failed with where that leaves its outcome open.
    lost_commit: Option<FlushError<D>>,
    /// Counts what an attempt has sent whose COMMIT the database has refused.
    refused_commit: Option<UnresolvedCommit>,
    knows_server: bool,
    /// Whether the marker row of the flush may have been removed, so that no probe finds out whether it was written.
    is_marker_lost: bool,
    /// Whether many rows that are updated or upserted may go through a temporary table.
    may_stage: bool,
    /// Whether rows may go by the bulk command: the server has not refused it.
    may_bulk: bool,
    /// Whether a probe has found the rows, of which some are still to be read.
    is_found: bool,
    /// Whether the catalog has to be asked before the next attempt.
    asks: bool,
    /// Why a flush that only inserts writes a marker row by itself.
    marked_for: Option<MarkedFor>,
    /// The key of the second marker row, which only one transaction of a two-phase commit can insert.
    fence: Option<Uuid>,
    /// Whether it prepares its transaction instead of committing it.
    prepares: bool,
    /// Which rows of a chunk were there when an upsert of it failed the last time.
    found: Option<(Chunk, Vec<bool>)>,
}

/// Why a flush writes a marker row by itself, with the table whose rows need it if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MarkedFor {
    /// The database would take the rows twice.
    RowsTakenTwice(&'static str),
    /// Somebody else may write rows with the same keys.
    SharedKeys(&'static str),
    /// The rows are a chunk of the unit of work, of any table.
    Chunk,
    /// The rows are those of one shard in a two-phase commit, of any table.
    TwoPhase,
}

/// Why a flush wrote nothing, or perhaps nothing.
#[derive(Debug)]
pub struct FlushFailure<D> {
    /// The plan of the flush.
    pub plan: Plan,
    /// Why nothing was written.
    pub error: FlushError<D>,
    /// The rows among which the one that failed can be found.
    rows: Option<Chunk>,
}

/// Returns the key of a marker row. In generic code, the generator would be compiled with each use of it.
pub(crate) fn new_id() -> Uuid {
    Uuid::generate()
}

impl<D> FlushRun<D> {
    /// Begins a flush in its own transaction. If an earlier flush left an unresolved commit, this one first
    /// probes for it.
    pub fn new(
        plan: Plan,
        retry: Retry,
        markers: Markers,
        unresolved: Option<&UnresolvedCommit>,
    ) -> Self {
        let (flush, id) = match unresolved {
            Some(unresolved) => (Flush::resumed(plan.clone()), unresolved.id),
            None => (Flush::new(plan.clone()), new_id()),
        };
        let run = Self::of(plan, flush.with_retry(retry), id, true);
        // A resumed flush writes marker rows as the older one did. If the older one wrote none, a marker row would
        // resolve nothing now.
        run.with_markers(unresolved.map_or(markers, |it| it.markers))
    }

    /// Begins a flush inside the user's transaction. It is never retried and never unresolved.
    pub fn inside(plan: Plan) -> Self {
        let flush = Flush::in_transaction(plan.clone());
        Self::of(plan, flush, Uuid::nil(), false)
    }

    fn of(plan: Plan, flush: Flush, id: Uuid, is_own: bool) -> Self {
        Self {
            tally: Tally::new(&plan),
            plan,
            flush,
            is_own,
            id,
            markers: Markers::default(),
            error: None,
            cause: None,
            lost_commit: None,
            refused_commit: None,
            knows_server: false,
            is_marker_lost: false,
            may_stage: is_own,
            may_bulk: true,
            is_found: false,
            asks: false,
            has_shared_keys: false,
            marked_for: None,
            fence: None,
            prepares: false,
            found: None,
        }
    }

    /// Takes the id of a journal's attempt, unless this run resumes an unresolved commit.
    #[must_use]
    pub fn with_attempt(mut self, attempt: &Attempt) -> Self {
        if !self.flush.is_unresolved() {
            self.id = attempt.id;
        }
        self
    }

    /// As [`Flush::with_record`] or [`Flush::without_record`].
    fn with_markers(mut self, markers: Markers) -> Self {
        self.markers = markers;
        self.flush = match markers {
            Markers::None => self.flush.without_record(),
            Markers::Changes => self.flush,
            Markers::All => self.flush.with_record(),
        };
        self
    }

    /// Says that somebody else may write rows with the same keys.
    #[must_use]
    pub(crate) fn with_shared_keys(mut self, has_shared_keys: bool) -> Self {
        self.has_shared_keys = has_shared_keys;
        self
    }

    pub(crate) const fn has_shared_keys(&self) -> bool {
        self.has_shared_keys
    }

    /// Makes the run ask the catalog whether the flush needs a marker row.
    #[must_use]
    pub(crate) fn which_asks(mut self) -> Self {
        self.asks = true;
        self
    }

    /// Returns whether the catalog has to be asked now. It is too late to ask while a COMMIT is unresolved: the marker
    /// row of the next attempt would say nothing about the older attempt.
    pub(crate) fn has_to_ask(&self) -> bool {
        self.asks && !self.flush.is_unresolved()
    }

    /// Accepts the catalog's answer. If no table is protected, the flush writes a marker row.
    pub(crate) fn answered<S: RowSink + 'static>(
        &mut self,
        is_protected: bool,
        rows: &PendingRows<S>,
    ) {
        self.asks = false;
        if !is_protected {
            let has_own_keys = |it: &Chunk| rows.table(it.table).has_own_keys();
            let first = self.plan.chunks().find(has_own_keys);
            self.marks(rows, first, MarkedFor::RowsTakenTwice);
        }
    }

    /// Says that a flush needs a marker row. While a commit is unresolved it is too late, as for
    /// [`has_to_ask`](Self::has_to_ask).
    #[must_use]
    pub(crate) fn which_marks<S: RowSink + 'static>(mut self, rows: &PendingRows<S>) -> Self {
        if !self.flush.records() && !self.flush.is_unresolved() {
            let first = self.plan.chunks().next();
            self.marks(rows, first, MarkedFor::SharedKeys);
        }
        self
    }

    fn marks<S: RowSink + 'static>(
        &mut self,
        rows: &PendingRows<S>,
        first: Option<Chunk>,
        reason: fn(&'static str) -> MarkedFor,
    ) {
        self.markers = Markers::All;
        self.flush.records_too();
        self.marked_for = first.map(|it| reason(rows.table(it.table).name()));
    }

    /// Returns why a flush that only inserts writes a marker row by itself.
    pub(crate) const fn marked_for(&self) -> Option<MarkedFor> {
        self.marked_for
    }

    /// Takes the key of the marker row of a chunk, unless this run resumes an unresolved commit, and how many rows of how
    /// many are committed by earlier chunks.
    #[must_use]
    pub(crate) fn of_chunk(mut self, id: Uuid, before: usize, total: usize) -> Self {
        if !self.flush.is_unresolved() {
            self.id = id;
        }
        self.marked_for = Some(MarkedFor::Chunk);
        self.tally.goes_on(before, total);
        self
    }

    /// Takes the keys of the marker rows of a part in a two-phase commit, unless this run resumes an unresolved commit,
    /// which has the same.
    #[must_use]
    pub(crate) fn of_part(mut self, id: Uuid, fence: Option<Uuid>, prepares: bool) -> Self {
        if !self.flush.is_unresolved() {
            self.id = id;
        }
        self.fence = fence;
        self.prepares = prepares;
        self.marked_for = Some(MarkedFor::TwoPhase);
        self
    }

    /// Returns the key of the marker row that comes after the first one, if there is one.
    pub(crate) const fn fence(&self) -> Option<Uuid> {
        self.fence
    }

    /// Says that somebody else has inserted the [fence](Self::fence), and the first marker row is not there.
    pub(crate) fn found_fence(&mut self) {
        self.flush.can_never_commit();
        self.error = Some((FlushError::recovered(), None));
    }

    /// Ends the attempt if the flush is to decide a two-phase commit and is too old for that. Returns whether it is.
    pub(crate) fn is_too_late(&mut self) -> bool {
        let is_too_late = self.fence.is_some() && may_be_removed(self.id);
        if is_too_late {
            // What an older attempt may have committed has a marker row that is soon removed.
            self.is_marker_lost = true;
            self.failed(FlushError::too_late(), None);
        }
        is_too_late
    }

    /// Does the same as [`Flush::with_reading`] for the flush of this run.
    #[must_use]
    pub fn with_reading(mut self) -> Self {
        self.flush = self.flush.with_reading();
        self
    }

    /// As [`Flush::on_one_connection`].
    #[must_use]
    pub fn on_one_connection(mut self) -> Self {
        self.flush = self.flush.on_one_connection();
        self
    }

    /// Returns what is flushed.
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the key of the marker row, the same over all attempts.
    pub const fn id(&self) -> Uuid {
        self.id
    }

    /// Returns whether the flush writes a marker row.
    pub const fn records(&self) -> bool {
        self.flush.records()
    }

    /// Returns whether rows are read before they are committed.
    pub const fn reads(&self) -> bool {
        self.flush.reads()
    }

    /// Returns whether the transaction is the flush's own, not the user's.
    pub const fn is_own(&self) -> bool {
        self.is_own
    }

    /// Returns what to do now.
    pub fn step(&self) -> Step {
        self.flush.step()
    }

    /// Returns the chunk after the one that is sent now.
    pub fn upcoming(&self) -> Option<Chunk> {
        self.flush.upcoming()
    }

    /// Returns how many rows that are sent now, or after so many chunks, follow each other in one table.
    pub(crate) fn rows_together(&self, ahead: usize) -> usize {
        self.flush.rows_together(ahead)
    }

    /// Returns whether the last step of this attempt that failed did so as the connection was lost.
    pub fn has_lost_connection(&self) -> bool {
        self.cause == Some(Failure::Lost)
    }

    /// Returns whether many rows may go through a temporary table: in a transaction of the flush's own, until that has
    /// failed.
    pub(crate) const fn may_stage(&self) -> bool {
        self.may_stage
    }

    /// Returns from how many rows on those of a chunk go through a temporary table, where that is otherwise `least`: a few
    /// do if this upsert by other columns than the key's has failed before. Its rows may be there although the database was
    /// asked for them, as it compares values as they are sent, and the column stores others: rounded ones, or `citext` in
    /// the place of a text.
    pub(crate) fn stages_from(
        &self,
        chunk: &Chunk,
        table: &Table,
        least: Option<usize>,
    ) -> Option<usize> {
        let has_failed = self.found.as_ref().is_some_and(|it| it.0.is_like(chunk));
        match chunk.action {
            Action::Upsert { set, .. }
                if has_failed && table.upserted_by(set) != table.key_positions() =>
            {
                least.map(|_| 1)
            }
            _ => least,
        }
    }

    /// Says that rows go through no temporary table any more.
    pub(crate) const fn stages_no_more(&mut self) {
        self.may_stage = false;
    }

    /// Returns whether the server has not refused the bulk command.
    pub(crate) const fn may_bulk(&self) -> bool {
        self.may_bulk
    }

    /// Says that the server does not have the bulk command.
    pub(crate) const fn bulks_no_more(&mut self) {
        self.may_bulk = false;
    }

    /// Begins anew while rows are sent, after the transaction was rolled back. That is no retry: it was the temporary table
    /// that failed, or the server does not have the bulk command.
    pub(crate) fn starts_over(&mut self) {
        self.flush.starts_over();
    }

    /// Says that an attempt begins.
    pub fn restart(&mut self) {
        self.tally.restart();
        self.cause = None;
    }

    /// Says that a probe begins.
    pub fn probes(&mut self) {
        self.cause = None;
    }

    /// Reports that the step was carried out.
    pub fn succeeded(&mut self) {
        self.flush.succeeded();
    }

    /// Reports that the step failed, for these rows.
    pub fn failed(&mut self, error: FlushError<D>, rows: Option<Chunk>) {
        self.note(&error);
        self.error = Some((error, rows));
    }

    /// Reports that there is no connection for the step.
    pub fn unconnected(&mut self, error: FlushError<D>) {
        match self.step() {
            Step::Probe => self.probed(Err(error)),
            // Without rows there is nothing that would need one.
            Step::Done { .. } => {}
            _ => self.failed(error, None),
        }
    }

    /// Reports that the step was carried out, or that it failed for these rows.
    pub fn done(&mut self, outcome: Result<(), FlushError<D>>, rows: Option<Chunk>) {
        match outcome {
            Ok(()) => self.succeeded(),
            Err(error) => self.failed(error, rows),
        }
    }

    /// Reports that the step cannot be carried out.
    pub fn give_up(&mut self) {
        self.flush.failed(Failure::Refused);
    }

    /// Ends the run, as its time is over.
    pub(crate) fn time_is_over(&mut self, within: Duration) {
        self.flush.time_is_over();
        if matches!(self.step(), Step::Done { outcome } if outcome != Outcome::Committed) {
            let cause = self.error.take().map(|(error, _)| error);
            let cause = cause.or_else(|| self.lost_commit.take());
            let error = match cause {
                Some(cause) => cause.into_timeout(within),
                None => FlushError::timeout(within),
            };
            self.error = Some((error, None));
        }
    }

    /// Reports that the transaction or the savepoint could not be rolled back.
    pub fn not_rolled_back(&mut self) {
        self.flush.failed(Failure::Lost);
        if let Some((error, _)) = &mut self.error {
            error.set_rest(match self.is_own {
                true => Rest::Open,
                false => Rest::Over,
            });
        }
    }

    /// Reports the answer of a probe, or its failure. If the rows were refused before, that error is kept, as
    /// it says more.
    pub fn probed(&mut self, found: Result<bool, FlushError<D>>) {
        match found {
            Ok(found) => self.flush.probed(found),
            Err(error) => {
                self.note(&error);
                self.error.get_or_insert((error, None));
            }
        }
    }

    /// Says that a probe has found the rows, whether or not what the database has filled can be read.
    pub(crate) fn found(&mut self) {
        self.is_found = true;
    }

    /// Returns whether a probe has found the rows.
    pub(crate) const fn is_found(&self) -> bool {
        self.is_found
    }

    /// Returns the outcome: rows that a probe has found are committed, also if they could not be read.
    pub(crate) const fn outcome(&self, outcome: Outcome) -> Outcome {
        match (outcome, self.is_found) {
            (Outcome::Unknown, true) => Outcome::Committed,
            (outcome, _) => outcome,
        }
    }

    /// Returns whether the outcome of a COMMIT is unknown so far.
    pub const fn is_unresolved(&self) -> bool {
        self.flush.is_unresolved()
    }

    /// Returns whether [`learn`](Self::learn) was called.
    pub const fn knows_server(&self) -> bool {
        self.knows_server
    }

    /// Takes what the server says of itself, which has to be known before rows are sent again: as
    /// [`Flush::locks_are_local`] and [`Flush::cannot_repeat`].
    pub fn learn(&mut self, has_local_locks: bool, may_repeat: bool) {
        self.knows_server = true;
        if has_local_locks {
            self.flush.locks_are_local();
        }
        if !may_repeat {
            self.is_marker_lost = self.records();
            self.flush.cannot_repeat();
        }
    }

    fn note(&mut self, error: &FlushError<D>) {
        let cause = error.failure();
        self.flush.failed(cause);
        self.cause = Some(cause);
    }

    /// Traces that another attempt follows after this time.
    pub fn waits(&self, delay: Duration) {
        observe::retried(self.cause, delay);
    }

    /// Counts a statement or a bulk command, up to rows of this chunk: as [`Tally::count`].
    pub fn count(
        &mut self,
        table: &'static str,
        chunk: &Chunk,
        rows: usize,
        bulk: usize,
        elapsed: Duration,
    ) {
        self.tally.count(table, chunk, rows, bulk, elapsed);
    }

    /// Counts a chunk that went by so many statements.
    pub fn count_all(
        &mut self,
        table: &'static str,
        chunk: &Chunk,
        statements: usize,
        elapsed: Duration,
    ) {
        self.count(table, chunk, chunk.rows.len(), 0, elapsed);
        self.tally
            .add_statements(chunk, statements.saturating_sub(1));
    }

    /// Adds the statements that read rows of a chunk to the counts.
    pub(crate) fn count_reads(&mut self, chunk: &Chunk, statements: usize) {
        self.tally.add_statements(chunk, statements);
    }

    /// Counts the rows of a chunk of upserts.
    pub(crate) fn upserted<S: RowSink + 'static>(
        &mut self,
        rows: &PendingRows<S>,
        chunk: &Chunk,
        sent: Sent,
        elapsed: Duration,
    ) {
        let name = rows.table(chunk.table).name();
        let parts = [
            (&sent.inserted, Upserted::Inserted),
            (&sent.others, sent.outcome),
        ];
        for (part, outcome) in parts {
            self.tally
                .upserted(name, chunk, outcome, rows.keys_of(part));
        }
        self.tally.count(name, chunk, 0, 0, elapsed);
        if !sent.inserted.rows.is_empty() {
            self.tally.not_bulk(&sent.inserted, NotBulk::Upserted);
        }
        self.tally
            .add_statements(chunk, sent.statements.saturating_sub(1));
    }

    /// Reports that an upsert failed, after these rows of the chunk were found. If another transaction may have inserted or
    /// deleted a row since, the flush is begun anew. It was none if the same rows were found the last time, too. From then
    /// on, rows that were not found come first.
    pub(crate) fn upsert_failed(
        &mut self,
        error: FlushError<D>,
        found: Option<Vec<bool>>,
        chunk: Chunk,
    ) {
        let mut found = found.map(|found| (chunk.clone(), found));
        let may_be_race = self.is_own && found.is_some() && found != self.found;
        if let Some((_, found)) = &mut found {
            found.sort_unstable();
        }
        self.found = found;
        let error = match may_be_race {
            true => {
                // The temporary table may have failed for the same reason.
                self.may_stage = true;
                error.into_race()
            }
            false => error,
        };
        self.failed(error, Some(chunk));
    }

    /// Says why rows of a chunk that was counted went by a statement: as [`Tally::not_bulk`].
    pub fn not_bulk(&mut self, chunk: &Chunk, reason: NotBulk) {
        self.tally.not_bulk(chunk, reason);
    }

    /// Tells the observer that a whole chunk was sent.
    pub fn report(
        &mut self,
        table: &'static str,
        chunk: &Chunk,
        observer: &mut Option<Box<dyn FnMut(Progress) + Send>>,
    ) {
        let progress = self.tally.progress(table, chunk);
        if let Some(observer) = observer {
            observer(progress);
        }
    }

    /// Reports that COMMIT cannot be sent.
    pub(crate) fn cannot_commit(&mut self, error: FlushError<D>) {
        let cause = error.failure();
        self.flush.cannot_commit(cause);
        self.cause = Some(cause);
        self.error = Some((error, None));
    }

    /// Says that COMMIT will be sent. From here on the commit is unresolved, also if the caller drops the flush
    /// before there is an answer.
    pub fn commits(&self, unresolved: &mut Option<UnresolvedCommit>) {
        if self.is_own {
            *unresolved = Some(UnresolvedCommit {
                id: self.id,
                flushed: self.tally.flushed(),
                markers: self.markers,
                has_changed: false,
            });
        }
    }

    /// Reports how COMMIT ended. The commit is resolved if the error says that nothing was committed.
    pub fn committed(
        &mut self,
        outcome: Result<(), FlushError<D>>,
        unresolved: &mut Option<UnresolvedCommit>,
    ) {
        let Err(error) = outcome else {
            return self.succeeded();
        };
        self.failed(error, None);
        if !self.is_own {
            return;
        }
        if self.has_lost_connection() {
            self.lost_commit = self.error.take().map(|(error, _)| error);
        } else if !self.flush.is_unresolved() {
            self.refused_commit = unresolved.take();
        }
    }

    /// Takes in that the marker row of an attempt is there whose COMMIT the database had refused: it is unresolved.
    pub(crate) fn recorded(&mut self, unresolved: &mut Option<UnresolvedCommit>) {
        if self.flush.is_unresolved() && unresolved.is_none() {
            *unresolved = self.refused_commit.take();
        }
    }

    /// Ends the run, and returns what was written. The caller clears the unit of work after a commit.
    ///
    /// # Errors
    ///
    /// Why nothing was written, or perhaps nothing.
    pub fn ended(
        self,
        outcome: Outcome,
        unresolved: &mut Option<UnresolvedCommit>,
    ) -> Result<Flushed, FlushFailure<D>> {
        let retries = self.flush.retries();
        match outcome {
            Outcome::Committed if self.is_own => {
                // An earlier attempt or an earlier flush may have written it.
                let unresolved = unresolved.take();
                let flushed = Flushed {
                    retries,
                    elapsed: self.tally.elapsed(),
                    ..unresolved
                        .map(|unresolved| unresolved.flushed)
                        .unwrap_or_default()
                };
                if !self.prepares {
                    observe::committed(&flushed);
                }
                return Ok(flushed);
            }
            Outcome::Committed => return Ok(self.tally.flushed()),
            Outcome::Unknown => observe::unknown(),
            Outcome::Nothing => {
                match self.tally.goes_on_behind_others() {
                    true => observe::some_chunks(),
                    false => observe::nothing(),
                }
                if self.is_own {
                    *unresolved = None;
                }
            }
        }
        let unsaid = || (FlushError::unsaid(), None);
        let (mut error, rows) = match outcome {
            // Why the rows were refused when they were sent again says more than the loss.
            Outcome::Unknown => {
                let error = match (self.error, self.lost_commit) {
                    (Some((error, _)), _) if error.is_timeout() => error,
                    (Some((error, _)), Some(lost)) if !error.refuses_the_rows() => lost,
                    (Some((error, _)), _) => error,
                    (None, lost) => lost.unwrap_or_else(FlushError::unsaid),
                };
                let error = error.into_unknown();
                let no_probe = match self.flush.can_probe() {
                    false => Some(NoProbe::WithoutRecord),
                    true => self.is_marker_lost.then_some(NoProbe::MarkerRemoved),
                };
                (error.without_probe(no_probe), None)
            }
            _ => self.error.unwrap_or_else(unsaid),
        };
        error.set_retries(retries);
        Err(FlushFailure {
            plan: self.plan,
            rows: rows.filter(|_| error.refuses_a_row()),
            error,
        })
    }
}

impl<D> FlushFailure<D> {
    /// Names the row if a statement was for one row alone. Otherwise returns the rows among which it can be
    /// found by sending them again; none if the library has named the row already.
    pub fn failed_rows<S: RowSink + 'static>(
        &mut self,
        pending_rows: &PendingRows<S>,
    ) -> Option<Chunk> {
        let rows = self.rows.clone()?;
        if self.error.key().is_some() {
            return None;
        }
        match self.error.row() {
            Some(row) => {
                self.set_row(pending_rows, rows, row);
                None
            }
            None => Some(rows),
        }
    }

    /// Names the row that was found, by its chunk and its position.
    pub fn set_row<S: RowSink + 'static>(
        &mut self,
        pending_rows: &PendingRows<S>,
        chunk: Chunk,
        row: usize,
    ) {
        let key = pending_rows.key_text(&chunk, row);
        self.error.set_row(&chunk, row, key);
        self.rows = Some(chunk);
    }

    /// Says so if what was not found are rows with a version. Returns the row, if it is known.
    pub(crate) fn stale_row<S: RowSink + 'static>(
        &mut self,
        pending_rows: &PendingRows<S>,
    ) -> Option<(Chunk, usize)> {
        let chunk = self.rows.clone()?;
        let table = pending_rows.table(chunk.table);
        let is_known = self.error.found_version().is_some();
        if !self.error.passed_a_row_over() || is_known || !table.checks_version(chunk.action) {
            return None;
        }
        let row = self.error.row();
        let read = row.and_then(|row| pending_rows.version_text(&chunk, row));
        self.error.set_stale(read);
        Some((chunk, row?))
    }
}

#[cfg(test)]
mod tests;
