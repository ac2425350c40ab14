//! What to do next: the flush as a state machine.
//!
//! ```text
//! Begin -> Record? -> Send* -> Commit -> Done(Committed)
//!   |         |         |        |
//!   |         +--- failed -------+--> Rollback --> Done(Nothing)       refused
//!   |                            |        |
//!   +-- failed ----------> Sleep <--------+                            transient, or lost
//!                            |   |
//!            Begin <---------+   +--------> Probe                      in unresolved
//!                                           | found  -> Done(Committed)
//!                                           | absent -> Begin, Done(Nothing) or Done(Unknown)
//! ```
//!
//! # In unresolved
//!
//! A flush is in unresolved from the COMMIT whose answer was lost on: the rows may be there, may never come,
//! or may come yet, as the server may not have read that COMMIT so far. So that a probe finds nothing
//! proves nothing. What proves something is the same rows sent once more. Their keys are unique, and
//! another transaction that holds them makes the database wait for its end. Where it then takes all
//! rows, the older transaction has come to nothing; where it refuses a duplicate, that transaction has
//! ended, and the next probe tells how.
//!
//! Rows that are updated or deleted have no key to be sent again. A flush with such rows first writes
//! a row of its own, under a key that all its attempts share ([`Step::Record`]), and is known by that; and
//! so does one that only inserts, if it is asked to ([`Flush::with_record`]).

use std::time::Duration;

use crate::leases::connections::Remedy;
use crate::{Chunk, Plan, Retry};

/// What the adapter does next.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Open the transaction; a savepoint inside one of the user's. After a failure that was
    /// [`Failure::Lost`], on another connection.
    Begin,
    /// Insert the row that tells whether this flush was committed, under the same key at each attempt.
    Record,
    /// Send these rows by one statement.
    Send(Chunk),
    /// Commit the transaction; release the savepoint.
    Commit,
    /// Roll the transaction or the savepoint back. On a connection that is lost there is nothing to do:
    /// the server rolls back what was not committed.
    Rollback,
    /// Look, in no transaction and on a connection that is not the lost one, whether the rows are
    /// there: by the row of [`Record`](Self::Record) where one is written, otherwise by the key of any
    /// row that is inserted. Report it by [`Flush::probed`].
    Probe,
    /// Wait.
    Sleep(Duration),
    /// Nothing: it is over.
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

/// How a step failed: what an adapter makes of its driver's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// A constraint, a value, a privilege: it would be refused again. Also what is not known.
    Refused,
    /// A primary or unique key is taken.
    Duplicate,
    /// Another time it may succeed, and the connection can be used: a deadlock, a serialization
    /// failure, a lock that did not come in time.
    Transient,
    /// The connection is gone, is about to be, or nobody knows what comes over it next. Of COMMIT: it is
    /// not known whether it was carried out.
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

/// What leases and counters may do about it.
impl From<Failure> for Remedy {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Transient => Self::Repeat,
            Failure::Lost => Self::Replace,
            Failure::Refused | Failure::Duplicate => Self::None,
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
    state: State,
    unresolved: Unresolved,
    /// How many failures were met that another time may not be there.
    failures: u32,
    /// How many times it was begun anew.
    retries: u32,
}

/// What a flush is all or nothing in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// A transaction of its own, and another connection where one is lost.
    Connections,
    /// A transaction of its own on the one connection that there is.
    Connection,
    /// The user's transaction, which is neither committed nor begun anew here.
    Transaction,
}

/// What is known of an earlier attempt's COMMIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unresolved {
    /// All: it was answered, or there was none.
    None,
    /// Nothing: it may have been carried out, and may be yet.
    Open,
    /// It is over, but not how it ended.
    Ended,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Beginning,
    Recording,
    Sending(usize),
    RollingBack(Failure),
    Sleeping {
        delay: Duration,
        goes_on: bool,
    },
    /// Whether it is begun anew if nothing is found.
    Probing {
        goes_on: bool,
    },
    Over(Outcome),
}

impl Flush {
    /// Begins to execute a plan, in a transaction of its own and at one attempt.
    pub fn new(plan: Plan) -> Self {
        Self::of(plan, Scope::Connections, State::Beginning)
    }

    /// As [`new`](Self::new), after the outcome of an earlier flush of the same rows was
    /// [`Unknown`](Outcome::Unknown), or nobody waited for it: first looks whether they are there.
    pub fn resumed(plan: Plan) -> Self {
        let mut flush = Self::of(plan, Scope::Connections, State::Probing { goes_on: true });
        flush.unresolved = Unresolved::Open;
        flush
    }

    /// Begins to execute a plan inside the user's transaction: at one attempt, and never in unresolved,
    /// since nothing is committed.
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
            plan,
            retry: Retry::NONE,
            scope,
            state,
            unresolved: Unresolved::None,
            failures: 0,
            retries: 0,
        }
    }

    /// Tries again where that may help; but not in the user's transaction.
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        if self.scope != Scope::Transaction {
            self.retry = retry;
        }
        self
    }

    /// There is no other connection: what fails with [`Failure::Lost`] is over, and not probed. A flush that
    /// was [`resumed`](Self::resumed) begins with its probe all the same.
    #[must_use]
    pub fn on_one_connection(mut self) -> Self {
        if self.scope == Scope::Connections {
            self.scope = Scope::Connection;
        }
        self
    }

    /// Writes the row of [`Step::Record`] although nothing but new rows is written, which otherwise are
    /// known by one of their keys. A row that others delete between a lost COMMIT and its probe then does
    /// not come back. Never in the user's transaction, which nobody looks for.
    #[must_use]
    pub fn with_record(mut self) -> Self {
        self.records = self.scope != Scope::Transaction;
        self
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

    /// Returns whether [`Step::Record`] is among the steps.
    pub const fn records(&self) -> bool {
        self.records
    }

    /// Returns whether the outcome of a COMMIT is not known so far.
    pub fn is_in_doubt(&self) -> bool {
        self.unresolved != Unresolved::None
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
                // Its key was free: no older attempt holds it.
                self.unresolved = Unresolved::None;
                State::Sending(0)
            }
            State::Sending(position) if self.plan.chunk(position).is_some() => {
                State::Sending(position + 1)
            }
            State::Sending(_) => {
                self.unresolved = Unresolved::None;
                State::Over(Outcome::Committed)
            }
            State::RollingBack(cause) => self.after(cause),
            State::Sleeping { goes_on, .. } if self.is_in_doubt() => State::Probing { goes_on },
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
            State::Recording => State::RollingBack(failure),
            State::Sending(position) if self.plan.chunk(position).is_some() => {
                State::RollingBack(failure)
            }
            State::Sending(_) if self.scope != Scope::Transaction && failure == Failure::Lost => {
                self.unresolved = Unresolved::Open;
                self.after_lost_commit()
            }
            State::Sending(_) => {
                // The database took all rows, so no older attempt holds their keys.
                self.unresolved = Unresolved::None;
                State::RollingBack(failure)
            }
            State::RollingBack(cause) => self.after(cause),
            State::Sleeping { .. } => return self.succeeded(),
            State::Probing { goes_on } => match failure {
                Failure::Lost if self.scope == Scope::Connection => State::Over(Outcome::Unknown),
                Failure::Transient | Failure::Lost => match self.next_delay() {
                    Some(delay) => State::Sleeping { delay, goes_on },
                    None => State::Over(Outcome::Unknown),
                },
                Failure::Refused | Failure::Duplicate => State::Over(Outcome::Unknown),
            },
            over @ State::Over(_) => over,
        };
    }

    /// Reports what a probe found. Reported of any other step, it is an error of the adapter and changes
    /// nothing.
    pub fn probed(&mut self, found: bool) {
        let State::Probing { goes_on } = self.state else {
            return;
        };
        self.state = match (found, self.unresolved) {
            (true, _) => {
                self.unresolved = Unresolved::None;
                State::Over(Outcome::Committed)
            }
            (false, _) if goes_on => self.again(),
            (false, Unresolved::Open) => State::Over(Outcome::Unknown),
            (false, Unresolved::Ended | Unresolved::None) => {
                self.unresolved = Unresolved::None;
                State::Over(Outcome::Nothing)
            }
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
            return State::Sleeping {
                delay,
                goes_on: true,
            };
        }
        if self.unresolved == Unresolved::None {
            return State::Over(Outcome::Nothing);
        }
        if cause == Failure::Lost && self.scope == Scope::Connection {
            return State::Over(Outcome::Unknown);
        }
        if cause == Failure::Duplicate {
            self.unresolved = Unresolved::Ended;
        }
        State::Probing { goes_on: false }
    }

    fn after_lost_commit(&mut self) -> State {
        if self.scope == Scope::Connection {
            return State::Over(Outcome::Unknown);
        }
        match self.next_delay() {
            Some(delay) => State::Sleeping {
                delay,
                goes_on: true,
            },
            // Asked once all the same: an attempt costs more.
            None => State::Probing { goes_on: false },
        }
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
mod tests;
