//! PostgreSQL: its catalog, and the SQL of a move.
//!
//! Every piece of DDL is in a transaction with the journal's entry, but for indexes, which are built `CONCURRENTLY`.
//!
//! Until the switch, triggers fill the new columns of rows that are inserted with old keys. A referring row looks its
//! new key up in the table. It may read a snapshot that is older than the keys, so referring columns are filled only when
//! all transactions are gone that were running when the last key was made. After the switch, triggers fill the old
//! columns.

mod dependents;
mod notes;
mod references;
mod writer;

use ordid_core::storage::{Dialect as _, dialect::Postgres};

use super::{
    model::{Guard, Plan, Table},
    request::{Draft, Refusals, Request},
    session::Session,
    subject::{Column, Moved, creation_time, find_outside, literal, named},
    target::Target,
};
use crate::{database::text, failure::Failure, near};

/// The catalog's description of the table.
struct Found {
    schema: String,
    name: String,
    rows: i64,
    bytes: i64,
    columns: Vec<FoundColumn>,
    key: FoundColumn,
    tables: Vec<Moved>,
    /// The things that depend on the moved columns, as [`depends`] names them.
    known: Vec<String>,
    /// Whether the user may turn triggers off.
    is_quiet: bool,
    /// The triggers of users that an UPDATE may run.
    update_triggers: UpdateTriggers,
    /// The sequence that belongs to the key.
    sequence: Option<Sequence>,
    /// The statements that give the new columns the statistics targets and options of the old ones.
    options: Vec<String>,
}

/// The names of triggers that an UPDATE may run, by the sessions in which they run.
#[derive(Debug, Default)]
struct UpdateTriggers {
    /// Those that `session_replication_role = replica` turns off.
    ordinary: Vec<String>,
    /// Those that it turns on: `ENABLE REPLICA`.
    of_replicas: Vec<String>,
    /// Those that always run: `ENABLE ALWAYS`.
    always: Vec<String>,
}

impl Found {
    /// Whether `apply` turns triggers off for the rows that it changes. It must not turn others on by that.
    fn turns_triggers_off(&self) -> bool {
        let triggers = &self.update_triggers;
        self.is_quiet && !triggers.ordinary.is_empty() && triggers.of_replicas.is_empty()
    }
}

/// A sequence that is dropped with its column.
struct Sequence {
    /// Its name, quoted.
    name: String,
    /// Whether it is an identity's.
    is_identity: bool,
    /// Columns whose defaults use it, too.
    others: Option<String>,
}

impl Sequence {
    fn note(&self, key: &str) -> String {
        let name = &self.name;
        match &self.others {
            None => format!(
                "the sequence {name} makes old keys until --finish, which drops it with the old column of {key}"
            ),
            Some(others) => format!(
                "the sequence {name} stays after --finish, which takes it from the old column of {key}: defaults of {others} use it, too"
            ),
        }
    }
}

#[derive(Debug, Clone)]
struct FoundColumn {
    number: String,
    name: String,
    sql_type: String,
    default: Option<String>,
    is_identity: bool,
    comment: Option<String>,
}

/// Makes the server write schemas into its texts.
const WITHOUT_PATH: &str = "SET search_path = pg_catalog";

fn is_true(row: &[Option<String>], at: usize) -> bool {
    text(row, at) == "t"
}

fn quote(name: &str) -> String {
    Postgres::quote(name)
}

/// Whether an index begins with the column.
fn is_indexed(table: &Moved, column: &Column) -> bool {
    table.indexes.iter().any(|index| {
        let list =
            find_outside(&index.definition, "(").map_or("", |at| &index.definition[at + 1..]);
        [column.name.as_str(), &quote(&column.name)]
            .iter()
            .filter_map(|name| list.strip_prefix(name))
            .any(|rest| rest.starts_with([',', ')', ' ']))
    })
}

/// Reads the catalog and writes the steps.
pub(crate) async fn draft(
    session: &mut Session,
    request: &Request<'_>,
    target: &Target,
) -> Result<Draft, Failure> {
    let mut refusals = Refusals::default();
    let mut facts = Vec::new();
    let found = read(session, request, target, &mut refusals, &mut facts).await?;
    let created = created(request, &found, &mut refusals)?;
    let mut notes =
        notes::dangers(session, &found, target, created.as_ref(), &mut refusals).await?;
    notes.extend(facts);
    notes.extend(notes::facts(session, &found).await?);
    let catalog = catalog(session, &found.tables).await?;
    let writer = writer::Writer {
        found: &found,
        target,
        created: created.as_ref(),
    };
    let journal = writer.name(&named("ordid_move_", &found.name, ""));
    Ok(Draft {
        schema: Some(found.schema.clone()),
        name: found.name.clone(),
        key: found.key.name.clone(),
        key_type: found.key.sql_type.clone(),
        created: created.as_ref().map(|it| it.name.clone()),
        rows: found.rows,
        bytes: found.bytes,
        journal,
        steps: writer.steps(),
        undo: writer.undo(),
        back: writer.back(),
        map: writer.map(),
        finish: writer.finish(),
        catalog,
        notes,
        refusals,
    })
}

/// Returns an expression of a table that may not be there.
fn regclass(schema: Option<&str>, name: &str) -> String {
    format!(
        "to_regclass({})",
        literal(&Postgres::quote_table(schema, name))
    )
}

async fn read(
    session: &mut Session,
    request: &Request<'_>,
    target: &Target,
    refusals: &mut Refusals,
    notes: &mut Vec<String>,
) -> Result<Found, Failure> {
    let readings: Vec<String> = request
        .readings()
        .into_iter()
        .map(|(schema, name)| regclass(schema, name))
        .collect();
    let query = format!(
        "SELECT c.oid, n.nspname, c.relname, c.relkind, c.relispartition, greatest(c.reltuples, 0)::bigint, \
         pg_relation_size(c.oid), pg_has_role(c.relowner, 'MEMBER'), \
         EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhrelid = c.oid OR i.inhparent = c.oid), \
         (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid IN ({})",
        readings.join(", ")
    );
    let rows = session.rows(&query).await?;
    if rows.len() > 1 {
        return Err(request.ambiguous());
    }
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
    // The table's name is resolved. Without a path the server writes the schema of everything into its texts, so they mean
    // the same to whoever applies the plan.
    session.execute(WITHOUT_PATH).await?;
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
    let may_be_granted = "SELECT 1 WHERE current_setting('server_version_num')::int >= 150000";
    let is_quiet = is_true(row, 9)
        || (session.exists(may_be_granted).await?
            && session
                .exists("SELECT 1 WHERE has_parameter_privilege('session_replication_role', 'SET')")
                .await?);
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
    // The triggers compare keys, and do not look for operators in the schemas of others.
    let has_own_operators = format!(
        "SELECT 1 FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type b ON b.oid = t.typbasetype \
         JOIN pg_namespace n ON n.oid = coalesce(b.typnamespace, t.typnamespace) WHERE a.attrelid = {oid} AND a.attnum = {} \
         AND coalesce(b.typtype, t.typtype) = 'b' AND coalesce(b.typcategory, t.typcategory) <> 'A' AND n.nspname <> 'pg_catalog'",
        key.number
    );
    if session.exists(&has_own_operators).await? {
        refusals.add(format!(
            "{title}.{} is of the type {}, whose operators are not PostgreSQL's own: triggers could not compare its keys",
            key.name, key.sql_type
        ));
    }
    let mut found = Found {
        tables: references::tables(session, &oid, &schema, &name, &key, refusals).await?,
        schema,
        name,
        rows: rows_estimated,
        bytes,
        columns,
        key,
        known: Vec::new(),
        is_quiet,
        update_triggers: UpdateTriggers::default(),
        sequence: None,
        options: Vec::new(),
    };
    found.sequence = sequence(session, &oid, &found.key).await?;
    if let Some(Sequence {
        name,
        is_identity: true,
        others: Some(others),
    }) = &found.sequence
    {
        refusals.add(format!(
            "defaults of {others} use the sequence {name} of the identity {title}.{}, which cannot be taken from its column: give them \
             a sequence of their own",
            found.key.name
        ));
    }
    already(session, request, &found, target, refusals).await?;
    dependents::dependents(session, &mut found, target, refusals, notes).await?;
    let known = session
        .rows(&depends(&found.tables, |it| it.name.clone(), &[]))
        .await?;
    found.known = known.iter().map(|row| text(row, 0)).collect();
    Ok(found)
}

/// Returns the query of what depends on columns of the tables and is not known. What ordid has made is left out, and so are
/// sequences, NOT NULL and a column's own default, which belong to their column. Since PostgreSQL 15 a generated column is the
/// default of another one.
fn depends(tables: &[Moved], name: fn(&Column) -> String, known: &[String]) -> String {
    let columns: Vec<String> = tables
        .iter()
        .map(|table| {
            let names: Vec<String> = table.columns.iter().map(|it| literal(&name(it))).collect();
            format!(
                "(d.refobjid = {}::regclass AND a.attname IN ({}))",
                literal(&Postgres::quote_table(Some(&table.schema), &table.name)),
                names.join(", ")
            )
        })
        .collect();
    let known: String = known
        .iter()
        .map(|it| format!(", {}", literal(it)))
        .collect();
    format!(
        "SELECT name FROM (SELECT DISTINCT it.type || ' ' || it.identity AS name, it.type, ltrim(coalesce(it.name, it.identity), \
         '\"') AS own FROM pg_depend d JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid CROSS JOIN \
         LATERAL pg_identify_object(d.classid, d.objid, d.objsubid) AS it WHERE d.refclassid = 'pg_class'::regclass AND ({}) AND \
         NOT (d.classid = 'pg_constraint'::regclass AND d.objid IN (SELECT oid FROM pg_constraint WHERE contype = 'n')) AND \
         NOT (d.classid = 'pg_attrdef'::regclass AND d.objid IN (SELECT oid FROM pg_attrdef WHERE adrelid = a.attrelid AND adnum = \
         a.attnum))) AS them WHERE type <> 'sequence' AND own NOT LIKE 'ordid\\_%' AND name NOT IN (''{known}) ORDER BY 1",
        columns.join(" OR ")
    )
}

async fn columns(session: &mut Session, oid: &str) -> Result<Vec<FoundColumn>, Failure> {
    let query = format!(
        "SELECT a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid), a.attidentity <> '', \
         col_description(a.attrelid, a.attnum) \
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
        comment: row.get(5).cloned().flatten(),
    };
    Ok(rows.iter().map(column).collect())
}

/// Finds the sequence that belongs to the key.
async fn sequence(
    session: &mut Session,
    oid: &str,
    key: &FoundColumn,
) -> Result<Option<Sequence>, Failure> {
    let query = format!(
        "SELECT format('%I.%I', n.nspname, c.relname), d.deptype = 'i', (SELECT string_agg(f.adrelid::regclass || '.' || a.attname, ', ' \
         ORDER BY f.adrelid::regclass || '.' || a.attname) FROM pg_depend u JOIN pg_attrdef f ON f.oid = u.objid JOIN pg_attribute a ON a.attrelid = f.adrelid AND a.attnum = \
         f.adnum WHERE u.classid = 'pg_attrdef'::regclass AND u.refclassid = 'pg_class'::regclass AND u.refobjid = c.oid AND NOT \
         (f.adrelid = {oid} AND f.adnum = {number})) FROM pg_depend d JOIN pg_class c ON c.oid = d.objid AND c.relkind = 'S' JOIN \
         pg_namespace n ON n.oid = c.relnamespace WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND \
         d.refobjid = {oid} AND d.refobjsubid = {number} AND d.deptype IN ('a', 'i')",
        number = key.number
    );
    let rows = session.rows(&query).await?;
    Ok(rows.first().map(|row| Sequence {
        name: text(row, 0),
        is_identity: is_true(row, 1),
        others: row.get(2).cloned().flatten(),
    }))
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

/// Finds the column that says when a row was made.
fn created(
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

/// Looks for tables of which a policy hides rows from this user.
pub(crate) fn secured(tables: &[Moved]) -> Guard {
    let tables: Vec<String> = tables
        .iter()
        .map(|it| {
            let name = Postgres::quote_table(Some(&it.schema), &it.name);
            format!("({}, {}::regclass)", literal(&it.title()), literal(&name))
        })
        .collect();
    Guard::new(
        "has row security, which applies to this user, too (FORCE ROW LEVEL SECURITY)",
        format!(
            "SELECT it.name FROM (VALUES {}) AS it (name, id) WHERE row_security_active(it.id) ORDER BY 1",
            tables.join(", ")
        ),
        "connect as a role with BYPASSRLS, or take FORCE away until the move is finished",
    )
}

/// Looks for tables that somebody publishes.
pub(crate) fn published(tables: &[Moved]) -> Guard {
    let tables: Vec<String> = tables
        .iter()
        .map(|it| {
            let [title, schema, name] = [&it.title(), &it.schema, &it.name].map(|it| literal(it));
            format!("({title}, {schema}, {name})")
        })
        .collect();
    Guard::new(
        "is published, and its subscribers do not have the new columns: replication would stop",
        format!(
            "SELECT DISTINCT it.title FROM (VALUES {}) AS it (title, schema, name) JOIN pg_publication_tables p ON p.schemaname = \
             it.schema AND p.tablename = it.name ORDER BY 1",
            tables.join(", ")
        ),
        "take it out of the publication until the move is finished",
    )
}

/// Refuses a plan whose tables are published by now.
pub(crate) async fn check_published(session: &mut Session, plan: &Plan) -> Result<(), Failure> {
    let tables = family_by(session, plan.schema.as_deref(), &plan.name, TO_KEY).await?;
    match tables.is_empty() {
        true => Ok(()),
        false => super::validate::guard(session, &published(&tables)).await,
    }
}

/// The condition of foreign keys that refer to the primary key.
const TO_KEY: &str = "EXISTS (SELECT 1 FROM pg_constraint p WHERE p.conrelid = f.confrelid AND p.contype = 'p' AND p.conkey && \
                      f.confkey)";

/// Returns the table and those that refer to it; none if the table is not there.
pub(crate) async fn family(
    session: &mut Session,
    schema: Option<&str>,
    name: &str,
) -> Result<Vec<Moved>, Failure> {
    family_by(session, schema, name, "true").await
}

/// As [`family`], of foreign keys `f` for which this holds.
async fn family_by(
    session: &mut Session,
    schema: Option<&str>,
    name: &str,
    condition: &str,
) -> Result<Vec<Moved>, Failure> {
    let query = format!(
        "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = {table} \
         OR c.oid IN (SELECT f.conrelid FROM pg_constraint f WHERE f.contype = 'f' AND f.confrelid = {table} AND {condition}) \
         ORDER BY c.oid <> {table}, 1, 2",
        table = regclass(schema, name)
    );
    let rows = session.rows(&query).await?;
    Ok(rows
        .iter()
        .map(|row| Moved::bare(text(row, 0), text(row, 1)))
        .collect())
}

/// Describes the table and those that refer to its key, to see later whether they have changed.
pub(crate) async fn describe(session: &mut Session, plan: &Plan) -> Result<Vec<Table>, Failure> {
    // The texts are those of the plan. Afterwards the users' triggers have their path again.
    session.execute(WITHOUT_PATH).await?;
    let tables = family_by(session, plan.schema.as_deref(), &plan.name, TO_KEY).await?;
    let found = catalog(session, &tables).await?;
    session.execute("RESET search_path").await?;
    Ok(found)
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
