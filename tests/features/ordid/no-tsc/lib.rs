//! Uses the clock of the processor without the feature of `ordid`.

use ordid::clock::TscClock;

pub fn clock() -> TscClock {
    TscClock::new()
}
