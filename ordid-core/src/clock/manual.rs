//! A clock for tests.

use std::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    time::Duration,
};

use super::{Clock, Timestamp};

/// A clock that a test sets by hand. [`pause`](Clock::pause) does not sleep; it moves the clock on instead.
///
/// # Example
///
/// ```
/// use ordid_core::clock::{Clock, ManualClock, Timestamp};
///
/// let clock = ManualClock::at_unix_millis(1_000);
/// clock.set_unix_millis(900); // an NTP step
/// assert_eq!(clock.now().as_unix_millis(), 900);
/// ```
#[derive(Debug, Default)]
pub struct ManualClock {
    millis: AtomicU64,
    nanos: AtomicU32,
    frozen: AtomicBool,
}

impl ManualClock {
    /// Makes a clock that reads this many milliseconds since 1970.
    pub const fn at_unix_millis(millis: u64) -> Self {
        Self {
            millis: AtomicU64::new(millis),
            nanos: AtomicU32::new(0),
            frozen: AtomicBool::new(false),
        }
    }

    /// Sets the clock, forwards or backwards, to this many milliseconds since 1970.
    pub fn set_unix_millis(&self, millis: u64) {
        self.millis.store(millis, Ordering::SeqCst);
    }

    /// Sets the nanoseconds since the millisecond began, 0 to 999,999.
    pub fn set_nanos(&self, nanos: u32) {
        self.nanos.store(nanos, Ordering::SeqCst);
    }

    /// Stops the clock: from now on `pause` does not move it.
    pub fn freeze(&self) {
        self.frozen.store(true, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::saturating_from_unix_millis(self.millis.load(Ordering::SeqCst))
    }

    fn now_with_nanos(&self) -> (Timestamp, u32) {
        (self.now(), self.nanos.load(Ordering::SeqCst))
    }

    fn pause(&self, duration: Duration) {
        if !self.frozen.load(Ordering::SeqCst) {
            let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
            self.millis.fetch_add(millis, Ordering::SeqCst);
        }
    }
}
