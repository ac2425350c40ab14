//! Blocks of numbers, reserved outside of the transaction that uses them.
//!
//! Each reservation is one statement on a connection of its own, committed by itself: a rollback of the
//! business transaction leaves a gap and gives nothing back. A reservation whose answer was lost is
//! forgotten, and the next one takes new numbers.

use std::sync::atomic::{AtomicI64, Ordering};

use ordid_core::{Error, coordination::CoordinationFailure};

mod counter;
mod sequence;
#[cfg(test)]
mod tests;
mod tickets;

pub use counter::SqlCounter;
pub use sequence::PgSequence;
pub use tickets::{TicketChoice, TicketForm, Tickets64};

/// The highest number that a counter is known to have given: a database that was restored, or fell over to a
/// copy that lagged behind, gives lower ones.
///
/// Where the engine can, the statement itself leaves a counter alone that is below: moved on with each refused call,
/// it would come to numbers that others have.
#[derive(Debug, Default)]
struct Seen(AtomicI64);

impl Seen {
    /// What was given before a reservation is sent: whatever it gets has to be above.
    fn before(&self) -> i64 {
        self.0.load(Ordering::Acquire)
    }

    /// Takes in what it got.
    fn check(&self, before: i64, first: i64, last: i64, what: &str) -> Result<(), Error> {
        if first <= before {
            return Err(went_back(what, before));
        }
        self.0.fetch_max(last, Ordering::AcqRel);
        Ok(())
    }
}

/// The error of a counter that is below a number that it has given.
fn went_back(what: &str, before: i64) -> Error {
    Error::coordination(
        CoordinationFailure::CeilingRegressed,
        format!(
            "{what} has given {before}, and is below that now: the database was restored from a copy, or fell \
             over to one that lagged behind; raise the counter above all numbers that were used"
        ),
    )
}
