//! The foreign keys that refer to the table in PostgreSQL.

use ordid_core::storage::{Dialect as _, dialect::Postgres};

use super::{FoundColumn, is_true, quote};
use crate::{
    database::text,
    failure::Failure,
    migration::{
        request::Refusals,
        session::Session,
        subject::{self, Column, ForeignKey, Moved, article, old_default},
    },
};

/// Reads the foreign keys that refer to the table, by table.
pub(super) async fn tables(
    session: &mut Session,
    oid: &str,
    schema: &str,
    name: &str,
    key: &FoundColumn,
    refusals: &mut Refusals,
) -> Result<Vec<Moved>, Failure> {
    let mut tables = vec![Moved::main(
        [schema, name],
        [&key.name, &key.sql_type],
        key.comment.as_ref(),
    )];
    let query = format!(
        "SELECT n.nspname, c.relname, f.conname, array_length(f.conkey, 1), a.attname, format_type(a.atttypid, a.atttypmod), \
         a.attnotnull, f.condeferrable, c.relkind = 'p' OR c.relispartition, pg_has_role(c.relowner, 'MEMBER'), \
         pg_get_constraintdef(f.oid), {number} = ANY (f.confkey), a.attgenerated <> '', \
         CASE WHEN a.attidentity <> '' THEN 'an identity' ELSE pg_get_expr(d.adbin, d.adrelid) END, \
         EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhrelid = c.oid OR i.inhparent = c.oid), col_description(c.oid, a.attnum), \
         obj_description(f.oid, 'pg_constraint'), f.confupdtype, f.confdeltype, f.confmatchtype, \
         to_jsonb(f) ->> 'confdelsetcols' IS NOT NULL, f.convalidated, to_jsonb(f) ->> 'conenforced' = 'false' \
         FROM pg_constraint f JOIN pg_class c ON c.oid = f.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
         JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = f.conkey[1] \
         LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
         WHERE f.contype = 'f' AND f.confrelid = {oid} AND f.conparentid = 0 ORDER BY 1, 2, 3",
        number = key.number
    );
    for row in session.rows(&query).await? {
        let (child_schema, child, constraint) = (text(&row, 0), text(&row, 1), text(&row, 2));
        let title = format!("{child_schema}.{child}");
        if !is_true(&row, 11) {
            continue;
        }
        if text(&row, 3) != "1" {
            refusals.add(format!(
                "the foreign key {constraint} of {title} has several columns, one of which refers to the key"
            ));
            continue;
        }
        if is_true(&row, 7) {
            refusals.add(format!(
                "the foreign key {constraint} of {title} is deferrable: a row may be written before the row that it refers to, \
                 whose new key a trigger then cannot find"
            ));
        }
        if is_true(&row, 8) {
            refusals.add(format!(
                "{title}, which refers to the table, is partitioned"
            ));
        } else if is_true(&row, 14) {
            refusals.add(format!(
                "{title}, which refers to the table, inherits from a table or is inherited from: its rows are not its own alone"
            ));
        }
        if is_true(&row, 12) {
            refusals.add(format!("{title}.{} is a generated column", text(&row, 4)));
        }
        let default = text(&row, 13);
        if !is_true(&row, 12) && !default.is_empty() && !default.starts_with("NULL") {
            refusals.add(old_default(&title, &text(&row, 4), &default));
        }
        if !is_true(&row, 9) {
            refusals.add(format!(
                "{title}, which refers to the table, belongs to another role: connect as its owner"
            ));
        }
        // Since PostgreSQL 18.
        if is_true(&row, 22) {
            refusals.add(format!(
                "the foreign key {constraint} of {title} is NOT ENFORCED"
            ));
        }
        // Nobody reads the table of another role.
        if !is_true(&row, 21) && is_true(&row, 9) {
            let child = (child_schema.as_str(), child.as_str(), text(&row, 4));
            orphans(session, child, (schema, name, key), refusals).await?;
        }
        let actions: Vec<String> = (17..=19).map(|at| text(&row, at)).collect();
        if actions[..2].contains(&"d".to_owned()) {
            refusals.add(format!(
                "the foreign key {constraint} of {title} sets a default, which is an old key"
            ));
        }
        // The server writes names into the definition as it has to, and this at its end.
        let definition = text(&row, 10);
        let definition = definition.strip_suffix(" NOT VALID").unwrap_or(&definition);
        let mut column = Column {
            name: text(&row, 4),
            sql_type: text(&row, 5),
            not_null: is_true(&row, 6),
            comment: row.get(15).cloned().flatten(),
            reference: None,
        };
        column.reference = Some(ForeignKey {
            name: constraint,
            actions: actions_of(
                &actions[0],
                &actions[1],
                &actions[2],
                is_true(&row, 20),
                &column,
            ),
            definition: definition.to_owned(),
            comment: row.get(16).cloned().flatten(),
        });
        subject::refer(&mut tables, (child_schema, child), column, refusals);
    }
    Ok(tables)
}

/// Refuses a foreign key that is `NOT VALID`, if it has rows that refer to none: the new one could not be checked.
async fn orphans(
    session: &mut Session,
    (child_schema, child, column): (&str, &str, String),
    (schema, name, key): (&str, &str, &FoundColumn),
    refusals: &mut Refusals,
) -> Result<(), Failure> {
    let find = format!(
        "SELECT c.* FROM {} AS c WHERE c.{column} IS NOT NULL AND NOT EXISTS (SELECT FROM {} AS it WHERE it.{} = c.{column})",
        Postgres::quote_table(Some(child_schema), child),
        Postgres::quote_table(Some(schema), name),
        quote(&key.name),
        column = quote(&column)
    );
    let count = find.replacen("c.*", "count(*)", 1);
    let has = match session.number(&count).await? {
        0 => return Ok(()),
        1 => format!("1 row of {child_schema}.{child} has"),
        count => format!("{count} rows of {child_schema}.{child} have"),
    };
    refusals.add(format!(
        "{has} {} {column} that is not in {schema}.{name}: find them by `{find}`, and correct them",
        article(&column)
    ));
    Ok(())
}

/// Returns the text behind the columns of a foreign key, by the letters that the catalog has for it. A definition has the names
/// of columns in it, so nothing is read out of its text.
fn actions_of(
    update: &str,
    delete: &str,
    kind: &str,
    names_columns: bool,
    column: &Column,
) -> String {
    let action = |letter| match letter {
        "r" => Some("RESTRICT".to_owned()),
        "c" => Some("CASCADE".to_owned()),
        "n" => Some("SET NULL".to_owned()),
        _ => None,
    };
    let full = (kind == "f").then(|| "MATCH FULL".to_owned());
    let update = action(update).map(|it| format!("ON UPDATE {it}"));
    // The key has one column, so that is the one that `SET NULL (column)` names.
    let columns = match names_columns {
        true => format!(" ({})", quote(&column.new_name())),
        false => String::new(),
    };
    let delete = action(delete).map(|it| format!("ON DELETE {it}{columns}"));
    let all: Vec<String> = [full, update, delete].into_iter().flatten().collect();
    all.join(" ")
}
