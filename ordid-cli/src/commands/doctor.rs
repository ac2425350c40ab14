//! `ordid doctor`: examines a live database, and changes nothing.
//!
//! The catalogs of the engines ([`postgres`], [`mysql`], [`sqlite`]) become one model ([`model`]); [`sample`] reads rows,
//! [`profile`] says what is in them, and [`rules`] are written once, for all engines. Each finding has a query, which
//! [`Arguments::run`] asks at the end. Every query has a time limit ([`session`]).
//!
//! # JSON
//!
//! ```text
//! { "database": { "engine", "version" },
//!   "limits": { "sample_rows", "timeout_seconds" },
//!   "tables": [{ "table", "rows", "rows_are_counted", "bytes", "sampled_rows", "sampled_how", "inserted_by",
//!                "keys": [{ "column", "type", "collation", "roles", "values", "nulls", "spellings": [{ "spelling", "count" }],
//!                           "schemes": [{ "scheme", "count", "oldest", "newest" }], "may_also_be",
//!                           "steps_down", "steps", "index_bytes", "leaf_fill", "ordered_leaf_fill" }] }],
//!   "findings": [{ "rule", "severity", "table", "column", "message", "evidence": { "query", "answer" }, "cost", "fix" }],
//!   "counts": { "error", "warning", "note" } }
//! ```
//!
//! Times are of RFC 3339, in UTC. What nobody knows is `null`.

mod findings;
mod html;
mod model;
mod mysql;
mod postgres;
mod profile;
mod rebuild;
mod rules;
mod sample;
mod sarif;
mod session;
mod shown;
mod sql;
mod sqlite;

use std::{path::PathBuf, time::Duration};

use clap::Args;
use ordid_core::clock::Timestamp;

use self::{
    findings::{Finding, Severity},
    model::{Column, Examined, Kind, Table},
    rules::Context,
    session::Session,
};
use crate::{
    database::{Access, Database},
    engine::Engine,
    failure::{Failure, Outcome},
    interrupt, near,
    output::Output,
    progress::Progress,
    report,
};

/// Arguments of `ordid doctor`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 clean or notes only, 1 warnings or errors, 2 wrong use, 3 the database refused."
)]
pub(crate) struct Arguments {
    /// The database: postgres://.., mysql://.., mariadb://.., sqlite://.. or the path of a SQLite file
    #[arg(env = "DATABASE_URL", hide_env_values = true)]
    url: String,
    /// Examine this table only; may be repeated, and have a schema in front
    #[arg(long, value_name = "TABLE")]
    table: Vec<String>,
    /// Read at most so many rows of a table
    #[arg(long, value_name = "ROWS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(100..=10_000_000))]
    sample: u64,
    /// How long a query may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    timeout: Duration,
    /// Write SARIF 2.1.0, for code scanning
    #[arg(long, conflicts_with = "json")]
    sarif: bool,
    /// Write an HTML report into this file, too
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "a number of seconds is expected".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(limit) if (0.001..=3_600.0).contains(&seconds) => Ok(limit),
        _ => Err("between 0.001 and 3600 seconds are expected".to_owned()),
    }
}

/// The doctor's answer.
struct Report {
    examined: Examined,
    findings: Vec<Finding>,
    /// The contents of the keys, for people and JSON.
    tables: Vec<shown::Table>,
}

impl Arguments {
    /// Examines the database.
    ///
    /// # Errors
    ///
    /// The database cannot be reached, its catalog cannot be read, or it has no such table.
    pub(crate) fn run(self, output: &mut Output) -> Result<Outcome, Failure> {
        if let Some(path) = &self.html {
            report::Report::check_path(path)?;
        }
        let report = interrupt::run_droppable(|| self.examine())?;
        if let Some(path) = &self.html {
            html::report(&self, &report).write(path)?;
        }
        if self.sarif {
            output.json(&sarif::document(&report.findings))?;
        } else {
            shown::write(&self, &report, output)?;
        }
        let is_clean = report
            .findings
            .iter()
            .all(|finding| finding.severity == Severity::Note);
        Ok(if is_clean {
            Outcome::Fine
        } else {
            Outcome::Findings
        })
    }

    async fn examine(&self) -> Result<Report, Failure> {
        let database = Database::connect(&self.url, Access::Read).await?;
        let mut session = Session::open(database, self.timeout).await?;
        let server = match session.engine() {
            Engine::Postgres => postgres::server(&mut session).await?,
            Engine::Sqlite => sqlite::server(&mut session).await?,
            _ => mysql::server(&mut session).await?,
        };
        let mut examined = Examined {
            engine: session.engine(),
            version: server.version,
            settings: server.settings,
            prepared: server.prepared,
            tables: Vec::new(),
            unseen: Vec::new(),
        };
        let all = match session.engine() {
            Engine::Postgres => postgres::tables(&mut session).await?,
            Engine::Sqlite => sqlite::tables(&mut session).await?,
            _ => mysql::tables(&mut session).await?,
        };
        self.check_names(&all)?;
        let all: Vec<Table> = all
            .into_iter()
            .filter(|table| !is_ordids_work(table) || self.table.contains(&table.name.name))
            .collect();
        let mut progress = Progress::new("examining", u64::try_from(all.len()).unwrap_or_default());
        for mut table in all {
            progress.say(&table.name.to_string());
            if wants(&self.table, &table) {
                let unseen = sample::read(&mut session, &mut table, self.sample).await?;
                match session.engine() {
                    Engine::Postgres => postgres::computed_leaves(&mut table),
                    Engine::Sqlite => sqlite::leaves(&mut session, &mut table).await?,
                    _ => mysql::leaves(&mut session, &mut table).await?,
                }
                examined.unseen.extend(unseen);
                if session.engine() == Engine::Sqlite {
                    let unseen = sqlite::dangling(&mut session, &mut table).await?;
                    examined.unseen.extend(unseen);
                }
            }
            // Tables that are not examined are known all the same, as parents of those that are.
            examined.tables.push(table);
            progress.add(1);
        }
        let now = Timestamp::try_from(std::time::SystemTime::now()).map_err(|error| {
            Failure::could_not(format_args!("the clock of this machine: {error}"))
        })?;
        let named = self.table.clone();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        // A thread that nobody waits for after Ctrl-C: millions of keys take seconds.
        std::thread::spawn(move || {
            let context = Context::of(&examined, now);
            let mut findings = context.findings();
            let is_wanted = |table: &model::TableName| {
                examined
                    .tables
                    .iter()
                    .any(|other| other.name == *table && wants(&named, other))
            };
            findings.retain(|finding| finding.table.as_ref().is_none_or(is_wanted));
            rebuild::share(&context, &mut findings);
            let tables = shown::tables(&context, |table| wants(&named, table));
            drop(context);
            // After Ctrl-C there is nobody to tell.
            let _ = sender.send((examined, findings, tables));
        });
        let (examined, mut findings, tables) = receiver
            .await
            .map_err(|_| Failure::could_not("the thread that applies the rules has panicked"))?;
        for finding in &mut findings {
            progress.say("asking for evidence");
            if finding.evidence.answer.is_none() {
                finding.evidence.answer =
                    Some(match session.rows(&finding.evidence.query).await? {
                        Ok(rows) => shown::answer(&rows),
                        Err(refusal) => format!("no answer: {refusal}"),
                    });
            }
        }
        progress.finish();
        Ok(Report {
            examined,
            findings,
            tables,
        })
    }

    fn check_names(&self, tables: &[Table]) -> Result<(), Failure> {
        let is_there = |name: &str| {
            tables
                .iter()
                .any(|table| name == table.name.name || name == table.name.to_string())
        };
        match self.table.iter().find(|name| !is_there(name)) {
            Some(name) => {
                let known: Vec<String> = match name.contains('.') {
                    true => tables.iter().map(|it| it.name.to_string()).collect(),
                    false => tables.iter().map(|it| it.name.name.clone()).collect(),
                };
                Err(Failure::wrong(format_args!(
                    "the database has no table {name}; this user sees {} tables{}",
                    rules::grouped(tables.len()),
                    near::suggestion(name, known.iter().map(String::as_str))
                )))
            }
            None => Ok(()),
        }
    }
}

/// Whether a table is to be examined, where the user has named these; all if there are none.
fn wants(named: &[String], table: &Table) -> bool {
    let is_named = |name: &String| *name == table.name.name || *name == table.name.to_string();
    named.is_empty() || named.iter().any(is_named)
}

/// Whether a table is one that a move or a bench has made for itself. It goes away with them.
fn is_ordids_work(table: &Table) -> bool {
    const PREFIXES: [&str; 6] = ["map_", "move_", "new_", "work_", "chunk_", "bench_"];
    let rest = table.name.name.strip_prefix("ordid_");
    rest.is_some_and(|rest| PREFIXES.iter().any(|prefix| rest.starts_with(prefix)))
}

/// Returns the column that says when a row was made, by the names that people give it.
///
/// SQLite has no type for times: there a text or an integer may be one.
fn created(columns: &[Column], is_sqlite: bool) -> Option<String> {
    const NAMES: [&str; 14] = [
        "created_at",
        "createdat",
        "created",
        "created_on",
        "createdon",
        "creation_time",
        "create_time",
        "createtime",
        "inserted_at",
        "insertedat",
        "inserted",
        "date_created",
        "created_date",
        "created_time",
    ];
    let is_time = |column: &&Column| {
        let is_untyped = matches!(
            column.kind,
            Kind::Integer { .. } | Kind::Text { .. } | Kind::Numeric
        );
        (column.kind == Kind::Time || (is_sqlite && is_untyped))
            && NAMES.contains(&&*column.name.to_ascii_lowercase())
    };
    let column = columns.iter().find(is_time)?;
    Some(column.name.clone())
}
