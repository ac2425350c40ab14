//! The tracker's database in an SQLite file.

#[path = "queries.rs"]
#[allow(clippy::duplicate_mod, reason = "for each database")]
mod queries;

use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions};

pub(super) use queries::Database;

use crate::error::Error;

type Db = sqlx::Sqlite;

const SCHEMA: &str = include_str!("sqlite.sql");

pub(super) async fn open(file: &str) -> Result<Database, Error> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        // With a write-ahead log, readers do not wait for an import.
        .journal_mode(SqliteJournalMode::Wal)
        .busy_timeout(Duration::from_secs(10))
        .foreign_keys(true);
    let pool = SqlitePoolOptions::new()
        .max_connections(4)
        .connect_with(options)
        .await?;
    Database::new(pool, SCHEMA).await
}
