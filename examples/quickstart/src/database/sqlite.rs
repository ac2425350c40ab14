//! SQLite: a file.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use sqlx::{
    Sqlite,
    sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous},
};

use super::{Database, Size, Target, Types, key_type, through_sqlx};
use crate::error::{Context, Error};

/// A file of the user's, made if it is not there, and kept.
pub(crate) fn file(path: PathBuf) -> Target<Sqlite> {
    let new = !path.exists();
    let mut options = SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true)
        .foreign_keys(true)
        .synchronous(SqliteSynchronous::Normal);
    if new {
        // It stays with the file, so only a new one is switched.
        options = options.journal_mode(SqliteJournalMode::Wal);
    }
    Target {
        options,
        name: path.display().to_string(),
        new_file: new.then_some(path),
    }
}

/// The file for runs without `--file`, without what an earlier run left in it.
pub(crate) fn default_file() -> Result<Target<Sqlite>, Error> {
    let path = env::temp_dir().join("quickstart.sqlite");
    remove(&path).context(format_args!(
        "cannot remove {} of an earlier run",
        path.display()
    ))?;
    Ok(file(path))
}

/// Removes a database with its journals.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        match fs::remove_file(PathBuf::from(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

impl Database for Sqlite {
    const TYPES: Types = Types {
        key: key_type::<Sqlite>(),
        code: "TEXT",
        text: "TEXT",
        degrees: "REAL",
        // The key is the table's own tree, and no row number stands beside it.
        options: "WITHOUT ROWID",
    };
    const ROLLS_BACK_TABLES: bool = true;

    async fn describe(connection: &mut SqliteConnection) -> Result<String, sqlx::Error> {
        let (version, foreign_keys): (String, bool) =
            sqlx::query_as("SELECT sqlite_version(), foreign_keys FROM pragma_foreign_keys")
                .fetch_one(connection)
                .await?;
        Ok(format!(
            "SQLite {version}, foreign_keys={}",
            if foreign_keys { "ON" } else { "OFF" }
        ))
    }

    async fn taken(connection: &mut SqliteConnection) -> Result<Vec<String>, sqlx::Error> {
        sqlx::query_scalar("SELECT lower(name) FROM sqlite_schema")
            .fetch_all(connection)
            .await
    }

    async fn size(
        connection: &mut SqliteConnection,
        table: &str,
        _rows: u64,
    ) -> Result<Size, sqlx::Error> {
        let (bytes, unused): (i64, i64) =
            sqlx::query_as("SELECT sum(pgsize), sum(unused) FROM dbstat WHERE name = ?")
                .bind(table)
                .fetch_one(connection)
                .await?;
        let (bytes, unused) = (bytes.unsigned_abs(), unused.unsigned_abs());
        Ok(Size {
            bytes,
            tree_bytes: bytes,
            tree_filled: bytes - unused,
            tree: "the table itself, which is WITHOUT ROWID, as dbstat measures it",
        })
    }

    through_sqlx!();
}
