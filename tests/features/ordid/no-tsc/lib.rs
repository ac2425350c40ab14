//! The clock of the processor, and `ordid` does not have the feature.

use ordid::clock::TscClock;

pub fn clock() -> TscClock {
    TscClock::new()
}
