//! The switch: one short time in which nobody else uses the tables.
//!
//! All locks together have to be had within the lock timeout, as others wait behind each of them. Otherwise they are
//! let go, and it tries again later.

use std::time::{Duration, Instant};

use super::{
    apply::{Run, Stop},
    journal::{Entry, Journal, Phase},
    model::{Action, Check, Guard, Plan, Statement},
    session::{Fault, Session},
};
use crate::failure::Failure;

/// The place of a switch that has begun where DDL is no part of a transaction.
pub(crate) const BETWEEN: i64 = -1;

/// How often a statement of a switch that is no transaction is sent while the tables are locked: if they were let go, others
/// would find half of a switch.
const TRIES: u32 = 3;

/// How often the counts under the locks may take longer than others may wait.
const SLOW_CHECKS: u32 = 3;

/// The conditions of a switch.
#[derive(Default)]
struct Tests<'a> {
    guards: &'a [Guard],
    checks: &'a [Check],
}

/// Whether a switch that was cut off has exchanged names.
pub(crate) async fn has_exchanged(session: &mut Session, plan: &Plan) -> Result<bool, Failure> {
    let Some(Action::Switch { statements, .. }) = plan.steps.last().map(|it| &it.action) else {
        return Ok(false);
    };
    for query in statements.iter().filter_map(|it| it.unless.as_ref()) {
        if session.exists(query).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Run<'_> {
    /// Locks the tables, sends the statements, and lets go.
    pub(crate) async fn switch(&mut self, action: &Action, next: &Entry) -> Result<(), Failure> {
        match self.try_often(action, next).await {
            Err(failure) if self.entry.position == BETWEEN && self.entry.phase == Phase::Finish => {
                Err(failure.and(format_args!(
                    "the step is half done: run this plan with {} at once",
                    self.way_on()
                )))
            }
            Err(failure) if self.entry.position == BETWEEN => Err(failure.and(format_args!(
                "the switch is half done: until it is complete, columns may have each other's names, and rows that refer to others are \
                 refused as triggers are missing; run this plan with {} at once",
                self.way_on()
            ))),
            outcome => outcome,
        }
    }

    async fn try_often(&mut self, action: &Action, next: &Entry) -> Result<(), Failure> {
        let Action::Switch {
            lock,
            guards,
            checks,
            repairs,
            statements,
            unlock,
        } = action
        else {
            return Err(Failure::could_not(
                "the plan is damaged: its switch is none",
            ));
        };
        let (mut attempt, mut slow) = (0, 0);
        loop {
            let mut all: Vec<&Statement> = Vec::new();
            let mut tests = Tests { guards, checks };
            if self.entry.position == BETWEEN {
                all.extend(repairs);
                // Some names are exchanged already.
                tests = Tests::default();
            }
            all.extend(statements);
            self.guard(tests.guards).await?;
            let Err(stop) = self.try_switch(lock, &tests, &all, unlock, next).await else {
                return Ok(());
            };
            let is_lost = matches!(&stop, Stop::Fault(fault) if fault.is_lost);
            // Tables that MySQL has locked stay so after a ROLLBACK.
            if !is_lost {
                for statement in unlock {
                    self.session.execute(statement).await?;
                }
            }
            let stop = match stop {
                Stop::Slow => {
                    slow += 1;
                    self.slow(slow)
                }
                stop => stop,
            };
            self.after(stop, &mut attempt).await?;
        }
    }

    /// The counts under the locks took too long: tried again, they may find their pages in memory.
    fn slow(&self, times: u32) -> Stop {
        if times < SLOW_CHECKS.min(self.options.attempts) {
            return Stop::Fault(Fault {
                message: "the counts under the lock took longer than the lock timeout".to_owned(),
                sql: String::new(),
                is_contention: true,
                is_lost: false,
            });
        }
        Stop::Wrong(Failure::could_not(format_args!(
            "the counts under the lock took longer than the lock timeout in {times} attempts, and the locks were let go each time; go \
             on with {}, when the server has less to do, or with a longer --lock-timeout",
            self.way_on()
        )))
    }

    async fn try_switch(
        &mut self,
        lock: &[String],
        tests: &Tests<'_>,
        statements: &[&Statement],
        unlock: &[String],
        next: &Entry,
    ) -> Result<(), Stop> {
        let is_transaction = unlock.is_empty();
        let begun = Instant::now();
        if is_transaction {
            self.session.begin().await?;
        }
        for statement in lock {
            let left = self.options.lock_timeout.saturating_sub(begun.elapsed());
            self.session.lock_timeout(Some(left)).await?;
            self.session.execute(statement).await?;
        }
        let locked = Instant::now();
        self.validate_under_lock(tests.checks, is_transaction)
            .await?;
        // Elsewhere a query of the catalog opens tables, and takes too long for a lock.
        if is_transaction {
            self.guard(tests.guards).await.map_err(Stop::Wrong)?;
        }
        if !is_transaction {
            // From here on it is neither before nor after the switch.
            let mut entry = self.entry.clone();
            entry.position = BETWEEN;
            Journal::of(self.plan)
                .enter(&mut self.session, &entry)
                .await?;
            self.entry = entry;
        }
        let tries = if is_transaction { 1 } else { TRIES };
        for statement in statements {
            self.send(statement, tries).await?;
        }
        Journal::of(self.plan)
            .enter(&mut self.session, next)
            .await?;
        if is_transaction {
            self.session.execute("COMMIT").await?;
        } else {
            // It is complete, whatever becomes of the locks.
            self.entry = next.clone();
        }
        for statement in unlock {
            let unlocked = self.session.execute(statement).await;
            // It must not be tried again from its beginning.
            unlocked.map_err(|fault| Stop::Wrong(fault.into()))?;
        }
        self.summary.switch_millis = Some(locked.elapsed().as_secs_f64() * 1000.0);
        Ok(())
    }

    /// Asks each count, for no longer than others may wait.
    async fn validate_under_lock(
        &mut self,
        checks: &[Check],
        is_transaction: bool,
    ) -> Result<(), Stop> {
        let begun = Instant::now();
        for check in checks {
            let left = self.options.lock_timeout.saturating_sub(begun.elapsed());
            self.session.query_timeout(Some(left)).await?;
            let counted = self.validate(std::slice::from_ref(check)).await;
            // The ROLLBACK of a transaction resets it, too.
            if !is_transaction || counted.is_ok() {
                self.session.query_timeout(None).await?;
            }
            match counted {
                Err(Stop::Fault(fault)) if !fault.is_lost && !fault.is_contention => {
                    return Err(match begun.elapsed() >= self.options.lock_timeout {
                        true => Stop::Slow,
                        false => Stop::Fault(fault),
                    });
                }
                counted => counted?,
            }
        }
        Ok(())
    }

    /// Sends a statement under the locks, unless it has been carried out.
    async fn send(&mut self, statement: &Statement, tries: u32) -> Result<(), Fault> {
        let mut attempt = 1;
        loop {
            match self.send_once(statement).await {
                Err(fault) if !fault.is_lost && attempt < tries => attempt += 1,
                outcome => return outcome,
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn send_once(&mut self, statement: &Statement) -> Result<(), Fault> {
        if let Some(query) = &statement.unless
            && self.session.exists(query).await?
        {
            return Ok(());
        }
        self.session.execute(&statement.sql).await.map(|_| ())
    }
}
