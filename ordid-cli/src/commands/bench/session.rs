//! Talks to each engine: creates tables, inserts rows, and reads.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use sqlx::{
    AssertSqlSafe, MySql, Postgres, Row as _, Sqlite, mysql::MySqlArguments, pool::PoolConnection,
    query::Query,
};

use super::key::{Key, Value};
use crate::{database::Database, engine::Engine, failure::Failure};

/// One connection, which does everything.
pub(super) enum Session {
    Postgres(PoolConnection<Postgres>),
    MySql(PoolConnection<MySql>, Engine),
    Sqlite(PoolConnection<Sqlite>),
}

/// Evaluates an expression over the connection, whatever the engine is.
macro_rules! on {
    ($session:expr, $connection:ident => $body:expr) => {
        match $session {
            Session::Postgres(pooled) => {
                let $connection = &mut **pooled;
                $body
            }
            Session::MySql(pooled, _) => {
                let $connection = &mut **pooled;
                $body
            }
            Session::Sqlite(pooled) => {
                let $connection = &mut **pooled;
                $body
            }
        }
    };
}

/// Binds the key of a row.
macro_rules! bind {
    ($query:expr, $key:expr, $unsigned:expr) => {
        match $key {
            Value::Auto => $query,
            Value::Integer(key) => $query.bind(*key),
            Value::Unsigned(key) => $unsigned($query, *key),
            Value::Uuid(key) => $query.bind(*key),
            Value::Bytes(key) => $query.bind(&key[..]),
            Value::Text(key) => $query.bind(&key[..]),
        }
    };
}

/// The same expression on each engine, with what binds an unsigned integer there.
macro_rules! bound {
    ($session:expr, $connection:ident, $unsigned:ident => $body:expr) => {
        match $session {
            Session::Postgres(pooled) => {
                let $connection = &mut **pooled;
                let $unsigned = no_unsigned;
                $body
            }
            Session::MySql(pooled, _) => {
                let $connection = &mut **pooled;
                let $unsigned = bind_unsigned;
                $body
            }
            Session::Sqlite(pooled) => {
                let $connection = &mut **pooled;
                let $unsigned = no_unsigned;
                $body
            }
        }
    };
}

/// Whether SQLite advises against `WITHOUT ROWID` (<https://sqlite.org/withoutrowid.html>): rows longer than a twentieth of
/// a page. From a quarter on, each row has pages of its own.
pub(super) const fn is_long_for_sqlite(width: u32) -> bool {
    width > 4096 / 20
}

fn bind_unsigned<'q>(
    query: Query<'q, MySql, MySqlArguments>,
    key: u64,
) -> Query<'q, MySql, MySqlArguments> {
    query.bind(key)
}

/// PostgreSQL and SQLite have no column of unsigned integers.
fn no_unsigned<Q>(_: Q, key: u64) -> Q {
    unreachable!("{key} is bound as unsigned, for which there is no column")
}

impl Session {
    /// Takes a connection.
    pub(super) async fn of(database: &Database) -> Result<Self, Failure> {
        Ok(match database {
            Database::Postgres(pool) => Self::Postgres(pool.acquire().await?),
            Database::MySql(pool, engine) => Self::MySql(pool.acquire().await?, *engine),
            Database::Sqlite(pool) => Self::Sqlite(pool.acquire().await?),
        })
    }

    /// Returns which engine it is.
    pub(super) fn engine(&self) -> Engine {
        match self {
            Self::Postgres(_) => Engine::Postgres,
            Self::MySql(_, engine) => *engine,
            Self::Sqlite(_) => Engine::Sqlite,
        }
    }

    /// Executes statements that have no parameters.
    pub(super) async fn run(&mut self, sql: &str) -> Result<(), sqlx::Error> {
        on!(self, connection => {
            sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await?;
            Ok(())
        })
    }

    /// Returns the first column of all rows, as texts.
    pub(super) async fn texts(&mut self, sql: &str) -> Result<Vec<String>, sqlx::Error> {
        on!(self, connection => {
            let rows = sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(connection).await?;
            rows.iter().map(|row| row.try_get(0)).collect()
        })
    }

    /// Returns the first column of the only row, as a number.
    pub(super) async fn number(&mut self, sql: &str) -> Result<f64, sqlx::Error> {
        on!(self, connection => {
            let row = sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_one(connection).await?;
            Ok(row.try_get::<Option<f64>, _>(0)?.unwrap_or_default())
        })
    }

    /// Returns the tables of earlier runs, or of somebody else, in the schema where tables would be made.
    ///
    /// # Errors
    ///
    /// There is no such schema.
    pub(super) async fn tables(&mut self) -> Result<Vec<String>, Failure> {
        let schema = match self.engine() {
            Engine::Sqlite => None,
            Engine::Postgres => Some("SELECT current_schema()::text"),
            _ => Some("SELECT CAST(DATABASE() AS CHAR)"),
        };
        if let Some(sql) = schema {
            let found = on!(self, connection => {
                sqlx::query_scalar::<_, Option<String>>(sql).fetch_one(connection).await?
            });
            if found.is_none() {
                return Err(Failure::wrong(
                    "the connection has no schema to make tables in: name a database in the URL",
                ));
            }
        }
        let sql = match self.engine() {
            Engine::Postgres => {
                r"SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                  WHERE n.nspname = current_schema() AND c.relname LIKE 'ordid\_bench\_%' AND c.relkind <> 'i' ORDER BY 1"
            }
            Engine::Sqlite => {
                r"SELECT name FROM sqlite_schema WHERE name LIKE 'ordid\_bench\_%' ESCAPE '\' AND type IN ('table', 'view') ORDER BY 1"
            }
            _ => {
                r"SELECT CAST(table_name AS CHAR) FROM information_schema.tables
                  WHERE table_schema = DATABASE() AND table_name LIKE 'ordid|_bench|_%' ESCAPE '|' ORDER BY 1"
            }
        };
        Ok(self.texts(sql).await?)
    }

    /// Makes the table of a key, which must not exist.
    pub(super) async fn create(&mut self, key: &Key, width: u32) -> Result<(), sqlx::Error> {
        let engine = self.engine();
        let payload = match engine {
            Engine::Postgres => "bytea".to_owned(),
            Engine::Sqlite => "BLOB".to_owned(),
            _ => format!("VARBINARY({})", width.max(1)),
        };
        let options = match engine {
            Engine::Postgres => "",
            // A key that is not the row's number is the table's own tree, where rows are short.
            Engine::Sqlite if key.sql_type.starts_with("INTEGER") || is_long_for_sqlite(width) => {
                ""
            }
            Engine::Sqlite => " WITHOUT ROWID",
            _ => " ENGINE = InnoDB",
        };
        let (table, id) = (key.table(), key.declaration(engine));
        let sql = format!("CREATE TABLE {table} ({id}, payload {payload} NOT NULL){options}");
        self.run(&sql).await
    }

    /// Removes a table.
    pub(super) async fn drop(&mut self, table: &str) -> Result<(), sqlx::Error> {
        self.run(&format!("DROP TABLE IF EXISTS {table}")).await
    }

    /// Returns placeholders, as the engine writes them: `(?, ?), (?, ?)` or `($1, $2), ($3, $4)`.
    fn places(&self, rows: usize, columns: usize) -> String {
        let is_numbered = matches!(self, Self::Postgres(_));
        let mut places = String::new();
        for row in 0..rows {
            places.push_str(if row == 0 { "(" } else { ", (" });
            for column in 0..columns {
                if column > 0 {
                    places.push_str(", ");
                }
                match is_numbered {
                    true => drop(write!(places, "${}", row * columns + column + 1)),
                    false => places.push('?'),
                }
            }
            places.push(')');
        }
        places
    }

    /// Inserts rows by one statement, which is a transaction, and returns how long it took.
    pub(super) async fn insert(
        &mut self,
        table: &str,
        rows: &[(Value, &[u8])],
    ) -> Result<Duration, sqlx::Error> {
        let is_auto = matches!(rows.first(), Some((Value::Auto, _)));
        let columns = if is_auto { "payload" } else { "id, payload" };
        let places = self.places(rows.len(), if is_auto { 1 } else { 2 });
        let sql = format!("INSERT INTO {table} ({columns}) VALUES {places}");
        bound!(self, connection, unsigned => {
            let mut query = sqlx::query(AssertSqlSafe(sql));
            for (key, payload) in rows {
                query = bind!(query, key, unsigned).bind(*payload);
            }
            let started = Instant::now();
            query.execute(connection).await?;
            Ok(started.elapsed())
        })
    }

    /// Reads rows by their keys, one after the other or by one statement, and returns how many there were and how long
    /// it took.
    pub(super) async fn read(
        &mut self,
        table: &str,
        keys: &[Value],
    ) -> Result<(usize, Duration), sqlx::Error> {
        let places = self.places(1, keys.len());
        let sql = format!("SELECT payload FROM {table} WHERE id IN {places}");
        bound!(self, connection, unsigned => {
            let mut query = sqlx::query(AssertSqlSafe(sql));
            for key in keys {
                query = bind!(query, key, unsigned);
            }
            let started = Instant::now();
            let rows = query.fetch_all(connection).await?;
            Ok((rows.len(), started.elapsed()))
        })
    }

    /// Reads the rows from one key up to another one, which is among them, and returns how many there were and how long
    /// it took.
    pub(super) async fn read_range(
        &mut self,
        table: &str,
        [low, high]: [&Value; 2],
    ) -> Result<(usize, Duration), sqlx::Error> {
        let (from, to) = match self {
            Self::Postgres(_) => ("$1", "$2"),
            _ => ("?", "?"),
        };
        let sql = format!("SELECT payload FROM {table} WHERE id >= {from} AND id <= {to}");
        bound!(self, connection, unsigned => {
            let query = sqlx::query(AssertSqlSafe(sql));
            let query = bind!(query, low, unsigned);
            let query = bind!(query, high, unsigned);
            let started = Instant::now();
            let rows = query.fetch_all(connection).await?;
            Ok((rows.len(), started.elapsed()))
        })
    }

    /// Returns the least key that the database has made, and the greatest.
    pub(super) async fn counted(&mut self, table: &str) -> Result<(i64, i64), sqlx::Error> {
        let sql = format!("SELECT MIN(id), MAX(id) FROM {table}");
        on!(self, connection => {
            sqlx::query_as(AssertSqlSafe(sql)).fetch_one(connection).await
        })
    }
}
