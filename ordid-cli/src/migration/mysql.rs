//! MySQL and MariaDB: their catalog.
//!
//! [`writer`] has the SQL of a move, and why it is in that order.

mod dependents;
mod writer;

use ordid_core::storage::{Dialect as _, dialect::MySql};

use super::{
    model::{Plan, Table},
    request::{Draft, Refusals, Request},
    session::Session,
    subject::{self, Column, ForeignKey, Moved, creation_time, literal, named, old_default},
    target::Target,
};
use crate::{database::text, engine::Engine, failure::Failure, near};

/// Why a move cannot begin where the server refuses its triggers.
const NO_TRIGGERS: &str = "this user may not create triggers, as the server writes a binary log (error 1419): SET GLOBAL \
                           log_bin_trust_function_creators = 1, or connect as a user with SUPER";

/// The catalog's description of the table.
struct Found {
    schema: String,
    name: String,
    rows: i64,
    bytes: i64,
    columns: Vec<FoundColumn>,
    key: FoundColumn,
    tables: Vec<Moved>,
    /// The columns of each table that are set by an UPDATE of another column, in the order of the tables.
    touched: Vec<Vec<String>>,
    /// The columns of each table's primary key, in the order of the tables.
    primaries: Vec<Vec<String>>,
    /// Whether the server has columns that `SELECT *` does not see.
    hides_columns: bool,
}

#[derive(Debug, Clone)]
struct FoundColumn {
    name: String,
    sql_type: String,
    default: Option<String>,
    extra: String,
    /// Digits of a second's fraction; `None` if it is not a time.
    precision: Option<u32>,
    comment: Option<String>,
}

impl FoundColumn {
    fn is_auto_increment(&self) -> bool {
        self.extra.contains("auto_increment")
    }
}

fn quote(name: &str) -> String {
    MySql::quote(name)
}

/// Reads the catalog and writes the steps.
pub(crate) async fn draft(
    session: &mut Session,
    request: &Request<'_>,
    target: &Target,
) -> Result<Draft, Failure> {
    // With ANSI_QUOTES MariaDB writes checks and generated columns in other quotes.
    session.execute("SET SESSION sql_mode = ''").await?;
    let mut refusals = Refusals::default();
    let mut notes = Vec::new();
    let found = read(session, request, target, &mut refusals, &mut notes).await?;
    let created = created(request, &found, &mut refusals)?;
    if created.is_none() {
        notes.push(
            "no column says when a row was made: keys follow the order of the old key, and have made-up times, one row a \
             millisecond, that end when the move begins (name the column by --created)"
                .to_owned(),
        );
    }
    if let Some(column) = &created {
        times(session, &found, column, &mut notes).await?;
    }
    notes.push(match (&found.key.default, found.key.is_auto_increment()) {
        (_, true) => format!(
            "AUTO_INCREMENT makes old keys until --finish, which drops it with the old column of {}",
            found.key.name
        ),
        (Some(default), false) => format!(
            "the default of {} ({default}) makes old keys until --finish, which drops it with the old column; what it uses, such as a \
             sequence, stays",
            found.key.name
        ),
        (None, false) => format!(
            "a trigger makes old keys of {} until --finish, as UUIDs",
            found.key.name
        ),
    });
    notes.push(
        "this server does not tell how far its replicas are behind: watch them, and slow apply down by --chunk and --pause"
            .to_owned(),
    );
    let mode = session
        .value("SELECT @@GLOBAL.sql_mode")
        .await?
        .unwrap_or_default();
    if !mode.contains("STRICT_TRANS_TABLES") && !mode.contains("STRICT_ALL_TABLES") {
        refusals.add(format!(
            "the server's sql_mode ({mode}) is not strict: a program that writes an old key into a new column would store \
             another value without an error; set STRICT_TRANS_TABLES"
        ));
    }
    if !may_create_triggers(session).await? {
        refusals.add(NO_TRIGGERS.to_owned());
    }
    notes.push(
        "change every program at the switch that compares keys with numbers: the server turns binary keys into numbers then, and \
         `WHERE id = 0` finds every row of uuid_v7, also for UPDATE and DELETE"
            .to_owned(),
    );
    notes.push(match found.hides_columns {
        true => "`SELECT *` and an INSERT without columns see as many columns as before: new columns are invisible until the switch, and \
                 old ones after it; from the switch on the key is the last of them"
            .to_owned(),
        false => "this server has no invisible columns (MySQL 8.0.23 has them): `SELECT *` sees the new columns at once, and an INSERT \
                  without columns is refused; let programs name columns"
            .to_owned(),
    });
    let catalog = catalog(session, &found.tables).await?;
    for table in &found.tables {
        for column in &table.columns {
            if definition_of(&catalog, table, column).is_none() {
                refusals.add(format!(
                    "SHOW CREATE TABLE {} does not define the column {} on a line of its own",
                    table.title(),
                    column.name
                ));
            }
        }
    }
    let writer = writer::Writer {
        found: &found,
        target,
        created: created.as_ref(),
        engine: session.engine(),
        catalog: &catalog,
        journal: MySql::quote_table(Some(&found.schema), &named("ordid_move_", &found.name, "")),
    };
    Ok(Draft {
        schema: Some(found.schema.clone()),
        name: found.name.clone(),
        key: found.key.name.clone(),
        key_type: found.key.sql_type.clone(),
        rows: found.rows,
        bytes: found.bytes,
        steps: writer.steps(),
        undo: writer.undo(),
        back: writer.back(),
        map: writer.map(),
        finish: writer.finish(),
        journal: writer.journal,
        catalog,
        created: created.map(|it| it.name),
        notes,
        refusals,
    })
}

/// Whether the server has invisible columns: MySQL 8.0.23 and later, and each MariaDB that can make keys.
async fn hides_columns(session: &mut Session) -> Result<bool, Failure> {
    let version = session.value("SELECT version()").await?.unwrap_or_default();
    Ok(session.engine() == Engine::Mariadb || is_at_least(&version, [8, 0, 23]))
}

/// Whether a version such as `8.0.23-log` is this one or a later one.
fn is_at_least(version: &str, least: [u32; 3]) -> bool {
    let mut numbers = version
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse().unwrap_or(0));
    let version: [u32; 3] = std::array::from_fn(|_| numbers.next().unwrap_or(0));
    version >= least
}

/// Refuses one of several servers that take writes: LOCK TABLES locks the tables of one server alone.
pub(crate) async fn check_server(session: &mut Session) -> Result<(), Failure> {
    let refuse = |what: &str| {
        Failure::wrong(format_args!(
            "this server is {what}: LOCK TABLES does not stop the writes of the others, and the switch would lose them; let one \
             server alone take writes while a table is moved"
        ))
    };
    let variables = session
        .rows("SHOW VARIABLES WHERE Variable_name IN ('wsrep_on', 'group_replication_single_primary_mode')")
        .await?;
    let is = |name: &str, value: &str| {
        variables
            .iter()
            .any(|row| text(row, 0) == name && text(row, 1) == value)
    };
    if is("wsrep_on", "ON") {
        return Err(refuse("a node of a Galera cluster (wsrep_on = ON)"));
    }
    if is("group_replication_single_primary_mode", "OFF") {
        let members = "SELECT 1 FROM performance_schema.replication_group_members WHERE member_state IN ('ONLINE', 'RECOVERING')";
        let is_active = match session.exists(members).await {
            Err(fault) if fault.is_lost => return Err(fault.into()),
            // Who may not ask is not let through.
            Err(_) => true,
            Ok(is_active) => is_active,
        };
        if is_active {
            return Err(refuse(
                "in a group with several primaries (group_replication_single_primary_mode = OFF)",
            ));
        }
    }
    Ok(())
}

/// Refuses a user whose triggers the server would refuse, which a move needs (error 1419).
pub(crate) async fn check_triggers(session: &mut Session) -> Result<(), Failure> {
    match may_create_triggers(session).await? {
        true => Ok(()),
        false => Err(Failure::wrong(NO_TRIGGERS)),
    }
}

/// With a binary log the server takes triggers of users with SUPER alone, unless it trusts all of them.
async fn may_create_triggers(session: &mut Session) -> Result<bool, Failure> {
    let settings = session
        .rows("SELECT @@GLOBAL.log_bin, @@GLOBAL.log_bin_trust_function_creators")
        .await?;
    let is_on = |at| settings.first().is_some_and(|row| text(row, at) == "1");
    if !is_on(0) || is_on(1) {
        return Ok(true);
    }
    let show = match session.engine() {
        // It has those of the role that is set.
        Engine::Mariadb => "SHOW GRANTS".to_owned(),
        _ => match session.value("SELECT CURRENT_ROLE()").await?.as_deref() {
            None | Some("NONE") => "SHOW GRANTS FOR CURRENT_USER()".to_owned(),
            Some(roles) => format!("SHOW GRANTS FOR CURRENT_USER() USING {roles}"),
        },
    };
    let grants = session.rows(&show).await?;
    Ok(grants.iter().any(|row| {
        let grant = text(row, 0);
        let (privileges, place) = grant.split_once(" ON ").unwrap_or_default();
        let has = |it: &str| {
            privileges
                .trim_start_matches("GRANT ")
                .split(", ")
                .any(|own| own == it)
        };
        place.starts_with("*.* ") && (has("SUPER") || has("ALL PRIVILEGES"))
    }))
}

/// Returns the condition of `information_schema` for a table.
pub(crate) fn of(schema: &str, name: &str) -> String {
    format!(
        "table_schema = {} AND table_name = {}",
        literal(schema),
        literal(name)
    )
}

/// Returns the condition that two names of tables or schemas are the same. `information_schema` of MariaDB compares
/// them without case, also where the server takes `Item` and `item` for two tables. The first part of the condition
/// stays, since the server looks tables up by it.
pub(crate) fn is_same(left: &str, right: &str) -> String {
    format!(
        "{left} = {right} AND (@@lower_case_table_names <> 0 OR CAST({left} AS BINARY) = CAST({right} AS BINARY))"
    )
}

/// Returns the condition of `information_schema.key_column_usage AS k` for the keys that refer to a table.
pub(crate) fn refers_to(schema: &str, name: &str) -> String {
    format!(
        "{} AND {}",
        is_same("k.referenced_table_schema", &literal(schema)),
        is_same("k.referenced_table_name", &literal(name))
    )
}

async fn read(
    session: &mut Session,
    request: &Request<'_>,
    target: &Target,
    refusals: &mut Refusals,
    notes: &mut Vec<String>,
) -> Result<Found, Failure> {
    let mut rows = Vec::new();
    for (schema, name) in request.readings() {
        let query = format!(
            "SELECT table_schema, table_name, engine, coalesce(table_rows, 0), coalesce(data_length, 0), table_type FROM \
             information_schema.tables WHERE table_schema = {} AND table_name = {}",
            schema.map_or_else(|| "database()".to_owned(), literal),
            literal(name)
        );
        rows.extend(session.rows(&query).await?);
    }
    if rows.len() > 1 {
        return Err(request.ambiguous());
    }
    let Some(row) = rows.first() else {
        let names = session
            .rows(
                "SELECT CASE WHEN table_schema = database() THEN table_name ELSE concat(table_schema, '.', table_name) END \
                 FROM information_schema.tables WHERE table_schema NOT IN ('mysql', 'information_schema', \
                 'performance_schema', 'sys') ORDER BY 1",
            )
            .await?;
        let names: Vec<String> = names.iter().map(|row| text(row, 0)).collect();
        return Err(request.unknown_table(near::suggestion(
            request.table,
            names.iter().map(String::as_str),
        )));
    };
    let (schema, name) = (text(row, 0), text(row, 1));
    let title = format!("{schema}.{name}");
    if text(row, 5) != "BASE TABLE" || text(row, 2) != "InnoDB" {
        return Err(request.refuse(&format!("{title} is not a table of InnoDB")));
    }
    let number = |at| text(row, at).parse::<i64>().unwrap_or(0);
    let (rows, bytes) = (number(3), number(4));
    let columns = columns(session, &schema, &name).await?;
    let keys = primary_columns(session, &schema, &name).await?;
    let [key_name] = &keys[..] else {
        return Err(request.refuse(&match keys.len() {
            0 => format!("{title} has no primary key"),
            count => format!(
                "the primary key of {title} has {count} columns: only a key of one column can be moved"
            ),
        }));
    };
    let key = columns
        .iter()
        .find(|it| it.name == *key_name)
        .cloned()
        .ok_or_else(|| Failure::could_not("the catalog has a primary key without its column"))?;
    let makes_old_keys = writer::is_uuid(&key.sql_type);
    if !key.is_auto_increment() && key.default.is_none() && !makes_old_keys {
        refusals.add(format!(
            "{title}.{key_name} is not AUTO_INCREMENT: after the switch nobody would make the old keys that a way back needs"
        ));
    }
    already(session, request, &schema, &name, &key, target, refusals).await?;
    let tables = tables(session, &schema, &name, &key, refusals).await?;
    let mut primaries = Vec::new();
    for table in &tables {
        primaries.push(primary_columns(session, &table.schema, &table.name).await?);
    }
    let mut found = Found {
        tables,
        primaries,
        schema,
        name,
        rows,
        bytes,
        columns,
        key,
        touched: Vec::new(),
        hides_columns: hides_columns(session).await?,
    };
    unseen(session, &found, refusals, notes).await?;
    dependents::dependents(session, &mut found, refusals, notes).await?;
    Ok(found)
}

async fn columns(
    session: &mut Session,
    schema: &str,
    name: &str,
) -> Result<Vec<FoundColumn>, Failure> {
    let query = format!(
        "SELECT column_name, column_type, column_default, lower(extra), datetime_precision, data_type, column_comment FROM \
         information_schema.columns WHERE {} ORDER BY ordinal_position",
        of(schema, name)
    );
    let rows = session.rows(&query).await?;
    let column = |row: &Vec<Option<String>>| FoundColumn {
        name: text(row, 0),
        sql_type: text(row, 1),
        // MariaDB writes the word.
        default: row.get(2).cloned().flatten().filter(|it| it != "NULL"),
        extra: text(row, 3),
        precision: matches!(text(row, 5).as_str(), "datetime" | "timestamp" | "date")
            .then(|| text(row, 4).parse().unwrap_or(0)),
        comment: row.get(6).cloned().flatten().filter(|it| !it.is_empty()),
    };
    Ok(rows.iter().map(column).collect())
}

async fn primary_columns(
    session: &mut Session,
    schema: &str,
    name: &str,
) -> Result<Vec<String>, Failure> {
    let query = format!(
        "SELECT column_name FROM information_schema.statistics WHERE {} AND index_name = 'PRIMARY' ORDER BY seq_in_index",
        of(schema, name)
    );
    let rows = session.rows(&query).await?;
    Ok(rows.iter().map(|row| text(row, 0)).collect())
}

async fn already(
    session: &mut Session,
    request: &Request<'_>,
    schema: &str,
    name: &str,
    key: &FoundColumn,
    target: &Target,
    refusals: &mut Refusals,
) -> Result<(), Failure> {
    let journal = MySql::quote_table(Some(schema), &named("ordid_move_", name, ""));
    if session
        .exists(&super::journal::exists(Engine::Mysql, &journal))
        .await?
    {
        return Err(request.refuse(&format!(
            "{schema}.{name} is being moved already: its journal is {journal}; apply that plan to the end, or roll it back"
        )));
    }
    let hex = match key.sql_type.as_str() {
        "binary(16)" => format!("HEX({})", quote(&key.name)),
        "uuid" | "char(36)" => format!("REPLACE({}, '-', '')", quote(&key.name)),
        _ => return Ok(()),
    };
    let query = format!(
        "SELECT LOWER({hex}) FROM {} LIMIT 200",
        MySql::quote_table(Some(schema), name)
    );
    let sample: Vec<String> = session
        .rows(&query)
        .await?
        .iter()
        .map(|row| text(row, 0))
        .collect();
    if target.are_keys(&sample) {
        refusals.add(format!(
            "{schema}.{name} already has keys of `{}`",
            target.scheme.name
        ));
    }
    Ok(())
}

/// Reads the foreign keys that refer to the table, by table.
async fn tables(
    session: &mut Session,
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
    // MySQL 9.6 and later: error 6575, "cascade exceeds max tables limit".
    let native = session
        .rows("SHOW VARIABLES LIKE 'innodb_native_foreign_keys'")
        .await?;
    let cascades_in_storage = native.first().is_none_or(|row| text(row, 1) == "ON");
    let acts = |rule: &str| matches!(rule, "CASCADE" | "SET NULL");
    let query = format!(
        "SELECT k.table_schema, k.table_name, k.constraint_name, k.column_name, c.column_type, c.is_nullable, r.delete_rule, \
         r.update_rule, (SELECT count(*) FROM information_schema.key_column_usage o WHERE o.constraint_schema = \
         k.constraint_schema AND o.constraint_name = k.constraint_name AND o.table_name = k.table_name), c.column_default, c.column_comment \
         FROM information_schema.key_column_usage k \
         JOIN information_schema.referential_constraints r ON r.constraint_schema = k.constraint_schema AND \
         r.constraint_name = k.constraint_name AND {} \
         JOIN information_schema.columns c ON {} AND {} AND c.column_name = k.column_name \
         WHERE {} AND k.referenced_column_name = {} ORDER BY 1, 2, 3",
        is_same("r.table_name", "k.table_name"),
        is_same("c.table_schema", "k.table_schema"),
        is_same("c.table_name", "k.table_name"),
        refers_to(schema, name),
        literal(&key.name)
    );
    for row in session.rows(&query).await? {
        let (child_schema, child, constraint) = (text(&row, 0), text(&row, 1), text(&row, 2));
        let title = format!("{child_schema}.{child}");
        if text(&row, 8) != "1" {
            refusals.add(format!(
                "the foreign key {constraint} of {title} has several columns, one of which refers to the key"
            ));
            continue;
        }
        // MariaDB writes the word.
        if let Some(default) = row.get(9).cloned().flatten().filter(|it| it != "NULL") {
            refusals.add(old_default(&title, &text(&row, 3), &default));
        }
        let (on_delete, on_update) = (text(&row, 6), text(&row, 7));
        if on_delete == "SET DEFAULT" || on_update == "SET DEFAULT" {
            refusals.add(format!(
                "the foreign key {constraint} of {title} sets a default, which is an old key"
            ));
        }
        if on_update == "SET NULL" {
            refusals.add(format!(
                "the foreign key {constraint} of {title} sets NULL if a key changes (ON UPDATE SET NULL): the server runs no trigger for \
                 that, and the new column would still refer to the row; make it ON UPDATE RESTRICT or CASCADE"
            ));
        }
        let is_own = child_schema == schema && child == name;
        if is_own && !cascades_in_storage && (acts(&on_delete) || acts(&on_update)) {
            refusals.add(format!(
                "the foreign key {constraint} of {title} refers to the table itself, and this server (innodb_native_foreign_keys = OFF) \
                 does not delete rows of a table with two such keys, which it has during the move"
            ));
        }
        let actions = format!("ON DELETE {on_delete} ON UPDATE {on_update}");
        let column = Column {
            name: text(&row, 3),
            sql_type: text(&row, 4),
            not_null: text(&row, 5) == "NO",
            comment: row.get(10).cloned().flatten().filter(|it| !it.is_empty()),
            reference: Some(ForeignKey {
                name: constraint,
                definition: actions.clone(),
                actions,
                comment: None,
            }),
        };
        subject::refer(&mut tables, (child_schema, child), column, refusals);
    }
    if session.engine() == Engine::Mysql {
        for (at, table) in tables.iter().enumerate() {
            let title = table.title();
            let is_alike = |it: &&Moved| it.title().to_lowercase() == title.to_lowercase();
            if let Some(other) = tables[..at].iter().find(is_alike) {
                refusals.add(format!(
                    "{} and {title} differ in case alone, and MySQL takes the names of their triggers for one: rename one of them \
                     until the move is done",
                    other.title()
                ));
            }
        }
    }
    Ok(tables)
}

/// Counts the foreign keys that InnoDB has: those of tables without a privilege are not in the standard views.
async fn unseen(
    session: &mut Session,
    found: &Found,
    refusals: &mut Refusals,
    notes: &mut Vec<String>,
) -> Result<(), Failure> {
    let view = match session.engine() {
        Engine::Mariadb => "INNODB_SYS_FOREIGN",
        _ => "INNODB_FOREIGN",
    };
    let query = format!(
        "SELECT count(*) FROM information_schema.{view} WHERE {}",
        is_same(
            "ref_name",
            &literal(&format!("{}/{}", found.schema, found.name))
        )
    );
    let visible = format!(
        "SELECT count(DISTINCT constraint_schema, table_name, constraint_name) FROM information_schema.key_column_usage k WHERE \
         {}",
        refers_to(&found.schema, &found.name)
    );
    let visible = session.number(&visible).await?;
    match session.number(&query).await {
        Ok(all) if all > visible => refusals.add(format!(
            "{} foreign keys that refer to the table are of tables which this user may not see",
            all - visible
        )),
        Ok(_) => {}
        Err(fault) if fault.is_lost => return Err(fault.into()),
        Err(_) => notes.push(
            "foreign keys of tables that this user may not see were not looked for, as that needs the privilege PROCESS"
                .to_owned(),
        ),
    }
    Ok(())
}

/// Counts rows whose times are zero or in the future.
async fn times(
    session: &mut Session,
    found: &Found,
    column: &FoundColumn,
    notes: &mut Vec<String>,
) -> Result<(), Failure> {
    // `apply` takes what has no zone for UTC. A timestamp has one, which is the session's for both sides.
    let now = match column.sql_type.starts_with("timestamp") {
        true => "NOW()",
        false => "UTC_TIMESTAMP()",
    };
    let query = format!(
        "SELECT COUNT(*), COUNT(CASE WHEN {0} > {now} + INTERVAL 1 MINUTE THEN 1 END), COUNT(CASE WHEN {0} IS NOT NULL AND {1} IS NULL \
         THEN 1 END) FROM {2}",
        quote(&column.name),
        writer::micros(&quote(&column.name)),
        MySql::quote_table(Some(&found.schema), &found.name)
    );
    let rows = session.rows(&query).await?;
    let number = |at| {
        rows.first()
            .map_or(0, |row| text(row, at).parse().unwrap_or(0))
    };
    notes.extend(subject::notes_of_times(
        &column.name,
        number(0),
        ("a zero", number(2)),
        number(1),
    ));
    Ok(())
}

/// Finds the column that says when a row was made.
fn created(
    request: &Request<'_>,
    found: &Found,
    refusals: &mut Refusals,
) -> Result<Option<FoundColumn>, Failure> {
    let times = found.columns.iter().filter(|it| it.precision.is_some());
    let Some(name) = request.created else {
        let name = creation_time(times.clone().map(|it| it.name.as_str()));
        return Ok(name.and_then(|name| times.clone().find(|it| it.name == name).cloned()));
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
    if column.precision.is_none() {
        refusals.add(format!(
            "the column {name} is of type {}, which is not a time",
            column.sql_type
        ));
    }
    Ok(Some(column.clone()))
}

/// Returns the definition of a column, as the server writes it.
fn definition_of<'c>(catalog: &'c [Table], table: &Moved, column: &Column) -> Option<&'c str> {
    let name = format!("{} ", quote(&column.name));
    let found = catalog.iter().find(|it| it.name == table.title())?;
    let mut lines = found.definition.iter();
    lines.find_map(|line| line.strip_prefix(&name))
}

/// Returns the condition of columns whose default is computed from a column: MySQL does not rename it then. MySQL tells such a
/// default from a text; `MariaDB` shows a text between quotes.
fn reads_in_default(column: &str) -> String {
    format!(
        "column_default LIKE {} AND (extra LIKE '%DEFAULT_GENERATED%' OR VERSION() LIKE '%MariaDB%')",
        literal(&format!("%`{column}`%"))
    )
}

/// Returns the table and those that refer to it.
pub(crate) async fn family(
    session: &mut Session,
    schema: &str,
    name: &str,
) -> Result<Vec<Moved>, Failure> {
    family_by(session, schema, name, "TRUE").await
}

/// As [`family`], of foreign keys for whose columns this holds.
async fn family_by(
    session: &mut Session,
    schema: &str,
    name: &str,
    condition: &str,
) -> Result<Vec<Moved>, Failure> {
    let query = format!(
        "SELECT table_schema, table_name FROM information_schema.key_column_usage k WHERE {} AND {condition} ORDER BY 1, 2",
        refers_to(schema, name)
    );
    let mut tables = vec![Moved::bare(schema.to_owned(), name.to_owned())];
    for row in session.rows(&query).await? {
        // DISTINCT would take names for one that differ in case alone.
        let found = Moved::bare(text(&row, 0), text(&row, 1));
        if !tables.iter().any(|it| it.title() == found.title()) {
            tables.push(found);
        }
    }
    Ok(tables)
}

/// Describes the table and those that refer to its key, to see later whether they have changed.
pub(crate) async fn describe(session: &mut Session, plan: &Plan) -> Result<Vec<Table>, Failure> {
    let schema = plan.schema.as_deref().unwrap_or_default();
    let keys = primary_columns(session, schema, &plan.name).await?;
    let keys: Vec<String> = keys.iter().map(|it| literal(it)).collect();
    let to_key = format!("referenced_column_name IN ({})", keys.join(", "));
    let to_key = if keys.is_empty() { "FALSE" } else { &to_key };
    let tables = family_by(session, schema, &plan.name, to_key).await?;
    catalog(session, &tables).await
}

async fn catalog(session: &mut Session, tables: &[Moved]) -> Result<Vec<Table>, Failure> {
    // In MySQL's own spelling, whatever the server's is: ANSI_QUOTES writes names between other quotes.
    session
        .execute("SET @ordid_sql_mode = @@SESSION.sql_mode")
        .await?;
    session
        .execute("SET SESSION sql_mode = '', SESSION sql_quote_show_create = 1")
        .await?;
    let mut all = Vec::new();
    for table in tables {
        let show = format!(
            "SHOW CREATE TABLE {}",
            MySql::quote_table(Some(&table.schema), &table.name)
        );
        let rows = session.rows(&show).await?;
        let create = rows.first().map_or_else(String::new, |row| text(row, 1));
        let mut definition: Vec<String> = create
            .lines()
            .skip(1)
            .filter(|line| !line.starts_with(") ENGINE"))
            .map(|line| line.trim().trim_end_matches(',').to_owned())
            .collect();
        let triggers = format!(
            "SELECT concat('trigger ', trigger_name, ' ', action_timing, ' ', event_manipulation, ' ', action_statement) FROM \
             information_schema.triggers WHERE event_object_schema = {} AND event_object_table = {} ORDER BY 1",
            literal(&table.schema),
            literal(&table.name)
        );
        let triggers = session.rows(&triggers).await?;
        definition.extend(triggers.iter().map(|row| text(row, 0)));
        all.push(Table {
            name: table.title(),
            definition,
        });
    }
    session
        .execute("SET SESSION sql_mode = @ordid_sql_mode")
        .await?;
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_columns_begin_with_a_version() {
        for version in ["8.0.23", "8.0.42-log", "8.1.0", "9.7.4-2"] {
            assert!(is_at_least(version, [8, 0, 23]), "{version}");
        }
        for version in ["8.0.22", "8.0.3-rc-log", "5.7.44-log", ""] {
            assert!(!is_at_least(version, [8, 0, 23]), "{version}");
        }
    }
}
