//! What to do next: the flush as a state machine.
//!
//! ```text
//! Begin -> Record? -> Send* -> Read? -> Commit -> Done(Committed)
//!   |         |         |         |       |
//!   |         +------ failed -----+-------+--> Rollback --> Done(Nothing)       refused
//!   |                                     |        |
//!   +-- failed -------------------> Sleep <--------+                            transient, or lost
//!                                     |   |
//!            Begin <------------------+   +--------> Probe                      unresolved
//!                                                    | found  -> Done(Committed)
//!                                                    | absent -> Begin, Sleep or Done(Unknown)
//! ```
//!
//! # Unresolved commits
//!
//! Once the answer to a COMMIT is lost, the flush is unresolved: its rows are in the database, or they come later, as
//! the server may not have read the COMMIT yet, or they never come. Three observations resolve it.
//!
//! - A probe finds the rows, or the marker row: they are committed. The executor makes sure that a probe reads
//!   committed data only.
//! - Another attempt sends the same rows and its COMMIT succeeds. Unique keys allow that once, so the older
//!   transaction wrote nothing. A flush whose keys are not unique by themselves is not sent again, unless it writes a
//!   marker row: see [`Flush::cannot_repeat`].
//! - Another attempt inserts the marker row ([`Step::Record`]), whose key all attempts share. The database makes it wait
//!   for the end of an older transaction that holds the key, so the older transaction wrote nothing. This needs locks
//!   that all servers share: see [`Flush::locks_are_local`].
//!
//! Nothing else resolves it. An empty probe may have asked a replica that is behind, or may not be allowed to see the
//! row. A duplicate may be a row of someone else. A COMMIT that the database refuses may have been refused because the
//! older transaction was committed, as where keys are compared at COMMIT. The flush ends as
//! [`Unknown`](Outcome::Unknown) then, and the next flush of the same rows asks again. `flush/model.rs` searches every
//! order of such events for an outcome that is not true.
//!
//! Updates and deletes need no free key, so a flush that has some writes a marker row, unless
//! [`Flush::without_record`] says that it cannot: then nothing resolves its COMMIT, and it ends as
//! [`Unknown`](Outcome::Unknown) as soon as the answer is lost. A flush that only inserts writes a marker row if
//! [`Flush::with_record`] asks for it. Every attempt has to write it, from the first one on: a later marker row says
//! nothing about an older transaction that has none.

use std::time::Duration;

use crate::{Chunk, Plan, Retry};

/// The next thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Open the transaction, or a savepoint in the user's. After [`Failure::Lost`], do it on another
    /// connection.
    Begin,
    /// Insert the marker row, which shows that this flush was committed. Its key is the same at each attempt.
    Record,
    /// Send these rows by one statement.
    Send(Chunk),
    /// Read the columns that the database has filled in the rows that were sent.
    Read,
    /// Commit the transaction; release the savepoint.
    Commit,
    /// Roll the transaction or the savepoint back. On a connection that is lost there is nothing to do:
    /// the server rolls back what was not committed.
    Rollback,
    /// Look, in a transaction that is rolled back and on a connection that is not the lost one, whether the rows are
    /// there: by the row of [`Record`](Self::Record) where one is written, otherwise by the key of any
    /// row that is inserted. Report it by [`Flush::probed`].
    Probe,
    /// Wait.
    Sleep(Duration),
    /// Do nothing: the flush is over.
    Done {
        /// What became of the rows.
        outcome: Outcome,
    },
}

/// What became of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// All of them are in the database, once.
    Committed,
    /// None of them is, and none will be.
    Nothing,
    /// The answer to COMMIT was lost, and it could not be found out: either all of them are in the
    /// database, or will be, or none is.
    Unknown,
}

/// How a step failed. An adapter makes it from its driver's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// It would be refused again, because of a constraint, a value or a privilege. Unknown errors count as
    /// this one.
    Refused,
    /// A primary or unique key is taken.
    Duplicate,
    /// It may succeed another time, and the connection can be used. The cause is a deadlock, a serialization
    /// failure, or a lock that did not come in time.
    Transient,
    /// The connection is lost or about to be, or its protocol state is unknown. If COMMIT failed in this way,
    /// its outcome is unknown.
    Lost,
}

impl Failure {
    /// Returns the name, in lower case, as for a label of a metric.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Duplicate => "duplicate",
            Self::Transient => "transient",
            Self::Lost => "lost",
        }
    }
}

/// A flush as a state machine: [`step`](Self::step) says what to do, the adapter does it and reports
/// [`succeeded`](Self::succeeded), [`failed`](Self::failed) or, of a probe, [`probed`](Self::probed).
///
/// It is over at once where there are no rows.
///
/// # Example: the answer to COMMIT is lost
///
/// ```
/// use ordid_sql::{Failure, Flush, Outcome, Retry, Step};
/// # use ordid_sql::{PendingRows, Columns, RowEnd, RowSink};
/// # use ordid_core::{Fields, OrderedKey, Sink, entity::Parent, key::KeyBytes, uuid::Uuid};
/// # struct City(Uuid);
/// # impl OrderedKey for City {
/// #     type Field = Uuid;
/// #     const SCHEMA: Option<&'static str> = None;
/// #     const TABLE: &'static str = "cities";
/// #     const KEY_COLUMN: &'static str = "id";
/// #     const COLUMNS: &'static [&'static str] = &["id"];
/// #     const PARENTS: &'static [Parent] = &[];
/// #     fn key(&self) -> Option<Uuid> { Some(self.0) }
/// #     fn assign_key(&mut self, _: Uuid) {}
/// #     fn parents(&self, _: &mut dyn FnMut(usize, KeyBytes)) {}
/// # }
/// # impl<S: Sink<Uuid>> Fields<S> for City {
/// #     fn write(&self, sink: &mut S) { sink.put(&self.0); }
/// #     fn write_key(key: Uuid, sink: &mut S) { sink.put(&key); }
/// # }
/// # struct Ids;
/// # impl Sink<Uuid> for Ids { fn put(&mut self, _: &Uuid) {} }
/// # impl RowSink for Ids {
/// #     type Entity = ();
/// #     fn begin_row(&mut self, _: Columns<'_>) {}
/// #     fn end_row(&mut self) -> RowEnd { RowEnd::Taken }
/// # }
/// # let mut pending_rows = PendingRows::<Ids>::new();
/// # pending_rows.rows_mut().push(City(Uuid::from_u128(1)));
/// # let plan = pending_rows.plan(&ordid_sql::EngineProfile::SQLITE)?;
///
/// let mut flush = Flush::new(plan).with_retry(Retry::DEFAULT);
/// assert_eq!(flush.step(), Step::Begin);
/// flush.succeeded();
/// assert!(matches!(flush.step(), Step::Send(_)));
/// flush.succeeded();
/// assert_eq!(flush.step(), Step::Commit);
/// flush.failed(Failure::Lost);
/// assert!(matches!(flush.step(), Step::Sleep(_)));
/// flush.succeeded();
/// assert_eq!(flush.step(), Step::Probe);
/// flush.probed(true);
/// assert_eq!(flush.step(), Step::Done { outcome: Outcome::Committed });
/// # Ok::<(), ordid_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Flush {
    plan: Plan,
    retry: Retry,
    scope: Scope,
    records: bool,
    /// Whether rows are read before they are committed.
    reads: bool,
    /// Whether a probe can find out what became of a COMMIT.
    can_probe: bool,
    state: State,
    /// Whether the outcome of an earlier attempt's COMMIT is unknown.
    is_unresolved: bool,
    /// Whether the database has said of a COMMIT that nothing is committed.
    is_refused: bool,
    has_global_locks: bool,
    may_repeat: bool,
    /// How many failures were met that another time may not be there.
    failures: u32,
    /// How many times it was begun anew.
    retries: u32,
}

/// The scope in which a flush is all or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// A transaction of its own, and another connection where one is lost.
    Connections,
    /// A transaction of its own on the one connection that there is.
    Connection,
    /// The user's transaction, which is neither committed nor begun anew here.
    Transaction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum State {
    Beginning,
    Recording,
    Sending(usize),
    /// All chunks were sent. This is their number.
    Reading(usize),
    RollingBack(Failure),
    Sleeping {
        delay: Duration,
        /// This follows the probe that comes next, while a commit is unresolved.
        if_absent: Absent,
    },
    Probing {
        if_absent: Absent,
    },
    Over(Outcome),
}

/// The state after a probe that finds nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Absent {
    /// The rows are sent again.
    Repeat,
    /// It is probed once more after a delay, and then the rows are sent again: a duplicate was in the way, which may
    /// be the row that the probe could not see.
    Wait,
    /// The flush ends.
    Stop,
}

impl Flush {
    /// Begins to execute a plan, in a transaction of its own and at one attempt.
    pub fn new(plan: Plan) -> Self {
        Self::of(plan, Scope::Connections, State::Beginning)
    }

    /// Resumes a flush whose outcome was [`Unknown`](Outcome::Unknown), or whose caller dropped it: first
    /// looks whether the rows are in the database. It is to be resumed with the marker row that it had, or without one.
    pub fn resumed(plan: Plan) -> Self {
        let state = State::Probing {
            if_absent: Absent::Repeat,
        };
        let mut flush = Self::of(plan, Scope::Connections, state);
        flush.is_unresolved = true;
        flush
    }

    /// Begins to execute a plan inside the user's transaction. There is one attempt. The flush is never
    /// unresolved, since it commits nothing.
    pub fn in_transaction(plan: Plan) -> Self {
        Self::of(plan, Scope::Transaction, State::Beginning)
    }

    fn of(plan: Plan, scope: Scope, state: State) -> Self {
        let state = if plan.is_empty() {
            State::Over(Outcome::Committed)
        } else {
            state
        };
        Self {
            records: scope != Scope::Transaction && !plan.only_inserts(),
            reads: false,
            can_probe: true,
            plan,
            retry: Retry::NONE,
            scope,
            state,
            is_unresolved: false,
            is_refused: false,
            has_global_locks: true,
            may_repeat: true,
            failures: 0,
            retries: 0,
        }
    }

    /// Retries transient failures and lost connections, but not in the user's transaction.
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        if self.scope != Scope::Transaction {
            self.retry = retry;
        }
        self
    }

    /// Says that there is no other connection: after [`Failure::Lost`] the flush ends without a probe. A flush
    /// that was [`resumed`](Self::resumed) still begins with its probe.
    #[must_use]
    pub fn on_one_connection(mut self) -> Self {
        if self.scope == Scope::Connections {
            self.scope = Scope::Connection;
        }
        self
    }

    /// Writes a marker row although the flush only inserts, where otherwise the probe looks for one of the
    /// inserted keys. A row that others delete between a lost COMMIT and its probe is then not inserted
    /// again. A flush in the user's transaction writes none, as nothing probes for it.
    #[must_use]
    pub fn with_record(mut self) -> Self {
        self.records_too();
        self
    }

    /// Does the same as [`with_record`](Self::with_record) to a flush that was made already, but has not begun its
    /// first attempt.
    pub(crate) fn records_too(&mut self) {
        self.records = self.scope != Scope::Transaction;
    }

    /// Writes no marker row, even if rows are updated or deleted, for databases that do not have the table. If the
    /// answer to the COMMIT of such a flush is lost, nothing can find out what became of it: the flush ends as
    /// [`Unknown`](Outcome::Unknown), and sends nothing if it is [resumed](Self::resumed). A flush that only inserts is
    /// probed by a key as usual.
    #[must_use]
    pub fn without_record(mut self) -> Self {
        self.records = false;
        self.can_probe = self.plan.only_inserts();
        if !self.can_probe && matches!(self.state, State::Probing { .. }) {
            self.state = State::Over(Outcome::Unknown);
        }
        self
    }

    /// Reads the columns that the database fills, between the last row and the COMMIT.
    #[must_use]
    pub fn with_reading(mut self) -> Self {
        self.reads = true;
        self
    }

    /// Says that a lock on one server does not hold on the others that take writes, as in a Galera cluster. A marker
    /// row that is inserted is then no sign that an older transaction has ended.
    pub fn locks_are_local(&mut self) {
        self.has_global_locks = false;
    }

    /// Says that the database may take the same changes twice: the flush has no marker row, and no unique index holds a
    /// key of its rows alone, or its marker row may have been removed. While a commit is unresolved, the flush then only
    /// probes.
    pub fn cannot_repeat(&mut self) {
        self.may_repeat = false;
    }

    /// Returns what to do now. It stays the same until the outcome is reported.
    pub fn step(&self) -> Step {
        match self.state {
            State::Beginning => Step::Begin,
            State::Recording => Step::Record,
            State::Sending(position) => match self.plan.chunk(position) {
                Some(chunk) => Step::Send(chunk),
                None => Step::Commit,
            },
            State::Reading(_) => Step::Read,
            State::RollingBack(_) => Step::Rollback,
            State::Sleeping { delay, .. } => Step::Sleep(delay),
            State::Probing { .. } => Step::Probe,
            State::Over(outcome) => Step::Done { outcome },
        }
    }

    /// Returns the chunk after the one that [`step`](Self::step) sends now, so that it can be bound
    /// while the database works on that one.
    pub fn upcoming(&self) -> Option<Chunk> {
        match self.state {
            State::Sending(position) => self.plan.chunk(position + 1),
            _ => None,
        }
    }

    /// Returns how many rows that are sent now, or after so many chunks, follow each other in one table.
    pub(crate) fn rows_together(&self, ahead: usize) -> usize {
        match self.state {
            State::Sending(position) => self.plan.rows_together(position + ahead),
            _ => 0,
        }
    }

    /// Returns whether [`Step::Record`] is among the steps.
    pub const fn records(&self) -> bool {
        self.records
    }

    /// Returns whether [`Step::Read`] is among the steps.
    pub const fn reads(&self) -> bool {
        self.reads
    }

    /// Returns whether a probe can find out what became of a COMMIT.
    pub const fn can_probe(&self) -> bool {
        self.can_probe
    }

    /// Returns whether the outcome of a COMMIT is unknown so far.
    pub const fn is_unresolved(&self) -> bool {
        self.is_unresolved
    }

    /// Returns how many times the flush was begun anew.
    pub const fn retries(&self) -> u32 {
        self.retries
    }

    /// Reports that the step was carried out. Of a probe it is the same as `probed(false)`.
    pub fn succeeded(&mut self) {
        self.state = match self.state {
            State::Beginning if self.records => State::Recording,
            State::Beginning => State::Sending(0),
            State::Recording => {
                if self.has_global_locks {
                    // No older attempt holds its key.
                    self.is_unresolved = false;
                }
                State::Sending(0)
            }
            State::Sending(position) if self.plan.chunk(position).is_some() => {
                match self.reads && self.plan.chunk(position + 1).is_none() {
                    true => State::Reading(position + 1),
                    false => State::Sending(position + 1),
                }
            }
            State::Reading(position) => State::Sending(position),
            State::Sending(_) => self.over(Outcome::Committed),
            State::RollingBack(cause) => self.after(cause),
            State::Sleeping { if_absent, .. } if self.is_unresolved => State::Probing { if_absent },
            State::Sleeping { .. } => self.again(),
            State::Probing { .. } => return self.probed(false),
            over @ State::Over(_) => over,
        };
    }

    /// Reports that the step failed, and how.
    pub fn failed(&mut self, failure: Failure) {
        self.state = match self.state {
            // No transaction is open, or the server will drop it with the connection.
            State::Beginning => self.after(failure),
            State::Recording | State::Reading(_) => {
                // Nobody else has the key of the marker row, so the COMMIT was carried out after all.
                let is_taken = failure == Failure::Duplicate && self.step() == Step::Record;
                self.is_unresolved |= is_taken && self.is_refused;
                State::RollingBack(failure)
            }
            State::Sending(position) if self.plan.chunk(position).is_some() => {
                State::RollingBack(failure)
            }
            State::Sending(_) if self.scope != Scope::Transaction && failure == Failure::Lost => {
                self.is_unresolved = true;
                self.after_lost_commit()
            }
            // This transaction is not committed. An older one may be, and be the reason.
            State::Sending(_) => {
                self.is_refused = true;
                State::RollingBack(failure)
            }
            // The next attempt would commit the rows that are still in the open transaction.
            State::RollingBack(Failure::Transient) if failure == Failure::Lost => {
                self.after(failure)
            }
            State::RollingBack(cause) => self.after(cause),
            State::Sleeping { .. } => return self.succeeded(),
            State::Probing { if_absent } => match failure {
                Failure::Lost if self.scope == Scope::Connection => State::Over(Outcome::Unknown),
                Failure::Transient | Failure::Lost => self.asked_later(if_absent),
                Failure::Refused | Failure::Duplicate => State::Over(Outcome::Unknown),
            },
            over @ State::Over(_) => over,
        };
    }

    /// Reports that COMMIT cannot be sent: the transaction is rolled back.
    pub(crate) fn cannot_commit(&mut self, failure: Failure) {
        if let State::Sending(_) = self.state {
            self.state = State::RollingBack(failure);
        }
    }

    /// Begins anew while rows are sent, after the transaction was rolled back. It is not counted as a retry.
    pub(crate) fn starts_over(&mut self) {
        if let State::Sending(_) = self.state {
            self.state = State::Beginning;
        }
    }

    /// Ends the flush where it is: its time is over, and nothing more is sent. A COMMIT that was under way is
    /// unresolved.
    pub fn time_is_over(&mut self) {
        if matches!(self.step(), Step::Commit) && self.scope != Scope::Transaction {
            self.is_unresolved = true;
        }
        if !matches!(self.state, State::Over(_)) {
            self.state = State::Over(match self.is_unresolved {
                true => Outcome::Unknown,
                false => Outcome::Nothing,
            });
        }
    }

    /// Ends the flush: an older transaction was not committed, and none of it ever can be.
    pub(crate) fn can_never_commit(&mut self) {
        self.state = self.over(Outcome::Nothing);
    }

    /// Reports what a probe found. Reported of any other step, it is an error of the adapter and changes
    /// nothing.
    pub fn probed(&mut self, found: bool) {
        let State::Probing { if_absent } = self.state else {
            return;
        };
        self.state = match if_absent {
            _ if found => self.over(Outcome::Committed),
            Absent::Repeat if self.may_repeat => self.again(),
            Absent::Repeat | Absent::Wait => self.asked_later(Absent::Repeat),
            Absent::Stop => State::Over(Outcome::Unknown),
        };
    }

    /// What follows once nothing of this attempt is left.
    fn after(&mut self, cause: Failure) -> State {
        let retriable = match cause {
            Failure::Transient => true,
            Failure::Lost => self.scope == Scope::Connections,
            Failure::Refused | Failure::Duplicate => false,
        };
        if retriable && let Some(delay) = self.next_delay() {
            let if_absent = Absent::Repeat;
            return State::Sleeping { delay, if_absent };
        }
        if !self.is_unresolved {
            return State::Over(Outcome::Nothing);
        }
        if cause == Failure::Lost && self.scope == Scope::Connection {
            return State::Over(Outcome::Unknown);
        }
        State::Probing {
            if_absent: match cause {
                Failure::Duplicate => Absent::Wait,
                _ => Absent::Stop,
            },
        }
    }

    fn after_lost_commit(&mut self) -> State {
        if self.scope == Scope::Connection || !self.can_probe {
            return State::Over(Outcome::Unknown);
        }
        let if_absent = Absent::Repeat;
        match self.next_delay() {
            Some(delay) => State::Sleeping { delay, if_absent },
            // Asked once all the same: an attempt costs more.
            None => State::Probing {
                if_absent: Absent::Stop,
            },
        }
    }

    /// Returns the state after a probe that has to be asked again.
    fn asked_later(&mut self, if_absent: Absent) -> State {
        match self.next_delay() {
            Some(delay) => State::Sleeping { delay, if_absent },
            None => State::Over(Outcome::Unknown),
        }
    }

    fn over(&mut self, outcome: Outcome) -> State {
        self.is_unresolved = false;
        State::Over(outcome)
    }

    fn next_delay(&mut self) -> Option<Duration> {
        self.failures += 1;
        self.retry.delay(self.failures)
    }

    fn again(&mut self) -> State {
        self.retries += 1;
        State::Beginning
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
