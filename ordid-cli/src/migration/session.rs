//! One connection to a server: it sends SQL and reads texts.

use std::time::Duration;

use ordid_sqlx::{Failure as Meaning, failure_of};
use sqlx::{
    AssertSqlSafe, Executor as _, MySqlConnection, PgConnection, Row as _, SqliteConnection,
};

use super::subject::literal;
use crate::{
    database::{Access, Database},
    engine::Engine,
    failure::Failure,
};

/// A row, as texts.
pub(crate) type Cells = Vec<Option<String>>;

/// A connection that is one session of the server.
pub(crate) enum Session {
    /// To PostgreSQL.
    Postgres(PgConnection),
    /// To MySQL or MariaDB.
    MySql(MySqlConnection, Engine),
    /// To a file of SQLite.
    Sqlite(SqliteConnection),
}

/// Tells a user who may not see the lag that it is not waited for.
pub(crate) const HIDDEN_LAG: &str = "this user may not see how far replicas are behind, so --max-lag does nothing: grant \
                                     pg_read_all_stats to it, or watch the replicas, and slow apply down by --chunk and --pause";

/// An error of the server.
#[derive(Debug)]
pub(crate) struct Fault {
    /// The message.
    pub(crate) message: String,
    /// The statement, if it was one.
    pub(crate) sql: String,
    /// Whether the statement may succeed another time, as others held its locks.
    pub(crate) is_contention: bool,
    /// Whether the connection is gone.
    pub(crate) is_lost: bool,
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        let meaning = failure_of(&error);
        Self {
            is_contention: meaning == Meaning::Transient,
            is_lost: meaning == Meaning::Lost || error.as_database_error().is_none(),
            sql: String::new(),
            message: match error.as_database_error() {
                Some(error) => error.message().to_owned(),
                None => error.to_string(),
            },
        }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        match fault.is_lost {
            true => Self::could_not(format_args!(
                "the connection to the database is lost: {}",
                fault.message
            )),
            false if fault.is_contention => Self::could_not(format_args!(
                "others held the locks for too long: {}; run it again, when fewer long transactions run",
                fault.message
            )),
            false => Self::could_not(format_args!("the database refused: {}", fault.message)),
        }
    }
}

impl Session {
    /// Connects.
    ///
    /// # Errors
    ///
    /// As [`Database::connect`].
    pub(crate) async fn connect(url: &str, access: Access) -> Result<Self, Failure> {
        Ok(match Database::connect(url, access).await? {
            Database::Postgres(pool) => {
                let mut session = Self::Postgres(pool.acquire().await?.detach());
                // A backslash in a name or a comment is one, whatever the database's setting is.
                session
                    .execute("SET standard_conforming_strings = on")
                    .await?;
                session
            }
            Database::MySql(pool, engine) => Self::MySql(pool.acquire().await?.detach(), engine),
            Database::Sqlite(pool) => Self::Sqlite(pool.acquire().await?.detach()),
        })
    }

    /// Returns the engine.
    pub(crate) fn engine(&self) -> Engine {
        match self {
            Self::Postgres(_) => Engine::Postgres,
            Self::MySql(_, engine) => *engine,
            Self::Sqlite(_) => Engine::Sqlite,
        }
    }

    /// Sends a statement.
    pub(crate) async fn execute(&mut self, sql: &str) -> Result<u64, Fault> {
        let raw = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        let sent = match self {
            Self::Postgres(connection) => {
                connection.execute(raw).await.map(|it| it.rows_affected())
            }
            Self::MySql(connection, _) => {
                connection.execute(raw).await.map(|it| it.rows_affected())
            }
            Self::Sqlite(connection) => connection.execute(raw).await.map(|it| it.rows_affected()),
        };
        sent.map_err(|error| Fault {
            sql: sql.to_owned(),
            ..error.into()
        })
    }

    /// Reads the rows of a query, each value as the server writes it.
    pub(crate) async fn rows(&mut self, sql: &str) -> Result<Vec<Cells>, Fault> {
        macro_rules! cells {
            ($connection:ident, $sql:ident) => {{
                let rows = $connection.fetch_all($sql).await?;
                let mut cells = Vec::with_capacity(rows.len());
                for row in rows {
                    let row: Result<Cells, sqlx::Error> = (0..row.len())
                        .map(|column| row.try_get_unchecked::<Option<String>, _>(column))
                        .collect();
                    cells.push(row?);
                }
                cells
            }};
        }
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        Ok(match self {
            Self::Postgres(connection) => cells!(connection, sql),
            Self::MySql(connection, _) => cells!(connection, sql),
            Self::Sqlite(connection) => cells!(connection, sql),
        })
    }

    /// Reads one value of one row, if there is a row.
    pub(crate) async fn value(&mut self, sql: &str) -> Result<Option<String>, Fault> {
        let rows = self.rows(sql).await?;
        Ok(rows
            .into_iter()
            .next()
            .and_then(|row| row.into_iter().next().flatten()))
    }

    /// As [`value`](Self::value), by a query that has to see all rows: on PostgreSQL it fails if a policy would hide some
    /// from it. The setting is not that of the session, because the users' triggers may read tables whose policies
    /// they are subject to.
    pub(crate) async fn value_of_all_rows(&mut self, sql: &str) -> Result<Option<String>, Fault> {
        match self {
            Self::Postgres(_) => {
                let sql = format!("SET row_security = off; {sql}; RESET row_security");
                self.value(&sql).await
            }
            _ => self.value(sql).await,
        }
    }

    /// Reads one number.
    pub(crate) async fn number(&mut self, sql: &str) -> Result<i64, Fault> {
        let value = self.value(sql).await?;
        // A number that is missing is a sum over no rows.
        Ok(value.and_then(|text| text.parse().ok()).unwrap_or(0))
    }

    /// Whether a query returns a row.
    pub(crate) async fn exists(&mut self, sql: &str) -> Result<bool, Fault> {
        Ok(!self.rows(sql).await?.is_empty())
    }

    /// Prepares a session that changes tables while others use them.
    pub(crate) async fn prepare(&mut self) -> Result<(), Fault> {
        let settings: &[&str] = match self {
            Self::Postgres(_) => &[
                "SET application_name = 'ordid apply'",
                "SET statement_timeout = 0",
                "SET idle_in_transaction_session_timeout = 0",
                "SET default_transaction_isolation = 'read committed'",
            ],
            Self::MySql(..) => &[
                // Reading rows to copy them locks none of them.
                "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
                "SET SESSION time_zone = '+00:00'",
                // Foreign keys between columns that triggers keep in step are added without reading their rows.
                "SET SESSION foreign_key_checks = 0",
                // Plan and steps are written in one spelling, whatever the server's mode is: with ANSI_QUOTES MariaDB writes
                // checks and generated columns in other quotes, and with NO_BACKSLASH_ESCAPES literals mean something else.
                "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'",
            ],
            Self::Sqlite(_) => &[],
        };
        for setting in settings {
            self.execute(setting).await?;
        }
        let where_known: &[&str] = match self {
            Self::Postgres(_) => &[
                // A killed client is noticed while its statement runs, since version 14.
                "SET client_connection_check_interval = '1s'",
                // Since version 14: --pause leaves the session idle.
                "SET idle_session_timeout = 0",
                // Since version 17.
                "SET transaction_timeout = 0",
            ],
            _ => &[],
        };
        for setting in where_known {
            if let Err(fault) = self.execute(setting).await
                && fault.is_lost
            {
                return Err(fault);
            }
        }
        // --pause leaves the session idle, and a statement may take hours.
        let times: &[&str] = match self {
            Self::MySql(_, Engine::Mariadb) => &[
                "SET SESSION max_statement_time = 0, SESSION wait_timeout = 86400, SESSION idle_transaction_timeout = 0, \
                 SESSION idle_readonly_transaction_timeout = 0, SESSION idle_write_transaction_timeout = 0",
            ],
            Self::MySql(..) => {
                &["SET SESSION max_execution_time = 0, SESSION wait_timeout = 86400"]
            }
            _ => &[],
        };
        for setting in times {
            self.execute(setting).await?;
        }
        Ok(())
    }

    /// Limits how long a statement waits for locks; `None` lets it wait.
    pub(crate) async fn lock_timeout(&mut self, timeout: Option<Duration>) -> Result<(), Fault> {
        match self {
            Self::Postgres(_) => {
                let millis = timeout.map_or(0, |timeout| timeout.as_millis().max(1));
                self.execute(&format!("SET lock_timeout = {millis}"))
                    .await?;
            }
            Self::MySql(..) => {
                // Whole seconds: rounded up, as 0 is refused by MySQL.
                let seconds =
                    timeout.map_or(86_400, |timeout| timeout.as_millis().div_ceil(1000).max(1));
                self.execute(&format!(
                    "SET SESSION lock_wait_timeout = {seconds}, SESSION innodb_lock_wait_timeout = {}",
                    seconds.min(50)
                ))
                .await?;
            }
            Self::Sqlite(_) => {
                let millis = timeout.map_or(60_000, |timeout| timeout.as_millis());
                self.execute(&format!("PRAGMA busy_timeout = {millis}"))
                    .await?;
            }
        }
        Ok(())
    }

    /// Limits how long a query runs; `None` lets it run.
    pub(crate) async fn query_timeout(&mut self, timeout: Option<Duration>) -> Result<(), Fault> {
        // Not less than asked for, or the caller would not know that the time is over; and 0 is no limit.
        let millis = timeout.map_or(0, |timeout| timeout.as_nanos().div_ceil(1_000_000).max(1));
        let sql = match self {
            Self::Postgres(_) => format!("SET statement_timeout = {millis}"),
            Self::MySql(_, Engine::Mariadb) => format!(
                "SET SESSION max_statement_time = {}.{:03}",
                millis / 1000,
                millis % 1000
            ),
            Self::MySql(..) => format!("SET SESSION max_execution_time = {millis}"),
            Self::Sqlite(_) => return Ok(()),
        };
        self.execute(&sql).await.map(|_| ())
    }

    /// Takes the lock that one `apply` of a table holds; whether it is free.
    pub(crate) async fn claim(&mut self, name: &str) -> Result<bool, Fault> {
        let sql = match self {
            Self::Postgres(_) => format!(
                "SELECT 1 WHERE pg_try_advisory_lock(hashtext({}))",
                literal(name)
            ),
            // A name has 64 characters at most.
            Self::MySql(..) => format!(
                "SELECT 1 FROM dual WHERE GET_LOCK(SHA2({}, 224), 0) = 1",
                literal(name)
            ),
            Self::Sqlite(_) => return Ok(true),
        };
        self.exists(&sql).await
    }

    /// Begins a transaction.
    pub(crate) async fn begin(&mut self) -> Result<(), Fault> {
        let begin = match self {
            Self::Sqlite(_) => "BEGIN IMMEDIATE",
            _ => "BEGIN",
        };
        self.execute(begin).await.map(|_| ())
    }

    /// Ends a transaction without its changes, if there is one.
    pub(crate) async fn rollback(&mut self) -> Result<(), Fault> {
        let ended = self.execute("ROLLBACK").await;
        match (ended, self.engine()) {
            // SQLite complains if there is none.
            (Err(fault), Engine::Sqlite) if !fault.is_lost => Ok(()),
            (ended, _) => ended.map(|_| ()),
        }
    }

    /// Returns the sessions that use these tables now, whose names are quoted, as far as the server tells.
    pub(crate) async fn users_of(&mut self, tables: &[String]) -> Vec<String> {
        let query = match self {
            Self::Postgres(_) => {
                let tables = tables
                    .iter()
                    .map(|it| format!("to_regclass({})", literal(it)));
                format!(
                    "SELECT DISTINCT pid FROM pg_locks WHERE locktype = 'relation' AND granted AND pid <> pg_backend_pid() AND database = \
                     (SELECT oid FROM pg_database WHERE datname = current_database()) AND relation IN ({}) ORDER BY 1 LIMIT 5",
                    tables.collect::<Vec<_>>().join(", ")
                )
            }
            // MariaDB's performance schema is off unless somebody turns it on.
            Self::MySql(_, Engine::Mysql) => {
                let tables = tables.iter().map(|it| literal(it));
                format!(
                    "SELECT DISTINCT t.processlist_id FROM performance_schema.metadata_locks m JOIN performance_schema.threads t ON \
                     t.thread_id = m.owner_thread_id WHERE m.object_type = 'TABLE' AND m.lock_status = 'GRANTED' AND t.processlist_id <> \
                     CONNECTION_ID() AND CONCAT('`', m.object_schema, '`.`', m.object_name, '`') IN ({}) ORDER BY 1 LIMIT 5",
                    tables.collect::<Vec<_>>().join(", ")
                )
            }
            _ => return Vec::new(),
        };
        // Who may not ask is not told.
        let rows = self.rows(&query).await.unwrap_or_default();
        rows.into_iter().flatten().flatten().collect()
    }

    /// Whether the server hides from this user how far replicas are behind: it then shows them without their lag.
    pub(crate) async fn is_lag_hidden(&mut self) -> Result<bool, Fault> {
        match self {
            Self::Postgres(_) => {
                let query = "SELECT 1 WHERE NOT pg_has_role('pg_read_all_stats', 'USAGE')";
                self.exists(query).await
            }
            _ => Ok(false),
        }
    }

    /// Whether there are replicas whose lag is hidden.
    pub(crate) async fn has_hidden_replicas(&mut self) -> Result<bool, Fault> {
        Ok(self.is_lag_hidden().await? && self.exists("SELECT 1 FROM pg_stat_replication").await?)
    }

    /// Returns the seconds that the slowest replica is behind; `None` where the server does not tell.
    pub(crate) async fn lag(&mut self) -> Result<Option<f64>, Fault> {
        let Self::Postgres(_) = self else {
            return Ok(None);
        };
        let lag = self
            .value("SELECT max(extract(epoch FROM replay_lag))::float8 FROM pg_stat_replication")
            .await?;
        Ok(lag.and_then(|lag| lag.parse().ok()))
    }
}
