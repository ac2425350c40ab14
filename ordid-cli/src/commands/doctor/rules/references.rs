//! Foreign keys: their indexes, and whether they are what they refer to.

use super::{
    super::{
        findings::{
            DANGLING_REFERENCE, Evidence, FOREIGN_KEY_TYPE, Finding, Severity,
            UNINDEXED_FOREIGN_KEY,
        },
        model::{Column, Dangling, Kind, Reference, Table},
    },
    Context, SAY_AGAIN, STRICT, grouped, plain, rows,
};
use crate::engine::Engine;

/// Returns what is wrong with the foreign keys of a table.
pub(super) fn findings(context: &Context<'_>, table: &Table) -> Vec<Finding> {
    let found = table.references.iter().flat_map(|reference| {
        [
            unindexed(context, table, reference),
            types(context, table, reference),
        ]
    });
    let dangling = table
        .dangling
        .iter()
        .filter_map(|dangling| dangles(context, table, dangling));
    found.flatten().chain(dangling).collect()
}

fn count_of(table: &Table) -> u64 {
    table
        .rows
        .unwrap_or_else(|| u64::try_from(table.sample.rows.len()).unwrap_or(u64::MAX))
}

fn unindexed(context: &Context<'_>, table: &Table, reference: &Reference) -> Option<Finding> {
    let wanted = &reference.columns;
    let serves = |columns: &[String]| {
        columns.len() >= wanted.len()
            && columns[..wanted.len()]
                .iter()
                .all(|column| wanted.contains(column))
    };
    let is_indexed = table
        .indexes
        .iter()
        .any(|index| index.is_whole && serves(&index.columns));
    // InnoDB makes the index by itself.
    if is_indexed || context.sql.is_mysql() {
        return None;
    }
    let (sql, name) = (context.sql, context.sql.table(&table.name));
    let first = wanted.first()?;
    let sample = table
        .sample
        .columns
        .iter()
        .position(|column| column == first);
    let value = sample.and_then(|at| {
        let values = table.sample.rows.iter().map(|row| &row.values[at]);
        values
            .clone()
            .find(|value| **value != super::super::model::Value::Null)
    });
    let condition = value.map_or("false".to_owned(), |value| sql.finds(first, value));
    let explain = match sql.0 {
        Engine::Postgres => "EXPLAIN (COSTS OFF)",
        _ => "EXPLAIN QUERY PLAN",
    };
    let index = format!("{}_{}", table.name.name, wanted.join("_"));
    // PostgreSQL makes no index of a partitioned table CONCURRENTLY.
    let concurrently = match (sql.0, &table.partitioned_by) {
        (Engine::Postgres, None) => " CONCURRENTLY",
        _ => "",
    };
    let index = sql.name(&index);
    Some(Finding {
        rule: &UNINDEXED_FOREIGN_KEY,
        severity: UNINDEXED_FOREIGN_KEY.severity,
        table: Some(table.name.clone()),
        column: Some(wanted.join(", ")),
        message: format!(
            "{} refers to {}, and has no index that begins with it",
            wanted.join(", "),
            reference.parent
        ),
        evidence: Evidence {
            query: format!("{explain} SELECT 1 FROM {name} WHERE {condition}"),
            answer: None,
        },
        cost: format!(
            "each row of {} that is deleted, or gets another key, makes the database read {}",
            reference.parent,
            rows(count_of(table))
        ),
        fix: format!(
            "CREATE INDEX{concurrently} {index} ON {name} ({});",
            sql.names(wanted)
        ),
        is_rebuild: false,
    })
}

/// Rows of SQLite that refer to nothing: it checks foreign keys only on connections that say so.
fn dangles(context: &Context<'_>, table: &Table, dangling: &Dangling) -> Option<Finding> {
    let reference = table.references.get(dangling.reference)?;
    let (sql, name) = (context.sql, context.sql.table(&table.name));
    let is_nullable = |column: &&String| {
        table
            .column(column)
            .is_some_and(|column| column.is_nullable)
    };
    let condition = &dangling.condition;
    let count = rows(dangling.rows);
    let refer = if dangling.rows == 1 {
        "refers"
    } else {
        "refer"
    };
    let parent = plain(&reference.parent.to_string());
    let (message, fix) = match dangling.has_parent {
        true => {
            let remedy = match reference.columns.iter().find(is_nullable) {
                Some(column) => format!(
                    "UPDATE {name} SET {} = NULL WHERE {condition};",
                    sql.name(column)
                ),
                None => format!("DELETE FROM {name} WHERE {condition};"),
            };
            (
                format!(
                    "{count} {refer} to rows of {} that are not there",
                    reference.parent
                ),
                format!(
                    "-- if the rows of {parent} cannot be restored:\n{remedy}\n-- and let each connection say: PRAGMA foreign_keys = ON"
                ),
            )
        }
        // Often the parent was renamed, and the rows are right. So nothing is said that would change them.
        false => (
            format!(
                "{count} {refer} to the table {}, which is not there",
                reference.parent
            ),
            format!(
                "-- restore the table {parent}, or build this table again: with a foreign key to the table that is meant, if \
                 {parent} was renamed, or without it"
            ),
        ),
    };
    Some(Finding {
        rule: &DANGLING_REFERENCE,
        severity: DANGLING_REFERENCE.severity,
        table: Some(table.name.clone()),
        column: Some(reference.columns.join(", ")),
        message,
        evidence: Evidence {
            query: format!("SELECT count(*) FROM {name} WHERE {condition}"),
            answer: None,
        },
        cost: format!(
            "joins leave {} of {} out, and a connection that checks foreign keys refuses to update or insert such rows",
            grouped(dangling.rows),
            rows(count_of(table))
        ),
        fix,
        is_rebuild: false,
    })
}

fn types(context: &Context<'_>, table: &Table, reference: &Reference) -> Option<Finding> {
    let parent = context
        .examined
        .tables
        .iter()
        .find(|parent| parent.name == reference.parent)?;
    let pairs = reference.columns.iter().zip(&reference.parent_columns);
    let mut pairs =
        pairs.filter_map(|(child, key)| Some((table.column(child)?, parent.column(key)?)));
    let (child, key) = pairs.find(|(child, key)| differ(child, key))?;
    let (sql, name) = (context.sql, context.sql.table(&table.name));
    let is_narrower = match (child.kind, key.kind) {
        (Kind::Integer { bits, .. }, Kind::Integer { bits: parent, .. }) => bits < parent,
        _ => false,
    };
    let is_other = std::mem::discriminant(&child.kind) != std::mem::discriminant(&key.kind);
    let severity = match is_narrower || is_other {
        true => Severity::Error,
        false => Severity::Warning,
    };
    let what = match (is_narrower, is_other) {
        (true, _) => "its numbers end before the keys do",
        (_, true) => "a value of one kind never equals one of the other",
        _ => "a join converts one of them, or does not use its index",
    };
    let (column, wanted) = (sql.name(&child.name), described(key));
    let target = context.target(parent, key);
    let is_sqlite = sql.0 == Engine::Sqlite;
    let parent_changes = !is_sqlite && target.declared != key.declared;
    Some(Finding {
        rule: &FOREIGN_KEY_TYPE,
        severity,
        table: Some(table.name.clone()),
        column: Some(child.name.clone()),
        message: format!(
            "{} is {} and refers to {}.{}, which is {wanted}; {what}",
            child.name,
            described(child),
            parent.name,
            key.name
        ),
        evidence: Evidence {
            query: evidence(context, table, parent, child, key),
            answer: None,
        },
        cost: format!(
            "{} refer to {}",
            rows(count_of(table)),
            rows(count_of(parent))
        ),
        is_rebuild: is_sqlite,
        fix: match sql.0 {
            // The table is built again.
            Engine::Sqlite => String::new(),
            _ if parent_changes => format!(
                "-- {}.{} is to become {}: make this column the same when you run its fix",
                plain(&parent.name.to_string()),
                plain(&key.name),
                target.declared
            ),
            Engine::Postgres => {
                let collation = key
                    .collation
                    .as_ref()
                    .filter(|collation| !collation.name.starts_with("the database"));
                let collate =
                    collation.map(|collation| format!(" COLLATE {}", sql.name(&collation.name)));
                let using = match is_other {
                    true => format!(" USING {column}::{}", key.declared),
                    false => String::new(),
                };
                let statement = format!(
                    "ALTER TABLE {name} ALTER COLUMN {column} TYPE {}{}{using};",
                    key.declared,
                    collate.unwrap_or_default()
                );
                context.retype(table, child, statement)
            }
            _ => {
                let collate = key
                    .collation
                    .as_ref()
                    .map(|collation| format!(" COLLATE {}", collation.name));
                let null = if child.is_nullable { "" } else { " NOT NULL" };
                format!(
                    "{SAY_AGAIN}{STRICT}ALTER TABLE {name} DROP FOREIGN KEY {0}, MODIFY {column} {1}{2}{null};\n\
                     ALTER TABLE {name} ADD CONSTRAINT {0} FOREIGN KEY ({3}) REFERENCES {4} ({5}){6};",
                    sql.name(&reference.name),
                    key.declared,
                    collate.unwrap_or_default(),
                    sql.names(&reference.columns),
                    sql.table(&parent.name),
                    sql.names(&reference.parent_columns),
                    reference.actions
                )
            }
        },
    })
}

fn described(column: &Column) -> String {
    match &column.collation {
        Some(collation) => format!("{} with the collation {}", column.declared, collation.name),
        None => column.declared.clone(),
    }
}

fn differ(child: &Column, key: &Column) -> bool {
    let is_same = match (child.kind, key.kind) {
        (Kind::Other, Kind::Other) => child.declared.eq_ignore_ascii_case(&key.declared),
        (child, key) => child == key,
    };
    !is_same || child.collation != key.collation
}

/// Returns what the engine's catalog says of both columns.
fn evidence(
    context: &Context<'_>,
    table: &Table,
    parent: &Table,
    child: &Column,
    key: &Column,
) -> String {
    let sql = context.sql;
    let one = |table: &Table, column: &Column| {
        let (schema, name, column) = (
            sql.text(table.name.schema.as_deref().unwrap_or_default()),
            sql.text(&table.name.name),
            sql.text(&column.name),
        );
        match sql.0 {
            Engine::Postgres => format!(
                "SELECT table_name, column_name, data_type, collation_name FROM information_schema.columns \
                 WHERE table_schema = {schema} AND table_name = {name} AND column_name = {column}"
            ),
            Engine::Sqlite => format!(
                "SELECT {name}, name, type FROM pragma_table_info({name}) WHERE name = {column}"
            ),
            _ => format!(
                "SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, COLLATION_NAME FROM information_schema.COLUMNS \
                 WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {name} AND COLUMN_NAME = {column}"
            ),
        }
    };
    format!("{} UNION ALL {}", one(table, child), one(parent, key))
}
