//! The notes of a plan on PostgreSQL: dangers, and facts that one should know.

use ordid_core::storage::{Dialect as _, dialect::Postgres};
use ordid_sql::MARKER_TABLE;

use super::{Found, FoundColumn, quote, writer};
use crate::{
    database::text,
    failure::Failure,
    migration::{
        request::Refusals,
        session::{HIDDEN_LAG, Session},
        subject::{self, LAST_MICROS, literal, too_late},
        target::Target,
    },
};

/// Returns what may go wrong, the worst first.
pub(super) async fn dangers(
    session: &mut Session,
    found: &Found,
    target: &Target,
    created: Option<&FoundColumn>,
    refusals: &mut Refusals,
) -> Result<Vec<String>, Failure> {
    let mut dangers = Vec::new();
    let triggers = &found.update_triggers;
    if !triggers.always.is_empty() {
        dangers.push(format!(
            "triggers that are ENABLE ALWAYS also run for each row that apply changes, whoever applies: {}",
            triggers.always.join(", ")
        ));
    }
    if !triggers.ordinary.is_empty() && !triggers.of_replicas.is_empty() {
        dangers.push(format!(
            "the tables have triggers, which also run for each row that apply changes ({}): apply does not turn them off, as that would \
             turn on those that are ENABLE REPLICA ({})",
            triggers.ordinary.join(", "),
            triggers.of_replicas.join(", ")
        ));
    } else if !triggers.ordinary.is_empty() && !found.is_quiet {
        dangers.push(
            "the tables have triggers, which also run for each row that apply changes; apply as a superuser, or since PostgreSQL 15 as \
             a role with GRANT SET ON PARAMETER session_replication_role, and they do not"
                .to_owned(),
        );
    }
    dangers.extend(code(session, found, target).await?);
    dangers.extend(markers(session).await?);
    match created {
        Some(column) => times(session, found, column, refusals, &mut dangers).await?,
        None => dangers.push(
            "no column says when a row was made: keys follow the order of the old key, and have made-up times, one row a \
             millisecond, that end when the move begins (name the column by --created)"
                .to_owned(),
        ),
    }
    if found
        .tables
        .iter()
        .any(|it| it.references().next().is_some())
    {
        dangers.push(
            "until --finish a row has to be there before a statement writes rows that refer to it: a statement that writes both, \
             a row before its parent, is refused, and so is one whose row is committed by others while it runs"
                .to_owned(),
        );
    }
    Ok(dangers)
}

/// Returns what one should know besides.
pub(super) async fn facts(session: &mut Session, found: &Found) -> Result<Vec<String>, Failure> {
    let mut facts = Vec::new();
    if found.turns_triggers_off() {
        let others = match found.update_triggers.always.is_empty() {
            true => "the tables have triggers: they",
            false => "the other triggers of the tables",
        };
        facts.push(format!(
            "{others} do not run for the rows that apply changes (session_replication_role = replica)"
        ));
    }
    facts.extend(found.sequence.as_ref().map(|it| it.note(&found.key.name)));
    if session.is_lag_hidden().await? {
        facts.push(HIDDEN_LAG.to_owned());
    }
    Ok(facts)
}

/// Names the triggers and functions that may use the key as it was.
async fn code(
    session: &mut Session,
    found: &Found,
    target: &Target,
) -> Result<Option<String>, Failure> {
    let tables: Vec<String> = found
        .tables
        .iter()
        .map(|it| {
            let name = Postgres::quote_table(Some(&it.schema), &it.name);
            format!(
                "({}::regclass::oid, {})",
                literal(&name),
                literal(&word(&it.name))
            )
        })
        .collect();
    let query = format!(
        "WITH moved (id, word) AS (VALUES {}) SELECT 'trigger ' || tgname || ' of ' || tgrelid::regclass AS name FROM pg_trigger JOIN \
         moved ON moved.id = tgrelid WHERE NOT tgisinternal UNION SELECT CASE p.prokind WHEN 'p' THEN 'procedure ' ELSE 'function ' END || \
         p.oid::regprocedure FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN moved ON p.prosrc ~* moved.word WHERE n.nspname NOT IN ('pg_catalog', \
         'information_schema') AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND \
         d.deptype = 'e') ORDER BY 1 DESC",
        tables.join(", ")
    );
    let rows = session.rows(&query).await?;
    let names: Vec<String> = rows.iter().map(|row| text(row, 0)).collect();
    Ok((!names.is_empty()).then(|| {
        format!(
            "check these, which run on the tables or name them: after the switch {}.{} is {}, and so are the columns that refer to it: {}",
            found.name,
            found.key.name,
            target.column.sql_type,
            names.join(", ")
        )
    }))
}

/// Returns a regular expression of PostgreSQL that finds a name as a word.
fn word(name: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut pattern = String::new();
    for it in name.chars() {
        if !is_part(it) {
            pattern.push('\\');
        }
        pattern.push(it);
    }
    let begin = if name.starts_with(is_part) { "\\m" } else { "" };
    let end = if name.ends_with(is_part) { "\\M" } else { "" };
    format!("{begin}{pattern}{end}")
}

/// Says that flushes of ordid will need the table of marker rows, if there is none.
async fn markers(session: &mut Session) -> Result<Option<String>, Failure> {
    let query = format!(
        "SELECT 1 FROM pg_class WHERE relname = {} AND relkind IN ('r', 'p')",
        literal(MARKER_TABLE)
    );
    Ok((!session.exists(&query).await?).then(|| {
        format!(
            "there is no table {MARKER_TABLE}: until --finish the tables have triggers that fill columns of new rows, so each flush of \
             ordid into them writes a marker row, and fails if this table is missing: create it before, if programs use ordid"
        )
    }))
}

/// Counts rows whose times are missing, infinite, or in the future, and refuses times that no key can have.
async fn times(
    session: &mut Session,
    found: &Found,
    column: &FoundColumn,
    refusals: &mut Refusals,
    notes: &mut Vec<String>,
) -> Result<(), Failure> {
    let name = quote(&column.name);
    let table = Postgres::quote_table(Some(&found.schema), &found.name);
    let none = writer::is_no_moment(&name);
    let is_late = format!("NOT ({none}) AND extract(epoch FROM {name}) * 1000000 > {LAST_MICROS}");
    let query = format!(
        "SELECT count(*), count(*) FILTER (WHERE {none}), count(*) FILTER (WHERE NOT ({none}) AND {name} > now() + interval '1 minute'), \
         count(*) FILTER (WHERE {name} IS NULL), count(*) FILTER (WHERE {is_late}) FROM {table}"
    );
    let rows = session.rows(&query).await?;
    let number = |at| {
        rows.first()
            .map_or(0, |row| text(row, at).parse().unwrap_or(0))
    };
    // A row without a time is treated as one with an infinite one.
    for (none, without, future) in [("no", number(3), 0), ("an infinite", number(1), number(2))] {
        notes.extend(subject::notes_of_times(
            &column.name,
            number(0),
            (none, without),
            future,
        ));
    }
    if number(4) > 0 {
        let late = format!("SELECT * FROM {table} WHERE {is_late}");
        refusals.add(too_late(&column.name, number(0), number(4), &late));
    }
    Ok(())
}
