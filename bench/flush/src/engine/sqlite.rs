//! SQLite: a file in a temporary folder, WAL, `synchronous = NORMAL`, foreign keys on.

use sqlx::{
    Sqlite, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tempfile::TempDir;

use super::Engine;
use crate::form::Types;

impl Engine for Sqlite {
    const SERVER: &'static str = "sqlite";
    const MAX_PARAMETERS: usize = 32_766;
    const COPY: bool = false;
    const TYPES: Types = Types {
        key: "BLOB",
        code: "TEXT",
        text: "TEXT",
    };
    const VERSION: &'static str = "SELECT 'SQLite ' || sqlite_version() || \
        ', a file, WAL, synchronous = NORMAL, foreign keys on'";
    type Place = TempDir;

    fn place() -> super::Result<Result<TempDir, String>> {
        Ok(Ok(tempfile::tempdir()?))
    }

    async fn create(place: &TempDir) -> super::Result<SqlitePool> {
        Self::remove(place).await?;
        let options = SqliteConnectOptions::new()
            .filename(place.path().join("bench.sqlite"))
            .create_if_missing(true)
            .foreign_keys(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal);
        Ok(SqlitePoolOptions::new()
            .max_connections(1)
            .connect_with(options)
            .await?)
    }

    async fn remove(place: &TempDir) -> super::Result<()> {
        for file in std::fs::read_dir(place.path())? {
            std::fs::remove_file(file?.path())?;
        }
        Ok(())
    }

    fn settle(_: &[&str]) -> String {
        "ANALYZE; PRAGMA wal_checkpoint(TRUNCATE)".to_owned()
    }

    fn placeholder(_: usize) -> String {
        "?".to_owned()
    }

    super::through_sqlx!();
}
