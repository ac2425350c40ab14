//! Counts of what is wrong, each of which has to be 0 before the switch, and before the way back.

use super::{
    apply::{Run, Stop},
    journal::Phase,
    model::{Action, Check, Guard},
    session::Session,
    switch::BETWEEN,
};
use crate::{engine::Engine, failure::Failure};

/// Asks for what must not be there.
///
/// # Errors
///
/// Something of it is there.
pub(crate) async fn guard(session: &mut Session, guard: &Guard) -> Result<(), Failure> {
    let rows = session.rows(&guard.sql).await?;
    if rows.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = rows.into_iter().flatten().flatten().collect();
    Err(Failure::wrong(format_args!(
        "{} {}; {}",
        names.join(", "),
        guard.what,
        guard.advice
    )))
}

impl Run<'_> {
    /// Asks each count.
    ///
    /// # Errors
    ///
    /// One of them is not 0, or no number: nothing is switched.
    pub(crate) async fn validate(&mut self, checks: &[Check]) -> Result<(), Stop> {
        for check in checks {
            let wrong = self.count(check).await?;
            if wrong == 0 {
                continue;
            }
            let what = match (wrong, check.what.strip_prefix("rows ")) {
                (1, Some(rest)) => format!("row {rest}"),
                _ => check.what.clone(),
            };
            let find = check.find.as_ref().unwrap_or(&check.sql);
            return Err(Stop::Wrong(Failure::could_not(match self.plan.engine {
                // All of it is one transaction.
                Engine::Sqlite => format!(
                    "the validation has found {wrong} {what}; nothing was changed: find them by `{find}`, correct them, and go on \
                     with {}",
                    self.way_on()
                ),
                _ => {
                    let advice = match self.entry.phase {
                        Phase::Back | Phase::BackMapped => {
                            "the table keeps its new keys: correct the rows and repeat --rollback, or end the move with --finish"
                        }
                        _ => {
                            "the table still has its old keys: correct the rows and go on with --resume, or go back with --rollback"
                        }
                    };
                    format!(
                        "the validation has found {wrong} {what}; find them by `{find}`; {advice}"
                    )
                }
            })));
        }
        Ok(())
    }

    /// Asks one count.
    ///
    /// # Errors
    ///
    /// The answer is no number.
    pub(crate) async fn count(&mut self, check: &Check) -> Result<i64, Stop> {
        let value = self.session.value_of_all_rows(&check.sql).await?;
        let number = value.as_deref().and_then(|text| text.parse().ok());
        number.ok_or_else(|| {
            Stop::Wrong(Failure::could_not(format_args!(
                "the count of {} is no number but {}: `{}`",
                check.what,
                value.as_deref().unwrap_or("NULL"),
                check.sql
            )))
        })
    }

    /// Asks for what must not be there.
    ///
    /// # Errors
    ///
    /// Something of it is there: nothing is changed.
    pub(crate) async fn guard(&mut self, guards: &[Guard]) -> Result<(), Failure> {
        for it in guards {
            guard(&mut self.session, it).await?;
        }
        Ok(())
    }

    /// Counts again before a switch, if an earlier run has counted: rows may have been written since by whom no trigger sees.
    pub(crate) async fn validate_again(&mut self) -> Result<(), Failure> {
        let plan = self.plan;
        let is_at_switch =
            self.entry.phase == Phase::Steps && self.entry.step + 1 == plan.steps.len();
        if !is_at_switch || self.entry.position == BETWEEN || self.options.stops_before_switch {
            return Ok(());
        }
        for step in &plan.steps {
            if let Action::Check { checks, guards } = &step.action {
                self.progress.begin(&step.title(), None);
                self.guard(guards).await?;
                self.validate(checks).await?;
            }
        }
        Ok(())
    }
}
