//! PostgreSQL: its catalog, and the SQL of a move.
//!
//! Every piece of DDL is in a transaction with the journal's entry, but for indexes, which are built `CONCURRENTLY`.
//!
//! Until the switch, triggers fill the new columns of rows that are inserted with old keys. A referring row looks its
//! new key up in the table. It may read a snapshot that is older than the keys, so referring columns are filled only when
//! all transactions are gone that were running when the last key was made. After the switch, triggers fill the old
//! columns.

use ordid_core::storage::{Dialect as _, dialect::Postgres};

use super::{
    model::{Action, Check, Statement, Step, Table},
    near,
    request::{Draft, Refusals, Request},
    session::Session,
    subject::{
        Column, ForeignKey, Index, Moved, creation_time, literal, named, replace_identifier,
    },
    target::Target,
};
use crate::failure::Failure;

/// What the catalog says of the table.
struct Found {
    oid: String,
    schema: String,
    name: String,
    rows: i64,
    bytes: i64,
    columns: Vec<FoundColumn>,
    key: FoundColumn,
    key_name: String,
    tables: Vec<Moved>,
    is_superuser: bool,
    has_update_triggers: bool,
}

#[derive(Debug, Clone)]
struct FoundColumn {
    number: String,
    name: String,
    sql_type: String,
    default: Option<String>,
    is_identity: bool,
}

fn text(row: &[Option<String>], at: usize) -> String {
    row.get(at).cloned().flatten().unwrap_or_default()
}

fn is_true(row: &[Option<String>], at: usize) -> bool {
    text(row, at) == "t"
}

fn quote(name: &str) -> String {
    Postgres::quote(name)
}

/// Reads the catalog and writes the steps.
pub(crate) async fn draft(
    session: &mut Session,
    request: &Request<'_>,
    target: &Target,
) -> Result<Draft, Failure> {
    let mut refusals = Refusals::default();
    let mut notes = Vec::new();
    let found = read(session, request, target, &mut refusals, &mut notes).await?;
    let created = created(session, request, &found, &mut refusals).await?;
    let catalog = catalog(session, &found.tables).await?;
    let writer = Writer {
        found: &found,
        target,
        created: created.as_ref(),
    };
    if created.is_none() {
        notes.push(
            "no column says when a row was made: keys follow the order of the old key, and have made-up times, one row a \
             millisecond, that end when the move begins (name the column by --created)"
                .to_owned(),
        );
    }
    if found.has_update_triggers {
        notes.push(match found.is_superuser {
            true => "the tables have triggers: they do not run for the rows that apply changes \
                     (session_replication_role = replica)"
                .to_owned(),
            false => "the tables have triggers, which also run for the rows that apply changes; apply as a superuser, and \
                      they do not"
                .to_owned(),
        });
    }
    let journal = writer.name(&named("ordid_move_", &found.name, ""));
    Ok(Draft {
        table: format!("{}.{}", found.schema, found.name),
        created: created.as_ref().map(|it| it.name.clone()),
        rows: found.rows,
        bytes: found.bytes,
        journal,
        steps: writer.steps(),
        undo: writer.undo(),
        back: writer.back(),
        finish: writer.finish(),
        catalog,
        notes,
        refusals,
    })
}

async fn read(
    session: &mut Session,
    request: &Request<'_>,
    target: &Target,
    refusals: &mut Refusals,
    notes: &mut Vec<String>,
) -> Result<Found, Failure> {
    let quoted: Vec<String> = request.table.split('.').map(quote).collect();
    let query = format!(
        "SELECT c.oid, n.nspname, c.relname, c.relkind, c.relispartition, greatest(c.reltuples, 0)::bigint, \
         pg_relation_size(c.oid), pg_has_role(c.relowner, 'MEMBER'), \
         EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhrelid = c.oid OR i.inhparent = c.oid), \
         (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass({})",
        literal(&quoted.join("."))
    );
    let rows = session.rows(&query).await?;
    let Some(row) = rows.first() else {
        let names = session
            .rows(
                "SELECT CASE WHEN pg_table_is_visible(c.oid) THEN relname ELSE nspname || '.' || relname END \
                 FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind IN ('r', 'p') \
                 AND nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1",
            )
            .await?;
        let names: Vec<String> = names.iter().map(|row| text(row, 0)).collect();
        return Err(request.unknown_table(near::suggestion(
            request.table,
            names.iter().map(String::as_str),
        )));
    };
    let (oid, schema, name) = (text(row, 0), text(row, 1), text(row, 2));
    let title = format!("{schema}.{name}");
    match text(row, 3).as_str() {
        "r" => {}
        "p" => refusals.add(format!(
            "{title} is partitioned: its key has the partition's column in it, and each partition has indexes of its own"
        )),
        _ => refusals.add(format!("{title} is not a table")),
    }
    if is_true(row, 4) || is_true(row, 8) {
        refusals.add(format!(
            "{title} is a partition, or inherits from a table or is inherited from: its rows are not its own alone"
        ));
    }
    if !is_true(row, 7) {
        refusals.add(format!(
            "{title} belongs to another role: connect as its owner"
        ));
    }
    let number = |at| text(row, at).parse::<i64>().unwrap_or(0);
    let (mut rows_estimated, bytes) = (number(5), number(6));
    let is_superuser = is_true(row, 9);
    if rows_estimated == 0 {
        let count = format!(
            "SELECT count(*) FROM {}",
            Postgres::quote_table(Some(&schema), &name)
        );
        rows_estimated = session.number(&count).await?;
    }
    let columns = columns(session, &oid).await?;
    let keys = session
        .rows(&format!(
            "SELECT conname, array_length(conkey, 1), conkey[1], condeferrable FROM pg_constraint \
             WHERE conrelid = {oid} AND contype = 'p'"
        ))
        .await?;
    let Some(primary) = keys.first() else {
        return Err(request.refuse(&format!("{title} has no primary key")));
    };
    if text(primary, 1) != "1" {
        return Err(request.refuse(&format!(
            "the primary key of {title} has {} columns: only a key of one column can be moved",
            text(primary, 1)
        )));
    }
    if is_true(primary, 3) {
        refusals.add(format!("the primary key of {title} is deferrable"));
    }
    let key = columns
        .iter()
        .find(|it| it.number == text(primary, 2))
        .cloned()
        .ok_or_else(|| Failure::could_not("the catalog has a primary key without its column"))?;
    if key.default.is_none() && !key.is_identity && key.sql_type != "uuid" {
        refusals.add(format!(
            "{title}.{} has no default: after the switch nobody would make the old keys that a way back needs; give it one, \
             such as a sequence's nextval",
            key.name
        ));
    }
    let mut found = Found {
        tables: tables(session, &oid, &schema, &name, &key, refusals).await?,
        key_name: text(primary, 0),
        oid,
        schema,
        name,
        rows: rows_estimated,
        bytes,
        columns,
        key,
        is_superuser,
        has_update_triggers: false,
    };
    already(session, request, &found, target, refusals).await?;
    dependents(session, &mut found, refusals, notes).await?;
    Ok(found)
}

async fn columns(session: &mut Session, oid: &str) -> Result<Vec<FoundColumn>, Failure> {
    let query = format!(
        "SELECT a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid), a.attidentity <> '' \
         FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
         WHERE a.attrelid = {oid} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
    );
    let rows = session.rows(&query).await?;
    let column = |row: &Vec<Option<String>>| FoundColumn {
        number: text(row, 0),
        name: text(row, 1),
        sql_type: text(row, 2),
        default: row.get(3).cloned().flatten(),
        is_identity: is_true(row, 4),
    };
    Ok(rows.iter().map(column).collect())
}

/// Reads the foreign keys that refer to the table, by table.
async fn tables(
    session: &mut Session,
    oid: &str,
    schema: &str,
    name: &str,
    key: &FoundColumn,
    refusals: &mut Refusals,
) -> Result<Vec<Moved>, Failure> {
    let own = Column {
        name: key.name.clone(),
        sql_type: key.sql_type.clone(),
        not_null: true,
        reference: None,
    };
    let mut tables = vec![Moved {
        schema: schema.to_owned(),
        name: name.to_owned(),
        columns: vec![own],
        indexes: Vec::new(),
    }];
    let query = format!(
        "SELECT n.nspname, c.relname, f.conname, array_length(f.conkey, 1), a.attname, format_type(a.atttypid, a.atttypmod), \
         a.attnotnull, f.condeferrable, c.relkind = 'p' OR c.relispartition, pg_has_role(c.relowner, 'MEMBER'), \
         pg_get_constraintdef(f.oid), {number} = ANY (f.confkey), a.attgenerated <> '' \
         FROM pg_constraint f JOIN pg_class c ON c.oid = f.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
         JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = f.conkey[1] \
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
        }
        if is_true(&row, 12) {
            refusals.add(format!("{title}.{} is a generated column", text(&row, 4)));
        }
        if !is_true(&row, 9) {
            refusals.add(format!(
                "{title}, which refers to the table, belongs to another role: connect as its owner"
            ));
        }
        let definition = text(&row, 10);
        if definition.contains("SET DEFAULT") {
            refusals.add(format!(
                "the foreign key {constraint} of {title} sets a default, which is an old key"
            ));
        }
        let actions = definition
            .split_once(" ON ")
            .map_or_else(String::new, |(_, actions)| format!("ON {actions}"));
        let column = Column {
            name: text(&row, 4),
            sql_type: text(&row, 5),
            not_null: is_true(&row, 6),
            reference: Some(ForeignKey {
                name: constraint,
                actions: actions.replace(" NOT VALID", ""),
                definition,
            }),
        };
        let known = tables
            .iter_mut()
            .find(|it| it.schema == child_schema && it.name == child);
        match known {
            Some(table) if table.columns.iter().any(|it| it.name == column.name) => {
                refusals.add(format!(
                    "{title}.{} has two foreign keys to the table",
                    column.name
                ));
            }
            Some(table) => table.columns.push(column),
            None => tables.push(Moved {
                schema: child_schema,
                name: child,
                columns: vec![column],
                indexes: Vec::new(),
            }),
        }
    }
    Ok(tables)
}

/// Refuses a table that has such keys already, or that is being moved.
async fn already(
    session: &mut Session,
    request: &Request<'_>,
    found: &Found,
    target: &Target,
    refusals: &mut Refusals,
) -> Result<(), Failure> {
    let table = Postgres::quote_table(Some(&found.schema), &found.name);
    let journal =
        Postgres::quote_table(Some(&found.schema), &named("ordid_move_", &found.name, ""));
    if session
        .exists(&super::journal::exists(
            crate::engine::Engine::Postgres,
            &journal,
        ))
        .await?
    {
        return Err(request.refuse(&format!(
            "{}.{} is being moved already: its journal is {journal}; apply that plan to the end, or roll it back",
            found.schema, found.name
        )));
    }
    let hex = match found.key.sql_type.as_str() {
        "uuid" => "encode(uuid_send(k), 'hex')",
        "bytea" => "encode(k, 'hex')",
        _ => return Ok(()),
    };
    let sample = format!(
        "SELECT {hex} FROM (SELECT {} AS k FROM {table} LIMIT 200) it",
        quote(&found.key.name)
    );
    let sample = session.rows(&sample).await?;
    let keys: Vec<String> = sample.iter().map(|row| text(row, 0)).collect();
    if target.are_keys(&keys) {
        refusals.add(format!(
            "{}.{} already has keys of `{}`",
            found.schema, found.name, target.scheme.name
        ));
    }
    Ok(())
}

/// Looks at whatever depends on the columns, and at the indexes.
async fn dependents(
    session: &mut Session,
    found: &mut Found,
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
        let triggers = format!(
            "SELECT 1 FROM pg_trigger WHERE tgrelid = {regclass} AND NOT tgisinternal AND tgtype & 16 <> 0"
        );
        found.has_update_triggers |= session.exists(&triggers).await?;
        table.indexes = indexes(session, &table, &regclass, refusals).await?;
        for (column, foreign_key) in table.references() {
            let has_index = table.indexes.iter().any(|index| {
                let head = index
                    .definition
                    .split_once('(')
                    .map_or("", |(_, list)| list);
                head.starts_with(&column.name) || head.starts_with(&quote(&column.name))
            });
            if !has_index {
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
    refusals: &mut Refusals,
) -> Result<Vec<Index>, Failure> {
    let names: Vec<String> = table.columns.iter().map(|it| literal(&it.name)).collect();
    let query = format!(
        "SELECT c.relname, i.indisprimary, i.indisunique, k.oid IS NOT NULL, pg_get_indexdef(i.indexrelid), \
         i.indexprs IS NOT NULL OR i.indpred IS NOT NULL, i.indisreplident, i.indisexclusion FROM pg_index i \
         JOIN pg_class c ON c.oid = i.indexrelid \
         LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x') AND k.conrelid = i.indrelid \
         WHERE i.indrelid = {regclass} AND i.indisvalid AND EXISTS (SELECT 1 FROM pg_depend d JOIN pg_attribute a \
         ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid WHERE d.refobjid = i.indrelid AND a.attname IN ({}) \
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
        });
    }
    Ok(indexes)
}

/// Finds the column that says when a row was made.
async fn created(
    _session: &mut Session,
    request: &Request<'_>,
    found: &Found,
    refusals: &mut Refusals,
) -> Result<Option<FoundColumn>, Failure> {
    let is_time = |column: &&FoundColumn| {
        column.sql_type.starts_with("timestamp") || column.sql_type == "date"
    };
    let Some(name) = request.created else {
        let times: Vec<&FoundColumn> = found.columns.iter().filter(is_time).collect();
        let name = creation_time(times.iter().map(|it| it.name.as_str()));
        return Ok(name.and_then(|name| times.iter().find(|it| it.name == name).copied().cloned()));
    };
    let Some(column) = found.columns.iter().find(|it| it.name == name) else {
        let names = found.columns.iter().map(|it| it.name.as_str());
        return Err(Failure::wrong(format_args!(
            "{}.{} has no column {name}{}",
            found.schema,
            found.name,
            near::suggestion(name, names)
        )));
    };
    if !is_time(&column) {
        refusals.add(format!(
            "the column {name} is of type {}, which is not a time",
            column.sql_type
        ));
    }
    Ok(Some(column.clone()))
}

/// Describes the tables, to see later whether they have changed.
pub(crate) async fn describe(session: &mut Session, table: &str) -> Result<Vec<Table>, Failure> {
    let quoted: Vec<String> = table.split('.').map(quote).collect();
    let query = format!(
        "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass({name}) \
         OR c.oid IN (SELECT conrelid FROM pg_constraint WHERE contype = 'f' AND confrelid = to_regclass({name})) \
         ORDER BY c.oid <> to_regclass({name}), 1, 2",
        name = literal(&quoted.join("."))
    );
    let tables: Vec<Moved> = session
        .rows(&query)
        .await?
        .iter()
        .map(|row| Moved {
            schema: text(row, 0),
            name: text(row, 1),
            columns: Vec::new(),
            indexes: Vec::new(),
        })
        .collect();
    catalog(session, &tables).await
}

async fn catalog(session: &mut Session, tables: &[Moved]) -> Result<Vec<Table>, Failure> {
    let mut all = Vec::new();
    for table in tables {
        let name = Postgres::quote_table(Some(&table.schema), &table.name);
        let regclass = format!("{}::regclass", literal(&name));
        let query = format!(
            "SELECT 'column ' || attname || ' ' || format_type(atttypid, atttypmod) || CASE WHEN attnotnull THEN ' not null' \
             ELSE '' END || coalesce(' default ' || pg_get_expr(adbin, adrelid), '') FROM pg_attribute LEFT JOIN pg_attrdef \
             ON adrelid = attrelid AND adnum = attnum WHERE attrelid = {regclass} AND attnum > 0 AND NOT attisdropped \
             UNION ALL SELECT 'constraint ' || conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint \
             WHERE conrelid = {regclass} \
             UNION ALL SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = {regclass} \
             UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = {regclass} AND NOT tgisinternal \
             ORDER BY 1"
        );
        let rows = session.rows(&query).await?;
        all.push(Table {
            name: table.title(),
            definition: rows.iter().map(|row| text(row, 0)).collect(),
        });
    }
    Ok(all)
}

/// Writes the SQL.
struct Writer<'a> {
    found: &'a Found,
    target: &'a Target,
    created: Option<&'a FoundColumn>,
}

const BRIEF: &str = "each table for some milliseconds, once its running transactions are done; nobody waits longer than the lock \
                     timeout";
const NONE: &str = "no table";

impl Writer<'_> {
    /// Returns a name in the table's schema, quoted.
    fn name(&self, name: &str) -> String {
        Postgres::quote_table(Some(&self.found.schema), name)
    }

    fn main(&self) -> &Moved {
        &self.found.tables[0]
    }

    fn key(&self) -> &Column {
        &self.main().columns[0]
    }

    fn table(&self, table: &Moved) -> String {
        Postgres::quote_table(Some(&table.schema), &table.name)
    }

    fn work(&self) -> String {
        self.name(&named("ordid_work_", &self.found.name, ""))
    }

    fn key_function(&self) -> String {
        self.name(&named("ordid_key_of_", &self.found.name, ""))
    }

    /// The function of a table's trigger, in the table's schema.
    fn function(&self, table: &Moved) -> String {
        let name = named("ordid_sync_", &table.name, "");
        Postgres::quote_table(Some(&table.schema), &name)
    }

    /// The name of an index's copy on the new columns.
    fn copy_of(index: &Index) -> String {
        named("ordid_new_", &index.name, "")
    }

    fn check_of(column: &Column) -> String {
        quote(&named("ordid_check_", &column.name, ""))
    }

    fn new_key_of(foreign_key: &ForeignKey) -> String {
        named("ordid_new_", &foreign_key.name, "")
    }

    /// A table's primary key has a moved column, and its old columns need an index of their own for the way back.
    fn twin_of(index: &Index) -> String {
        named("ordid_old_", &index.name, "")
    }

    fn rows(&self, per_second: f64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "it is an estimate")]
        let rows = self.found.rows as f64;
        rows / per_second
    }

    fn step(name: &str, what: String, locks: &str, seconds: f64, action: Action) -> Step {
        Step {
            name: name.to_owned(),
            what,
            locks: locks.to_owned(),
            seconds: seconds.max(0.1),
            action,
        }
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = vec![
            self.columns(),
            self.triggers(),
            self.work_list(),
            self.keys(),
        ];
        steps.push(Self::step(
            "wait",
            "Waits for the transactions that were running when the last key was made: their referring rows may not have seen it"
                .to_owned(),
            NONE,
            1.0,
            Action::Wait {
                list: "SELECT virtualxid FROM pg_locks WHERE locktype = 'virtualxid' AND pid <> pg_backend_pid() AND pid IN \
                       (SELECT pid FROM pg_stat_activity WHERE datname = current_database() \
                       AND coalesce(backend_type, '') <> 'autovacuum worker') \
                       UNION ALL SELECT transaction::text FROM pg_prepared_xacts WHERE database = current_database()"
                    .to_owned(),
            },
        ));
        steps.extend(self.references());
        steps.push(self.constraints());
        steps.push(self.copies());
        steps.push(self.foreign_keys());
        steps.push(self.validate_constraints());
        steps.push(self.check());
        steps.push(self.switch());
        steps
    }

    fn columns(&self) -> Step {
        let sql_type = self.target.column.sql_type;
        let statements = self.found.tables.iter().map(|table| {
            let columns: Vec<String> = table
                .columns
                .iter()
                .map(|it| format!("ADD COLUMN {} {sql_type}", quote(&it.new_name())))
                .collect();
            format!("ALTER TABLE {} {}", self.table(table), columns.join(", "))
        });
        // A table each, so that no transaction waits for a second lock.
        let statements = statements
            .zip(&self.found.tables)
            .map(|(sql, table)| {
                Statement::new(sql).unless(format!(
                    "SELECT 1 FROM pg_attribute WHERE attrelid = {}::regclass AND attname = {} AND NOT attisdropped",
                    literal(&self.table(table)),
                    literal(&table.columns[0].new_name())
                ))
            })
            .collect();
        Self::step(
            "columns",
            format!("Adds an empty column {sql_type} beside each moved column"),
            BRIEF,
            0.1,
            Action::Online { statements },
        )
    }

    /// The time of a row in a trigger, by which its key is made.
    fn row_time(&self) -> String {
        match self.created {
            None => "clock_timestamp()".to_owned(),
            Some(column) => moment(&format!("NEW.{}", quote(&column.name)), &column.sql_type),
        }
    }

    /// The function of the trigger: `before` the switch it fills new columns, after it old ones.
    fn sync_function(&self, table: &Moved, before: bool) -> String {
        let names = |column: &Column| match before {
            true => (quote(&column.name), quote(&column.new_name())),
            false => (quote(&column.name), quote(&column.old_name())),
        };
        let mut body = String::new();
        let is_main = table.title() == self.main().title();
        let (key, other_key) = names(self.key());
        if is_main {
            let new_key = if before { &other_key } else { &key };
            body.push_str(&format!(
                "  IF TG_OP = 'INSERT' AND NEW.{new_key} IS NULL THEN\n    NEW.{new_key} := {}({});\n  END IF;\n",
                self.key_function(),
                self.row_time()
            ));
            if !before && self.found.key.default.is_none() && !self.found.key.is_identity {
                body.push_str(&format!(
                    "  IF NEW.{other_key} IS NULL THEN\n    NEW.{other_key} := gen_random_uuid();\n  END IF;\n"
                ));
            }
        }
        for (column, _) in table.references() {
            let (from, to) = names(column);
            let own = match is_main {
                true => format!(
                    "  ELSIF NEW.{from} = NEW.{key} THEN\n    NEW.{to} := NEW.{other_key};\n"
                ),
                false => String::new(),
            };
            body.push_str(&format!(
                "  IF NEW.{from} IS NULL THEN\n    NEW.{to} := NULL;\n{own}  ELSIF TG_OP = 'INSERT' OR NEW.{to} IS NULL OR NEW.{from} IS \
                 DISTINCT FROM OLD.{from} THEN\n    SELECT it.{other_key} INTO NEW.{to} FROM {main} AS it WHERE it.{key} = \
                 NEW.{from};\n    IF NOT FOUND AND (TG_OP = 'INSERT' OR NEW.{from} IS DISTINCT FROM OLD.{from}) AND current_setting('transaction_isolation') <> 'read committed' THEN\n      RAISE \
                 EXCEPTION USING ERRCODE = 'serialization_failure', MESSAGE = 'the row that is referred to is newer than this \
                 transaction, try it again';\n    END IF;\n  END IF;\n",
                main = self.table(self.main()),
            ));
        }
        format!(
            "CREATE OR REPLACE FUNCTION {}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, \
             pg_temp AS $ordid$\nBEGIN\n{body}  RETURN NEW;\nEND\n$ordid$",
            self.function(table)
        )
    }

    fn triggers(&self) -> Step {
        let key_function = format!(
            "CREATE OR REPLACE FUNCTION {}(moment timestamptz DEFAULT clock_timestamp()) RETURNS {} LANGUAGE sql VOLATILE AS \
             $ordid$\n  SELECT {} FROM (SELECT greatest(floor(extract(epoch FROM coalesce(moment, clock_timestamp())) * \
             1000000)::bigint, 0) AS m, replace(gen_random_uuid()::text, '-', '') AS r) AS it\n$ordid$",
            self.key_function(),
            self.type_name(),
            self.target.postgres()
        );
        let mut statements = vec![Statement::new(key_function)];
        // The table itself comes last: a row of it that has its key from the trigger is not in the work list, so whatever
        // refers to that row needs its trigger by then.
        for table in self.found.tables.iter().rev() {
            statements.push(Statement::new(self.sync_function(table, true)));
            statements.push(
                Statement::new(format!(
                    "CREATE TRIGGER ordid_sync BEFORE INSERT OR UPDATE ON {} FOR EACH ROW EXECUTE FUNCTION {}()",
                    self.table(table),
                    self.function(table)
                ))
                .unless(format!(
                    "SELECT 1 FROM pg_trigger WHERE tgrelid = {}::regclass AND tgname = 'ordid_sync'",
                    literal(&self.table(table))
                )),
            );
        }
        Self::step(
            "triggers",
            "Creates the triggers that fill the new columns of rows which others write from now on"
                .to_owned(),
            BRIEF,
            0.1,
            Action::Online { statements },
        )
    }

    /// The column's type without its collation, which a function has no use for.
    fn type_name(&self) -> &str {
        let sql_type = self.target.column.sql_type;
        sql_type
            .split_once(" COLLATE")
            .map_or(sql_type, |(name, _)| name)
    }

    fn work_list(&self) -> Step {
        let table = self.table(self.main());
        let key = quote(&self.key().name);
        let (micros, order) = match self.created {
            None => (
                "(extract(epoch FROM now()) * 1000000)::bigint - (count(*) OVER () - row_number() OVER (ORDER BY {key})) * 1000"
                    .replace("{key}", &key),
                key.clone(),
            ),
            Some(column) => {
                let time = moment(&quote(&column.name), &column.sql_type);
                let first = format!(
                    "coalesce({time}, (SELECT min({}) FROM {table}), now())",
                    moment(&quote(&column.name), &column.sql_type)
                );
                (
                    format!("floor(extract(epoch FROM {first}) * 1000000)::bigint"),
                    format!("{time} NULLS FIRST, {key}"),
                )
            }
        };
        let work = self.work();
        Self::step(
            "work_list",
            match self.created {
                Some(column) => format!(
                    "Lists the rows without a new key in the order of {}, and of the old key where times are equal",
                    column.name
                ),
                None => "Lists the rows without a new key in the order of the old key".to_owned(),
            },
            NONE,
            self.rows(500_000.0),
            Action::Transaction {
                statements: vec![
                    format!("DROP TABLE IF EXISTS {work}"),
                    format!(
                        "CREATE TABLE {work} AS SELECT row_number() OVER (ORDER BY {order}) AS position, {key} AS old, {micros} AS \
                         micros FROM {table} WHERE {} IS NULL",
                        quote(&self.key().new_name())
                    ),
                    format!("ALTER TABLE {work} ADD PRIMARY KEY (position)"),
                    format!("ANALYZE {work}"),
                ],
            },
        )
    }

    /// What comes first in a transaction that changes rows: other triggers do not run, where that can be said.
    fn quiet(&self) -> Vec<String> {
        match self.found.is_superuser && self.found.has_update_triggers {
            true => vec!["SET LOCAL session_replication_role = replica".to_owned()],
            false => Vec::new(),
        }
    }

    fn keys(&self) -> Step {
        let key = quote(&self.key().name);
        let new = quote(&self.key().new_name());
        let mut write = self.quiet();
        write.push(format!(
            "UPDATE {table} AS it SET {new} = k.key FROM {work} AS w JOIN (VALUES {{rows}}) AS k (position, key) \
             ON k.position = w.position WHERE w.position > {{after}} AND w.position <= {{last}} AND it.{key} = w.old \
             AND it.{new} IS NULL",
            table = self.table(self.main()),
            work = self.work()
        ));
        Self::step(
            "keys",
            "Gives each listed row a key of its time, made by ordid, in chunks".to_owned(),
            "the rows of a chunk, until its COMMIT",
            self.rows(15_000.0),
            Action::Keys {
                session: Vec::new(),
                read: format!(
                    "SELECT position, micros FROM {} WHERE position > {{after}} ORDER BY position LIMIT {{chunk}}",
                    self.work()
                ),
                row: "({position},{key})".to_owned(),
                write,
            },
        )
    }

    fn references(&self) -> Vec<Step> {
        let key = quote(&self.key().name);
        let new_key = quote(&self.key().new_name());
        let mut steps = Vec::new();
        for table in &self.found.tables {
            for (column, _) in table.references() {
                let (from, to) = (quote(&column.name), quote(&column.new_name()));
                let is_indexed = table.indexes.iter().any(|index| {
                    let head = index
                        .definition
                        .split_once('(')
                        .map_or("", |(_, list)| list);
                    head.starts_with(&column.name) || head.starts_with(&from)
                });
                if !is_indexed {
                    let name = named(
                        "ordid_work_",
                        &format!("{}_{}", table.name, column.name),
                        "",
                    );
                    steps.push(Self::step(
                        "index",
                        format!(
                            "Builds an index on {}.{from}, by which its rows are found",
                            table.title()
                        ),
                        NONE,
                        self.rows(300_000.0),
                        Action::Online {
                            statements: vec![concurrently(
                                &table.schema,
                                &name,
                                &format!(
                                    "CREATE INDEX CONCURRENTLY {} ON {} ({from})",
                                    quote(&name),
                                    self.table(table)
                                ),
                            )],
                        },
                    ));
                }
                let mut write = self.quiet();
                write.push(format!(
                    "UPDATE {child} AS c SET {to} = it.{new_key} FROM {work} AS w JOIN {main} AS it ON it.{key} = w.old WHERE \
                     w.position > {{after}} AND w.position <= {{last}} AND c.{from} = w.old AND c.{to} IS NULL",
                    child = self.table(table),
                    work = self.work(),
                    main = self.table(self.main()),
                ));
                steps.push(Self::step(
                    "references",
                    format!("Fills the new column of {}.{} in chunks", table.title(), column.name),
                    "the rows of a chunk, until its COMMIT",
                    self.rows(15_000.0),
                    Action::References {
                        read: format!(
                            "SELECT max(position) FROM (SELECT position FROM {} WHERE position > {{after}} ORDER BY position \
                             LIMIT {{chunk}}) AS it",
                            self.work()
                        ),
                        write,
                    },
                ));
            }
        }
        steps
    }

    fn constraints(&self) -> Step {
        let mut statements = Vec::new();
        for table in &self.found.tables {
            for column in &table.columns {
                let new = quote(&column.new_name());
                let rule = match column.not_null {
                    true => format!("{new} IS NOT NULL"),
                    false => format!("({new} IS NULL) = ({} IS NULL)", quote(&column.name)),
                };
                let check = Self::check_of(column);
                statements.push(
                    Statement::new(format!(
                        "ALTER TABLE {} ADD CONSTRAINT {check} CHECK ({rule}) NOT VALID",
                        self.table(table)
                    ))
                    .unless(format!(
                        "SELECT 1 FROM pg_constraint WHERE conrelid = {}::regclass AND conname = {}",
                        literal(&self.table(table)),
                        literal(&named("ordid_check_", &column.name, ""))
                    )),
                );
                statements.push(
                    Statement::new(format!(
                        "ALTER TABLE {} VALIDATE CONSTRAINT {check}",
                        self.table(table)
                    ))
                    .waiting(),
                );
            }
        }
        Self::step(
            "constraints",
            "Declares that no new column is empty, and lets the server read all rows for that"
                .to_owned(),
            BRIEF,
            self.rows(1_000_000.0),
            Action::Online { statements },
        )
    }

    /// The copies of all indexes that have moved columns.
    fn copies(&self) -> Step {
        let mut statements = Vec::new();
        for table in &self.found.tables {
            for index in &table.indexes {
                let name = Self::copy_of(index);
                let mut definition = index.definition.clone();
                for column in &table.columns {
                    definition = replace_columns(&definition, column);
                }
                statements.push(concurrently(
                    &table.schema,
                    &name,
                    &renamed_index(&definition, &name),
                ));
                if index.is_primary {
                    let name = Self::twin_of(index);
                    statements.push(concurrently(
                        &table.schema,
                        &name,
                        &renamed_index(&index.definition, &name),
                    ));
                }
            }
            statements.push(Statement::new(format!("ANALYZE {}", self.table(table))).waiting());
        }
        Self::step(
            "indexes",
            "Builds the same indexes on the new columns, and for the way back an index on the old key".to_owned(),
            "no table: CREATE INDEX CONCURRENTLY; it waits for running transactions",
            self.rows(300_000.0),
            Action::Online { statements },
        )
    }

    fn foreign_keys(&self) -> Step {
        let mut statements = Vec::new();
        for table in &self.found.tables {
            for (column, foreign_key) in table.references() {
                if !column.not_null {
                    // It has served. Two foreign keys that set their columns to NULL, one after the other, would break it.
                    statements.push(Statement::new(format!(
                        "ALTER TABLE {} DROP CONSTRAINT IF EXISTS {}",
                        self.table(table),
                        Self::check_of(column)
                    )));
                }
                let name = Self::new_key_of(foreign_key);
                statements.push(
                    Statement::new(format!(
                        "ALTER TABLE {} ADD CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {} ({}) {} NOT VALID",
                        self.table(table),
                        quote(&name),
                        quote(&column.new_name()),
                        self.table(self.main()),
                        quote(&self.key().new_name()),
                        foreign_key.actions
                    ))
                    .unless(format!(
                        "SELECT 1 FROM pg_constraint WHERE conrelid = {}::regclass AND conname = {}",
                        literal(&self.table(table)),
                        literal(&name)
                    )),
                );
            }
        }
        Self::step(
            "foreign_keys",
            "Adds the same foreign keys between the new columns".to_owned(),
            BRIEF,
            0.1,
            Action::Online { statements },
        )
    }

    fn validate_constraints(&self) -> Step {
        let mut statements = Vec::new();
        for table in &self.found.tables {
            for (_, foreign_key) in table.references() {
                statements.push(
                    Statement::new(format!(
                        "ALTER TABLE {} VALIDATE CONSTRAINT {}",
                        self.table(table),
                        quote(&Self::new_key_of(foreign_key))
                    ))
                    .waiting(),
                );
            }
        }
        Self::step(
            "validate",
            "Lets the server check the new foreign keys of all rows".to_owned(),
            "no table: others read and write meanwhile",
            self.rows(500_000.0),
            Action::Online { statements },
        )
    }

    fn check(&self) -> Step {
        let (main, key, new) = (
            self.table(self.main()),
            quote(&self.key().name),
            quote(&self.key().new_name()),
        );
        let mut checks = vec![
            Check::new(
                format!(
                    "rows of {} without a new key of their own",
                    self.main().title()
                ),
                format!("SELECT count(*) - count(DISTINCT {new}) FROM {main}"),
            ),
            Check::new(
                format!(
                    "rows of {} whose keys are not in the order of the work list",
                    self.main().title()
                ),
                format!(
                    "SELECT count(*) FROM (SELECT it.{new} < lag(it.{new}) OVER (ORDER BY w.position) AS falls FROM {} AS w \
                     JOIN {main} AS it ON it.{key} = w.old) AS pairs WHERE falls",
                    self.work()
                ),
            ),
        ];
        for table in &self.found.tables {
            for (column, _) in table.references() {
                checks.push(Check::new(
                    format!("rows of {} whose new {} is another row's", table.title(), column.name),
                    format!(
                        "SELECT count(*) FROM {} AS c LEFT JOIN {main} AS it ON it.{new} = c.{} WHERE c.{} IS DISTINCT FROM it.{key}",
                        self.table(table),
                        quote(&column.new_name()),
                        quote(&column.name)
                    ),
                ));
            }
        }
        Self::step(
            "check",
            "Counts and joins old and new keys: nothing is switched unless every row has its key, and every reference its row"
                .to_owned(),
            NONE,
            self.rows(300_000.0),
            Action::Check { checks },
        )
    }

    fn locks(&self) -> Vec<String> {
        let lock = |table| format!("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", self.table(table));
        self.found.tables.iter().map(lock).collect()
    }

    fn switch(&self) -> Step {
        let main = self.table(self.main());
        let mut sql = Vec::new();
        for table in &self.found.tables {
            for (_, foreign_key) in table.references() {
                sql.push(drop_constraint(&self.table(table), &foreign_key.name));
            }
        }
        for table in &self.found.tables {
            let name = self.table(table);
            sql.push(format!("DROP TRIGGER ordid_sync ON {name}"));
            for index in table.indexes.iter().filter(|it| it.is_primary) {
                sql.push(drop_constraint(&name, &index.name));
            }
            for column in &table.columns {
                if column.not_null {
                    sql.push(format!(
                        "ALTER TABLE {name} ALTER COLUMN {} SET NOT NULL",
                        quote(&column.new_name())
                    ));
                }
                if column.not_null {
                    sql.push(format!(
                        "ALTER TABLE {name} DROP CONSTRAINT {}",
                        Self::check_of(column)
                    ));
                }
                sql.push(rename(&name, &column.name, &column.old_name()));
                sql.push(rename(&name, &column.new_name(), &column.name));
            }
            for index in &table.indexes {
                let copy = Self::copy_of(index);
                if index.is_primary {
                    sql.push(primary_key(&name, &index.name, &copy));
                    continue;
                }
                let (old, new) = (
                    self.in_schema(table, &index.name),
                    self.in_schema(table, &copy),
                );
                sql.push(format!(
                    "ALTER INDEX {old} RENAME TO {}",
                    quote(&Self::twin_of(index))
                ));
                sql.push(format!(
                    "ALTER INDEX {new} RENAME TO {}",
                    quote(&index.name)
                ));
                if index.is_constraint {
                    sql.push(format!(
                        "ALTER TABLE {name} ADD CONSTRAINT {0} UNIQUE USING INDEX {0}",
                        quote(&index.name)
                    ));
                }
            }
            for (_, foreign_key) in table.references() {
                sql.push(format!(
                    "ALTER TABLE {name} RENAME CONSTRAINT {} TO {}",
                    quote(&Self::new_key_of(foreign_key)),
                    quote(&foreign_key.name)
                ));
            }
            sql.push(self.sync_function(table, false));
            sql.push(format!(
                "CREATE TRIGGER ordid_sync BEFORE INSERT OR UPDATE ON {name} FOR EACH ROW EXECUTE FUNCTION {}()",
                self.function(table)
            ));
        }
        if self.found.key.default.is_some() || self.found.key.is_identity {
            sql.push(format!(
                "ALTER TABLE {main} ALTER COLUMN {} SET DEFAULT {}()",
                quote(&self.key().name),
                self.key_function()
            ));
        }
        Self::step(
            "switch",
            "In one transaction: renames the columns, so that the new ones have the old names, and makes the new key the \
             primary key; triggers now fill the old columns"
                .to_owned(),
            "all tables, for some milliseconds and at most twice the lock timeout; it lets go and tries again while it does not \
             get them",
            0.1,
            Action::Switch {
                lock: self.locks(),
                statements: sql.into_iter().map(Statement::new).collect(),
                unlock: Vec::new(),
            },
        )
    }

    fn in_schema(&self, table: &Moved, name: &str) -> String {
        Postgres::quote_table(Some(&table.schema), name)
    }

    /// Drops what belongs to the new columns, behind their names of now.
    fn drop_columns(&self, name: fn(&Column) -> String) -> Vec<Step> {
        let mut steps = Vec::new();
        for table in self.found.tables.iter().rev() {
            // The key comes last: a reference of the table to itself depends on it.
            let columns: Vec<String> = table
                .columns
                .iter()
                .rev()
                .map(|it| format!("DROP COLUMN IF EXISTS {}", quote(&name(it))))
                .collect();
            steps.push(Self::step(
                "drop_columns",
                format!(
                    "Drops the trigger and the columns of {} that are no longer needed",
                    table.title()
                ),
                BRIEF,
                0.1,
                Action::Transaction {
                    statements: vec![
                        format!("DROP TRIGGER IF EXISTS ordid_sync ON {}", self.table(table)),
                        format!("DROP FUNCTION IF EXISTS {}()", self.function(table)),
                        format!("ALTER TABLE {} {}", self.table(table), columns.join(", ")),
                    ],
                },
            ));
        }
        steps
    }

    fn leftovers(&self, drops_function: bool) -> Step {
        let mut statements = Vec::new();
        for table in &self.found.tables {
            for index in &table.indexes {
                if index.is_primary {
                    statements.push(drop_index(&self.in_schema(table, &Self::twin_of(index))));
                }
            }
            for (column, _) in table.references() {
                let name = named(
                    "ordid_work_",
                    &format!("{}_{}", table.name, column.name),
                    "",
                );
                statements.push(drop_index(&self.in_schema(table, &name)));
            }
        }
        statements.push(Statement::new(format!(
            "DROP TABLE IF EXISTS {}",
            self.work()
        )));
        if drops_function {
            statements.push(Statement::new(format!(
                "DROP FUNCTION IF EXISTS {}(timestamptz)",
                self.key_function()
            )));
        }
        Self::step(
            "leftovers",
            "Drops the work list, and what is left of indexes and functions".to_owned(),
            NONE,
            0.1,
            Action::Online { statements },
        )
    }

    fn undo(&self) -> Vec<Step> {
        let mut steps = self.drop_columns(Column::new_name);
        steps.push(self.leftovers(true));
        steps
    }

    fn back(&self) -> Vec<Step> {
        let mut sql = Vec::new();
        for table in &self.found.tables {
            for (_, foreign_key) in table.references() {
                sql.push(drop_constraint(&self.table(table), &foreign_key.name));
            }
        }
        for table in &self.found.tables {
            let name = self.table(table);
            sql.push(format!("DROP TRIGGER ordid_sync ON {name}"));
            for index in &table.indexes {
                if index.is_primary {
                    sql.push(drop_constraint(&name, &index.name));
                    continue;
                }
                if index.is_constraint {
                    sql.push(drop_constraint(&name, &index.name));
                } else {
                    sql.push(format!("DROP INDEX {}", self.in_schema(table, &index.name)));
                }
                let old = self.in_schema(table, &Self::twin_of(index));
                sql.push(format!(
                    "ALTER INDEX {old} RENAME TO {}",
                    quote(&index.name)
                ));
            }
            for column in &table.columns {
                sql.push(rename(&name, &column.name, &column.new_name()));
                sql.push(rename(&name, &column.old_name(), &column.name));
            }
            for column in table.columns.iter().filter(|it| it.not_null) {
                let new = quote(&column.new_name());
                sql.push(format!(
                    "ALTER TABLE {name} ALTER COLUMN {new} DROP NOT NULL"
                ));
            }
            for index in table.indexes.iter().filter(|it| it.is_primary) {
                sql.push(primary_key(&name, &index.name, &Self::twin_of(index)));
            }
        }
        let mut validate = Vec::new();
        for table in &self.found.tables {
            let name = self.table(table);
            for (_, foreign_key) in table.references() {
                let definition = foreign_key.definition.replace(" NOT VALID", "");
                sql.push(format!(
                    "ALTER TABLE {name} ADD CONSTRAINT {} {definition} NOT VALID",
                    quote(&foreign_key.name),
                ));
                validate.push(
                    Statement::new(format!(
                        "ALTER TABLE {name} VALIDATE CONSTRAINT {}",
                        quote(&foreign_key.name)
                    ))
                    .waiting(),
                );
            }
        }
        let mut steps = vec![
            Self::step(
                "switch_back",
                "In one transaction: gives the old columns their names again, and the table its old primary key".to_owned(),
                "all tables, for some milliseconds and at most twice the lock timeout",
                0.1,
                Action::Switch {
                    lock: self.locks(),
                    statements: sql.into_iter().map(Statement::new).collect(),
                    unlock: Vec::new(),
                },
            ),
            Self::step(
                "validate",
                "Lets the server check the old foreign keys of all rows".to_owned(),
                "no table: others read and write meanwhile",
                self.rows(500_000.0),
                Action::Online {
                    statements: validate,
                },
            ),
        ];
        steps.extend(self.undo());
        steps
    }

    fn finish(&self) -> Vec<Step> {
        let mut steps = self.drop_columns(Column::old_name);
        let has_default = self.found.key.default.is_some() || self.found.key.is_identity;
        steps.push(self.leftovers(!has_default));
        steps
    }
}

/// Returns an expression of a time with a zone. Times without one are read as UTC.
fn moment(column: &str, sql_type: &str) -> String {
    match sql_type.contains("with time zone") {
        true => column.to_owned(),
        false => format!("({column}::timestamp AT TIME ZONE 'UTC')"),
    }
}

fn rename(table: &str, from: &str, to: &str) -> String {
    format!(
        "ALTER TABLE {table} RENAME COLUMN {} TO {}",
        quote(from),
        quote(to)
    )
}

fn drop_constraint(table: &str, name: &str) -> String {
    format!("ALTER TABLE {table} DROP CONSTRAINT {}", quote(name))
}

fn primary_key(table: &str, name: &str, index: &str) -> String {
    format!(
        "ALTER TABLE {table} ADD CONSTRAINT {} PRIMARY KEY USING INDEX {}",
        quote(name),
        quote(index)
    )
}

fn drop_index(name: &str) -> Statement {
    Statement::new(format!("DROP INDEX CONCURRENTLY IF EXISTS {name}")).waiting()
}

fn concurrently(schema: &str, name: &str, sql: &str) -> Statement {
    let index = Postgres::quote_table(Some(schema), name);
    Statement::new(sql)
        .unless(format!(
            "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass({}) AND indisvalid",
            literal(&index)
        ))
        .after(format!("DROP INDEX CONCURRENTLY IF EXISTS {index}"))
        .waiting()
}

/// Gives an index another name, and lets it be built while others write.
fn renamed_index(definition: &str, name: &str) -> String {
    let unique = if definition.starts_with("CREATE UNIQUE") {
        "UNIQUE "
    } else {
        ""
    };
    let behind = definition
        .split_once(" ON ")
        .map_or("", |(_, behind)| behind);
    format!(
        "CREATE {unique}INDEX CONCURRENTLY {} ON {behind}",
        quote(name)
    )
}

/// Replaces a column in the lists of an index, not in the names before them.
fn replace_columns(definition: &str, column: &Column) -> String {
    let start = definition.find(" USING ").unwrap_or(0);
    let (head, lists) = definition.split_at(start);
    let start = lists.find('(').unwrap_or(0);
    let (method, lists) = lists.split_at(start);
    let new = quote(&column.new_name());
    format!(
        "{head}{method}{}",
        replace_identifier(lists, &column.name, &quote(&column.name), &new)
    )
}
