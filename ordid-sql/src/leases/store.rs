//! A database with tables of nodes and numbers, and the connections that are kept for the next statement, across
//! forks, failures and timeouts.

use std::{
    fmt,
    sync::{
        Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use ordid_core::{
    __private::process, Error, clock::Delay, coordination::CoordinationFailure, storage::Dialect,
};

use super::numbers::{Answer, LeaseDialect, Statement, Value};
use crate::{EngineProfile, Failure};

/// How long the store may take for an answer, unless said otherwise.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Connections that are kept for the next question.
const IDLE: usize = 4;
/// How often a question that the database has undone is asked again: of deadlocks there may be many.
const ATTEMPTS: u32 = 50;
/// How many milliseconds it waits before that at most; at first, one.
const PAUSE: u32 = 10;

/// A library and an engine in whose tables nodes and numbers are kept: what an adapter implements. It translates,
/// and sends each statement once; [`SqlLease`](super::SqlLease) and the others have the rest.
///
/// A library whose calls block answers with futures that are ready.
pub trait StoreDriver: Send + Sync + 'static {
    /// The engine's words.
    type Dialect: LeaseDialect;
    /// How to connect.
    type Options: Send + Sync + 'static;
    /// The library's connection.
    type Connection: Send;

    /// Whether the child of a fork may connect where its parent has.
    const SURVIVES_FORKS: bool;

    /// Connects; an answer may take no longer than `timeout`.
    ///
    /// # Errors
    ///
    /// What the library or the database says; it is not tried again.
    fn connect(
        options: &Self::Options,
        timeout: Duration,
    ) -> impl Future<Output = Result<Self::Connection, Error>> + Send;

    /// Sends a statement with these parameters. What it changes is committed, and durable, when it is answered.
    ///
    /// # Errors
    ///
    /// What the library or the database says, and what may be done about it:
    /// [`StateLost`](CoordinationFailure::StateLost) where there is no such table, and otherwise
    /// [`Unavailable`](CoordinationFailure::Unavailable), after which a change was made or not.
    fn ask(
        connection: &mut Self::Connection,
        statement: &Statement,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Answer, Unanswered>> + Send;

    /// Runs a script: several statements, without parameters.
    ///
    /// # Errors
    ///
    /// What the library or the database says.
    fn run(
        connection: &mut Self::Connection,
        script: String,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Waits before a statement is sent again.
    fn pause(pause: Duration) -> impl Future<Output = ()> + Send {
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

impl From<Failure> for Remedy {
    fn from(failure: Failure) -> Self {
        match failure {
            // The only key that an insert can repeat is one that the engine counts, and another server of its cluster
            // has counted, too. The next one is another.
            Failure::Transient | Failure::Duplicate => Self::Repeat,
            Failure::Lost => Self::Replace,
            Failure::Refused => Self::None,
        }
    }
}

/// Why a question has no answer.
#[derive(Debug)]
pub struct Unanswered {
    /// What to tell whoever asked.
    pub error: Error,
    /// What may be done before that.
    pub remedy: Remedy,
}

/// A statement that each new connection is asked first, and a function that accepts or refuses the answer.
type Check = (
    Statement,
    Box<dyn Fn(&Answer) -> Result<(), Error> + Send + Sync>,
);

/// A database, and the idle connections to it, which belong to the process that made them.
///
/// A connection is only used again after it has answered: one whose future was dropped, or that failed, is
/// closed, so that no answer is ever taken for that of another question. The child of a fork leaves those of
/// its parent alone, and makes others.
pub(super) struct Store<S: StoreDriver> {
    options: S::Options,
    /// Whose they are.
    process: AtomicU64,
    idle: Mutex<Vec<S::Connection>>,
    timeout: Duration,
    /// Whether statements may be prepared by name.
    prepares: bool,
    /// Whether a member of a cluster waits for what the others committed.
    waits_for_others: bool,
    check: Option<Check>,
}

impl<S: StoreDriver> Store<S> {
    const DATABASE: &'static str = <S::Dialect as Dialect>::NAME;

    /// Takes the database, to which there are no connections yet; an answer may take 5 s.
    pub(super) fn new(options: S::Options) -> Self {
        Self {
            options,
            process: AtomicU64::new(process().to_bits()),
            idle: Mutex::default(),
            timeout: TIMEOUT,
            prepares: true,
            waits_for_others: false,
            check: None,
        }
    }

    /// Says how long an answer may take, connecting included.
    pub(super) fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Takes from the engine's profile whether statements may be prepared by name.
    pub(super) fn set_engine(&mut self, engine: EngineProfile) {
        self.prepares = engine.prepares;
    }

    /// Has each statement see what was committed before over any member of a cluster.
    pub(super) fn wait_for_others(&mut self) {
        self.waits_for_others = true;
    }

    /// Has each new connection asked this first.
    pub(super) fn set_check(
        &mut self,
        statement: Statement,
        check: impl Fn(&Answer) -> Result<(), Error> + Send + Sync + 'static,
    ) {
        self.check = Some((statement, Box::new(check)));
    }

    /// Sends a statement over an idle connection, or a new one, and keeps the connection for the next.
    ///
    /// Retries any statement that the database reports as rolled back. One that [may run
    /// twice](Statement::may_repeat) is also sent over another connection if the idle one had been closed.
    ///
    /// # Errors
    ///
    /// What the last attempt failed with; [`Unavailable`](CoordinationFailure::Unavailable) where it takes too long.
    pub(super) async fn ask(
        &self,
        statement: &Statement,
        values: &[Value<'_>],
    ) -> Result<Answer, Error> {
        if self.prepares {
            self.within(self.send(statement, values)).await
        } else {
            let statement = statement.clone().unprepared();
            self.within(self.send(&statement, values)).await
        }
    }

    /// Runs a script.
    ///
    /// # Errors
    ///
    /// As [`ask`](Self::ask).
    pub(super) async fn run(&self, script: String) -> Result<(), Error> {
        self.within(async {
            let mut connection = self.open().await?;
            S::run(&mut connection, script).await
        })
        .await
    }

    /// This ends with the last answer: see [`within`](Self::within).
    async fn send(&self, statement: &Statement, values: &[Value<'_>]) -> Result<Answer, Error> {
        let start = Instant::now();
        let mut attempts = 1;
        loop {
            let used = self.idle().and_then(|mut idle| idle.pop());
            let is_used = used.is_some();
            let mut connection = match used {
                Some(connection) => connection,
                None => self.connect().await?,
            };
            let failed = match S::ask(&mut connection, statement, values).await {
                Ok(answer) => {
                    self.keep(connection);
                    return Ok(answer);
                }
                Err(failed) => failed,
            };
            // If the library has waited already, do not wait again.
            let is_late = start.elapsed() >= self.timeout;
            match failed.remedy {
                Remedy::Repeat if attempts < ATTEMPTS && !is_late => {
                    self.keep(connection);
                    let pause = Duration::from_millis(attempts.min(PAUSE).into());
                    S::pause(pause).await;
                    attempts += 1;
                }
                // All that were idle are as old as this one.
                Remedy::Replace if statement.may_repeat() && is_used && !is_late => {
                    if let Some(mut idle) = self.idle() {
                        idle.clear();
                    }
                }
                _ => return Err(failed.error),
            }
        }
    }

    /// Connects, and sets what the statements rely on.
    async fn open(&self) -> Result<S::Connection, Error> {
        let mut connection = S::connect(&self.options, self.timeout).await?;
        if !S::Dialect::SESSION.is_empty() {
            S::run(&mut connection, S::Dialect::SESSION.to_owned()).await?;
        }
        if self.waits_for_others && !S::Dialect::CLUSTER.is_empty() {
            self.set_waits(&mut connection).await?;
        }
        Ok(connection)
    }

    /// Asks a server whether it is a member of a cluster, and then has it wait for the others before each statement. The
    /// connection is the store's own, so the setting stays: a statement costs no further round trip.
    async fn set_waits(&self, connection: &mut S::Connection) -> Result<(), Error> {
        let mut question = Statement::reads::<S::Dialect>("", S::Dialect::CLUSTER);
        if !self.prepares {
            question = question.unprepared();
        }
        let answer = match S::ask(connection, &question, &[]).await {
            Ok(answer) => answer,
            // The engine has no such variables, so it is no such member.
            Err(Unanswered {
                remedy: Remedy::None,
                ..
            }) => return Ok(()),
            Err(failed) => return Err(failed.error),
        };
        match answer.row() {
            Some([cluster]) => {
                let script = S::Dialect::wait_for_others(cluster);
                S::run(connection, script.to_owned()).await
            }
            None => Ok(()),
        }
    }

    async fn connect(&self) -> Result<S::Connection, Error> {
        let mut connection = self.open().await?;
        if let Some((statement, check)) = &self.check {
            let answer = S::ask(&mut connection, statement, &[]).await;
            check(&answer.map_err(|failed| failed.error)?)?;
        }
        Ok(connection)
    }

    /// Waits for an answer, and no longer than it may take.
    async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        if !S::SURVIVES_FORKS {
            self.refuse_forks()?;
        }
        let outcome = Delay::within(self.timeout, work).await;
        outcome.unwrap_or_else(|| {
            let (database, timeout) = (Self::DATABASE, self.timeout);
            Err(Error::coordination(
                CoordinationFailure::Unavailable,
                format!("{database} gave no answer within {timeout:?}"),
            ))
        })
    }

    /// Refuses the child of a fork, for a library that cannot be used on both sides of one.
    fn refuse_forks(&self) -> Result<(), Error> {
        let (owner, process) = (self.process.load(Ordering::Acquire), process());
        if owner == process.to_bits() {
            return Ok(());
        }
        let owner = owner >> 32;
        Err(Error::coordination(
            CoordinationFailure::Unavailable,
            format!(
                "{} was used by process {owner}, and this is its fork {process}, where it must not \
                 be used: fork first, or start the child as a program of its own",
                Self::DATABASE
            ),
        ))
    }

    fn keep(&self, connection: S::Connection) {
        if let Some(mut idle) = self.idle()
            && idle.len() < IDLE
        {
            idle.push(connection);
        }
    }

    /// The idle connections of this process. `None` in the child of a fork that was made while somebody
    /// had the lock: nobody there gives it back.
    fn idle(&self) -> Option<MutexGuard<'_, Vec<S::Connection>>> {
        let process = process().to_bits();
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

impl<S: StoreDriver> Drop for Store<S> {
    fn drop(&mut self) {
        if *self.process.get_mut() != process().to_bits() {
            leave_to_parent(self.idle.get_mut().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

impl<S: StoreDriver> fmt::Debug for Store<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the options: they have a password.
        f.debug_struct("Store")
            .field("database", &Self::DATABASE)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
