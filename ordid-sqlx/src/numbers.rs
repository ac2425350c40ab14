//! Short statements about integers, on connections of their own: what leases and counters ask of a
//! database.
//!
//! Each statement is a transaction of its own, outside of any that the program has open. A connection is
//! only used again after it has answered; one whose future was dropped, or that failed, is closed, so no
//! answer is ever taken for that of another question.

use std::{
    fmt,
    sync::{
        Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures_util::future::{Either, select};
use ordid_core::{
    Error, clock::Delay, coordination::CoordinationFailure, storage::Dialect as _,
    unit_of_work::Failure,
};
use sqlx::{AssertSqlSafe, Connection, SqlSafeStr as _, SqlStr};

use crate::{
    backend::{Backend, BoxFuture},
    failure::failure,
};

/// How to connect to a database: `PgConnectOptions`, `MySqlConnectOptions`, `SqliteConnectOptions`.
pub type ConnectOptions<DB> = <<DB as sqlx::Database>::Connection as Connection>::Options;

/// How long the store may take for an answer, unless said otherwise.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Connections that are kept for the next question.
const IDLE: usize = 4;
/// How often a statement that the database has rolled back is sent again: of deadlocks there may be many.
const ATTEMPTS: u32 = 50;
/// How long it waits before that at most; at first, a millisecond.
const PAUSE: u32 = 10;

/// What an engine has words of its own for.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Texts {
    /// The server's time in milliseconds since 1970 as an integer, whatever the session's time zone.
    pub clock: &'static str,
    /// The type of a primary key that the engine counts up.
    pub counted_key: &'static str,
    /// The type of a counter's name, compared byte by byte.
    pub name_type: &'static str,
    /// What is behind a table's columns.
    pub table_options: &'static str,
    /// A counter's new value, where `?` is added.
    pub added: &'static str,
    /// What is behind an INSERT to leave alone the rows that are there; it may name a column.
    pub keep: fn(&str) -> String,
    /// What is behind a statement to return a column, where `Answer::last_id` does not.
    pub returning: fn(&str) -> String,
    /// Whether the child of a fork may connect where its parent has.
    pub survives_forks: bool,
}

/// A parameter.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    Number(i64),
    Text(&'a str),
}

/// What a statement has returned.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Answer {
    pub rows: Vec<Vec<i64>>,
    pub changed: u64,
    /// MySQL's `LAST_INSERT_ID`.
    pub last_id: u64,
}

impl Answer {
    /// The only row, if there is one.
    pub(crate) fn row<const N: usize>(&self) -> Option<[i64; N]> {
        let row = self.rows.first()?;
        row.as_slice().try_into().ok()
    }

    /// The number that a statement returned, which has the engine's `returning` behind it.
    pub(crate) fn returned(&self) -> Option<i64> {
        match self.row() {
            Some([number]) => Some(number),
            None if self.changed > 0 => i64::try_from(self.last_id).ok(),
            None => None,
        }
    }
}

/// What is asked of a connection before anything else.
pub(crate) type Check<DB> = Box<
    dyn for<'c> Fn(&'c mut <DB as sqlx::Database>::Connection) -> BoxFuture<'c, Result<(), Error>>
        + Send
        + Sync,
>;

/// A database, and the connections to it that are not used by anybody else.
pub(crate) struct Store<DB: Backend> {
    options: ConnectOptions<DB>,
    /// Whose the idle connections are.
    process: AtomicU32,
    /// Those that wait for the next question.
    idle: Mutex<Vec<DB::Connection>>,
    timeout: Duration,
    check: Option<Check<DB>>,
}

impl<DB: Backend> Store<DB> {
    pub(crate) fn new(options: ConnectOptions<DB>) -> Self {
        Self {
            options,
            process: AtomicU32::new(std::process::id()),
            idle: Mutex::default(),
            timeout: TIMEOUT,
            check: None,
        }
    }

    pub(crate) fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Says what each new connection is asked first.
    #[cfg(feature = "mysql")]
    pub(crate) fn set_check(&mut self, check: Check<DB>) {
        self.check = Some(check);
    }

    /// Runs a statement that may be carried out twice: one that reads, or that takes numbers, of which the
    /// first are then nobody's. It is sent again where the connection was closed while it was idle.
    pub(crate) async fn ask(&self, sql: &SqlStr, values: &[Value<'_>]) -> Result<Answer, Error> {
        self.send(sql, values, true).await
    }

    /// Runs a statement that would not find again what it has changed.
    pub(crate) async fn ask_once(
        &self,
        sql: &SqlStr,
        values: &[Value<'_>],
    ) -> Result<Answer, Error> {
        self.send(sql, values, false).await
    }

    /// What the database says that it has undone is sent again in either case.
    async fn send(&self, sql: &SqlStr, values: &[Value<'_>], again: bool) -> Result<Answer, Error> {
        self.within(async {
            let mut attempts = 1;
            loop {
                let (mut connection, is_used) = self.connection().await?;
                match DB::ask(&mut connection, sql.clone(), values).await {
                    Ok(answer) => {
                        self.keep(connection);
                        return Ok(answer);
                    }
                    Err(error) => match failure(&error) {
                        Failure::Transient if attempts < ATTEMPTS => {
                            self.keep(connection);
                            let pause = attempts.min(PAUSE);
                            Delay::new(Duration::from_millis(pause.into())).await;
                            attempts += 1;
                        }
                        // All that were idle are as old as this one.
                        Failure::Lost if again && is_used => {
                            if let Some(mut idle) = self.idle() {
                                idle.clear();
                            }
                        }
                        _ => return Err(Self::error(&error)),
                    },
                }
            }
        })
        .await
    }

    /// Runs a script.
    pub(crate) async fn run(&self, sql: &SqlStr) -> Result<(), Error> {
        self.within(async {
            let mut connection = self.connect().await?;
            DB::run_script(&mut connection, sql.clone())
                .await
                .map_err(|error| Self::error(&error))
        })
        .await
    }

    async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        self.check_process()?;
        match select(Box::pin(work), Delay::new(self.timeout)).await {
            Either::Left((outcome, _)) => outcome,
            Either::Right(_) => Err(Error::coordination(
                CoordinationFailure::Unavailable,
                format!("{} gave no answer within {:?}", Self::name(), self.timeout),
            )),
        }
    }

    /// A connection, and whether it was used before.
    async fn connection(&self) -> Result<(DB::Connection, bool), Error> {
        let idle = self.idle().and_then(|mut idle| idle.pop());
        if let Some(connection) = idle {
            return Ok((connection, true));
        }
        let mut connection = self.connect().await?;
        if let Some(check) = &self.check {
            check(&mut connection).await?;
        }
        Ok((connection, false))
    }

    async fn connect(&self) -> Result<DB::Connection, Error> {
        let connecting: BoxFuture<'_, _> = Box::pin(DB::Connection::connect_with(&self.options));
        connecting.await.map_err(|error| Self::error(&error))
    }

    fn keep(&self, connection: DB::Connection) {
        if let Some(mut idle) = self.idle()
            && idle.len() < IDLE
        {
            idle.push(connection);
        }
    }

    /// The idle connections of this process. `None` in the child of a fork that was made while somebody
    /// had the lock: nobody there gives it back.
    fn idle(&self) -> Option<MutexGuard<'_, Vec<DB::Connection>>> {
        let process = std::process::id();
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

    /// Refuses a library that cannot be used on both sides of a fork. `SQLite` takes locks that are the
    /// process's, and goes on as if the child had those of its parent.
    fn check_process(&self) -> Result<(), Error> {
        let (owner, process) = (self.process.load(Ordering::Acquire), std::process::id());
        if DB::TEXTS.survives_forks || owner == process {
            return Ok(());
        }
        Err(Error::coordination(
            CoordinationFailure::Unavailable,
            format!(
                "{} was used by process {owner}, and this is its fork {process}, where it must not be used: \
                 fork first, or start the child as a program of its own",
                Self::name()
            ),
        ))
    }

    fn name() -> &'static str {
        DB::Dialect::NAME
    }

    pub(crate) fn error(error: &sqlx::Error) -> Error {
        let database = error.as_database_error();
        let failure = match database.and_then(|error| error.code()).as_deref() {
            // No such table or sequence; the numbers of PostgreSQL and of MySQL.
            Some("42P01" | "42S02") => CoordinationFailure::StateLost,
            // A sequence at its end.
            Some("2200H") => CoordinationFailure::CounterExhausted,
            Some("1") if is_missing_in_sqlite(error) => CoordinationFailure::StateLost,
            _ => CoordinationFailure::Unavailable,
        };
        Error::coordination(failure, format!("{}: {error}", Self::name()))
    }
}

/// What a forked child does with connections: the parent goes on using them, and to drop them would tell the
/// parent's reactor.
fn leave_to_parent<C>(connections: &mut Vec<C>) {
    std::mem::forget(std::mem::take(connections));
}

impl<DB: Backend> Drop for Store<DB> {
    fn drop(&mut self) {
        if *self.process.get_mut() != std::process::id() {
            leave_to_parent(self.idle.get_mut().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// `SQLITE_ERROR` has no finer code.
fn is_missing_in_sqlite(error: &sqlx::Error) -> bool {
    let database = error.as_database_error();
    database.is_some_and(|error| error.message().starts_with("no such table"))
}

impl<DB: Backend> fmt::Debug for Store<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the options: they have a password.
        f.debug_struct("Store")
            .field("database", &Self::name())
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// The name of a table, sequence or counter of ours: it is quoted all the same, but other characters would
/// only be a mistake, and more of them are cut off in silence by PostgreSQL.
pub(crate) fn checked_name(name: &str) -> Result<&str, Error> {
    const MAX: usize = 63;

    let is_ours = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty() || name.len() > MAX || !name.bytes().all(is_ours) {
        return Err(Error::coordination(
            CoordinationFailure::Mismatch,
            format!(
                "the name {name:?} is not of 1 to {MAX} letters, digits and underscores, in ASCII"
            ),
        ));
    }
    Ok(name)
}

/// A statement with the engine's placeholders in the place of each `?`, the table's quoted name in that of
/// `{t}`, and the server's time in that of `{now}`.
pub(crate) fn statement<DB: Backend>(table: &str, text: &str) -> SqlStr {
    let text = text.replace("{now}", DB::TEXTS.clock);
    let mut sql = String::with_capacity(text.len() + 64);
    let mut number = 0;
    for character in text.chars() {
        if character == '?' {
            number += 1;
            DB::push_placeholder(&mut sql, number);
        } else {
            sql.push(character);
        }
    }
    // Last: whatever is in the name, it stays as it is.
    let sql = sql.replace("{t}", &DB::Dialect::quote(table));
    AssertSqlSafe(sql).into_sql_str()
}

/// What an integer of a database is as a time or a number, none of which is negative.
pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// A number that a database can keep; the terms and times of core are all below.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(all(test, feature = "postgres", feature = "mysql", feature = "sqlite"))]
mod tests {
    use sqlx::{MySql, Postgres, Sqlite};

    use super::*;

    #[test]
    fn a_statement_is_in_the_words_of_its_engine() {
        let text = "UPDATE {t} SET a = ? WHERE b = ?";
        for (sql, expected) in [
            (
                statement::<Postgres>("x", text),
                r#"UPDATE "x" SET a = $1 WHERE b = $2"#,
            ),
            (
                statement::<MySql>("x", text),
                "UPDATE `x` SET a = ? WHERE b = ?",
            ),
            (
                statement::<Sqlite>("x", text),
                r#"UPDATE "x" SET a = ? WHERE b = ?"#,
            ),
        ] {
            assert_eq!(sql.as_str(), expected);
        }
    }

    #[test]
    fn names_are_of_few_characters() {
        for name in ["ordid_nodes", "Tickets64", "_", &"a".repeat(63)] {
            assert_eq!(checked_name(name), Ok(name));
        }
        for name in [
            "",
            "a b",
            "a;b",
            "a\"b",
            "schema.table",
            "größe",
            &"a".repeat(64),
        ] {
            let error = checked_name(name).expect_err("not a name of ours");
            assert_eq!(
                error.coordination_failure(),
                Some(CoordinationFailure::Mismatch)
            );
        }
    }

    #[test]
    fn what_is_missing_is_lost_and_what_does_not_answer_is_unavailable() {
        let io = sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into());
        let error = Store::<Postgres>::error(&io);
        assert_eq!(
            error.coordination_failure(),
            Some(CoordinationFailure::Unavailable)
        );
        assert!(
            error
                .to_string()
                .starts_with("the store is unavailable: PostgreSQL: ")
        );
    }
}
