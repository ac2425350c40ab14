//! `ordid apply`: carries out the plan of a move, and goes on where an earlier run was stopped.
//!
//! With `--json` it prints one document:
//!
//! | field | content |
//! |---|---|
//! | `table` | the table |
//! | `state` | `ready` (all but the switch), `switched`, `rolled_back` or `finished` |
//! | `steps` | the steps that this run has done: `step`, `on` (the column, if there are several of the name), `seconds` |
//! | `rows` | rows that this run has given keys or references |
//! | `retries` | how often it let a lock go and tried again |
//! | `switch_millis` | how long the switch held its locks, or null |
//! | `map` | the table that has old and new keys and stays, or null |

use std::{fs, path::PathBuf, time::Duration};

use clap::Args;

use crate::{
    database::{self, Access},
    engine::Engine,
    failure::{Failure, Outcome},
    interrupt::{self, Interrupt},
    migration::{
        self,
        apply::{Options, Run, Summary, say},
        journal::{Entry, Journal, Phase},
        model::{self, Plan},
        others,
        remains::{self, Remains},
        session::{HIDDEN_LAG, Session},
        switch::{BETWEEN, has_exchanged},
    },
    output::{Output, shell_word},
    progress::Progress,
};

/// Arguments of `ordid apply`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The plan that `ordid plan` has written
    plan: PathBuf,
    /// The database
    #[arg(env = "DATABASE_URL", hide_env_values = true)]
    url: String,
    /// Go on with a move that was stopped
    #[arg(long, conflicts_with_all = ["rollback", "finish"])]
    resume: bool,
    /// Give the table its old keys back, before the switch or after it
    #[arg(long, conflicts_with = "finish")]
    rollback: bool,
    /// Drop the old columns: there is no way back from here, and links with old keys lead nowhere
    #[arg(long)]
    finish: bool,
    /// Keep old and new keys in a table TABLE_ordid_map, by which links with old keys can be translated
    #[arg(long, requires = "finish")]
    keep_map: bool,
    /// Apply a plan that was edited since `ordid plan` wrote it
    #[arg(long)]
    edited: bool,
    /// Do everything but the switch, which a later run with --resume does
    #[arg(long, conflicts_with_all = ["rollback", "finish"])]
    no_switch: bool,
    /// How many rows a transaction changes: rows of the table, or rows that refer to it
    #[arg(long, value_name = "ROWS", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    chunk: u32,
    /// How many milliseconds it waits between two of them
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pause: u64,
    /// How many seconds the slowest replica may be behind (PostgreSQL)
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    max_lag: u64,
    /// How many milliseconds others may wait behind a lock that it wants (whole seconds on MySQL and MariaDB; longer at the end of a
    /// rebuild there, which would be lost)
    #[arg(long, value_name = "MS", default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..))]
    lock_timeout: u64,
    /// How often it tries to get a lock
    #[arg(long, value_name = "N", default_value_t = 100)]
    attempts: u32,
}

impl Arguments {
    /// Carries the plan out.
    ///
    /// # Errors
    ///
    /// The plan is of another database, the tables have changed, or the server refuses a step.
    pub(crate) fn run(self, output: &mut Output) -> Result<Outcome, Failure> {
        let plan = read(&self.plan)?;
        if plan.is_edited() && !self.edited {
            return Err(Failure::wrong(format_args!(
                "the plan {} was edited since `ordid plan` wrote it: it does not have the digest of its content; make a new plan, or \
                 apply it as it is with --edited",
                self.plan.display()
            )));
        }
        let lines = (!output.is_json()).then_some(&mut *output);
        let summary = interrupt::run(|interrupt| self.carry_out(&plan, interrupt, lines))?;
        match output.is_json() {
            true => output.json(&summary)?,
            false => self.show(output, &plan, &summary)?,
        }
        Ok(Outcome::Fine)
    }

    async fn carry_out<'p>(
        &self,
        plan: &'p Plan,
        interrupt: Interrupt,
        output: Option<&'p mut Output>,
    ) -> Result<Summary, Failure> {
        let mut session = Session::connect(&self.url, Access::Write).await?;
        if session.engine() != plan.engine {
            return Err(Failure::wrong(format_args!(
                "the plan is for {}, and the database is {}",
                plan.engine,
                session.engine()
            )));
        }
        session.prepare().await?;
        migration::check_server(&mut session).await?;
        self.claim(&mut session, plan, &interrupt).await?;
        let journal = Journal::of(plan);
        let found = journal.read(&mut session).await?;
        let mut begun = found.clone();
        if let Some(entry) = begun.as_mut()
            && self.rollback
            && entry.position == BETWEEN
            && entry.phase == Phase::Steps
            && !has_exchanged(&mut session, plan).await?
        {
            // No name is exchanged yet: it is as if the switch had not begun.
            entry.position = 0;
        }
        let remains = match begun {
            None => find_remains(&mut session, plan).await?,
            Some(_) => None,
        };
        let entry = match remains {
            // Each step of the way back before the switch leaves alone what is not there.
            Some(remains) if self.rollback && remains.can_be_undone_by(plan) => {
                Entry::beginning(Phase::Undo)
            }
            Some(remains) => return Err(refuse(plan, &remains.reason())),
            None => self.first(plan, begun.as_ref())?,
        };
        // SQLite's journal is written by the transaction of the first step.
        let in_transaction = plan.engine == Engine::Sqlite;
        if entry == Entry::beginning(Phase::Steps) {
            check_others(&mut session, plan).await?;
            migration::check_triggers(&mut session).await?;
        }
        migration::check_policies(&mut session, plan, entry.phase).await?;
        migration::check_published(&mut session, plan, entry.phase).await?;
        if found.is_none() && entry.phase == Phase::Steps {
            let tables = migration::describe(&mut session, plan).await?;
            if let Some(difference) = model::difference(&plan.catalog, &tables) {
                return Err(Failure::wrong(format_args!(
                    "the tables have changed since the plan was made: {difference}; make a new plan"
                )));
            }
        }
        if found.is_none() {
            if !in_transaction {
                journal.create(&mut session, &entry).await?;
                // Another plan may have been faster. Of two moves that share a table at least one sees the other's journal here.
                journal.read(&mut session).await?;
                if let Err(failure) = check_others(&mut session, plan).await {
                    journal.remove(&mut session).await?;
                    return Err(failure);
                }
            }
        } else if found.as_ref() != Some(&entry) && !in_transaction {
            journal.enter(&mut session, &entry).await?;
        }
        if entry.phase == Phase::Steps && session.has_hidden_replicas().await? {
            say(HIDDEN_LAG);
        }
        let mut run = Run {
            plan,
            options: Options {
                chunk: self.chunk,
                pause: Duration::from_millis(self.pause),
                max_lag: Duration::from_secs(self.max_lag),
                lock_timeout: Duration::from_millis(self.lock_timeout),
                attempts: self.attempts,
                stops_before_switch: self.no_switch,
            },
            session,
            interrupt,
            entry,
            progress: Progress::new("move", 0).with_lines(),
            output,
            summary: Summary {
                table: plan.table.clone(),
                ..Summary::default()
            },
        };
        run.carry_out().await?;
        run.progress.finish();
        Ok(run.summary)
    }

    /// Waits for another run of the plan to end: that of a killed process still runs its last statement.
    async fn claim(
        &self,
        session: &mut Session,
        plan: &Plan,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        for attempt in 0..6000 {
            if session.claim(&format!("ordid {}", plan.journal)).await? {
                return Ok(());
            }
            // Another plan of the table is not waited for.
            Journal::of(plan).read(session).await?;
            if interrupt.is_set() {
                return Err(Failure::could_not("interrupted; nothing was changed"));
            }
            if attempt == 20 {
                say("waiting for another run of this plan to end");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err(Failure::could_not(
            "another run of this plan has not ended for ten minutes",
        ))
    }

    /// Decides where to begin.
    fn first(&self, plan: &Plan, found: Option<&Entry>) -> Result<Entry, Failure> {
        let table = &plan.table;
        let Some(found) = found else {
            return match (self.rollback, self.finish) {
                (false, false) => Ok(Entry::beginning(Phase::Steps)),
                _ => Err(Failure::wrong(format_args!(
                    "the move of {table} has not begun, or was ended: there is no journal {}",
                    plan.journal
                ))),
            };
        };
        match (found.phase, self.rollback, self.finish) {
            (Phase::Steps, false, false) if self.resume || found.step == 0 => Ok(found.clone()),
            (Phase::Steps, false, false) => Err(Failure::wrong(format_args!(
                "the move of {table} has begun and is at step {} of {}: go on with --resume, or go back with --rollback",
                found.step + 1,
                plan.steps.len()
            ))),
            (Phase::Steps, true, _) if found.position == BETWEEN => {
                Err(Failure::wrong(format_args!(
                    "the switch of {table} was cut off: complete it with --resume, and then go back with --rollback"
                )))
            }
            (Phase::Steps, true, _) => Ok(Entry::beginning(Phase::Undo)),
            (Phase::Switched, true, _) => Ok(Entry::beginning(Phase::Back)),
            (Phase::Switched, _, true) => Ok(self.beginning_of_the_end()),
            (Phase::Switched, ..) if self.resume => Ok(found.clone()),
            (Phase::Switched, ..) => Err(Failure::wrong(format_args!(
                "{table} has its new keys: end the move with --finish, or go back with --rollback"
            ))),
            (Phase::Steps, _, true) => Err(Failure::wrong(format_args!(
                "{table} still has its old keys, the move is at step {} of {}: go on with --resume",
                found.step + 1,
                plan.steps.len()
            ))),
            (Phase::Finish, _, true)
                if self.keep_map && !found.has_changed_nothing(&plan.finish) =>
            {
                Err(Failure::wrong(format_args!(
                    "the end of the move of {table} has begun without a map, and old keys may be gone: go on with --finish alone"
                )))
            }
            (Phase::Finish, _, true) if self.keep_map => Ok(self.beginning_of_the_end()),
            // A name that is not free for the map: the end goes on without it.
            (Phase::Map, _, true) if !self.keep_map && found.has_changed_nothing(&plan.map) => {
                Ok(self.beginning_of_the_end())
            }
            (Phase::Undo | Phase::Back | Phase::BackMapped, true, _)
            | (Phase::Map | Phase::Mapped | Phase::Finish, _, true) => Ok(found.clone()),
            (Phase::Back, _, true) if found.has_changed_nothing(&plan.back) => {
                Ok(self.beginning_of_the_end())
            }
            (Phase::BackMapped, _, true) if found.has_changed_nothing(&plan.back) => {
                Ok(Entry::beginning(Phase::Mapped))
            }
            (Phase::Mapped, true, _) if found.has_changed_nothing(&plan.finish) => {
                Ok(Entry::beginning(Phase::BackMapped))
            }
            (Phase::Finish, true, _) if found.has_changed_nothing(&plan.finish) => {
                Ok(Entry::beginning(Phase::Back))
            }
            (Phase::Map, true, _) if found.has_changed_nothing(&plan.map) => {
                Ok(Entry::beginning(Phase::Back))
            }
            (Phase::Undo | Phase::Back | Phase::BackMapped, ..) => Err(Failure::wrong(
                format_args!("a rollback of the move of {table} has begun: go on with --rollback"),
            )),
            (Phase::Map | Phase::Mapped | Phase::Finish, ..) => Err(Failure::wrong(format_args!(
                "the end of the move of {table} has begun: go on with --finish"
            ))),
        }
    }

    /// Returns where the end begins: with the map, if it is wanted.
    fn beginning_of_the_end(&self) -> Entry {
        Entry::beginning(match self.keep_map {
            true => Phase::Map,
            false => Phase::Finish,
        })
    }

    fn show(&self, output: &mut Output, plan: &Plan, summary: &Summary) -> Result<(), Failure> {
        let map_table = &plan.map_table;
        let plan = format!(
            "{}{}",
            shell_word(&self.plan.to_string_lossy()),
            database::argument(&self.url)
        );
        let table = &summary.table;
        output.line(&match summary.state {
            "ready" => format!("{table} is ready to be switched: ordid apply {plan} --resume"),
            "switched" => format!(
                "{table} has its new keys; end the move with: ordid apply {plan} --finish; or go back with: ordid apply {plan} \
                 --rollback"
            ),
            "rolled_back" => match &summary.map {
                Some(map) => format!(
                    "{table} has its old keys; of the move the table {map} is left, with old and new keys: drop it when nobody needs it"
                ),
                None => format!("{table} has its old keys, and nothing is left of the move"),
            },
            _ => match &summary.map {
                Some(map) => format!(
                    "the move of {table} is finished; the table {map} has old and new keys: grant it to programs that translate \
                     links, and drop it when nobody needs it"
                ),
                None => format!("the move of {table} is finished; the old keys are gone"),
            },
        })?;
        if summary.state == "switched" {
            output.line(&format!(
                "--finish drops the old keys; with --keep-map they stay, with the new ones, in the table {map_table}"
            ))?;
        }
        if let Some(millis) = summary.switch_millis {
            output.line(&format!("the switch held its locks for {millis:.0} ms"))?;
        }
        Ok(())
    }
}

/// Refuses a move that shares a table with another one.
async fn check_others(session: &mut Session, plan: &Plan) -> Result<(), Failure> {
    match others::refusal(session, plan.schema.as_deref(), &plan.name).await? {
        None => Ok(()),
        Some(reason) => Err(refuse(plan, &reason)),
    }
}

/// Looks for what a move without a journal has left, unless it is that of another move.
async fn find_remains(session: &mut Session, plan: &Plan) -> Result<Option<Remains>, Failure> {
    let (schema, name) = (plan.schema.as_deref(), &*plan.name);
    match others::refusal(session, schema, name).await? {
        None => remains::find(session, schema, name).await,
        Some(_) => Ok(None),
    }
}

fn refuse(plan: &Plan, reason: &str) -> Failure {
    Failure::wrong(format_args!("{} cannot be moved: {reason}", plan.table))
}

fn read(path: &PathBuf) -> Result<Plan, Failure> {
    let shown = path.display();
    let text = fs::read_to_string(path).map_err(|error| {
        Failure::wrong(format_args!("the plan {shown} cannot be read: {error}"))
    })?;
    let document: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| Failure::wrong(format_args!("{shown} is not JSON: {error}")))?;
    match document
        .get("ordid_plan")
        .and_then(serde_json::Value::as_u64)
    {
        None => {
            return Err(Failure::wrong(format_args!(
                "{shown} is not a plan: it has no `ordid_plan`; make one with `ordid plan`"
            )));
        }
        Some(version) if version != u64::from(model::VERSION) => {
            return Err(Failure::wrong(format_args!(
                "the plan {shown} has the version {version}, and this program knows {}: make it again, or go on with the `ordid` that has \
                 made it if it has begun",
                model::VERSION
            )));
        }
        Some(_) => {}
    }
    serde_json::from_value(document)
        .map_err(|error| Failure::wrong(format_args!("the plan {shown} is damaged: {error}")))
}
