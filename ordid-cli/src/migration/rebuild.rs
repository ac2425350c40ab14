//! The rebuild of the tables of a SQLite file, in one transaction.
//!
//! The journal is part of the transaction, too. So whatever ends it leaves the file as it was.

use std::time::Instant;

use super::{
    apply::Run,
    backfill::KeyMaker,
    journal::{Entry, Journal, Phase},
    model::{Action, Check, Table, difference},
};
use crate::failure::Failure;

impl Run<'_> {
    /// Rebuilds the tables, or leaves them as they are.
    pub(crate) async fn rebuild(&mut self, action: &Action, next: &Entry) -> Result<(), Failure> {
        let Action::Rebuild { before, after, .. } = action else {
            return Err(Failure::could_not(
                "the plan is damaged: its rebuild is none",
            ));
        };
        for statement in before {
            self.session.execute(statement).await?;
        }
        let mut attempt = 0;
        let begun = loop {
            self.session
                .lock_timeout(Some(self.options.lock_timeout))
                .await?;
            match self.session.begin().await {
                Ok(()) => break Instant::now(),
                Err(fault) => self.again(fault, &mut attempt).await?,
            }
        };
        if let Err(failure) = self.fill_and_rebuild(action, next).await {
            // Without it the tables are as they were, too.
            let _ = self.session.rollback().await;
            return Err(failure);
        }
        self.summary.switch_millis = Some(begun.elapsed().as_secs_f64() * 1000.0);
        for statement in after {
            self.session.execute(statement).await?;
        }
        Ok(())
    }

    async fn fill_and_rebuild(&mut self, action: &Action, next: &Entry) -> Result<(), Failure> {
        let Action::Rebuild {
            expected,
            counts,
            read,
            row,
            write,
            map,
            statements,
            checks,
            ..
        } = action
        else {
            return Ok(());
        };
        self.check_journal().await?;
        self.check_tables(expected).await?;
        // Dropping a table would delete the rows that refer to it.
        let enforced = self.session.value("PRAGMA foreign_keys").await?;
        if enforced.as_deref() != Some("0") {
            return Err(Failure::could_not(
                "foreign keys are enforced inside of the rebuild, which would delete rows; nothing was changed: the plan has to \
                 send `PRAGMA foreign_keys = OFF` before it",
            ));
        }
        self.validate(checks).await?;
        let old_counts = self.counts(counts).await?;
        for statement in map {
            self.session.execute(statement).await?;
        }
        if !read.is_empty() {
            self.fill(read, row, write).await?;
        }
        for statement in statements {
            self.stop_if_interrupted()?;
            self.session.execute(statement).await?;
        }
        self.validate(checks).await?;
        let new_counts = self.counts(counts).await?;
        for (check, (old, new)) in counts.iter().zip(old_counts.iter().zip(&new_counts)) {
            if old != new {
                return Err(Failure::could_not(format_args!(
                    "{}: {old} before, {new} after the rebuild; nothing was changed",
                    check.what
                )));
            }
        }
        let journal = Journal::of(self.plan);
        if self.entry.phase == Phase::Steps {
            journal.create(&mut self.session, next).await?;
        }
        journal.enter(&mut self.session, next).await?;
        self.commit().await
    }

    /// Another run may have been faster: here it is known, as nobody else writes.
    async fn check_journal(&mut self) -> Result<(), Failure> {
        let found = Journal::of(self.plan).read(&mut self.session).await?;
        let place = found.map(|it| (it.phase, it.step));
        let is_mine = match (self.entry.phase, self.entry.step) {
            (Phase::Steps, 0) => matches!(place, None | Some((Phase::Steps, 0))),
            (Phase::Back, 0) => {
                matches!(place, Some((Phase::Switched, _) | (Phase::Back, 0)))
            }
            mine => place == Some(mine),
        };
        match is_mine {
            true => Ok(()),
            false => Err(Failure::wrong("another run of this plan has been faster")),
        }
    }

    /// Refuses tables that have changed: what is not in the plan would be lost.
    async fn check_tables(&mut self, expected: &str) -> Result<(), Failure> {
        let now = super::describe(&mut self.session, self.plan).await?;
        if self.entry.phase == Phase::Steps {
            return match difference(&self.plan.catalog, &now) {
                None => Ok(()),
                Some(difference) => Err(Failure::wrong(format_args!(
                    "the tables have changed since the plan was made: {difference}; make a new plan"
                ))),
            };
        }
        let mut then: Vec<Table> = Vec::new();
        for row in self.session.rows(expected).await? {
            let mut cells = row.into_iter().map(Option::unwrap_or_default);
            let (name, piece) = (
                cells.next().unwrap_or_default(),
                cells.next().unwrap_or_default(),
            );
            match then.iter_mut().find(|it| it.name == name) {
                Some(table) => table.definition.push(piece),
                None => then.push(Table {
                    name,
                    definition: vec![piece],
                }),
            }
        }
        match difference(&then, &now) {
            None => Ok(()),
            Some(difference) => Err(Failure::wrong(format_args!(
                "the tables have changed since the move, and the old ones would not have that: {difference}; undo the change and \
                 go back with --rollback, or keep the new keys with --finish"
            ))),
        }
    }

    async fn counts(&mut self, counts: &[Check]) -> Result<Vec<i64>, Failure> {
        let mut all = Vec::with_capacity(counts.len());
        for check in counts {
            all.push(self.count(check).await?);
        }
        Ok(all)
    }

    /// Makes the keys of the map.
    async fn fill(&mut self, read: &str, row: &str, write: &str) -> Result<(), Failure> {
        let mut maker = KeyMaker::new(self.plan, "")?;
        let mut after = 0;
        loop {
            self.stop_if_interrupted()?;
            let read = read
                .replace("{after}", &after.to_string())
                .replace("{chunk}", &self.options.chunk.to_string());
            let found = self.session.rows(&read).await?;
            let (rows, last) = maker.rows(&found, row)?;
            let Some(last) = last else {
                return Ok(());
            };
            self.session
                .execute(&write.replace("{rows}", &rows.join(",")))
                .await?;
            self.summary.rows += u64::try_from(rows.len()).unwrap_or(0);
            self.progress.add(u64::try_from(rows.len()).unwrap_or(0));
            after = last;
        }
    }

    /// Commits. Without WAL a COMMIT waits for those who read, and may be sent again.
    async fn commit(&mut self) -> Result<(), Failure> {
        let mut attempt = 0;
        loop {
            let fault = match self.session.execute("COMMIT").await {
                Ok(_) => return Ok(()),
                Err(fault) if !fault.is_contention => return Err(fault.into()),
                Err(fault) => fault,
            };
            attempt += 1;
            if attempt >= self.options.attempts {
                return Err(self.gave_up(attempt, &fault).await);
            }
            self.summary.retries += 1;
            self.stop_if_interrupted()?;
        }
    }
}
