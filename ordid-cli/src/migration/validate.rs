//! Counts of what is wrong, each of which has to be 0 before the switch.

use super::{apply::Run, model::Check};
use crate::failure::Failure;

impl Run<'_> {
    /// Asks each count.
    ///
    /// # Errors
    ///
    /// One of them is not 0: nothing is switched.
    pub(crate) async fn validate(&mut self, checks: &[Check]) -> Result<(), Failure> {
        for check in checks {
            let wrong = self.session.number(&check.sql).await?;
            if wrong != 0 {
                return Err(Failure::could_not(format_args!(
                    "the validation has found {wrong} {}; the table still has its old keys: find them by `{}`, and go back \
                     with --rollback",
                    check.what, check.sql
                )));
            }
        }
        Ok(())
    }
}
