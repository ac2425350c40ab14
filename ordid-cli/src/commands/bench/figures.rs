//! Asks an engine about a table: its size, how full its pages are, and how much was written for it.

use super::{
    key::{Key, Value},
    session::Session,
};
use crate::engine::Engine;

/// The figures of a loaded table.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Figures {
    /// The bytes of the table with its index.
    pub(super) bytes: f64,
    /// Those of the index, where it is not the table itself.
    pub(super) index_bytes: Option<f64>,
    /// How full the pages of the key are, in percent.
    pub(super) page_fill: Option<f64>,
    /// How many bytes were written for it: to the log, or to the file.
    pub(super) written: Option<f64>,
}

/// Returns what [`Figures::written`] counts.
pub(super) const fn what_is_written(engine: Engine) -> &'static str {
    match engine {
        Engine::Postgres => "write-ahead log",
        Engine::Sqlite => "file and write-ahead log",
        _ => "redo log",
    }
}

/// Returns how many bytes were written so far; `None` where nobody tells. Servers count for everybody, so others who
/// write at the same time are in it.
pub(super) async fn written(session: &mut Session) -> Option<f64> {
    let sql = match session.engine() {
        Engine::Postgres => "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8",
        Engine::Mariadb => {
            "SELECT CAST(VARIABLE_VALUE AS DOUBLE) FROM information_schema.GLOBAL_STATUS
             WHERE VARIABLE_NAME = 'INNODB_OS_LOG_WRITTEN'"
        }
        Engine::Mysql => {
            "SELECT CAST(VARIABLE_VALUE AS DOUBLE) FROM performance_schema.global_status
             WHERE VARIABLE_NAME = 'Innodb_os_log_written'"
        }
        // It runs in this process, which writes nothing else meanwhile. Linux tells.
        _ => {
            session.run("PRAGMA wal_checkpoint(TRUNCATE)").await.ok()?;
            let counters = std::fs::read_to_string("/proc/self/io").ok()?;
            let bytes = counters
                .lines()
                .find_map(|line| line.strip_prefix("wchar: "))?;
            return bytes.parse().ok();
        }
    };
    session.number(sql).await.ok()
}

/// Returns what is known of the table of a key, of which `example` is a value.
pub(super) async fn of_table(
    session: &mut Session,
    key: &Key,
    example: &Value,
    (rows, width): (u32, u32),
) -> Result<Figures, sqlx::Error> {
    let table = key.table();
    match session.engine() {
        Engine::Postgres => of_postgres(session, &table).await,
        Engine::Sqlite => of_sqlite(session, &table).await,
        _ => of_innodb(session, key, &table, example, f64::from(rows), width).await,
    }
}

async fn of_postgres(session: &mut Session, table: &str) -> Result<Figures, sqlx::Error> {
    let number = format!("SELECT pg_total_relation_size('{table}'::regclass)::float8");
    let bytes = session.number(&number).await?;
    let number = format!("SELECT pg_indexes_size('{table}'::regclass)::float8");
    let index_bytes = session.number(&number).await?;
    // The extension is installed where the user wants it, or not at all.
    let sql = "SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace \
               WHERE e.extname = 'pgstattuple'";
    let schemas = session.texts(sql).await.unwrap_or_default();
    let mut page_fill = None;
    if let [schema] = &schemas[..] {
        let sql = format!(
            "SELECT avg_leaf_density FROM {schema}.pgstatindex((SELECT indexrelid::regclass FROM pg_index
             WHERE indrelid = '{table}'::regclass))"
        );
        // It may be refused to this user.
        page_fill = session.number(&sql).await.ok();
    }
    Ok(Figures {
        bytes,
        index_bytes: Some(index_bytes),
        page_fill,
        written: None,
    })
}

async fn of_sqlite(session: &mut Session, table: &str) -> Result<Figures, sqlx::Error> {
    let number = |what: &str, name: &str, which: &str| {
        format!("SELECT CAST({what} AS REAL) FROM dbstat WHERE name = '{name}'{which}")
    };
    let bytes = session.number(&number("sum(pgsize)", table, "")).await?;
    // A table with row ids has an index of the key.
    let index = format!("sqlite_autoindex_{table}_1");
    let index_bytes = session.number(&number("sum(pgsize)", &index, "")).await?;
    let of_key = if index_bytes > 0.0 { &index } else { table };
    let fill = number(
        "100 - 100.0 * sum(unused) / sum(pgsize)",
        of_key,
        " AND pagetype = 'leaf'",
    );
    Ok(Figures {
        bytes: bytes + index_bytes,
        index_bytes: (index_bytes > 0.0).then_some(index_bytes),
        page_fill: Some(session.number(&fill).await?),
        written: None,
    })
}

async fn of_innodb(
    session: &mut Session,
    key: &Key,
    table: &str,
    example: &Value,
    rows: f64,
    width: u32,
) -> Result<Figures, sqlx::Error> {
    session.run(&format!("ANALYZE TABLE {table}")).await?;
    let page = session
        .number("SELECT CAST(@@innodb_page_size AS DOUBLE)")
        .await?;
    let statistic = |name: &str| {
        format!(
            "SELECT CAST(stat_value AS DOUBLE) FROM mysql.innodb_index_stats WHERE database_name = DATABASE()
             AND table_name = '{table}' AND index_name = 'PRIMARY' AND stat_name = '{name}'"
        )
    };
    let (Ok(pages), Ok(leaves)) = (
        session.number(&statistic("size")).await,
        session.number(&statistic("n_leaf_pages")).await,
    ) else {
        // The user may not read the statistics; what everybody may read was refreshed by ANALYZE TABLE, too.
        if session.engine() == Engine::Mysql {
            session
                .run("SET SESSION information_schema_stats_expiry = 0")
                .await?;
        }
        let sql = format!(
            "SELECT CAST(data_length AS DOUBLE) FROM information_schema.tables
             WHERE table_schema = DATABASE() AND table_name = '{table}'"
        );
        return Ok(Figures {
            bytes: session.number(&sql).await?,
            ..Figures::default()
        });
    };
    // Longer rows have a part outside of the page. And MariaDB 10.11 says of a table of a few pages that it has one
    // leaf, whatever it has.
    let is_inside = f64::from(width) < page / 2.0 - 300.0;
    let is_counted = leaves > 1.0 || pages <= 1.0;
    let row = bytes_of_row(key, example, width);
    Ok(Figures {
        bytes: pages * page,
        index_bytes: None,
        page_fill: (is_inside && is_counted).then(|| 100.0 * rows * row / (leaves.max(1.0) * page)),
        written: None,
    })
}

/// Returns the bytes of a row of InnoDB's format DYNAMIC: its header, the length of the payload, the number of its
/// transaction (6), the place of its undo record (7), and the values.
fn bytes_of_row(key: &Key, example: &Value, width: u32) -> f64 {
    let key = match example {
        Value::Auto | Value::Integer(_) | Value::Unsigned(_) => 8,
        Value::Text(_) if key.sql_type.eq_ignore_ascii_case("uuid") => 16,
        Value::Uuid(_) => 16,
        Value::Bytes(bytes) => bytes.len(),
        Value::Text(text) => text.len(),
    };
    let length = if width > 255 { 2 } else { 1 };
    let fixed = u32::try_from(key).expect("keys are short") + 5 + length + 13;
    f64::from(fixed + width)
}

/// Returns how many bytes of tables the engine keeps in memory.
pub(super) async fn cache_bytes(session: &mut Session) -> Option<f64> {
    let sql = match session.engine() {
        Engine::Postgres => {
            "SELECT setting::float8 * current_setting('block_size')::float8 FROM pg_settings WHERE name = 'shared_buffers'"
        }
        Engine::Sqlite => {
            "SELECT CASE WHEN c.cache_size < 0 THEN -1024.0 * c.cache_size ELSE 1.0 * c.cache_size * p.page_size END
             FROM pragma_cache_size c, pragma_page_size p"
        }
        _ => "SELECT CAST(@@innodb_buffer_pool_size AS DOUBLE)",
    };
    session.number(sql).await.ok()
}

/// Returns the version, and the settings that matter, by name.
pub(super) async fn settings(session: &mut Session) -> Result<Vec<(String, String)>, sqlx::Error> {
    let (version, settings): (_, &[(&str, &str)]) = match session.engine() {
        Engine::Postgres => (
            "SELECT current_setting('server_version')",
            &[
                ("shared_buffers", "SELECT current_setting('shared_buffers')"),
                (
                    "full_page_writes",
                    "SELECT current_setting('full_page_writes')",
                ),
                ("fsync", "SELECT current_setting('fsync')"),
                (
                    "synchronous_commit",
                    "SELECT current_setting('synchronous_commit')",
                ),
            ],
        ),
        Engine::Sqlite => (
            "SELECT sqlite_version()",
            &[
                (
                    "journal_mode",
                    "SELECT journal_mode FROM pragma_journal_mode",
                ),
                (
                    "synchronous",
                    "SELECT CAST(synchronous AS TEXT) FROM pragma_synchronous",
                ),
                (
                    "cache_size",
                    "SELECT CAST(cache_size AS TEXT) FROM pragma_cache_size",
                ),
                (
                    "page_size",
                    "SELECT CAST(page_size AS TEXT) FROM pragma_page_size",
                ),
            ],
        ),
        _ => (
            "SELECT CAST(version() AS CHAR)",
            &[
                (
                    "innodb_buffer_pool_size",
                    "SELECT CAST(@@innodb_buffer_pool_size AS CHAR)",
                ),
                (
                    "innodb_flush_log_at_trx_commit",
                    "SELECT CAST(@@innodb_flush_log_at_trx_commit AS CHAR)",
                ),
                (
                    "innodb_doublewrite",
                    "SELECT CAST(@@innodb_doublewrite AS CHAR)",
                ),
                ("log_bin", "SELECT CAST(@@log_bin AS CHAR)"),
                ("sync_binlog", "SELECT CAST(@@sync_binlog AS CHAR)"),
            ],
        ),
    };
    let mut facts = Vec::new();
    let found = session.texts(version).await?;
    facts.push((session.engine().name().to_owned(), found.join(" ")));
    for (name, sql) in settings {
        // Forks of an engine may not have all of them.
        if let Ok(found) = session.texts(sql).await {
            facts.push(((*name).to_owned(), found.join(" ")));
        }
    }
    Ok(facts)
}
