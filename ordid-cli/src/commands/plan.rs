//! `ordid plan`: writes the plan of a move to ordered keys, and shows it.
//!
//! The plan is a file of JSON, which `ordid apply` carries out. It has no password. With `--json` the command prints the
//! same document. Its fields:
//!
//! | field | content |
//! |---|---|
//! | `ordid_plan` | the version of this form, 3 |
//! | `id` | a random number of this plan |
//! | `engine`, `server` | `postgres`, `mysql`, `mariadb` or `sqlite`, and its version |
//! | `table`, `schema`, `name` | the table for people, and the parts of its name; SQLite has no schema |
//! | `scheme`, `column`, `created` | what it is moved to, and the column of the rows' times, or null |
//! | `rows`, `bytes` | estimates of the table's size |
//! | `notes` | what one should know before: dangers first, guesses last |
//! | `journal` | the table in which `apply` keeps how far it is |
//! | `map_table` | the table that keeps old and new keys, if `apply` gets `--keep-map` |
//! | `steps`, `undo`, `back`, `map`, `finish` | lists of steps: the move, the ways back before and after its switch, the map, and its end. A step has `name`, `on` (the column that it fills, if it is one of several steps of the name), `what`, `locks`, `seconds` (an estimate), `do` (how it is carried out) and its SQL |
//! | `catalog` | the tables as they were found; `apply` refuses others |
//! | `digest` | SHA-256 of the rest; `apply` refuses a plan whose digest is another one, unless it gets `--edited` |

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use clap::Args;

mod html;

use crate::{
    database::{self, Access},
    failure::{Failure, Outcome},
    interrupt,
    migration::{
        self,
        model::{Plan, Step},
        request::Request,
        session::Session,
    },
    output::{Output, Style, shell_word},
    report::Report,
};

/// Arguments of `ordid plan`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The database: postgres://.., mysql://.., mariadb://.., sqlite://.., or the path of a SQLite file
    #[arg(env = "DATABASE_URL", hide_env_values = true)]
    url: String,
    /// The table, such as orders or app.orders
    #[arg(long)]
    table: String,
    /// The new keys: a scheme, and a column if the usual one is not wanted, such as uuid_v7 or uuid_v7:bytea
    #[arg(long, value_name = "SCHEME[:COLUMN]")]
    to: String,
    /// The column that says when a row was made; found by its name unless it is named
    #[arg(long, value_name = "COLUMN")]
    created: Option<String>,
    /// Where the plan is written; - is stdout [default: ordid-move-TABLE.json]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace a plan that is there
    #[arg(long)]
    force: bool,
    /// Write a report for a browser, too
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Arguments {
    /// Writes the plan and shows it.
    ///
    /// # Errors
    ///
    /// The table cannot be moved, or the file is there.
    pub(crate) fn run(self, output: &mut Output) -> Result<Outcome, Failure> {
        let request = Request {
            table: &self.table,
            to: &self.to,
            created: self.created.as_deref(),
        };
        if let Some(path) = &self.html {
            Report::check_path(path)?;
        }
        let plan = interrupt::run_droppable(|| async {
            let mut session = Session::connect(&self.url, Access::Read).await?;
            migration::plan(&mut session, &request).await
        })?;
        if self.output.as_deref() == Some(Path::new("-")) {
            if let Some(path) = &self.html {
                html::report(&plan).write(path)?;
            }
            output.json(&plan)?;
            return Ok(Outcome::Fine);
        }
        let path = self.output.clone().unwrap_or_else(|| {
            let name: String = self
                .table
                .chars()
                .map(|c| {
                    if c.is_alphanumeric() || "._-".contains(c) {
                        c
                    } else {
                        '_'
                    }
                })
                .collect();
            format!("ordid-move-{name}.json").into()
        });
        self.write(&path, &plan)?;
        if let Some(path) = &self.html {
            html::report(&plan).write(path)?;
        }
        match output.is_json() {
            true => output.json(&plan)?,
            false => show(output, &plan, &path, &database::argument(&self.url))?,
        }
        Ok(Outcome::Fine)
    }

    fn write(&self, path: &PathBuf, plan: &Plan) -> Result<(), Failure> {
        let cannot = |error: std::io::Error| {
            Failure::could_not(format_args!(
                "{} cannot be written: {error}",
                path.display()
            ))
        };
        let mut options = fs::OpenOptions::new();
        options.write(true);
        match self.force {
            true => options.create(true).truncate(true),
            false => options.create_new(true),
        };
        let mut file = options.open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => Failure::wrong(format_args!(
                "{} is there already: apply it, or replace it with --force",
                path.display()
            )),
            _ => cannot(error),
        })?;
        let text = serde_json::to_string_pretty(plan).map_err(std::io::Error::from);
        let text = text.map_err(cannot)?;
        file.write_all(text.as_bytes()).map_err(cannot)?;
        file.write_all(b"\n").map_err(cannot)
    }
}

/// Says what is moved where, in a line.
fn title(plan: &Plan) -> String {
    format!(
        "{} {}: {} gets keys of {} in columns {}",
        plan.engine.name(),
        plan.server,
        plan.table,
        plan.scheme,
        plan.column
    )
}

/// Says how much is moved, in two lines.
fn facts(plan: &Plan) -> [String; 2] {
    let order = match &plan.created {
        Some(column) => format!("keys have the time of {column}"),
        None => "keys have made-up times".to_owned(),
    };
    let others: Vec<&str> = plan
        .catalog
        .iter()
        .skip(1)
        .map(|it| it.name.as_str())
        .collect();
    [
        format!(
            "about {} rows, {} MB; about {}; {order}",
            plan.rows,
            plan.bytes / 1_000_000,
            duration(plan.steps.iter().map(|step| step.seconds).sum())
        ),
        match others.is_empty() {
            true => "no table refers to it".to_owned(),
            false => format!(
                "tables that refer to it, and move with it: {}",
                others.join(", ")
            ),
        },
    ]
}

fn show(output: &mut Output, plan: &Plan, path: &Path, database: &str) -> Result<(), Failure> {
    output.line(&output.paint(Style::Bold, &title(plan)))?;
    for fact in facts(plan) {
        output.line(&fact)?;
    }
    for note in &plan.notes {
        output.line(&format!("{} {note}", output.paint(Style::Warning, "note:")))?;
    }
    for (number, step) in plan.steps.iter().enumerate() {
        show_step(output, number + 1, step)?;
    }
    let command = format!(
        "ordid apply {}{database}",
        shell_word(&path.to_string_lossy())
    );
    output.line("")?;
    output.line(&format!(
        "the plan is in {}; carry it out with: {command}",
        path.display()
    ))?;
    output.line(&format!(
        "afterwards, back with: {command} --rollback; or end it with: {command} --finish, which drops the old keys (--keep-map keeps \
         them in the table {})",
        plan.map_table
    ))
}

fn show_step(output: &mut Output, number: usize, step: &Step) -> Result<(), Failure> {
    output.line("")?;
    let title = output.paint(Style::Bold, &format!("{number}. {}", step.what));
    output.line(&title)?;
    output.line(&format!(
        "   about {}; locks {}",
        duration(step.seconds),
        step.locks
    ))?;
    for sql in step.action.sql() {
        for line in sql.lines() {
            output.line(&output.paint(Style::Dim, &format!("     {line}")))?;
        }
    }
    Ok(())
}

fn duration(seconds: f64) -> String {
    match seconds {
        ..1.0 => "a second".to_owned(),
        1.0..90.0 => format!("{seconds:.0} s"),
        90.0..5400.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}
