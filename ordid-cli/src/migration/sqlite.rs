//! SQLite: its schema, and the SQL of a move.
//!
//! SQLite has one writer at a time, and cannot change a primary key in place. So the tables are rebuilt in one transaction,
//! by the procedure of <https://sqlite.org/lang_altertable.html> (section 7): others read the old tables meanwhile (in WAL
//! mode), and wait to write. A process that is killed leaves the old tables. A map of old and new keys stays until the
//! end, and is the way back.

use ordid_core::storage::{Dialect as _, dialect::Sqlite};

use super::{
    model::{Plan, Table},
    request::{Draft, Refusals, Request},
    session::Session,
    sqlite_ddl::{expression_over, has_content_of, index_computes, rowid_beside, uses_rowid},
    subject::{LAST_MICROS, article, creation_time, literal, named, too_late},
    target::Target,
};
use crate::{database::text, engine::Engine, failure::Failure, near};

mod writer;

use writer::{OldKey, Writer};

/// Columns, and whether each is the key.
type Moving = Vec<(String, bool)>;

/// A table that is rebuilt.
struct Rebuilt {
    name: String,
    create: String,
    columns: Vec<String>,
    /// The moved columns: the key, and references to it.
    moved: Moving,
    /// Its indexes and triggers.
    others: Vec<String>,
    /// A name of its rowid, if it has one.
    rowid: Option<&'static str>,
    /// The column that is its rowid.
    integer_key: Option<String>,
    /// Whether it was analyzed.
    has_statistics: bool,
}

fn quote(name: &str) -> String {
    Sqlite::quote(name)
}

/// Reads the schema and writes the steps.
pub(crate) async fn draft(
    session: &mut Session,
    request: &Request<'_>,
    target: &Target,
) -> Result<Draft, Failure> {
    let mut refusals = Refusals::default();
    let mut notes = vec![
        "others wait to write while the tables are rebuilt: stop long-running programs first".to_owned(),
        "afterwards the program makes the key of each row that it inserts, as SQLite has no function for it".to_owned(),
        "programs that compare the key with numbers find wrong rows (each blob and each text is above every number), and numbers \
         that they insert are refused by a CHECK: change them before the move"
            .to_owned(),
    ];
    let query = format!(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name = {} COLLATE NOCASE",
        literal(request.table)
    );
    let rows = session.rows(&query).await?;
    let Some(row) = rows.first() else {
        let names = session
            .rows(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
            )
            .await?;
        let names: Vec<String> = names.iter().map(|row| text(row, 0)).collect();
        return Err(request.unknown_table(near::suggestion(
            request.table,
            names.iter().map(String::as_str),
        )));
    };
    let (name, create) = (text(row, 0), text(row, 1));
    if create.to_ascii_uppercase().starts_with("CREATE VIRTUAL") {
        return Err(request.refuse(&format!("{name} is a virtual table")));
    }
    let info = session
        .rows(&format!(
            "SELECT name, type, pk, dflt_value FROM pragma_table_xinfo({}) WHERE hidden = 0 ORDER BY cid",
            literal(&name)
        ))
        .await?;
    let keys: Vec<&Vec<Option<String>>> = info.iter().filter(|row| text(row, 2) != "0").collect();
    let [key] = keys[..] else {
        return Err(request.refuse(&match keys.len() {
            0 => format!("{name} has no primary key"),
            count => format!(
                "the primary key of {name} has {count} columns: only a key of one column can be moved"
            ),
        }));
    };
    let (key, key_type) = (text(key, 0), text(key, 1).to_ascii_uppercase());
    if info
        .iter()
        .any(|row| text(row, 0) == key && row.get(3).cloned().flatten().is_some())
    {
        refusals.add(format!(
            "{name}.{key} has a default, which would make old keys"
        ));
    }
    let old_key = old_key(session, &name, &key, &key_type).await?;
    let map_type = format!("{key_type}{}", collation(session, &name).await?);
    let without = format!(
        "SELECT * FROM {} WHERE {} IS NULL",
        quote(&name),
        quote(&key)
    );
    if session.exists(&without).await? {
        refusals.add(format!(
            "rows of {name} have no key, but NULL: find them by `{without}`, and give them keys"
        ));
    }
    already(session, request, &name, &key, target, &mut refusals).await?;
    let created = created(request, &name, &info, &mut refusals)?;
    if created.is_none() {
        notes.push(
            "no column says when a row was made: keys follow the order of the old key, and have made-up times, one row a \
             millisecond, that end when the move begins (name the column by --created)"
                .to_owned(),
        );
    }
    let tables = tables(session, &name, &key, &create, &mut refusals).await?;
    computed(session, &tables, &mut refusals).await?;
    dangling(session, &tables, &key, &mut refusals).await?;
    let triggers = triggers(session, &tables).await?;
    if !triggers.is_empty() {
        notes.push(format!(
            "triggers stay as they are: see whether they compare keys with numbers, or compute with them: {triggers}"
        ));
    }
    let row_count = session
        .number(&format!("SELECT count(*) FROM {}", quote(&name)))
        .await?;
    if let Some(column) = &created {
        times(session, &name, column, row_count, &mut refusals, &mut notes).await?;
    }
    let bytes = session
        .number("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
        .await?;
    let writer = Writer {
        tables: &tables,
        key: &key,
        map_type: &map_type,
        old_key,
        created: created.as_deref(),
        target,
        rows: row_count,
        is_without_rowid: loses_rowid(session, &tables[0], &mut notes).await?,
    };
    Ok(Draft {
        journal: quote(&named("ordid_move_", &name, "")),
        rows: row_count,
        bytes,
        steps: vec![writer.forth(&mut refusals)],
        undo: Vec::new(),
        back: vec![writer.back()],
        map: writer.kept_map(),
        finish: vec![writer.drop_map()],
        catalog: catalog(session, tables.iter().map(|it| it.name.clone()).collect()).await?,
        schema: None,
        name: name.clone(),
        key: key.clone(),
        key_type: key_type.clone(),
        created,
        notes,
        refusals,
    })
}

/// Returns the words of the collation by which references find a key, with a space before them.
async fn collation(session: &mut Session, table: &str) -> Result<String, Failure> {
    // A key that is the rowid has no index, and is a number.
    let query = format!(
        "SELECT ' COLLATE ' || x.coll FROM pragma_index_list({}) l, pragma_index_xinfo(l.name) x WHERE l.origin = 'pk' AND x.key AND \
         x.coll <> 'BINARY'",
        literal(table)
    );
    Ok(session.value(&query).await?.unwrap_or_default())
}

/// Finds out what the keys are: by their values, since SQLite takes any value in a column declared `UUID`.
async fn old_key(
    session: &mut Session,
    table: &str,
    key: &str,
    declared: &str,
) -> Result<OldKey, Failure> {
    let kinds = session
        .rows(&format!(
            "SELECT DISTINCT typeof({}) FROM {} ORDER BY 1",
            quote(key),
            quote(table)
        ))
        .await?;
    let kinds: Vec<String> = kinds.iter().map(|row| text(row, 0)).collect();
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    Ok(match kinds[..] {
        _ if declared.contains("INT") => OldKey::Number,
        ["integer"] => OldKey::Number,
        ["blob"] => OldKey::Blob,
        [] if declared.is_empty() || declared.contains("BLOB") => OldKey::Blob,
        _ => OldKey::Text,
    })
}

async fn already(
    session: &mut Session,
    request: &Request<'_>,
    name: &str,
    key: &str,
    target: &Target,
    refusals: &mut Refusals,
) -> Result<(), Failure> {
    let journal = quote(&named("ordid_move_", name, ""));
    if session
        .exists(&super::journal::exists(Engine::Sqlite, &journal))
        .await?
    {
        return Err(request.refuse(&format!(
            "{name} is being moved already: its journal is {journal}; apply that plan to the end, or roll it back"
        )));
    }
    let key = quote(key);
    let query = format!(
        "SELECT CASE typeof({key}) WHEN 'blob' THEN lower(hex({key})) ELSE lower(replace({key}, '-', '')) END FROM {} LIMIT 200",
        quote(name)
    );
    let sample: Vec<String> = session
        .rows(&query)
        .await?
        .iter()
        .map(|row| text(row, 0))
        .collect();
    if sample.iter().all(|it| it.len() == 32) && target.are_keys(&sample) {
        refusals.add(format!(
            "{name} already has keys of `{}`",
            target.scheme.name
        ));
    }
    Ok(())
}

fn created(
    request: &Request<'_>,
    table: &str,
    info: &[Vec<Option<String>>],
    refusals: &mut Refusals,
) -> Result<Option<String>, Failure> {
    let names: Vec<String> = info.iter().map(|row| text(row, 0)).collect();
    let Some(name) = request.created else {
        return Ok(creation_time(names.iter().map(String::as_str)).map(str::to_owned));
    };
    if !names.iter().any(|it| it == name) {
        return Err(Failure::wrong(format_args!(
            "{table} has no column {name}{}",
            near::suggestion(name, names.iter().map(String::as_str))
        )));
    }
    if info
        .iter()
        .any(|row| text(row, 0) == name && text(row, 2) != "0")
    {
        refusals.add(format!("the column {name} is the key"));
    }
    Ok(Some(name.to_owned()))
}

/// Reads the table and those that refer to it.
async fn tables(
    session: &mut Session,
    name: &str,
    key: &str,
    create: &str,
    refusals: &mut Refusals,
) -> Result<Vec<Rebuilt>, Failure> {
    let query = format!(
        "SELECT t.name, f.\"from\", t.sql, (SELECT count(*) FROM pragma_foreign_key_list(t.name) o WHERE o.id = f.id) FROM \
         sqlite_schema t, pragma_foreign_key_list(t.name) f WHERE t.type = 'table' AND f.\"table\" = {} COLLATE NOCASE \
         AND (f.\"to\" IS NULL OR f.\"to\" = {} COLLATE NOCASE) ORDER BY 1, 2",
        literal(name),
        literal(key)
    );
    let mut found: Vec<(String, String, Moving)> = vec![(
        name.to_owned(),
        create.to_owned(),
        vec![(key.to_owned(), true)],
    )];
    for row in session.rows(&query).await? {
        let (child, column, sql) = (text(&row, 0), text(&row, 1), text(&row, 2));
        if text(&row, 3) != "1" {
            refusals.add(format!(
                "a foreign key of {child} has several columns, one of which refers to the key"
            ));
            continue;
        }
        match found.iter_mut().find(|(name, ..)| *name == child) {
            Some((_, _, moved)) if moved.iter().any(|(it, _)| *it == column) => {
                refusals.add(format!(
                    "{child}.{column} has two foreign keys, or is a key and refers to the table"
                ));
            }
            Some((_, _, moved)) => moved.push((column, false)),
            None => found.push((child, sql, vec![(column, false)])),
        }
    }
    let mut tables = Vec::new();
    for (name, create, moved) in found {
        let columns = format!(
            "SELECT name FROM pragma_table_xinfo({}) WHERE hidden = 0 ORDER BY cid",
            literal(&name)
        );
        let others = format!(
            "SELECT sql FROM sqlite_schema WHERE tbl_name = {} COLLATE NOCASE AND type IN ('index', 'trigger') AND sql IS NOT NULL \
             ORDER BY type, name",
            literal(&name)
        );
        let references: Vec<String> = moved
            .iter()
            .filter(|(_, is_key)| !is_key)
            .map(|(column, _)| literal(column))
            .collect();
        // A foreign key that names no columns refers to the primary key, here one that is a reference itself.
        let inwards = format!(
            "SELECT group_concat(t.name || '.' || f.\"from\", ', ') FROM sqlite_schema t, pragma_foreign_key_list(t.name) f WHERE \
             t.type = 'table' AND f.\"table\" = {0} COLLATE NOCASE AND (f.\"to\" COLLATE NOCASE IN ({1}) OR f.\"to\" IS NULL AND \
             EXISTS (SELECT 1 FROM pragma_table_info({0}) i WHERE i.pk > 0 AND i.name IN ({1})))",
            literal(&name),
            references.join(", ")
        );
        if let Some(names) = session.value(&inwards).await? {
            refusals.add(format!(
                "{names} refers to a column of {name} that is moved itself"
            ));
        }
        let (rowid, integer_key) = rowid(session, &name).await?;
        tables.push(Rebuilt {
            rowid,
            integer_key,
            has_statistics: has_statistics(session, &name).await?,
            columns: session
                .rows(&columns)
                .await?
                .iter()
                .map(|row| text(row, 0))
                .collect(),
            others: session
                .rows(&others)
                .await?
                .iter()
                .map(|row| text(row, 0))
                .collect(),
            name,
            create,
            moved,
        });
    }
    Ok(tables)
}

/// Returns a name of a table's rowid, and the column that is the rowid.
async fn rowid(
    session: &mut Session,
    table: &str,
) -> Result<(Option<&'static str>, Option<String>), Failure> {
    if is_without_rowid(session, table).await? {
        return Ok((None, None));
    }
    let name = literal(table);
    let columns = session
        .rows(&format!("SELECT name FROM pragma_table_xinfo({name})"))
        .await?;
    let columns: Vec<String> = columns.iter().map(|row| text(row, 0)).collect();
    // Any other primary key has an index.
    let integer_key = format!(
        "SELECT name FROM pragma_table_info({name}) WHERE pk > 0 AND NOT EXISTS (SELECT 1 FROM pragma_index_list({name}) WHERE \
         origin = 'pk')"
    );
    Ok((
        rowid_beside(columns.iter().map(String::as_str)),
        session.value(&integer_key).await?,
    ))
}

async fn is_without_rowid(session: &mut Session, table: &str) -> Result<bool, Failure> {
    let query = format!(
        "SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = {}",
        literal(table)
    );
    Ok(session.number(&query).await? != 0)
}

/// Whether ANALYZE has left statistics of a table.
async fn has_statistics(session: &mut Session, table: &str) -> Result<bool, Failure> {
    let is_there = "SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_stat1'";
    let query = format!(
        "SELECT 1 FROM sqlite_stat1 WHERE tbl = {} COLLATE NOCASE",
        literal(table)
    );
    Ok(session.exists(is_there).await? && session.exists(&query).await?)
}

/// Decides whether the table becomes one `WITHOUT ROWID`: SQLite advises so if rows are not longer than a twentieth of a page
/// (<https://sqlite.org/withoutrowid.html>).
async fn loses_rowid(
    session: &mut Session,
    table: &Rebuilt,
    notes: &mut Vec<String>,
) -> Result<bool, Failure> {
    let name = &table.name;
    if is_without_rowid(session, name).await? {
        return Ok(false);
    }
    let stays =
        "the key gets a tree of its own beside the rows, which stay in the order of their rowids";
    let others = session
        .rows("SELECT name, sql FROM sqlite_schema WHERE type IN ('view', 'trigger') ORDER BY 1")
        .await?;
    if let Some(other) = others.iter().find(|row| uses_rowid(&text(row, 1))) {
        notes.push(format!(
            "{stays}, since {} uses a rowid: rowids stay what they are until a VACUUM, which may change them",
            text(other, 0)
        ));
        return Ok(false);
    }
    let lengths: Vec<String> = table
        .columns
        .iter()
        .map(|it| format!("coalesce(length(CAST({} AS BLOB)), 0)", quote(it)))
        .collect();
    let width = format!(
        "SELECT CAST(avg({}) AS INTEGER) FROM (SELECT * FROM {} LIMIT 1000)",
        lengths.join(" + "),
        quote(name)
    );
    let width = session.number(&width).await?;
    if width > session.number("PRAGMA page_size").await? / 20 {
        notes.push(format!("{stays}, since rows are long: about {width} bytes"));
        return Ok(false);
    }
    notes.push(
        "rows are short, so the table becomes one WITHOUT ROWID, which keeps them in the order of the key: programs that use its \
         rowid, last_insert_rowid(), an update hook or incremental BLOBs have to change"
            .to_owned(),
    );
    Ok(true)
}

/// Notes rows whose time is none, or has not come yet. Refuses times that no key can have, such as nanoseconds, which are
/// read as microseconds.
async fn times(
    session: &mut Session,
    table: &str,
    column: &str,
    rows: i64,
    refusals: &mut Refusals,
    notes: &mut Vec<String>,
) -> Result<(), Failure> {
    let micros = writer::micros_of(column);
    let show = |condition: &str| format!("SELECT * FROM {} WHERE {condition}", quote(table));
    let have = |count: i64| if count == 1 { "has" } else { "have" };
    let unreadable = show(&format!("{micros} <= 0"));
    let count = format!("SELECT count(*) FROM ({unreadable})");
    let count = session.number(&count).await?;
    if count > 0 {
        notes.push(format!(
            "{count} of {rows} rows {} no readable {column}: their keys get the time 1970-01-01, below all others; find them by \
             `{unreadable}`, and correct them before the move if that is wrong",
            have(count)
        ));
    }
    let future = show(&format!(
        "{micros} > (julianday('now') - 2440587.5) * 86400000000 + 60000000"
    ));
    let count = format!("SELECT count(*) FROM ({future})");
    let count = session.number(&count).await?;
    if count > 0 {
        notes.push(format!(
            "{count} of {rows} rows {} a {column} in the future: their keys are above those of new rows; find them by `{future}`",
            have(count)
        ));
    }
    let late = show(&format!("{micros} > {LAST_MICROS}"));
    let count = format!("SELECT count(*) FROM ({late})");
    let count = session.number(&count).await?;
    if count > 0 {
        let reason = too_late(column, rows, count, &late);
        refusals.add(format!(
            "{reason} (a number is read as seconds, milliseconds or microseconds by its size)"
        ));
    }
    Ok(())
}

/// Refuses what is computed from a moved column, and would be another thing of the new keys, or fail.
async fn computed(
    session: &mut Session,
    tables: &[Rebuilt],
    refusals: &mut Refusals,
) -> Result<(), Failure> {
    let contents = session
        .rows(
            "SELECT name, sql FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE%' ORDER BY 1",
        )
        .await?;
    for table in tables {
        let name = &table.name;
        if let Some((what, column)) = expression_over(&table.create, &table.moved) {
            refusals.add(format!(
                "{what} of {name} uses {column}: drop it before the move"
            ));
        }
        let indexes = session
            .rows(&format!(
                "SELECT name, sql FROM sqlite_schema WHERE tbl_name = {} COLLATE NOCASE AND type = 'index' AND sql IS NOT NULL \
                 ORDER BY 1",
                literal(name)
            ))
            .await?;
        for index in &indexes {
            if index_computes(&text(index, 1), &table.moved) {
                refusals.add(format!(
                    "the index {} of {name} has an expression or a WHERE over a moved column: drop it before the move",
                    text(index, 0)
                ));
            }
        }
        for content in &contents {
            if has_content_of(&text(content, 1), name) {
                refusals.add(format!(
                    "{} is a virtual table over the rowids of {name}: drop it before the move",
                    text(content, 0)
                ));
            }
        }
        let defaults = session
            .rows(&format!(
                "SELECT name, dflt_value FROM pragma_table_xinfo({}) WHERE dflt_value IS NOT NULL AND upper(dflt_value) <> 'NULL'",
                literal(name)
            ))
            .await?;
        for default in &defaults {
            let column = text(default, 0);
            if table.moved.contains(&(column.clone(), false)) {
                refusals.add(format!(
                    "{name}.{column} has a default, {}, which is an old key: drop it before the move",
                    text(default, 1)
                ));
            }
        }
    }
    Ok(())
}

/// Refuses references to rows that are not there, since these have no new key.
async fn dangling(
    session: &mut Session,
    tables: &[Rebuilt],
    key: &str,
    refusals: &mut Refusals,
) -> Result<(), Failure> {
    let main = &tables[0].name;
    for table in tables {
        let name = &table.name;
        for (column, _) in table.moved.iter().filter(|(_, is_key)| !is_key) {
            let check = writer::dangling(name, column, main, key);
            let has = match session.number(&check.sql).await? {
                0 => continue,
                1 => format!("1 row of {name} has"),
                count => format!("{count} rows of {name} have"),
            };
            refusals.add(format!(
                "{has} {} {column} that is not in {main}: find them by `{}`, and correct them",
                article(column),
                check.find.unwrap_or_default()
            ));
        }
    }
    Ok(())
}

/// Lists the triggers of the tables.
async fn triggers(session: &mut Session, tables: &[Rebuilt]) -> Result<String, Failure> {
    let names: Vec<String> = tables.iter().map(|it| literal(&it.name)).collect();
    let query = format!(
        "SELECT group_concat(name, ', ') FROM sqlite_schema WHERE type = 'trigger' AND tbl_name IN ({})",
        names.join(", ")
    );
    Ok(session.value(&query).await?.unwrap_or_default())
}

/// Describes the tables, to see later whether they have changed.
pub(crate) async fn describe(session: &mut Session, plan: &Plan) -> Result<Vec<Table>, Failure> {
    let query = format!(
        "SELECT DISTINCT t.name FROM sqlite_schema t, pragma_foreign_key_list(t.name) f WHERE t.type = 'table' AND f.\"table\" = {0} \
         COLLATE NOCASE AND t.name <> {0} AND (f.\"to\" IS NULL OR f.\"to\" COLLATE NOCASE IN (SELECT i.name FROM \
         pragma_table_info({0}) i WHERE i.pk > 0)) ORDER BY 1",
        literal(&plan.name)
    );
    let mut names = vec![plan.name.clone()];
    names.extend(session.rows(&query).await?.iter().map(|row| text(row, 0)));
    catalog(session, names).await
}

async fn catalog(session: &mut Session, names: Vec<String>) -> Result<Vec<Table>, Failure> {
    let mut all = Vec::new();
    for name in names {
        let query = format!(
            "SELECT sql FROM sqlite_schema WHERE tbl_name = {} COLLATE NOCASE AND sql IS NOT NULL ORDER BY type, name",
            literal(&name)
        );
        all.push(Table {
            definition: session
                .rows(&query)
                .await?
                .iter()
                .map(|row| text(row, 0))
                .collect(),
            name,
        });
    }
    Ok(all)
}
