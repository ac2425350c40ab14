//! The online move of a table to other keys: what `plan` writes and `apply` carries out.
//!
//! The file of an engine ([`postgres`], [`mysql`], [`sqlite`]) reads the catalog and some rows, and writes all SQL of a move into the
//! plan ([`model`]). What carries it out knows no engine's SQL: [`apply`] works through the steps, [`journal`] keeps how
//! far it is, [`backfill`] makes the keys, [`validate`] counts what is wrong, [`switch`] holds the locks, [`rebuild`] is SQLite's way.

pub(crate) mod apply;
mod backfill;
pub(crate) mod journal;
pub(crate) mod model;
mod mysql;
pub(crate) mod others;
mod postgres;
mod rebuild;
pub(crate) mod remains;
pub(crate) mod request;
pub(crate) mod session;
mod sqlite;
pub(crate) mod sqlite_ddl;
pub(crate) mod subject;
pub(crate) mod switch;
mod target;
mod unlinked;
mod validate;

use journal::Phase;
use model::{Plan, Table};
use request::Request;
use session::Session;
use subject::Moved;
use target::Target;

use crate::{engine::Engine, failure::Failure};

/// The words in the statements of a plan that `apply` replaces by numbers and rows.
const PLACEHOLDERS: [&str; 8] = [
    "{after}",
    "{chunk}",
    "{key}",
    "{last}",
    "{limit}",
    "{position}",
    "{row}",
    "{rows}",
];

/// Reads the database's catalog and some rows, and writes the plan of a move.
///
/// # Errors
///
/// There is no such table, or it is one that cannot be moved, with all reasons.
pub(crate) async fn plan(session: &mut Session, request: &Request<'_>) -> Result<Plan, Failure> {
    let engine = session.engine();
    let target = Target::parse(engine, request.to)?;
    check_server(session).await?;
    let draft = match engine {
        Engine::Postgres => postgres::draft(session, request, &target).await?,
        Engine::Mysql | Engine::Mariadb => mysql::draft(session, request, &target).await?,
        Engine::Sqlite => sqlite::draft(session, request, &target).await?,
        Engine::SqlServer | Engine::Oracle => return Err(unreachable(engine)),
    };
    if let Some(reason) = others::refusal(session, draft.schema.as_deref(), &draft.name).await? {
        return Err(request.refuse(&reason));
    }
    if let Some(remains) = remains::find(session, draft.schema.as_deref(), &draft.name).await? {
        return Err(request.refuse(&remains.reason()));
    }
    draft.refusals.check(request)?;
    let texts = draft
        .catalog
        .iter()
        .flat_map(|it| it.definition.iter().chain([&it.name]));
    for text in texts {
        if let Some(word) = PLACEHOLDERS.iter().find(|word| text.contains(**word)) {
            return Err(request.refuse(&format!(
                "{text} has {word}, which stands for something else in a plan: rename it"
            )));
        }
    }
    let unlinked = unlinked::notes(session, &draft).await?;
    let title = |name: &str| subject::title(draft.schema.as_deref(), name);
    let map_table = title(&subject::map_name(&draft.name));
    let table = title(&draft.name);
    // The worst comes first, and guesses come last.
    let mut notes = vec![format!(
        "--finish drops the old keys: links with them outside of the database (in mails, bookmarks or other systems) lead nowhere \
         then, unless --finish --keep-map keeps old and new keys in the table {map_table}"
    )];
    notes.extend(draft.notes);
    notes.extend(unlinked);
    let version = match engine {
        Engine::Sqlite => "SELECT sqlite_version()",
        Engine::Postgres => "SELECT current_setting('server_version')",
        _ => "SELECT version()",
    };
    let plan = Plan {
        ordid_plan: model::VERSION,
        id: uuid::Uuid::new_v4().to_string(),
        engine,
        server: session.value(version).await?.unwrap_or_default(),
        table,
        schema: draft.schema,
        name: draft.name,
        scheme: target.scheme.name.to_owned(),
        column: target.column.name.to_owned(),
        created: draft.created,
        rows: draft.rows,
        bytes: draft.bytes,
        notes,
        journal: draft.journal,
        steps: draft.steps,
        undo: draft.undo,
        back: draft.back,
        map_table,
        map: draft.map,
        finish: draft.finish,
        catalog: draft.catalog,
        digest: String::new(),
    };
    Ok(plan.sealed())
}

/// Refuses a server on which a move would lose rows.
///
/// # Errors
///
/// It is one of several that take writes.
pub(crate) async fn check_server(session: &mut Session) -> Result<(), Failure> {
    match session.engine() {
        Engine::Mysql | Engine::Mariadb => mysql::check_server(session).await,
        _ => Ok(()),
    }
}

/// Refuses a user who may not create the triggers of a move.
///
/// # Errors
///
/// The server would refuse them.
pub(crate) async fn check_triggers(session: &mut Session) -> Result<(), Failure> {
    match session.engine() {
        Engine::Mysql | Engine::Mariadb => mysql::check_triggers(session).await,
        _ => Ok(()),
    }
}

/// Refuses a table that PostgreSQL publishes, before a move gives it columns that subscribers do not have.
///
/// # Errors
///
/// One of the tables is published.
pub(crate) async fn check_published(
    session: &mut Session,
    plan: &Plan,
    phase: Phase,
) -> Result<(), Failure> {
    match (plan.engine, phase) {
        (Engine::Postgres, Phase::Steps) => postgres::check_published(session, plan).await,
        _ => Ok(()),
    }
}

/// Refuses the steps of a phase that read rows while a policy of PostgreSQL hides some of them from this user. In a
/// transaction that has used a table this says that its statements have seen all rows: a policy is changed under a lock
/// that nobody else has meanwhile.
///
/// # Errors
///
/// There is such a policy.
pub(crate) async fn check_policies(
    session: &mut Session,
    plan: &Plan,
    phase: Phase,
) -> Result<(), Failure> {
    let (Engine::Postgres, true) = (plan.engine, phase.reads_rows()) else {
        return Ok(());
    };
    let schema = plan.schema.as_deref();
    let tables = postgres::family(session, schema, &plan.name).await?;
    // A table that is gone is for the steps to complain about.
    match tables.is_empty() {
        true => Ok(()),
        false => validate::guard(session, &postgres::secured(&tables)).await,
    }
}

/// Describes the table of a plan, and those that refer to it, as they are now.
pub(crate) async fn describe(session: &mut Session, plan: &Plan) -> Result<Vec<Table>, Failure> {
    match plan.engine {
        Engine::Postgres => postgres::describe(session, plan).await,
        Engine::Mysql | Engine::Mariadb => mysql::describe(session, plan).await,
        Engine::Sqlite => sqlite::describe(session, plan).await,
        Engine::SqlServer | Engine::Oracle => Err(unreachable(plan.engine)),
    }
}

/// Returns the table and those that refer to it, as they are now on a server.
async fn family(
    session: &mut Session,
    schema: Option<&str>,
    name: &str,
) -> Result<Vec<Moved>, Failure> {
    match session.engine() {
        Engine::Postgres => postgres::family(session, schema, name).await,
        _ => mysql::family(session, schema.unwrap_or_default(), name).await,
    }
}

fn unreachable(engine: Engine) -> Failure {
    Failure::wrong(format_args!(
        "tables of {engine} cannot be moved by this program"
    ))
}
