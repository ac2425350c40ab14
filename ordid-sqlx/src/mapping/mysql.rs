//! MySQL and MariaDB.
//!
//! Neither returns the rows of an `INSERT` on both, and what InnoDB counts for `INSERT IGNORE` does not say
//! which rows are new. So a plain `INSERT` is sent where that matters, all of whose rows are new or none.

use ordid_sql::mapping::Entry;
use sqlx::{AssertSqlSafe, MySql, MySqlConnection, query, query_as};

use super::backend::{IdAndUuid, Inserted, MappingBackend, Row, pairs};
use crate::backend::BoxFuture;

impl MappingBackend for MySql {
    // The engine checks the hash itself, which MySQL does from 8.0.16 on.
    const DEFINITION: &'static str = "(
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    `uuid` BINARY(16) NOT NULL,
    uuid_hash INT UNSIGNED NOT NULL,
    UNIQUE KEY (uuid_hash, `uuid`),
    CHECK (uuid_hash = CRC32(`uuid`))
) ENGINE=InnoDB";
    // Below the 1,000 values from which on MariaDB makes a table of them.
    const FIND_ROWS: usize = 400;
    const INSERT_ROWS: usize = 1_000;

    fn find<'a>(
        connection: &'a mut MySqlConnection,
        table: &'a str,
        entries: &'a [Entry],
        latest: bool,
    ) -> BoxFuture<'a, Result<Vec<IdAndUuid>, sqlx::Error>> {
        Box::pin(async move {
            // A locking read is one of the latest rows, also where the transaction has a snapshot.
            let lock = if latest { " LOCK IN SHARE MODE" } else { "" };
            // One row is read by its key; a list, even of one, is a range of them.
            let wanted = match entries.len() {
                1 => "uuid_hash = ? AND `uuid` = ?".to_owned(),
                rows => format!("(uuid_hash, `uuid`) IN ({})", pairs(rows)),
            };
            let sql =
                format!("SELECT CAST(id AS SIGNED), `uuid` FROM {table} WHERE {wanted}{lock}");
            let mut find = query_as(AssertSqlSafe(sql)).persistent(Self::repeats(entries.len()));
            for entry in entries {
                find = find.bind(entry.hash()).bind(entry.uuid());
            }
            find.fetch_all(connection).await
        })
    }

    fn insert<'a>(
        connection: &'a mut MySqlConnection,
        table: &'a str,
        entries: &'a [Entry],
        exact: bool,
    ) -> BoxFuture<'a, Result<Inserted, sqlx::Error>> {
        Box::pin(async move {
            let is_one = entries.len() == 1;
            let plain = exact || is_one;
            let ignore = if plain { "" } else { "IGNORE " };
            let rows = pairs(entries.len());
            let sql = format!("INSERT {ignore}INTO {table} (uuid_hash, `uuid`) VALUES {rows}");
            let mut insert = query(AssertSqlSafe(sql)).persistent(Self::repeats(entries.len()));
            for entry in entries {
                insert = insert.bind(entry.hash()).bind(entry.uuid());
            }
            let done = match insert.execute(connection).await {
                Ok(done) => done,
                Err(sqlx::Error::Database(error)) if plain && error.is_unique_violation() => {
                    return Ok(Inserted::Unclear);
                }
                Err(error) => return Err(error),
            };
            // 0 where the column does not count by itself.
            let id = i64::try_from(done.last_insert_id()).unwrap_or_default();
            Ok(match entries {
                [entry] if id > 0 => Inserted::These(vec![(id, entry.uuid().as_bytes().into())]),
                _ if usize::try_from(done.rows_affected()) == Ok(entries.len()) => Inserted::All,
                _ => Inserted::Unclear,
            })
        })
    }

    fn rows<'a>(
        connection: &'a mut MySqlConnection,
        table: &'a str,
        ids: &'a [i64],
    ) -> BoxFuture<'a, Result<Vec<Row>, sqlx::Error>> {
        Box::pin(async move {
            let places = ["?"].repeat(ids.len()).join(", ");
            let sql = format!(
                "SELECT CAST(id AS SIGNED), `uuid`, CAST(uuid_hash AS SIGNED) FROM {table} \
                 WHERE id IN ({places})"
            );
            let mut rows = query_as(AssertSqlSafe(sql)).persistent(Self::repeats(ids.len()));
            for id in ids {
                rows = rows.bind(id);
            }
            rows.fetch_all(connection).await
        })
    }
}
