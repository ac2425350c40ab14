//! SQLite: a file in a temporary folder, WAL, `synchronous = NORMAL`, a cache of 128 MB.

use std::{fs, time::Duration};

use ordid_core::{
    scheme::{Ulid, UuidV6, UuidV7},
    storage::{
        column::{Blob, Char22, Char26, Integer, Text},
        dialect::Sqlite as Dialect,
    },
};
use sqlx::{
    ConnectOptions, Connection as _, Sqlite, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};
use tempfile::TempDir;

use super::{Engine, More, Result, execute, statement};
use crate::{
    Row,
    gate::{Bound, Gate},
    key::{BOTH, Case},
};

const BYTES_A_ROW: &str = "file bytes a row";
const WRITTEN_MB: &str = "written MB";
const WRITTEN_A_ROW: &str = "written bytes a row";

pub(crate) struct Open {
    folder: TempDir,
    connection: SqliteConnection,
}

impl Engine for Sqlite {
    const SERVER: &'static str = "sqlite";
    const FIGURES: [&'static str; 3] = [BYTES_A_ROW, WRITTEN_MB, WRITTEN_A_ROW];
    const GATES: &'static [Gate] = &[to_rowid("v7 BLOB, 1 in 6 ms"), to_rowid("v7 BLOB, 50 a ms")];

    type Open = Open;

    fn cases() -> Vec<Case> {
        vec![
            Case::automatic("rowid", "INTEGER"),
            Case::snowflake::<Integer, Dialect>(),
            Case::of::<UuidV7, Blob, Dialect>("v7", BOTH),
            Case::of::<UuidV6, Blob, Dialect>("v6", BOTH),
            Case::of::<UuidV7, Char22, Dialect>("v7 of 22 characters,", BOTH),
            Case::of::<Ulid, Char26, Dialect>("ULID", BOTH),
            Case::of::<UuidV7, Text, Dialect>("v7 of 36 characters,", BOTH),
            Case::random_tail::<Blob, Dialect>(BOTH, false),
            Case::random::<Blob, Dialect>(),
        ]
    }

    async fn open() -> Result<std::result::Result<Open, String>> {
        let folder = tempfile::tempdir()?;
        let connection = SqliteConnectOptions::new()
            .filename(folder.path().join("bench.sqlite"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .pragma("cache_size", "-131072")
            .connect()
            .await?;
        Ok(Ok(Open { folder, connection }))
    }

    async fn version(open: &mut Open) -> Result<String> {
        let sql = "SELECT 'SQLite ' || sqlite_version() || \
            ', WAL, synchronous = NORMAL, cache 128 MB'";
        Ok(sqlx::query_scalar(sql)
            .fetch_one(&mut open.connection)
            .await?)
    }

    async fn create(open: &mut Open, case: &Case) -> Result<()> {
        // A key that is not the rowid is the table's own tree.
        let rowid = if case.declared.starts_with("INTEGER") {
            ""
        } else {
            " WITHOUT ROWID"
        };
        let sql = format!(
            "CREATE TABLE loaded (id {} NOT NULL PRIMARY KEY, k INTEGER NOT NULL, \
             payload TEXT NOT NULL){rowid}",
            case.declared
        );
        run(&mut open.connection, &sql).await
    }

    async fn before(_: &mut Open) -> Result<f64> {
        written_bytes()
    }

    async fn insert(open: &mut Open, case: &Case, rows: &[Row]) -> Result<Duration> {
        let sql = statement(case, rows, false);
        Ok(execute!(&mut open.connection, sql, rows))
    }

    async fn figures(
        open: &mut Open,
        _: &Case,
        rows: u32,
        before: f64,
        _: More<'_>,
    ) -> Result<[f64; 3]> {
        run(&mut open.connection, "PRAGMA wal_checkpoint(TRUNCATE)").await?;
        let written = written_bytes()? - before;
        let file = fs::metadata(open.folder.path().join("bench.sqlite"))?.len();
        let file = f64::from(u32::try_from(file)?);
        Ok([
            file / f64::from(rows),
            written / f64::from(1 << 20),
            written / f64::from(rows),
        ])
    }

    async fn drop(open: &mut Open) -> Result<()> {
        run(&mut open.connection, "DROP TABLE loaded").await?;
        run(&mut open.connection, "VACUUM").await?;
        run(&mut open.connection, "PRAGMA wal_checkpoint(TRUNCATE)").await
    }

    async fn close(open: Open) -> Result<()> {
        Ok(open.connection.close().await?)
    }
}

const fn to_rowid(case: &'static str) -> Gate {
    Gate {
        case,
        figure: WRITTEN_MB,
        to: Some("rowid INTEGER"),
        bound: Bound::AtMost(1.5),
    }
}

async fn run(connection: &mut SqliteConnection, sql: &str) -> Result<()> {
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned()))
        .execute(connection)
        .await?;
    Ok(())
}

/// Returns how many bytes this process has handed to the system to write: nothing else of it
/// writes while a table is loaded.
fn written_bytes() -> Result<f64> {
    let counters = fs::read_to_string("/proc/self/io")
        .map_err(|error| format!("bytes written can be counted on Linux only: {error}"))?;
    let bytes = counters
        .lines()
        .find_map(|line| line.strip_prefix("wchar: "))
        .ok_or("no wchar in /proc/self/io")?;
    Ok(bytes.parse()?)
}
