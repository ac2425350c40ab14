//! SQLite.

use ordid_sql::mapping::Entry;
use sqlx::{AssertSqlSafe, Sqlite, SqliteConnection, query_as};

use super::backend::{IdAndUuid, Inserted, MappingBackend, Row, pairs};
use crate::backend::BoxFuture;

/// Sends a statement with the hash and the UUID of each entry, and returns the rows of it.
async fn send(
    connection: &mut SqliteConnection,
    sql: String,
    entries: &[Entry],
) -> Result<Vec<IdAndUuid>, sqlx::Error> {
    let is_kept = Sqlite::repeats(entries.len());
    let mut query = query_as(AssertSqlSafe(sql)).persistent(is_kept);
    for entry in entries {
        query = query.bind(i64::from(entry.hash())).bind(entry.uuid());
    }
    query.fetch_all(connection).await
}

impl MappingBackend for Sqlite {
    // With AUTOINCREMENT no id comes again after its row was deleted, and the highest is the last.
    const DEFINITION: &'static str = "(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid BLOB NOT NULL CHECK (typeof(uuid) = 'blob' AND length(uuid) = 16),
    uuid_hash INTEGER NOT NULL CHECK (uuid_hash BETWEEN 0 AND 4294967295),
    UNIQUE (uuid_hash, uuid)
)";
    const FIND_ROWS: usize = 10_000;
    const INSERT_ROWS: usize = 10_000;

    /// A transaction that reads an old snapshot cannot write, so there is no `latest` to ask for.
    fn find<'a>(
        connection: &'a mut SqliteConnection,
        table: &'a str,
        entries: &'a [Entry],
        _latest: bool,
    ) -> BoxFuture<'a, Result<Vec<IdAndUuid>, sqlx::Error>> {
        Box::pin(async move {
            let rows = pairs(entries.len());
            let sql =
                format!("SELECT id, uuid FROM {table} WHERE (uuid_hash, uuid) IN (VALUES {rows})");
            send(connection, sql, entries).await
        })
    }

    fn insert<'a>(
        connection: &'a mut SqliteConnection,
        table: &'a str,
        entries: &'a [Entry],
        _exact: bool,
    ) -> BoxFuture<'a, Result<Inserted, sqlx::Error>> {
        Box::pin(async move {
            let rows = pairs(entries.len());
            let sql = format!(
                "INSERT INTO {table} (uuid_hash, uuid) VALUES {rows} \
                 ON CONFLICT (uuid_hash, uuid) DO NOTHING RETURNING id, uuid"
            );
            Ok(Inserted::These(send(connection, sql, entries).await?))
        })
    }

    fn rows<'a>(
        connection: &'a mut SqliteConnection,
        table: &'a str,
        ids: &'a [i64],
    ) -> BoxFuture<'a, Result<Vec<Row>, sqlx::Error>> {
        Box::pin(async move {
            let places = ["?"].repeat(ids.len()).join(", ");
            let sql = format!("SELECT id, uuid, uuid_hash FROM {table} WHERE id IN ({places})");
            let mut rows = query_as(AssertSqlSafe(sql)).persistent(Self::repeats(ids.len()));
            for id in ids {
                rows = rows.bind(id);
            }
            rows.fetch_all(connection).await
        })
    }
}
