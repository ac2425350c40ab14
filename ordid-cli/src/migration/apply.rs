//! Carries a plan out, from wherever its journal says that it is.

use std::{
    io::{self, Write as _},
    time::{Duration, Instant},
};

use ordid_core::storage::{
    Dialect as _,
    dialect::{MySql, Postgres},
};
use serde::Serialize;

use super::{
    check_policies,
    journal::{Entry, Journal, Phase},
    model::{Action, Plan, Statement, Step},
    session::{Fault, Session},
    switch::BETWEEN,
};
use crate::{
    engine::Engine,
    failure::{Failure, without_password},
    interrupt::Interrupt,
    output::Output,
    progress::Progress,
};

/// The longest wait of others behind a rebuild that would be lost otherwise.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// The work whose loss a user is told.
const NOTABLE: Duration = Duration::from_secs(3);

/// How gently a plan is carried out.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// How many rows a transaction changes.
    pub(crate) chunk: u32,
    /// How long it waits between two of them.
    pub(crate) pause: Duration,
    /// How far behind the slowest replica may be.
    pub(crate) max_lag: Duration,
    /// How long others may have to wait behind a lock that it wants.
    pub(crate) lock_timeout: Duration,
    /// How often it tries to get a lock.
    pub(crate) attempts: u32,
    /// Whether it stops before the switch.
    pub(crate) stops_before_switch: bool,
}

/// The outcome of a run.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Summary {
    /// The table.
    pub(crate) table: String,
    /// `ready`, `switched`, `rolled_back` or `finished`.
    pub(crate) state: &'static str,
    /// The steps that this run has done.
    pub(crate) steps: Vec<Done>,
    /// Rows that this run has given keys or references.
    pub(crate) rows: u64,
    /// How often it gave up a lock and tried again.
    pub(crate) retries: u32,
    /// How long the switch had its locks, in milliseconds: nobody else could use the tables for so long.
    pub(crate) switch_millis: Option<f64>,
    /// The table that has old and new keys and stays, if there is one.
    pub(crate) map: Option<String>,
}

/// A step that was done.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Done {
    /// Its name.
    pub(crate) step: String,
    /// The column that it was for, if the plan has several steps of the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) on: Option<String>,
    /// How long it took.
    pub(crate) seconds: f64,
}

/// Why an attempt at a transaction has failed.
pub(crate) enum Stop {
    /// The server refuses a statement, perhaps as others have its locks.
    Fault(Fault),
    /// The tables are not as they have to be.
    Wrong(Failure),
    /// A count under locks takes longer than others may wait.
    Slow,
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Fault(fault) => fault.into(),
            Stop::Wrong(failure) => failure,
            Stop::Slow => Self::could_not("a count takes longer than others may wait"),
        }
    }
}

/// A run of `apply`.
pub(crate) struct Run<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) options: Options,
    pub(crate) session: Session,
    pub(crate) interrupt: Interrupt,
    pub(crate) entry: Entry,
    pub(crate) progress: Progress,
    pub(crate) summary: Summary,
    /// Where a line for each step is written when it is done.
    pub(crate) output: Option<&'p mut Output>,
}

impl<'p> Run<'p> {
    /// Works through the list of the journal's phase.
    pub(crate) async fn carry_out(&mut self) -> Result<(), Failure> {
        let plan = self.plan;
        if self.entry.phase == Phase::Switched {
            self.summary.state = "switched";
            return Ok(());
        }
        self.validate_again().await?;
        let is_switch =
            |step: &Step| matches!(step.action, Action::Switch { .. } | Action::Rebuild { .. });
        if !plan.steps.last().is_some_and(is_switch) {
            return Err(Failure::wrong(
                "the plan is damaged: its last step is no switch; make a new plan",
            ));
        }
        while let Some(step) = self.list().get(self.entry.step) {
            let list = self.list();
            let is_switch = self.entry.phase == Phase::Steps && self.entry.step + 1 == list.len();
            // A switch that was cut off is completed in any case: others are refused until then.
            if is_switch && self.options.stops_before_switch && self.entry.position != BETWEEN {
                self.summary.state = "ready";
                return Ok(());
            }
            self.stop_if_interrupted()?;
            let begun = Instant::now();
            self.progress.begin(&step.title(), self.length(step));
            let is_last = self.entry.step + 1 == list.len();
            let next = match self.entry.phase {
                _ if is_switch => Entry::beginning(Phase::Switched),
                Phase::Map if is_last => Entry::beginning(Phase::Mapped),
                _ => self.entry.next_step(),
            };
            self.step(step, &next).await?;
            self.entry = next;
            self.done(Done {
                step: step.name.clone(),
                on: step.on.clone(),
                seconds: begun.elapsed().as_secs_f64(),
            });
            if is_switch {
                break;
            }
        }
        if let Phase::BackMapped | Phase::Mapped = self.entry.phase {
            self.summary.map = Some(plan.map_table.clone());
        }
        if !matches!(
            self.entry.phase,
            Phase::Steps | Phase::Switched | Phase::Map
        ) {
            let mut attempt = 0;
            while let Err(fault) = Journal::of(plan).remove(&mut self.session).await {
                self.again(fault, &mut attempt).await?;
            }
        }
        self.summary.state = match self.entry.phase {
            Phase::Steps | Phase::Switched => "switched",
            Phase::Undo | Phase::Back | Phase::BackMapped => "rolled_back",
            Phase::Map | Phase::Mapped | Phase::Finish => "finished",
        };
        Ok(())
    }

    /// Notes that a step is done, and writes its line at once: a move may take hours.
    fn done(&mut self, done: Done) {
        if let Some(output) = &mut self.output {
            let on = done.on.as_deref().unwrap_or_default();
            let line = format!("{:<14} {:>9.2} s  {on}", done.step, done.seconds);
            // A reader that is gone does not stop a move.
            let _ = self
                .progress
                .beside(|| output.line(line.trim_end()).and_then(|()| output.flush()));
        }
        self.summary.steps.push(done);
    }

    /// Returns how many rows a step works through, if that is known.
    fn length(&self, step: &Step) -> Option<u64> {
        match step.action {
            Action::Keys(_) | Action::Rebuild { .. } => u64::try_from(self.plan.rows).ok(),
            _ => None,
        }
    }

    /// Returns the steps of the journal's phase.
    fn list(&self) -> &'p [Step] {
        let plan = self.plan;
        match self.entry.phase {
            Phase::Steps => &plan.steps,
            Phase::Switched => &[],
            Phase::Undo => &plan.undo,
            Phase::Back | Phase::BackMapped => &plan.back,
            Phase::Map => &plan.map,
            Phase::Mapped | Phase::Finish => &plan.finish,
        }
    }

    async fn step(&mut self, step: &Step, next: &Entry) -> Result<(), Failure> {
        let plan = self.plan;
        let journal = Journal::of(plan);
        match &step.action {
            Action::Transaction { statements } => {
                let mut attempt = 0;
                loop {
                    match self.transaction(statements, next).await {
                        Ok(_) => return Ok(()),
                        Err(stop) => self.after(stop, &mut attempt).await?,
                    }
                }
            }
            Action::Switch { .. } => return self.switch(&step.action, next).await,
            Action::Rebuild { .. } => return self.rebuild(&step.action, next).await,
            Action::Online { statements } => {
                for statement in statements {
                    self.stop_if_interrupted()?;
                    self.online(step, statement).await?;
                }
            }
            Action::Keys(keys) => self.keys(keys).await?,
            Action::References(references) => self.references(references).await?,
            Action::Wait { list } => self.wait(list).await?,
            Action::Check { checks, guards } => {
                self.guard(guards).await?;
                self.validate(checks).await?;
            }
        }
        let mut next = next.clone();
        next.key.clone_from(&self.entry.key);
        Ok(journal.enter(&mut self.session, &next).await?)
    }

    /// Sends statements and the entry behind them in one transaction. Returns how many rows the statements have changed.
    pub(crate) async fn transaction(
        &mut self,
        statements: &[String],
        next: &Entry,
    ) -> Result<u64, Stop> {
        self.session
            .lock_timeout(Some(self.options.lock_timeout))
            .await?;
        self.session.begin().await?;
        let mut changed = 0;
        for statement in statements {
            changed += self.session.execute(statement).await?;
        }
        check_policies(&mut self.session, self.plan, self.entry.phase)
            .await
            .map_err(Stop::Wrong)?;
        Journal::of(self.plan)
            .enter(&mut self.session, next)
            .await?;
        self.session.execute("COMMIT").await?;
        Ok(changed)
    }

    /// Sends a statement that commits by itself, unless an earlier run has done so.
    async fn online(&mut self, step: &Step, statement: &Statement) -> Result<(), Failure> {
        let mut attempt = 0;
        // The work that is lost if the statement gets no lock at its end.
        let mut work = Duration::try_from_secs_f64(step.seconds).unwrap_or_default();
        loop {
            let patience = patience(
                self.plan.engine,
                statement.waits,
                self.options.lock_timeout,
                work,
            );
            let begun = Instant::now();
            let Err(fault) = self.try_online(statement, patience).await else {
                return Ok(());
            };
            let lost = begun.elapsed().saturating_sub(patience.unwrap_or_default());
            if statement.waits && fault.is_contention && lost > NOTABLE {
                work = work.max(lost);
                say(&format!(
                    "the step {} lost {:.0} s of work, as others held a lock that it needs at its end",
                    step.title(),
                    lost.as_secs_f64()
                ));
            }
            // Others have waited behind it for so long. Now it is their turn.
            let rest = match patience {
                Some(patience) if begun.elapsed() >= patience => {
                    patience.saturating_sub(self.options.lock_timeout)
                }
                _ => Duration::ZERO,
            };
            self.again(fault, &mut attempt).await?;
            tokio::time::sleep(rest).await;
            self.stop_if_interrupted()?;
        }
    }

    async fn try_online(
        &mut self,
        statement: &Statement,
        patience: Option<Duration>,
    ) -> Result<(), Fault> {
        if let Some(query) = &statement.unless
            && self.session.exists(query).await?
        {
            return Ok(());
        }
        let brief = self.options.lock_timeout;
        // MySQL takes the lock at the beginning of a rebuild, too, where no work is lost: nobody has to wait longer for that.
        if matches!(self.plan.engine, Engine::Mysql | Engine::Mariadb)
            && patience.is_some_and(|patience| patience > brief)
            && let Some(table) = self.altered(&statement.sql)
        {
            self.session.lock_timeout(Some(brief)).await?;
            self.session
                .execute(&format!("LOCK TABLES {table} WRITE"))
                .await?;
            self.session.execute("UNLOCK TABLES").await?;
        }
        self.session.lock_timeout(patience).await?;
        if let Some(before) = &statement.before {
            self.session.execute(before).await?;
        }
        self.session.execute(&statement.sql).await.map(|_| ())
    }

    /// Returns the quoted name of the table of a statement of DDL: the first one that it names.
    fn altered(&self, sql: &str) -> Option<String> {
        let quoted = self.plan.catalog.iter();
        let quoted = quoted.filter_map(|it| quoted_in(self.plan.engine, &it.name, sql));
        quoted.min_by_key(|name| sql.find(name))
    }

    /// Rolls back, and waits before the next attempt if there may be one.
    pub(crate) async fn after(&mut self, stop: Stop, attempt: &mut u32) -> Result<(), Failure> {
        match stop {
            Stop::Fault(fault) => self.again(fault, attempt).await,
            stop @ (Stop::Wrong(_) | Stop::Slow) => {
                self.session.rollback().await?;
                Err(stop.into())
            }
        }
    }

    /// Rolls back, and waits before the next attempt; longer each time, up to two seconds.
    pub(crate) async fn again(&mut self, fault: Fault, attempt: &mut u32) -> Result<(), Failure> {
        if fault.is_lost {
            return Err(fault.into());
        }
        self.session.rollback().await?;
        *attempt += 1;
        if !fault.is_contention {
            return Err(fault.into());
        }
        if *attempt >= self.options.attempts {
            return Err(self.gave_up(*attempt, &fault).await);
        }
        self.summary.retries += 1;
        self.stop_if_interrupted()?;
        let millis = 50 * u64::from((*attempt).min(40));
        tokio::time::sleep(Duration::from_millis(millis)).await;
        Ok(())
    }

    /// The locks could not be had.
    pub(crate) async fn gave_up(&mut self, attempts: u32, fault: &Fault) -> Failure {
        let tables: Vec<(&str, String)> = (self.plan.catalog.iter())
            .filter_map(|it| {
                Some((
                    it.name.as_str(),
                    quoted_in(self.plan.engine, &it.name, &fault.sql)?,
                ))
            })
            .collect();
        let (names, quoted): (Vec<&str>, Vec<String>) = tables.into_iter().unzip();
        let of = match names.is_empty() {
            true => String::new(),
            false => format!(" of {}", names.join(", ")),
        };
        let users = match quoted.is_empty() {
            true => Vec::new(),
            false => self.session.users_of(&quoted).await,
        };
        let users = match users.is_empty() {
            true => String::new(),
            false => format!(" (sessions that use them now: {})", users.join(", ")),
        };
        Failure::could_not(format_args!(
            "others held the locks{of} in {attempts} attempts{users}: {}; go on with {}, when fewer long transactions run, or with a \
             longer --lock-timeout",
            fault.message,
            self.way_on()
        ))
    }

    /// Returns the option by which the next run goes on.
    pub(crate) fn way_on(&self) -> &'static str {
        match self.entry.phase {
            Phase::Steps | Phase::Switched => "--resume",
            Phase::Undo | Phase::Back | Phase::BackMapped => "--rollback",
            Phase::Map | Phase::Mapped | Phase::Finish => "--finish",
        }
    }

    /// Waits until none of the transactions that run now is left.
    async fn wait(&mut self, list: &str) -> Result<(), Failure> {
        let begun: Vec<Option<String>> = self.listed(list).await?;
        let patience = Instant::now();
        let mut is_told = false;
        loop {
            let now = self.listed(list).await?;
            let left = begun.iter().filter(|it| now.contains(it)).count();
            if left == 0 {
                return Ok(());
            }
            self.stop_if_interrupted()?;
            if !is_told && patience.elapsed() > Duration::from_secs(5) {
                is_told = true;
                say(&format!(
                    "waiting for {left} transactions that began before the keys were made"
                ));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn listed(&mut self, list: &str) -> Result<Vec<Option<String>>, Failure> {
        let rows = self.session.rows(list).await?;
        Ok(rows
            .into_iter()
            .filter_map(|row| row.into_iter().next())
            .collect())
    }

    /// Ends the run, if the user wants that.
    pub(crate) fn stop_if_interrupted(&self) -> Result<(), Failure> {
        match self.interrupt.is_set() {
            // The first step is a transaction.
            true if self.plan.engine == Engine::Sqlite && self.entry.step == 0 => {
                Err(Failure::could_not("interrupted; nothing was changed"))
            }
            true => Err(Failure::could_not(format_args!(
                "interrupted before step {} of {}; everything so far is kept: go on with {}{}",
                self.entry.step + 1,
                self.list().len(),
                self.way_on(),
                match self.entry.phase {
                    Phase::Steps if self.entry.position != BETWEEN =>
                        ", or go back with --rollback",
                    _ => "",
                }
            ))),
            false => Ok(()),
        }
    }
}

/// Returns how long a statement may wait for its locks. Others wait behind MySQL's online DDL, too; but a rebuild that does not get
/// its lock is lost, and begins again.
fn patience(
    engine: Engine,
    waits: bool,
    lock_timeout: Duration,
    work: Duration,
) -> Option<Duration> {
    match (waits, engine) {
        (true, Engine::Postgres) => None,
        (true, _) => Some(lock_timeout.max(LONGEST_WAIT.min(work / 10))),
        (false, _) => Some(lock_timeout),
    }
}

/// Returns the quoted name of a table, if a statement has it. A schema and a table may have dots in their names.
fn quoted_in(engine: Engine, title: &str, sql: &str) -> Option<String> {
    let quote = |schema: &str, name: &str| match engine {
        Engine::Postgres => Postgres::quote_table(Some(schema), name),
        _ => MySql::quote_table(Some(schema), name),
    };
    let mut all = title
        .match_indices('.')
        .map(|(at, _)| quote(&title[..at], &title[at + 1..]));
    all.find(|quoted| sql.contains(quoted))
}

/// Tells the user of something that takes long.
pub(crate) fn say(line: &str) {
    // If stderr is closed, there is nobody to tell.
    let _ = writeln!(io::stderr(), "ordid: {}", without_password(line));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rebuild_waits_for_its_lock_by_the_work_that_would_be_lost() {
        let seconds = Duration::from_secs;
        let brief = Duration::from_millis(500);
        for (work, lock_timeout, expected) in [
            (seconds(1), brief, brief),
            (seconds(50), brief, seconds(5)),
            (seconds(3600), brief, seconds(30)),
            (seconds(3600), seconds(60), seconds(60)),
        ] {
            for engine in [Engine::Mysql, Engine::Mariadb] {
                assert_eq!(patience(engine, true, lock_timeout, work), Some(expected));
                assert_eq!(
                    patience(engine, false, lock_timeout, work),
                    Some(lock_timeout)
                );
            }
        }
        assert_eq!(patience(Engine::Postgres, true, brief, seconds(1)), None);
        assert_eq!(
            patience(Engine::Postgres, false, brief, seconds(1)),
            Some(brief)
        );
    }

    #[test]
    fn tables_of_a_statement_are_found_also_with_dots_in_their_names() {
        let of = |engine, title, sql| quoted_in(engine, title, sql);
        let sql = "ALTER TABLE `shop.a`.`orders` ADD x int";
        assert_eq!(
            of(Engine::Mysql, "shop.a.orders", sql).as_deref(),
            Some("`shop.a`.`orders`")
        );
        assert_eq!(of(Engine::Mysql, "shop.a.order", sql), None);
        let sql = "LOCK TABLE \"public\".\"orders\" IN ACCESS EXCLUSIVE MODE";
        assert!(of(Engine::Postgres, "public.orders", sql).is_some());
        assert!(of(Engine::Postgres, "public.lines", sql).is_none());
    }
}
