//! A flush as a state machine.

use super::{Chunk, Plan};

/// What the adapter does next.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Open the transaction; a savepoint inside one of the user's.
    Begin,
    /// Send these rows by one statement.
    Send(Chunk),
    /// Commit the transaction; release the savepoint.
    Commit,
    /// Roll the transaction or the savepoint back.
    Rollback,
    /// Nothing: it is over. `true` if everything was committed.
    Done {
        /// Whether the rows are in the database.
        committed: bool,
    },
}

/// A flush as a state machine: [`step`](Self::step) says what to do, the adapter does it and
/// reports [`succeeded`](Self::succeeded) or [`failed`](Self::failed).
///
/// # Example
///
/// ```
/// use ordid_core::unit_of_work::{Flush, Plan, Step};
///
/// let mut flush = Flush::new(Plan::default());
/// assert_eq!(flush.step(), Step::Begin);
/// flush.succeeded();
/// assert_eq!(flush.step(), Step::Commit);
/// flush.failed();
/// assert_eq!(flush.step(), Step::Rollback);
/// flush.succeeded();
/// assert_eq!(flush.step(), Step::Done { committed: false });
/// ```
#[derive(Debug, Clone)]
pub struct Flush {
    plan: Plan,
    state: State,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Beginning,
    Sending(usize),
    RollingBack,
    Over { committed: bool },
}

impl Flush {
    /// Begins to execute a plan.
    pub const fn new(plan: Plan) -> Self {
        Self {
            plan,
            state: State::Beginning,
        }
    }

    /// Returns what to do now. It stays the same until the outcome is reported.
    pub fn step(&self) -> Step {
        match self.state {
            State::Beginning => Step::Begin,
            State::Sending(position) => match self.plan.chunk(position) {
                Some(chunk) => Step::Send(chunk),
                None => Step::Commit,
            },
            State::RollingBack => Step::Rollback,
            State::Over { committed } => Step::Done { committed },
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

    /// Reports that the step was carried out.
    pub fn succeeded(&mut self) {
        self.state = match (self.state, self.step()) {
            (State::Beginning, _) => State::Sending(0),
            (State::Sending(_), Step::Commit) => State::Over { committed: true },
            (State::Sending(position), _) => State::Sending(position + 1),
            (State::RollingBack, _) => State::Over { committed: false },
            (over @ State::Over { .. }, _) => over,
        };
    }

    /// Reports that the step failed.
    pub fn failed(&mut self) {
        self.state = match self.state {
            // No transaction is open, or the server will drop it with the connection.
            State::Beginning | State::RollingBack => State::Over { committed: false },
            State::Sending(_) => State::RollingBack,
            over @ State::Over { .. } => over,
        };
    }
}

#[cfg(test)]
mod tests;
