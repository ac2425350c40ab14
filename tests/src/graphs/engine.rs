//! The databases that graphs are flushed to.

use std::{future::Future, path::Path};

use ordid::uuid::Uuid;
use ordid_sqlx::{Backend, flushes_table};
use sqlx::{
    AssertSqlSafe, MySql, Pool, Postgres, Sqlite,
    pool::PoolOptions,
    query_as, query_scalar, raw_sql,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};

use super::schema::{NAMES, Schema};
use crate::{servers::Client, trials::Outcome};

/// A database that graphs are flushed to.
pub trait Engine: Backend + Client + Sized {
    /// The column type of a key.
    const KEY: &'static str;

    /// Whether the triggers of a schema look at each row by itself, where it has any.
    const TRIGGERS: bool = false;

    /// Writes a key in SQL.
    fn literal(key: Uuid) -> String;

    /// Makes the tables of a schema in a database that has no others, in this folder where it is a file.
    fn create(
        before: Option<Pool<Self>>,
        folder: &Path,
        schema: &Schema,
    ) -> impl Future<Output = Outcome<Pool<Self>>>;

    /// Executes SQL without parameters.
    fn execute_sql(pool: &Pool<Self>, sql: String)
    -> impl Future<Output = Result<(), sqlx::Error>>;

    /// Reads rows of a table's number, a key, and the foreign keys.
    fn read(pool: &Pool<Self>, sql: String)
    -> impl Future<Output = Result<Vec<Read>, sqlx::Error>>;

    /// Asks for the tables with rows whose parents are missing, where the database can tell: others check
    /// always.
    fn dangling(_pool: &Pool<Self>) -> impl Future<Output = Result<Vec<String>, sqlx::Error>> {
        async { Ok(Vec::new()) }
    }
}

/// A row that was read.
pub type Read = (
    i32,
    Uuid,
    Option<Uuid>,
    Option<Uuid>,
    Option<Uuid>,
    Option<Uuid>,
);

/// `SQLx`'s executor bounds hold for concrete databases only.
macro_rules! sent {
    () => {
        async fn execute_sql(pool: &Pool<Self>, sql: String) -> Result<(), sqlx::Error> {
            raw_sql(AssertSqlSafe(sql)).execute(pool).await.map(drop)
        }

        async fn read(pool: &Pool<Self>, sql: String) -> Result<Vec<Read>, sqlx::Error> {
            query_as(AssertSqlSafe(sql)).fetch_all(pool).await
        }
    };
}

impl Engine for Sqlite {
    const KEY: &'static str = "BLOB";
    const TRIGGERS: bool = true;

    sent!();

    fn literal(key: Uuid) -> String {
        format!("x'{}'", key.simple())
    }

    async fn create(
        before: Option<Pool<Self>>,
        folder: &Path,
        schema: &Schema,
    ) -> Outcome<Pool<Self>> {
        let file = folder.join("graphs.sqlite");
        if let Some(before) = before {
            before.close().await;
            std::fs::remove_file(&file)?;
        }
        // Nothing here outlives the machine.
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Memory)
            .synchronous(SqliteSynchronous::Off);
        let pool = PoolOptions::new()
            .max_connections(1)
            .connect_with(options.foreign_keys(true))
            .await?;
        let ddl = schema.ddl::<Self>(true);
        let triggers = if schema.by_row {
            schema.triggers()
        } else {
            String::new()
        };
        let flushes = flushes_table::<Self>();
        // The first rows refer to each other.
        let sql =
            format!("BEGIN; PRAGMA defer_foreign_keys = ON; {ddl} COMMIT; {triggers} {flushes}");
        Self::execute_sql(&pool, sql).await?;
        let checks: i64 = query_scalar("PRAGMA foreign_keys").fetch_one(&pool).await?;
        assert_eq!(checks, 1);
        Ok(pool)
    }

    async fn dangling(pool: &Pool<Self>) -> Result<Vec<String>, sqlx::Error> {
        let sql = "SELECT \"table\" FROM pragma_foreign_key_check";
        query_scalar(sql).fetch_all(pool).await
    }
}

impl Engine for Postgres {
    const KEY: &'static str = "uuid";

    sent!();

    fn literal(key: Uuid) -> String {
        format!("'{key}'")
    }

    async fn create(before: Option<Pool<Self>>, _: &Path, schema: &Schema) -> Outcome<Pool<Self>> {
        let pool = before.ok_or("PostgreSQL's tests are given a database")?;
        // All in one transaction.
        let sql = format!(
            "SET client_min_messages = warning; DROP SCHEMA public CASCADE; CREATE SCHEMA public; \
             {} {}",
            schema.ddl::<Self>(false),
            flushes_table::<Self>()
        );
        Self::execute_sql(&pool, sql).await?;
        Ok(pool)
    }
}

/// `MariaDB`, whose InnoDB looks at each row by itself, and at once.
impl Engine for MySql {
    const KEY: &'static str = "BINARY(16)";

    sent!();

    fn literal(key: Uuid) -> String {
        format!("x'{}'", key.simple())
    }

    async fn create(before: Option<Pool<Self>>, _: &Path, schema: &Schema) -> Outcome<Pool<Self>> {
        let pool = before.ok_or("MariaDB's tests are given a database")?;
        // Tables refer to later ones, and the first rows to each other.
        let sql = format!(
            "SET foreign_key_checks = 0; DROP TABLE IF EXISTS {}, ordid_flushes; {} {}; \
             SET foreign_key_checks = 1",
            NAMES.join(", "),
            schema.ddl::<Self>(true),
            flushes_table::<Self>()
        );
        Self::execute_sql(&pool, sql).await?;
        Ok(pool)
    }
}
