//! Finds the things that depend on the moved columns in PostgreSQL, and the indexes that have them.

use ordid_core::storage::{Dialect as _, dialect::Postgres};

use super::{Found, is_indexed, is_true, quote, secured, text};
use crate::{
    failure::Failure,
    migration::{
        request::Refusals,
        session::Session,
        subject::{Index, Moved, literal},
        target::Target,
    },
};

/// Looks at whatever depends on the columns, and at the indexes.
pub(super) async fn dependents(
    session: &mut Session,
    found: &mut Found,
    target: &Target,
    refusals: &mut Refusals,
    notes: &mut Vec<String>,
) -> Result<(), Failure> {
    let tables = std::mem::take(&mut found.tables);
    for mut table in tables {
        let title = table.title();
        let name = Postgres::quote_table(Some(&table.schema), &table.name);
        let regclass = format!("{}::regclass", literal(&name));
        for column in &table.columns {
            let query = format!(
                "SELECT DISTINCT pg_describe_object(d.classid, d.objid, d.objsubid) FROM pg_depend d JOIN pg_attribute a \
                 ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid WHERE d.refclassid = 'pg_class'::regclass \
                 AND d.refobjid = {regclass} AND a.attname = {column} AND d.deptype IN ('n', 'a') \
                 AND NOT (d.classid = 'pg_class'::regclass AND d.objid IN (SELECT oid FROM pg_class WHERE relkind IN ('i', 'S'))) \
                 AND NOT (d.classid = 'pg_constraint'::regclass AND d.objid IN \
                 (SELECT oid FROM pg_constraint WHERE contype IN ('p', 'f', 'u', 'n'))) \
                 AND NOT (d.classid = 'pg_attrdef'::regclass AND d.objid IN \
                 (SELECT oid FROM pg_attrdef WHERE adrelid = a.attrelid AND adnum = a.attnum))",
                column = literal(&column.name)
            );
            for row in session.rows(&query).await? {
                refusals.add(format!(
                    "{} depends on {title}.{}: drop it, and create it again after the switch",
                    text(&row, 0),
                    column.name
                ));
            }
            // PostgreSQL 13 has no column `attcompression`.
            let options = format!(
                "SELECT 'STATISTICS ' || CASE WHEN attstattarget >= 0 THEN attstattarget END, '(' || array_to_string(attoptions, ', ') || \
                 ')', 'STORAGE ' || CASE WHEN attstorage <> typstorage THEN CASE attstorage WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' \
                 WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END END, 'COMPRESSION ' || CASE to_jsonb(a) ->> 'attcompression' WHEN 'p' THEN \
                 'pglz' WHEN 'l' THEN 'lz4' END FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE attrelid = {regclass} AND \
                 attname = {}",
                literal(&column.name)
            );
            for row in session.rows(&options).await? {
                let new = quote(&column.new_name());
                let kept = row.iter().take(2).flatten();
                found.options.extend(
                    kept.map(|it| format!("ALTER TABLE {name} ALTER COLUMN {new} SET {it}")),
                );
                notes.extend(row.iter().skip(2).flatten().map(|it| {
                    format!(
                        "{title}.{} has {it}, which its new column does not get: new keys are too short for it to matter",
                        column.name
                    )
                }));
            }
            let more = format!(
                "SELECT (SELECT attacl IS NOT NULL FROM pg_attribute WHERE attrelid = {regclass} AND attname = {column}), \
                 (SELECT string_agg(conrelid::regclass || '.' || conname, ', ') FROM pg_constraint f JOIN pg_attribute a \
                 ON a.attrelid = f.confrelid AND a.attnum = ANY (f.confkey) WHERE contype = 'f' AND f.confrelid = {regclass} \
                 AND a.attname = {column}), \
                 (SELECT count(*) FROM pg_constraint f JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = ANY (f.conkey) \
                 WHERE contype = 'f' AND f.conrelid = {regclass} AND a.attname = {column})",
                column = literal(&column.name)
            );
            if let Some(row) = session.rows(&more).await?.first() {
                if is_true(row, 0) {
                    refusals.add(format!(
                        "{title}.{} has privileges of its own: grant them on the table",
                        column.name
                    ));
                }
                let (inwards, outwards) = (text(row, 1), text(row, 2));
                if column.reference.is_some() && !inwards.is_empty() {
                    refusals.add(format!(
                        "{inwards} refers to {title}.{}, which is moved itself",
                        column.name
                    ));
                }
                let expected = if column.reference.is_some() { "1" } else { "0" };
                if outwards != expected {
                    refusals.add(format!(
                        "{title}.{} also has a foreign key to another table, or is part of one",
                        column.name
                    ));
                }
            }
        }
        let publications = format!(
            "SELECT string_agg(DISTINCT pubname, ', ') FROM pg_publication_tables WHERE schemaname = {} AND tablename = {}",
            literal(&table.schema),
            literal(&table.name)
        );
        if let Some(names) = session.value(&publications).await? {
            refusals.add(format!(
                "{title} is published by {names}: subscribers do not have the new columns, and replication would stop; take \
                 it out of the publication until the move is finished"
            ));
        }
        let subscribed = format!("SELECT 1 FROM pg_subscription_rel WHERE srrelid = {regclass}");
        if session.exists(&subscribed).await? {
            refusals.add(format!(
                "{title} gets rows from a subscription, for which triggers do not run: take it out of the subscription until \
                 the move is finished"
            ));
        }
        let secured = secured(std::slice::from_ref(&table));
        if session.exists(&secured.sql).await? {
            refusals.add(format!("{title} {}: {}", secured.what, secured.advice));
        }
        let triggers = format!(
            "SELECT tgname, tgenabled FROM pg_trigger WHERE tgrelid = {regclass} AND NOT tgisinternal AND tgtype & 16 <> 0 ORDER BY 1"
        );
        for row in session.rows(&triggers).await? {
            let all = &mut found.update_triggers;
            let those = match text(&row, 1).as_str() {
                "O" => &mut all.ordinary,
                "R" => &mut all.of_replicas,
                "A" => &mut all.always,
                // It never runs.
                _ => continue,
            };
            those.push(format!("{} of {title}", text(&row, 0)));
        }
        table.indexes = indexes(session, &table, &regclass, target, refusals).await?;
        for (column, foreign_key) in table.references() {
            if !is_indexed(&table, column) {
                notes.push(format!(
                    "{title}.{} has no index, so each DELETE of {} reads all of {title} (foreign key {}); the move builds one \
                     for its own use",
                    column.name, found.name, foreign_key.name
                ));
            }
        }
        found.tables.push(table);
    }
    Ok(())
}

async fn indexes(
    session: &mut Session,
    table: &Moved,
    regclass: &str,
    target: &Target,
    refusals: &mut Refusals,
) -> Result<Vec<Index>, Failure> {
    let names: Vec<String> = table.columns.iter().map(|it| literal(&it.name)).collect();
    let query = format!(
        "SELECT c.relname, i.indisprimary, i.indisunique, k.oid IS NOT NULL, pg_get_indexdef(i.indexrelid) || \
         coalesce((SELECT ' TABLESPACE ' || quote_ident(spcname) FROM pg_tablespace WHERE oid = c.reltablespace), ''), \
         i.indexprs IS NOT NULL OR i.indpred IS NOT NULL, i.indisreplident, i.indisexclusion, \
         (SELECT string_agg(o.opcname, ', ') FROM unnest(i.indkey::int[], i.indclass::oid[]) AS k (number, class) \
         JOIN pg_opclass o ON o.oid = k.class AND NOT o.opcdefault \
         JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number AND a.attname IN ({0})), \
         obj_description(c.oid, 'pg_class'), obj_description(k.oid, 'pg_constraint'), i.indisclustered, k.condeferrable, \
         EXISTS (SELECT 1 FROM unnest(i.indkey::int[], i.indcollation::oid[]) AS k (number, own) JOIN pg_attribute a \
         ON a.attrelid = i.indrelid AND a.attnum = k.number AND a.attname IN ({0}) WHERE k.own NOT IN (0, a.attcollation)) \
         FROM pg_index i \
         JOIN pg_class c ON c.oid = i.indexrelid \
         LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x') AND k.conrelid = i.indrelid \
         WHERE i.indrelid = {regclass} AND i.indisvalid AND EXISTS (SELECT 1 FROM pg_depend d JOIN pg_attribute a \
         ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid WHERE d.refobjid = i.indrelid AND a.attname IN ({0}) \
         AND (d.objid = i.indexrelid OR d.objid = k.oid)) ORDER BY i.indisprimary DESC, c.relname",
        names.join(", ")
    );
    let mut indexes = Vec::new();
    for row in session.rows(&query).await? {
        let name = text(&row, 0);
        if is_true(&row, 5) || is_true(&row, 7) {
            refusals.add(format!(
                "the index {name} of {} has an expression, a predicate or an exclusion, and a moved column: drop it, and \
                 create it again after the switch",
                table.title()
            ));
            continue;
        }
        if let Some(classes) = row.get(8).cloned().flatten() {
            refusals.add(format!(
                "the index {name} of {} has an operator class of the old type ({classes}): drop it, and create it again after the switch",
                table.title()
            ));
        }
        if is_true(&row, 13) && !target.column.sql_type.starts_with("text") {
            refusals.add(format!(
                "the index {name} of {} has a collation of its own, and the new keys are of the type {}, which has none: drop it, and \
                 create it again after the switch",
                table.title(),
                target.column.sql_type
            ));
        }
        // The copy would be checked row by row, and so would the constraint.
        if is_true(&row, 12) {
            refusals.add(format!(
                "the constraint {name} of {} is deferrable and has a moved column: drop it, or make one that is not deferrable",
                table.title()
            ));
        }
        if is_true(&row, 6) {
            refusals.add(format!(
                "the index {name} of {} is its replica identity",
                table.title()
            ));
        }
        indexes.push(Index {
            name,
            is_primary: is_true(&row, 1),
            is_unique: is_true(&row, 2),
            is_constraint: is_true(&row, 3),
            definition: text(&row, 4),
            comment: row.get(9).cloned().flatten(),
            constraint_comment: row.get(10).cloned().flatten(),
            is_hidden: false,
            is_clustered: is_true(&row, 11),
        });
    }
    Ok(indexes)
}
