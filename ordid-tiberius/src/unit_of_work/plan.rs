//! What would be sent, without sending it.

use ordid_core::unit_of_work::FlushPlan;

use super::{UnitOfWork, statement::Statements};
use crate::{error::Error, flavour::Flavour};

impl<D: Flavour> UnitOfWork<D> {
    /// Returns what a flush would send: the tables in their order, parents first, and the statements
    /// of each, with their text. No server is asked, and nothing is taken out.
    ///
    /// Inserts come first. Where rows refer to each other in a circle, one of them is inserted with
    /// NULL there, and [`Action::FixUp`](ordid_core::unit_of_work::Action::FixUp) sets it afterwards.
    /// Then come updates, and at last deletes, children first.
    ///
    /// Where SQL Server takes a table's rows by bulk load, [`flush`](Self::flush) sends that in the
    /// place of the inserts: only the server can tell.
    ///
    /// # Errors
    ///
    /// What can be known to fail without a server: a key that was added twice, tables or rows that
    /// refer to each other in a circle that cannot be broken, a row with more columns than a statement
    /// takes. All [`is_plan`](crate::FlushError::is_plan).
    pub fn plan(&mut self) -> Result<FlushPlan, Error> {
        let plan = self.planned()?;
        let mut statements = Statements::new(&self.batches);
        Ok(FlushPlan::new(
            &plan,
            &self.batches.tables(),
            None,
            |_| false,
            |chunk| statements.text::<D>(chunk),
        ))
    }
}
