//! A clock that stands still, and `ordid` does not have the feature.

use ordid::clock::ManualClock;

pub fn clock() -> ManualClock {
    ManualClock::at_unix_millis(1_688_096_058_518)
}
