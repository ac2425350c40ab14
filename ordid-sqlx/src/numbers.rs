//! Short statements about integers, on connections of their own: how what core has leases and counters ask is
//! sent.

use std::{fmt, sync::Arc, time::Duration};

use ordid_core::{Error, coordination::CoordinationFailure, storage::Dialect as _};
use ordid_sql::leases::{
    connections::{Connections, Exchange, Unanswered},
    numbers::{Answer, NumberStore, Statement},
};
use sqlx::{AssertSqlSafe, Connection, SqlSafeStr as _, SqlStr};

use crate::{
    backend::{Backend, BoxFuture},
    classify::classify,
};

/// How to connect to a database: `PgConnectOptions`, `MySqlConnectOptions`, `SqliteConnectOptions`.
pub type ConnectOptions<DB> = <<DB as sqlx::Database>::Connection as Connection>::Options;

/// What an engine has words of its own for, beside its dialect.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Texts {
    /// The type of a counter's name, compared byte by byte.
    pub name_type: &'static str,
    /// A counter's new value, where `?` is added.
    pub added: &'static str,
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

/// What is asked of a connection before anything else.
pub(crate) type Check<DB> = Box<
    dyn for<'c> Fn(&'c mut <DB as sqlx::Database>::Connection) -> BoxFuture<'c, Result<(), Error>>
        + Send
        + Sync,
>;

/// A database, and the connections to it that are not used by anybody else.
pub(crate) struct Store<DB: Backend> {
    options: ConnectOptions<DB>,
    connections: Connections<DB::Connection>,
    check: Option<Check<DB>>,
}

impl<DB: Backend> Store<DB> {
    pub(crate) fn new(options: ConnectOptions<DB>) -> Self {
        Self {
            options,
            connections: Connections::new(),
            check: None,
        }
    }

    pub(crate) fn set_timeout(&mut self, timeout: Duration) {
        self.connections.set_timeout(timeout);
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

    /// What the database says that it has undone is sent again, also what may not be carried out `twice`.
    async fn send(&self, sql: &SqlStr, values: &[Value<'_>], twice: bool) -> Result<Answer, Error> {
        let question = Question {
            store: self,
            sql,
            values,
        };
        self.within(self.connections.exchange(&question, twice))
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
        if !DB::TEXTS.survives_forks {
            // `SQLite` takes locks that are the process's, and goes on as if the child had those of its
            // parent.
            self.connections.refuse_forks(Self::name())?;
        }
        self.connections.within(Self::name(), work).await
    }

    async fn connect(&self) -> Result<DB::Connection, Error> {
        let connecting: BoxFuture<'_, _> = Box::pin(DB::Connection::connect_with(&self.options));
        connecting.await.map_err(|error| Self::error(&error))
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

/// A statement, and the database that it is for.
struct Question<'q, DB: Backend> {
    store: &'q Store<DB>,
    sql: &'q SqlStr,
    values: &'q [Value<'q>],
}

impl<DB: Backend> Exchange for Question<'_, DB> {
    type Connection = DB::Connection;
    type Answer = Answer;

    async fn connect(&self) -> Result<DB::Connection, Error> {
        let mut connection = self.store.connect().await?;
        if let Some(check) = &self.store.check {
            check(&mut connection).await?;
        }
        Ok(connection)
    }

    async fn ask(&self, connection: &mut DB::Connection) -> Result<Answer, Unanswered> {
        let answer = DB::ask(connection, self.sql.clone(), self.values).await;
        answer.map_err(|error| Unanswered {
            error: Store::<DB>::error(&error),
            remedy: classify(error).failure.into(),
        })
    }
}

impl<DB: Backend> NumberStore for Store<DB> {
    async fn ask(&self, statement: &Statement, values: &[i64]) -> Result<Answer, Error> {
        // Of checked names and numbers.
        let sql = AssertSqlSafe(Arc::clone(statement.sql())).into_sql_str();
        let values: Vec<Value<'_>> = values.iter().copied().map(Value::Number).collect();
        self.send(&sql, &values, statement.may_repeat()).await
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
            .field("timeout", &self.connections.timeout())
            .finish_non_exhaustive()
    }
}

/// A statement of core's, as SQLx takes it.
pub(crate) fn statement<DB: Backend>(table: &str, text: &str) -> SqlStr {
    let sql = ordid_sql::leases::numbers::statement::<DB::Dialect>(table, text);
    // Of checked names and numbers.
    AssertSqlSafe(sql).into_sql_str()
}

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use sqlx::Postgres;

    use super::*;

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
