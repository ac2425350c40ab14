//! The switch: one short time in which nobody else uses the tables.
//!
//! All locks together have to be had within the lock timeout, as others wait behind each of them. Otherwise they are
//! let go, and it tries again later.

use std::time::Instant;

use super::{
    apply::{Run, Stop},
    journal::{Entry, Journal},
    model::{Action, Check, Guard, Plan, Statement},
    session::Session,
};
use crate::failure::Failure;

/// The place of a switch that has begun where DDL is no part of a transaction.
pub(crate) const BETWEEN: i64 = -1;

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
        let mut attempt = 0;
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
            self.after(stop, &mut attempt).await?;
        }
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
        self.validate_under_lock(tests.checks, locked).await?;
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
        for statement in statements {
            if let Some(query) = &statement.unless
                && self.session.exists(query).await?
            {
                continue;
            }
            self.session.execute(&statement.sql).await?;
        }
        Journal::of(self.plan)
            .enter(&mut self.session, next)
            .await?;
        if is_transaction {
            self.session.execute("COMMIT").await?;
        }
        for statement in unlock {
            self.session.execute(statement).await?;
        }
        self.summary.switch_millis = Some(locked.elapsed().as_secs_f64() * 1000.0);
        Ok(())
    }
}
