//! Finds the things that depend on the moved columns in MySQL and MariaDB, and the indexes that have them.

use super::{Found, is_at_least, of, quote, refers_to, text};
use crate::{
    engine::Engine,
    failure::Failure,
    migration::{
        request::Refusals,
        session::{Cells, Session},
        subject::{Column, Index, Moved, literal},
    },
};

pub(super) async fn dependents(
    session: &mut Session,
    found: &mut Found,
    refusals: &mut Refusals,
    notes: &mut Vec<String>,
) -> Result<(), Failure> {
    let tables = std::mem::take(&mut found.tables);
    for mut table in tables {
        let title = table.title();
        let condition = of(&table.schema, &table.name);
        let partitions = format!(
            "SELECT 1 FROM information_schema.partitions WHERE {condition} AND partition_name IS NOT NULL LIMIT 1"
        );
        if session.exists(&partitions).await? {
            refusals.add(format!(
                "{title} is partitioned: its key has the partition's column in it, and foreign keys are not possible"
            ));
        }
        not_instant(session, &table, refusals).await?;
        if session.engine() == Engine::Mariadb {
            for row in session.rows(&generated(&table)).await? {
                refusals.add(format!(
                    "{} {NOT_IN_PLACE}: drop it until the move is done",
                    text(&row, 0)
                ));
            }
        }
        let special = format!(
            "SELECT 1 FROM information_schema.statistics WHERE {condition} AND index_type IN ('FULLTEXT', 'SPATIAL') LIMIT 1"
        );
        if session.exists(&special).await? {
            refusals.add(format!(
                "{title} has a FULLTEXT or SPATIAL index: the server cannot rebuild it while others write; drop the index until the \
                 move is done"
            ));
        }
        let triggers = format!(
            "SELECT group_concat(trigger_name) FROM information_schema.triggers WHERE event_object_schema = {} AND \
             event_object_table = {} AND event_manipulation = 'UPDATE'",
            literal(&table.schema),
            literal(&table.name)
        );
        if let Some(names) = session.value(&triggers).await? {
            notes.push(format!(
                "{title} has triggers ({names}), which also run for the rows that apply changes"
            ));
        }
        let views = format!(
            "SELECT group_concat(concat(table_schema, '.', table_name)) FROM information_schema.views WHERE view_definition LIKE {}",
            literal(&format!("%`{}`.`{}`%", table.schema, table.name))
        );
        if let Some(names) = session.value(&views).await? {
            notes.push(format!(
                "views read {title} ({names}): they read columns by name, and show the new keys after the switch"
            ));
        }
        for column in &table.columns {
            let mentions = literal(&format!("%`{}`%", column.name));
            let generated = format!(
                "SELECT group_concat(column_name) FROM information_schema.columns WHERE {condition} AND generation_expression LIKE \
                 {mentions}"
            );
            if let Some(names) = session.value(&generated).await? {
                refusals.add(format!(
                    "{title} has generated columns ({names}) that depend on {}",
                    column.name
                ));
            }
            let defaults = format!(
                "SELECT group_concat(column_name) FROM information_schema.columns WHERE {condition} AND {}",
                super::reads_in_default(&column.name)
            );
            if let Some(names) = session.value(&defaults).await? {
                refusals.add(format!(
                    "{title} has defaults ({names}) that depend on {}: drop them until the move is done",
                    column.name
                ));
            }
            let checks = format!(
                "SELECT group_concat(c.constraint_name) FROM information_schema.check_constraints c JOIN \
                 information_schema.table_constraints t ON t.constraint_schema = c.constraint_schema AND t.constraint_name = \
                 c.constraint_name WHERE t.table_schema = {} AND t.table_name = {} AND c.check_clause LIKE {mentions}",
                literal(&table.schema),
                literal(&table.name)
            );
            if let Some(names) = session.value(&checks).await? {
                refusals.add(format!(
                    "{title} has checks ({names}) that depend on {}: drop them until the move is done",
                    column.name
                ));
            }
            let inwards = format!(
                "SELECT group_concat(concat(table_schema, '.', table_name)) FROM information_schema.key_column_usage k WHERE \
                 {} AND referenced_column_name = {}",
                refers_to(&table.schema, &table.name),
                literal(&column.name)
            );
            if column.reference.is_some()
                && let Some(names) = session.value(&inwards).await?
            {
                refusals.add(format!(
                    "{names} refers to {title}.{}, which is moved itself",
                    column.name
                ));
            }
            let outwards = format!(
                "SELECT count(*) FROM information_schema.key_column_usage WHERE {condition} AND column_name = {} AND \
                 referenced_table_name IS NOT NULL",
                literal(&column.name)
            );
            if session.number(&outwards).await? != i64::from(column.reference.is_some()) {
                refusals.add(format!(
                    "{title}.{} also has a foreign key to another table, or is part of one",
                    column.name
                ));
            }
        }
        notes.extend(histograms(session, &table).await?);
        table.indexes = indexes(session, &table, refusals).await?;
        let touched = format!(
            "SELECT column_name FROM information_schema.columns WHERE {condition} AND extra LIKE '%on update%'"
        );
        let touched = session.rows(&touched).await?;
        found
            .touched
            .push(touched.iter().map(|row| text(row, 0)).collect());
        found.tables.push(table);
    }
    Ok(())
}

/// Says, behind the name of a generated column, why the move cannot end beside it.
pub(super) const NOT_IN_PLACE: &str =
    "is there, and MariaDB does not change its table in place then";

/// Returns the query of generated columns beside which MariaDB could not end the move: it refuses the statement that
/// drops the old columns, and a new primary key beside a stored column. It still drops a column that may be NULL, unless
/// a virtual column has an index. The hash of a unique index of long texts is such a virtual column, which nobody sees.
pub(super) fn generated(table: &Moved) -> String {
    let is_plain = |it: &Column| it.reference.is_some() && !it.not_null;
    let condition = match table.columns.iter().all(is_plain) {
        false => "TRUE",
        true => {
            "c.extra LIKE '%VIRTUAL%' AND EXISTS (SELECT 1 FROM information_schema.statistics s WHERE s.table_schema = \
             c.table_schema AND s.table_name = c.table_name AND s.column_name = c.column_name)"
        }
    };
    format!(
        "SELECT CONCAT('the generated column ', c.column_name, {title}) FROM information_schema.columns c WHERE {here} AND c.extra LIKE \
         '%GENERATED%' AND {condition} UNION ALL SELECT DISTINCT CONCAT('the hash of the unique index ', index_name, {title}) FROM \
         information_schema.statistics WHERE {here} AND index_type = 'HASH'",
        title = literal(&format!(" of {}", table.title())),
        here = of(&table.schema, &table.name)
    )
}

/// Names the moved columns with statistics that somebody has collected by hand: they are those of the old values.
async fn histograms(session: &mut Session, table: &Moved) -> Result<Vec<String>, Failure> {
    let names: Vec<String> = table.columns.iter().map(|it| literal(&it.name)).collect();
    let condition = |schema: &str| {
        format!(
            "{schema} = {} AND table_name = {} AND column_name IN ({})",
            literal(&table.schema),
            literal(&table.name),
            names.join(", ")
        )
    };
    let is_mariadb = session.engine() == Engine::Mariadb;
    let query = match is_mariadb {
        true => format!(
            "SELECT column_name, NULL FROM mysql.column_stats WHERE {} ORDER BY 1",
            condition("db_name")
        ),
        false => format!(
            "SELECT column_name, histogram->>'$.\"number-of-buckets-specified\"' FROM information_schema.column_statistics WHERE {} \
             ORDER BY 1",
            condition("schema_name")
        ),
    };
    let rows = match session.rows(&query).await {
        // Not every user of MariaDB may read them, and a move only needs them for this note.
        Err(fault) if is_mariadb && !fault.is_lost => return Ok(Vec::new()),
        rows => rows?,
    };
    let statement = format!(
        "ANALYZE TABLE {}.{}",
        quote(&table.schema),
        quote(&table.name)
    );
    let note = |row: &Cells| {
        let (column, buckets) = (text(row, 0), text(row, 1));
        let (what, collect) = match is_mariadb {
            true => (
                "statistics in mysql.column_stats",
                format!("PERSISTENT FOR COLUMNS ({}) INDEXES ()", quote(&column)),
            ),
            false => (
                "a histogram",
                format!(
                    "UPDATE HISTOGRAM ON {} WITH {buckets} BUCKETS",
                    quote(&column)
                ),
            ),
        };
        format!(
            "{}.{column} has {what}, which its new column does not get: after the switch, and after a rollback, run {statement} {collect}",
            table.title()
        )
    };
    Ok(rows.iter().map(note).collect())
}

/// Reads the indexes that have a moved column. Their definitions are the lists of columns.
async fn indexes(
    session: &mut Session,
    table: &Moved,
    refusals: &mut Refusals,
) -> Result<Vec<Index>, Failure> {
    let is_hidden = match session.engine() {
        Engine::Mariadb => "ignored = 'YES'",
        _ => "is_visible = 'NO'",
    };
    let query = format!(
        "SELECT index_name, non_unique, column_name, sub_part, collation, index_comment, {is_hidden} FROM information_schema.statistics WHERE {} ORDER BY \
         index_name <> 'PRIMARY', index_name, seq_in_index",
        of(&table.schema, &table.name)
    );
    let mut all: Vec<(Index, bool)> = Vec::new();
    for row in session.rows(&query).await? {
        let (name, column) = (text(&row, 0), text(&row, 2));
        // The columns of an expression are not in the catalog, and a column that is in one cannot be renamed.
        if row.get(2).is_none_or(Option::is_none) {
            refusals.add(format!(
                "the index {name} of {} has an expression: drop it until the move is done",
                table.title()
            ));
            continue;
        }
        let is_moved = table.columns.iter().any(|it| it.name == column);
        let mut part = quote(&column);
        if let Some(length) = row.get(3).cloned().flatten() {
            part = format!("{part}({length})");
            if is_moved {
                refusals.add(format!(
                    "the index {name} of {} has a prefix of {column}: drop it until the move is done",
                    table.title()
                ));
            }
        }
        if text(&row, 4) == "D" {
            part.push_str(" DESC");
        }
        match all.last_mut() {
            Some((index, has_moved)) if index.name == name => {
                index.definition = format!("{}, {part}", index.definition);
                *has_moved |= is_moved;
            }
            _ => all.push((
                Index {
                    is_primary: name == "PRIMARY",
                    is_unique: text(&row, 1) == "0",
                    is_constraint: false,
                    definition: part,
                    comment: row.get(5).cloned().flatten().filter(|it| !it.is_empty()),
                    constraint_comment: None,
                    is_hidden: text(&row, 6) == "1",
                    is_clustered: false,
                    name,
                },
                is_moved,
            )),
        }
    }
    Ok(all
        .into_iter()
        .filter_map(|(index, has_moved)| has_moved.then_some(index))
        .collect())
}

/// Refuses a table to which the server adds no column at once.
async fn not_instant(
    session: &mut Session,
    table: &Moved,
    refusals: &mut Refusals,
) -> Result<(), Failure> {
    let title = table.title();
    let format = format!(
        "SELECT row_format FROM information_schema.tables WHERE {}",
        of(&table.schema, &table.name)
    );
    if session.value(&format).await?.as_deref() == Some("Compressed") {
        refusals.add(format!(
            "{title} has the row format COMPRESSED, to which no column can be added at once: give it another one \
             (`ALTER TABLE {} ROW_FORMAT=DYNAMIC`)",
            quote(&table.name)
        ));
    }
    // A server that does not count them, or does not tell this user, refuses the first step.
    let version = session.value("SELECT version()").await?.unwrap_or_default();
    let most = if is_at_least(&version, [9, 1, 0]) {
        255
    } else {
        64
    };
    let versions = format!(
        "SELECT 1 FROM information_schema.innodb_tables WHERE name = {} AND total_row_versions >= {most}",
        literal(&format!("{}/{}", table.schema, table.name))
    );
    match session.exists(&versions).await {
        Ok(true) => refusals.add(format!(
            "{title} has had {most} changes of columns at once, after which MySQL makes no more: rebuild it (`OPTIMIZE TABLE {}`)",
            quote(&table.name)
        )),
        Err(fault) if fault.is_lost => return Err(fault.into()),
        _ => {}
    }
    Ok(())
}
