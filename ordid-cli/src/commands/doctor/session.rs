//! One connection whose every query has a time limit, and whose answers are texts.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{Stream, TryStreamExt as _};
use sqlx::{
    AssertSqlSafe, MySql, Postgres, Row as _, Sqlite, TypeInfo as _, ValueRef as _,
    pool::PoolConnection,
};

use crate::{
    database::{Database, text},
    engine::Engine,
    failure::Failure,
};

/// How long the catalog may take, at least: it is small, and nothing is known without it.
const CATALOG_LIMIT: Duration = Duration::from_secs(10);

/// How much longer than its limit a query may take until its connection is given up.
const GRACE: Duration = Duration::from_secs(5);

/// The rows that a query returns: a text for each value that is not NULL.
pub(crate) type Rows = Vec<Vec<Option<String>>>;

/// Why a query has no answer.
#[derive(Debug, Clone)]
pub(crate) enum Refusal {
    /// It took longer than it may.
    TimedOut(Duration),
    /// The server refuses it.
    Refused(String),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TimedOut(limit) => write!(f, "it took longer than {} s", limit.as_secs_f64()),
            Self::Refused(message) => f.write_str(message),
        }
    }
}

enum Connection {
    Postgres(PoolConnection<Postgres>),
    MySql(PoolConnection<MySql>),
    Sqlite(PoolConnection<Sqlite>),
}

/// A connection with a time limit for each query.
pub(crate) struct Session {
    database: Database,
    limit: Duration,
    connection: Option<Connection>,
    /// When SQLite's query has to end, in milliseconds since `begun`.
    deadline: Arc<AtomicU64>,
    begun: Instant,
}

impl Session {
    /// Opens it.
    ///
    /// # Errors
    ///
    /// The server has no connection, or does not know time limits.
    pub(crate) async fn open(database: Database, limit: Duration) -> Result<Self, Failure> {
        let mut session = Self {
            database,
            limit,
            connection: None,
            deadline: Arc::new(AtomicU64::new(u64::MAX)),
            begun: Instant::now(),
        };
        session.connect().await?;
        Ok(session)
    }

    /// Returns which engine it is.
    pub(crate) fn engine(&self) -> Engine {
        self.database.engine()
    }

    /// Asks for what is in the catalog.
    ///
    /// # Errors
    ///
    /// The server refuses, or takes too long: nothing can be said without its catalog.
    pub(crate) async fn catalog(&mut self, sql: &str) -> Result<Rows, Failure> {
        let limit = self.limit.max(CATALOG_LIMIT);
        self.limited(sql, limit).await?.map_err(|refusal| {
            Failure::could_not(format_args!("the catalog cannot be read: {refusal}"))
        })
    }

    /// Asks for what may be refused.
    ///
    /// # Errors
    ///
    /// The connection is lost.
    pub(crate) async fn rows(&mut self, sql: &str) -> Result<Result<Rows, Refusal>, Failure> {
        self.limited(sql, self.limit).await
    }

    async fn limited(
        &mut self,
        sql: &str,
        limit: Duration,
    ) -> Result<Result<Rows, Refusal>, Failure> {
        let answer = tokio::time::timeout(limit + GRACE, self.ask(sql, limit)).await;
        match answer {
            Ok(Ok(rows)) => Ok(Ok(rows)),
            Ok(Err(error)) if is_time_limit(&error) => Ok(Err(Refusal::TimedOut(limit))),
            Ok(Err(sqlx::Error::Database(error))) => {
                Ok(Err(Refusal::Refused(error.message().to_owned())))
            }
            Ok(Err(error)) => Err(error.into()),
            // The server did not keep the limit. What it answers later is nobody's.
            Err(_) => {
                self.connection = None;
                self.connect().await?;
                Ok(Err(Refusal::TimedOut(limit)))
            }
        }
    }

    async fn connect(&mut self) -> Result<(), Failure> {
        let engine = self.engine();
        let connection = match &self.database {
            Database::Postgres(pool) => Connection::Postgres(pool.acquire().await?),
            Database::MySql(pool, _) => Connection::MySql(pool.acquire().await?),
            Database::Sqlite(pool) => {
                let mut connection = pool.acquire().await?;
                let (deadline, begun) = (Arc::clone(&self.deadline), self.begun);
                let mut handle = connection.lock_handle().await?;
                handle.set_progress_handler(1_000, move || {
                    begun.elapsed().as_millis() < u128::from(deadline.load(Ordering::Relaxed))
                });
                drop(handle);
                Connection::Sqlite(connection)
            }
        };
        self.connection = Some(connection);
        let settings: &[&str] = match engine {
            // A table that somebody alters is not waited for longer than a query takes. Scans begin at the first page.
            Engine::Postgres => &[
                "SET synchronize_seqscans = off",
                "SET search_path = pg_catalog",
            ],
            // Else sizes are a day old.
            Engine::Mysql => &[
                "SET SESSION information_schema_stats_expiry = 0",
                NO_ESCAPES,
            ],
            Engine::Mariadb => &[NO_ESCAPES],
            _ => &[],
        };
        for setting in settings {
            self.ask(setting, CATALOG_LIMIT).await?;
        }
        Ok(())
    }

    async fn ask(&mut self, sql: &str, limit: Duration) -> Result<Rows, sqlx::Error> {
        let engine = self.engine();
        let millis = limit.as_millis().max(1);
        let connection = self
            .connection
            .as_mut()
            .expect("it is connected whenever it is asked");
        let sql = AssertSqlSafe(sql.to_owned());
        match connection {
            Connection::Postgres(connection) => {
                let set = format!("SET statement_timeout = {millis}");
                sqlx::raw_sql(AssertSqlSafe(set))
                    .execute(&mut **connection)
                    .await?;
                let rows = sqlx::raw_sql(sql).fetch(&mut **connection);
                collect(rows, |row, column| row.try_get_unchecked(column)).await
            }
            Connection::MySql(connection) => {
                let set = match engine {
                    Engine::Mariadb => {
                        format!("SET SESSION max_statement_time = {}", limit.as_secs_f64())
                    }
                    _ => format!("SET SESSION max_execution_time = {millis}"),
                };
                let locks = format!("SET SESSION lock_wait_timeout = {}", limit.as_secs().max(1));
                for set in [set, locks] {
                    sqlx::raw_sql(AssertSqlSafe(set))
                        .execute(&mut **connection)
                        .await?;
                }
                let rows = sqlx::raw_sql(sql).fetch(&mut **connection);
                let text = |row: &sqlx::mysql::MySqlRow, column| {
                    let bytes: Option<Vec<u8>> = row.try_get_unchecked(column)?;
                    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
                };
                collect(rows, text).await
            }
            Connection::Sqlite(connection) => {
                let deadline = self.begun.elapsed().as_millis() + millis;
                let deadline = u64::try_from(deadline).unwrap_or(u64::MAX);
                self.deadline.store(deadline, Ordering::Relaxed);
                let rows = sqlx::raw_sql(sql).fetch(&mut **connection);
                let answer = collect(rows, sqlite_text).await;
                self.deadline.store(u64::MAX, Ordering::Relaxed);
                answer
            }
        }
    }
}

/// Collects an answer. Ctrl-C ends it between any two rows of a long one.
async fn collect<R: sqlx::Row>(
    mut rows: impl Stream<Item = Result<R, sqlx::Error>> + Unpin,
    text: impl Fn(&R, usize) -> Result<Option<String>, sqlx::Error>,
) -> Result<Rows, sqlx::Error> {
    let mut answer = Rows::new();
    while let Some(row) = rows.try_next().await? {
        let columns = 0..row.columns().len();
        answer.push(
            columns
                .map(|column| text(&row, column))
                .collect::<Result<_, _>>()?,
        );
        if answer.len().is_multiple_of(1_000) {
            tokio::task::yield_now().await;
        }
    }
    Ok(answer)
}

/// Backslashes in texts are what they are: one way to quote for all engines.
const NO_ESCAPES: &str =
    "SET SESSION sql_mode = CONCAT(@@SESSION.sql_mode, ',NO_BACKSLASH_ESCAPES')";

fn sqlite_text(
    row: &sqlx::sqlite::SqliteRow,
    column: usize,
) -> Result<Option<String>, sqlx::Error> {
    let value = row.try_get_raw(column)?;
    if value.is_null() {
        return Ok(None);
    }
    let text = match value.type_info().name() {
        "INTEGER" => row.try_get_unchecked::<i64, _>(column)?.to_string(),
        "REAL" => row.try_get_unchecked::<f64, _>(column)?.to_string(),
        _ => {
            let bytes: Vec<u8> = row.try_get_unchecked(column)?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
    };
    Ok(Some(text))
}

/// Whether the engine ended the query because of its time limit, or because a lock was not to be had within it.
fn is_time_limit(error: &sqlx::Error) -> bool {
    let Some(error) = error.as_database_error() else {
        return false;
    };
    let code = error.code().unwrap_or_default();
    if let Some(error) = error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
        // Time of execution, on MySQL (where a count says only that it was interrupted) and MariaDB; waiting for a lock.
        return matches!(error.number(), 3024 | 1317 | 1969 | 1205);
    }
    // query_canceled and lock_not_available; SQLITE_INTERRUPT.
    matches!(&*code, "57014" | "55P03" | "9")
}

/// Groups the rows of a query by the table's id in front of them.
pub(crate) fn by_table(rows: Rows) -> BTreeMap<String, Rows> {
    let mut grouped: BTreeMap<String, Rows> = BTreeMap::new();
    for row in rows {
        grouped.entry(text(&row, 0)).or_default().push(row);
    }
    grouped
}

/// Returns a number of a row; 0 if it is none.
pub(crate) fn number(row: &[Option<String>], column: usize) -> i64 {
    text(row, column).parse().unwrap_or_default()
}

/// Returns the names in an array of JSON.
pub(crate) fn names(row: &[Option<String>], column: usize) -> Vec<String> {
    serde_json::from_str(&text(row, column)).unwrap_or_default()
}
