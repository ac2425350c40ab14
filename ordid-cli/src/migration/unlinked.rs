//! Columns that seem to refer to the table without a foreign key: nothing moves them, so the plan names them.
//!
//! Two things tell: the name (`order_id` for `orders`), and values that are all keys of the table. Small numbers are keys of
//! any table, so values count only if there are many different ones.

use ordid_core::storage::{
    Dialect as _,
    dialect::{MySql, Postgres, Sqlite},
};

use super::{
    request::Draft,
    session::{Cells, Session},
    subject::{literal, title},
};
use crate::{database::text, engine::Engine, failure::Failure};

/// How many values of a column are looked for in the key.
const SAMPLE: usize = 200;
/// How many of them have to be different for their values to tell something.
const LEAST: i64 = 20;
/// How many columns of the key's type are sampled. Those of a usual name come first.
const MOST: usize = 300;

/// A column that may refer to the table.
struct Candidate {
    table: String,
    column: String,
    has_name: bool,
    quoted_table: String,
    quoted_column: String,
}

/// Returns a note of the columns that have the name of a reference, and one of those that have only keys as values.
pub(crate) async fn notes(session: &mut Session, draft: &Draft) -> Result<Vec<String>, Failure> {
    let (mut named, mut valued) = (Vec::new(), Vec::new());
    let table = &draft.name;
    let names = names(table, &draft.key);
    let mut sampled = 0;
    let mut all = candidates(session, draft, &names).await?;
    all.sort_by_key(|it| !it.has_name);
    for it in all {
        let title = format!("{}.{}", it.table, it.column);
        if it.has_name {
            named.push(title);
            continue;
        }
        sampled += 1;
        if sampled > MOST {
            valued.push(format!("others than the first {MOST} were not looked at"));
            break;
        }
        if has_keys_alone(session, draft, &it).await? {
            valued.push(title);
        }
    }
    let mut notes = Vec::new();
    if !named.is_empty() {
        notes.push(format!(
            "no foreign key, and the name of a reference to {table}: {}; such columns are not moved and keep old keys: add foreign keys \
             and make a new plan, or change them by the map of --keep-map",
            named.join(", ")
        ));
    }
    if !valued.is_empty() {
        notes.push(format!(
            "no foreign key, and a sample of values that are all keys of {table}: {}; if they refer to it, the same holds for them",
            valued.join(", ")
        ));
    }
    Ok(notes)
}

/// Returns a name in small letters and without underscores.
fn plain(name: &str) -> String {
    name.replace('_', "").to_lowercase()
}

/// Whether a column may have its name from the key of a table: keys of many tables have these.
fn is_named_after(column: &str, key: &str) -> bool {
    const OF_MANY: [&str; 8] = ["id", "key", "pk", "uuid", "guid", "number", "code", "name"];
    let key = plain(key);
    !OF_MANY.contains(&&*key) && plain(column) == key
}

/// Returns the usual names of a reference, in small letters and without underscores.
fn names(table: &str, key: &str) -> Vec<String> {
    let (table, key) = (plain(table), plain(key));
    let mut singulars = vec![table.clone()];
    for (plural, singular) in [
        ("ies", "y"),
        ("ses", "s"),
        ("xes", "x"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("s", ""),
    ] {
        if let Some(stem) = table.strip_suffix(plural) {
            singulars.push(format!("{stem}{singular}"));
        }
    }
    let mut names = Vec::new();
    for singular in singulars {
        for end in ["id", "key", "fk", "uuid", &key] {
            names.push(format!("{singular}{end}"));
        }
    }
    names
}

/// Reads the columns without a foreign key that have a usual name, or the key's type. A column that is the primary key by
/// itself counts by its name alone: its values are its own.
async fn candidates(
    session: &mut Session,
    draft: &Draft,
    names: &[String],
) -> Result<Vec<Candidate>, Failure> {
    let engine = session.engine();
    let query = match engine {
        Engine::Postgres => format!(
            "SELECT n.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod) = {}, EXISTS (SELECT 1 FROM pg_constraint k WHERE \
             k.conrelid = c.oid AND k.contype = 'p' AND k.conkey = ARRAY[a.attnum]) FROM pg_attribute a JOIN pg_class c ON c.oid = \
             a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND \
             a.attnum > 0 AND NOT a.attisdropped AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema' AND \
             has_table_privilege(c.oid, 'SELECT') AND NOT EXISTS (SELECT 1 FROM pg_constraint f WHERE f.conrelid = c.oid AND f.contype = \
             'f' AND a.attnum = ANY (f.conkey)) ORDER BY 1, 2, a.attnum",
            literal(&draft.key_type)
        ),
        Engine::Sqlite => format!(
            "SELECT '', t.name, c.name, upper(c.type) = {}, c.pk > 0 AND (SELECT count(*) FROM pragma_table_info(t.name) o WHERE o.pk > \
             0) = 1 FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE \
             '\\' AND t.sql NOT LIKE 'CREATE VIRTUAL%' AND NOT EXISTS (SELECT 1 FROM pragma_foreign_key_list(t.name) f WHERE f.\"from\" \
             = c.name) ORDER BY 2, c.cid",
            literal(&draft.key_type)
        ),
        // In the table's own database: others are of other programs. Derived tables are read once.
        _ => {
            let schema = draft.schema.as_deref().unwrap_or_default();
            format!(
                "SELECT c.table_schema, c.table_name, c.column_name, c.column_type = {}, c.column_key = 'PRI' AND p.parts = 1 FROM \
                 information_schema.columns c JOIN information_schema.tables t ON t.table_schema = c.table_schema AND t.table_name = \
                 c.table_name LEFT JOIN (SELECT DISTINCT table_name, column_name FROM information_schema.key_column_usage WHERE \
                 table_schema = {schema} AND referenced_table_name IS NOT NULL) AS k ON k.table_name = c.table_name AND k.column_name = \
                 c.column_name LEFT JOIN (SELECT table_name, count(*) AS parts FROM information_schema.statistics WHERE table_schema = \
                 {schema} AND index_name = 'PRIMARY' GROUP BY table_name) AS p ON p.table_name = c.table_name WHERE c.table_schema = \
                 {schema} AND t.table_type = 'BASE TABLE' AND k.column_name IS NULL ORDER BY c.table_name, c.ordinal_position",
                literal(&draft.key_type),
                schema = literal(schema)
            )
        }
    };
    let is_true = |row: &Cells, at: usize| matches!(text(row, at).as_str(), "t" | "1");
    let mut candidates = Vec::new();
    for row in session.rows(&query).await? {
        let (schema, name, column) = (text(&row, 0), text(&row, 1), text(&row, 2));
        let schema = (!schema.is_empty()).then_some(schema);
        let is_key = is_true(&row, 4);
        let is_of_type = is_true(&row, 3) && !is_key;
        let has_name =
            names.contains(&plain(&column)) || (is_of_type && is_named_after(&column, &draft.key));
        let is_ours =
            name.starts_with("ordid_") || (schema == draft.schema && name == draft.name && is_key);
        if is_ours || !(has_name || is_of_type) {
            continue;
        }
        candidates.push(Candidate {
            quoted_table: quote_table(engine, schema.as_deref(), &name),
            quoted_column: quote(engine, &column),
            table: title(schema.as_deref(), &name),
            column,
            has_name,
        });
    }
    Ok(candidates)
}

fn quote(engine: Engine, name: &str) -> String {
    match engine {
        Engine::Postgres => Postgres::quote(name),
        Engine::Sqlite => Sqlite::quote(name),
        _ => MySql::quote(name),
    }
}

fn quote_table(engine: Engine, schema: Option<&str>, name: &str) -> String {
    match engine {
        Engine::Postgres => Postgres::quote_table(schema, name),
        Engine::Sqlite => Sqlite::quote_table(schema, name),
        _ => MySql::quote_table(schema, name),
    }
}

/// Whether the first values of a column are all keys of the table, and enough different ones.
async fn has_keys_alone(
    session: &mut Session,
    draft: &Draft,
    candidate: &Candidate,
) -> Result<bool, Failure> {
    let engine = session.engine();
    let table = quote_table(engine, draft.schema.as_deref(), &draft.name);
    let key = quote(engine, &draft.key);
    let Candidate {
        quoted_table,
        quoted_column,
        ..
    } = candidate;
    let query = format!(
        "SELECT count(DISTINCT it.v), count(*) - count(o.{key}) FROM (SELECT {quoted_column} AS v FROM {quoted_table} WHERE \
         {quoted_column} IS NOT NULL LIMIT {SAMPLE}) AS it LEFT JOIN {table} AS o ON o.{key} = it.v"
    );
    let rows = match session.rows(&query).await {
        Ok(rows) => rows,
        Err(fault) if fault.is_lost => return Err(fault.into()),
        // A table that cannot be read tells nothing.
        Err(_) => return Ok(false),
    };
    let number = |at| {
        rows.first()
            .and_then(|row| text(row, at).parse::<i64>().ok())
    };
    Ok(number(0).is_some_and(|it| it >= LEAST) && number(1) == Some(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_names_of_references_are_known() {
        for (table, column) in [
            ("orders", "order_id"),
            ("orders", "OrderId"),
            ("orders", "orders_id"),
            ("categories", "category_id"),
            ("boxes", "box_key"),
            ("batches", "batch_uuid"),
            ("addresses", "address_id"),
            ("purchase_orders", "purchase_order_id"),
        ] {
            assert!(
                names(table, "id").contains(&plain(column)),
                "{table}, {column}"
            );
        }
        assert!(names("orders", "number").contains(&"ordernumber".to_owned()));
        assert!(!names("orders", "id").contains(&"id".to_owned()));
        assert!(is_named_after("OrderNo", "order_no"));
        assert!(!is_named_after("Id", "id"));
    }
}
