//! Rules about whole tables: what a crash leaves of them, marker rows that nobody removes, and the keys of partitions.

use std::time::Duration;

use ordid_core::{clock::Timestamp, uuid::Uuid};
use ordid_sql::{MARKER_TABLE, MARKERS_KEPT, first_marker_since};

use super::{
    super::{
        findings::{Evidence, Finding, NO_TRANSACTIONS, NOT_DURABLE, OLD_MARKERS, Rule},
        model::{Durability, Table, Value},
    },
    Context, bytes_text, rows, time,
};
use crate::engine::Engine;

/// How old marker rows may be if `remove_old_markers` of the adapters runs once a day, or at least once a week.
const LATE: Duration = MARKERS_KEPT.saturating_mul(8);

/// Returns what is to be said about a table.
pub(super) fn findings(context: &Context<'_>, table: &Table) -> Vec<Finding> {
    [durability(context, table), old_markers(context, table)]
        .into_iter()
        .flatten()
        .collect()
}

fn of_table(rule: &'static Rule, table: &Table, message: String, query: String) -> Finding {
    Finding {
        rule,
        severity: rule.severity,
        table: Some(table.name.clone()),
        column: None,
        message,
        evidence: Evidence {
            query,
            answer: None,
        },
        cost: String::new(),
        fix: String::new(),
        is_rebuild: false,
    }
}

/// Says how many rows a table has, and how large it is.
fn size(table: &Table) -> String {
    let count = table.rows.map_or("its rows".to_owned(), rows);
    match table.bytes {
        Some(bytes) => format!("{count} in {}", bytes_text(bytes)),
        None => count,
    }
}

fn durability(context: &Context<'_>, table: &Table) -> Option<Finding> {
    let (sql, name) = (context.sql, context.sql.table(&table.name));
    let (schema, text) = (
        sql.text(table.name.schema.as_deref().unwrap_or_default()),
        sql.text(&table.name.name),
    );
    match &table.durability {
        Durability::Transactions => None,
        Durability::Unlogged => Some(Finding {
            cost: format!(
                "a crash of the server deletes {}; no standby has them",
                size(table)
            ),
            fix: format!("ALTER TABLE {name} SET LOGGED;"),
            ..of_table(
                &NOT_DURABLE,
                table,
                "the table is UNLOGGED: after a crash it is empty, whatever was committed"
                    .to_owned(),
                format!(
                    "SELECT relpersistence FROM pg_class WHERE oid = {}::regclass",
                    sql.text(&name)
                ),
            )
        }),
        Durability::NoTransactions(engine) => Some(Finding {
            cost: format!(
                "{}; a flush that fails after its first statement has written some of its rows, and says that it wrote none",
                size(table)
            ),
            fix: format!("ALTER TABLE {name} ENGINE = InnoDB;"),
            ..of_table(
                &NO_TRANSACTIONS,
                table,
                format!(
                    "the storage engine {engine} has no transactions: a ROLLBACK undoes nothing"
                ),
                format!(
                    "SELECT t.ENGINE, e.TRANSACTIONS FROM information_schema.TABLES AS t \
                     JOIN information_schema.ENGINES AS e ON e.ENGINE = t.ENGINE \
                     WHERE t.TABLE_SCHEMA = {schema} AND t.TABLE_NAME = {text}"
                ),
            )
        }),
    }
}

/// Marker rows that are older than a day decide nothing any more.
fn old_markers(context: &Context<'_>, table: &Table) -> Option<Finding> {
    if table.name.name != MARKER_TABLE {
        return None;
    }
    let now = Timestamp::saturating_from_unix_millis(u64::try_from(context.now).ok()?);
    let late = first_marker_since(LATE, now);
    let ids = table
        .sample
        .rows
        .iter()
        .filter_map(|row| match row.values.first()? {
            Value::Uuid(bytes) => Some(Uuid::from_bytes(*bytes)),
            Value::Bytes(bytes) => Uuid::from_slice(bytes).ok(),
            _ => None,
        });
    let old: Vec<Uuid> = ids.clone().filter(|id| *id < late).collect();
    let oldest = old.iter().min()?;
    let (seconds, _) = oldest.get_timestamp()?.to_unix();
    let since = time(i64::try_from(seconds).ok()?.saturating_mul(1_000));
    let (sql, name) = (context.sql, context.sql.table(&table.name));
    let kept = first_marker_since(MARKERS_KEPT, now);
    let literal = match sql.0 {
        Engine::Postgres => sql.literal(&Value::Uuid(kept.into_bytes())),
        _ => sql.literal(&Value::Bytes(kept.as_bytes().to_vec())),
    };
    let condition = format!("{} < {literal}", sql.name("id"));
    Some(Finding {
        cost: format!("{}, of which a day's are needed", size(table)),
        fix: format!(
            "DELETE FROM {name} WHERE {condition};\n-- and let a program call remove_old_markers once a day"
        ),
        ..of_table(
            &OLD_MARKERS,
            table,
            format!(
                "nobody removes the marker rows of flushes: the oldest of the sample is of {since}"
            ),
            format!("SELECT count(*) FROM {name} WHERE {condition}"),
        )
    })
}
