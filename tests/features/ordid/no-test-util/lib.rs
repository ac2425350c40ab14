//! Uses a clock that stands still without the feature of `ordid`.

use ordid::clock::ManualClock;

pub fn clock() -> ManualClock {
    ManualClock::at_unix_millis(1_688_096_058_518)
}
