//! The switch: one short time in which nobody else uses the tables.
//!
//! All locks together have to be had within the lock timeout, as others wait behind each of them. Otherwise they are
//! let go, and it tries again later.

use std::time::Instant;

use super::{
    apply::Run,
    journal::{Entry, Journal},
    model::{Action, Statement},
    session::Fault,
};
use crate::failure::Failure;

/// The place of a switch that has begun where DDL is no part of a transaction.
pub(crate) const BETWEEN: i64 = -1;

impl Run<'_> {
    /// Locks the tables, sends the statements, and lets go.
    pub(crate) async fn switch(&mut self, action: &Action, next: &Entry) -> Result<(), Failure> {
        let Action::Switch {
            lock,
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
            if self.entry.position == BETWEEN {
                all.extend(repairs);
            }
            all.extend(statements);
            match self.try_switch(lock, &all, unlock, next).await {
                Ok(()) => return Ok(()),
                Err(fault) => {
                    // Tables that MySQL has locked stay so after a ROLLBACK.
                    if !fault.is_lost {
                        for statement in unlock {
                            self.session.execute(statement).await?;
                        }
                    }
                    self.again(fault, &mut attempt).await?;
                }
            }
        }
    }

    async fn try_switch(
        &mut self,
        lock: &[String],
        statements: &[&Statement],
        unlock: &[String],
        next: &Entry,
    ) -> Result<(), Fault> {
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
        let write = Journal::of(self.plan).write(next);
        self.session.execute(&write).await?;
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
