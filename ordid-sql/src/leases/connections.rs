//! Connections that a store keeps for its next statement, across forks, failures and timeouts.

use std::{
    fmt,
    process::id as process,
    sync::{
        Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use ordid_core::{Error, clock::Delay, coordination::CoordinationFailure};

/// How long the store may take for an answer, unless said otherwise.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Connections that are kept for the next question.
const IDLE: usize = 4;
/// How often a question that the database has undone is asked again: of deadlocks there may be many.
const ATTEMPTS: u32 = 50;
/// How many milliseconds it waits before that at most; at first, one.
const PAUSE: u32 = 10;

/// One question to a database, and how a connection to it is made: what an adapter implements for
/// [`Connections::exchange`].
pub trait Exchange: Sync {
    /// The library's connection.
    type Connection: Send;
    /// What the database says.
    type Answer;

    /// Connects.
    ///
    /// # Errors
    ///
    /// What the library or the database says; it is not tried again.
    fn connect(&self) -> impl Future<Output = Result<Self::Connection, Error>> + Send;

    /// Asks.
    ///
    /// # Errors
    ///
    /// What the library or the database says, and what may be done about it.
    fn ask(
        &self,
        connection: &mut Self::Connection,
    ) -> impl Future<Output = Result<Self::Answer, Unanswered>> + Send;

    /// Waits before it is asked again.
    fn pause(&self, pause: Duration) -> impl Future<Output = ()> + Send {
        Delay::new(pause)
    }
}

/// What may be done about a question that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Remedy {
    /// Nothing: it would fail again.
    None,
    /// To ask again: the database has undone it, and the connection is good.
    Repeat,
    /// To ask over another connection, if it may be done twice: of this one nobody knows.
    Replace,
}

/// Why a question has no answer.
#[derive(Debug)]
pub struct Unanswered {
    /// What to tell whoever asked.
    pub error: Error,
    /// What may be done before that.
    pub remedy: Remedy,
}

/// The connections of a store that nobody uses, of the process that made them.
///
/// A connection is only used again after it has answered: one whose future was dropped, or that failed, is
/// closed, so that no answer is ever taken for that of another question. The child of a fork leaves those of
/// its parent alone, and makes others.
pub struct Connections<C> {
    /// Whose they are.
    process: AtomicU32,
    idle: Mutex<Vec<C>>,
    timeout: Duration,
}

impl<C> Default for Connections<C> {
    fn default() -> Self {
        Self {
            process: AtomicU32::new(process()),
            idle: Mutex::default(),
            timeout: TIMEOUT,
        }
    }
}

impl<C: Send> Connections<C> {
    /// Makes a store that has no connections yet; an answer may take 5 s.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says how long an answer may take, connecting included.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Returns how long an answer may take.
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Sends a statement over an idle connection, or a new one, and keeps the connection for the next.
    ///
    /// Retries any statement that the database reports as rolled back. If `twice` says that the statement
    /// may run twice, it is also sent over another connection if the idle one had been closed.
    ///
    /// This ends with the last answer: see [`within`](Self::within).
    ///
    /// # Errors
    ///
    /// What the last attempt failed with.
    pub async fn exchange<E>(&self, exchange: &E, twice: bool) -> Result<E::Answer, Error>
    where
        E: Exchange<Connection = C>,
    {
        let start = Instant::now();
        let mut attempts = 1;
        loop {
            let used = self.idle().and_then(|mut idle| idle.pop());
            let is_used = used.is_some();
            let mut connection = match used {
                Some(connection) => connection,
                None => exchange.connect().await?,
            };
            let failed = match exchange.ask(&mut connection).await {
                Ok(answer) => {
                    self.keep(connection);
                    return Ok(answer);
                }
                Err(failed) => failed,
            };
            // A library that has waited itself gets no second delay.
            let is_late = start.elapsed() >= self.timeout;
            match failed.remedy {
                Remedy::Repeat if attempts < ATTEMPTS && !is_late => {
                    self.keep(connection);
                    let pause = Duration::from_millis(attempts.min(PAUSE).into());
                    exchange.pause(pause).await;
                    attempts += 1;
                }
                // All that were idle are as old as this one.
                Remedy::Replace if twice && is_used && !is_late => {
                    if let Some(mut idle) = self.idle() {
                        idle.clear();
                    }
                }
                _ => return Err(failed.error),
            }
        }
    }

    /// Waits for an answer, and no longer than it may take; `database` is the name for messages.
    ///
    /// # Errors
    ///
    /// What the work fails with; [`Unavailable`](CoordinationFailure::Unavailable) where it takes too long.
    pub async fn within<T>(
        &self,
        database: &str,
        work: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        let outcome = Delay::within(self.timeout, work).await;
        outcome.unwrap_or_else(|| {
            Err(Error::coordination(
                CoordinationFailure::Unavailable,
                format!("{database} gave no answer within {:?}", self.timeout),
            ))
        })
    }

    /// Refuses the child of a fork, for a library that cannot be used on both sides of one.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](CoordinationFailure::Unavailable) in the child.
    pub fn refuse_forks(&self, database: &str) -> Result<(), Error> {
        let (owner, process) = (self.process.load(Ordering::Acquire), process());
        if owner == process {
            return Ok(());
        }
        Err(Error::coordination(
            CoordinationFailure::Unavailable,
            format!(
                "{database} was used by process {owner}, and this is its fork {process}, where it must not \
                 be used: fork first, or start the child as a program of its own"
            ),
        ))
    }

    fn keep(&self, connection: C) {
        if let Some(mut idle) = self.idle()
            && idle.len() < IDLE
        {
            idle.push(connection);
        }
    }

    /// The idle connections of this process. `None` in the child of a fork that was made while somebody
    /// had the lock: nobody there gives it back.
    fn idle(&self) -> Option<MutexGuard<'_, Vec<C>>> {
        let process = process();
        if self.process.load(Ordering::Acquire) == process {
            // A panic leaves no connection half in it.
            return Some(self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        }
        let mut idle = match self.idle.try_lock() {
            Ok(idle) => idle,
            Err(TryLockError::Poisoned(idle)) => idle.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        if self.process.swap(process, Ordering::AcqRel) != process {
            leave_to_parent(&mut idle);
        }
        Some(idle)
    }
}

/// What a forked child does with connections: the parent goes on using them, and to drop them would tell the
/// parent's reactor, or its server.
fn leave_to_parent<C>(connections: &mut Vec<C>) {
    std::mem::forget(std::mem::take(connections));
}

impl<C> Drop for Connections<C> {
    fn drop(&mut self) {
        if *self.process.get_mut() != process() {
            leave_to_parent(self.idle.get_mut().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

impl<C> fmt::Debug for Connections<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections")
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
