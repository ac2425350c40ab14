//! Counts of what is wrong, each of which has to be 0 before the switch.

use super::{apply::Run, model::Check};
use crate::{engine::Engine, failure::Failure};

impl Run<'_> {
    /// Asks each count.
    ///
    /// # Errors
    ///
    /// One of them is not 0, or no number: nothing is switched.
    pub(crate) async fn validate(&mut self, checks: &[Check]) -> Result<(), Failure> {
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
            return Err(Failure::could_not(match self.plan.engine {
                // All of it is one transaction.
                Engine::Sqlite => format!(
                    "the validation has found {wrong} {what}; nothing was changed: find them by `{find}`, correct them, and go on \
                     with {}",
                    self.way_on()
                ),
                _ => format!(
                    "the validation has found {wrong} {what}; the table still has its old keys: find them by `{find}`, and go \
                     back with --rollback"
                ),
            }));
        }
        Ok(())
    }

    /// Asks one count.
    ///
    /// # Errors
    ///
    /// The answer is no number.
    pub(crate) async fn count(&mut self, check: &Check) -> Result<i64, Failure> {
        let value = self.session.value(&check.sql).await?;
        let number = value.as_deref().and_then(|text| text.parse().ok());
        number.ok_or_else(|| {
            Failure::could_not(format_args!(
                "the count of {} is no number but {}: `{}`",
                check.what,
                value.as_deref().unwrap_or("NULL"),
                check.sql
            ))
        })
    }
}
