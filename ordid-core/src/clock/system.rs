//! The operating system's clocks.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Clock, Timestamp};

/// The operating system's wall clock, exact to the millisecond and below.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Timestamp {
        split(SystemTime::now()).0
    }

    #[inline]
    fn now_with_nanos(&self) -> (Timestamp, u32) {
        split(SystemTime::now())
    }
}

/// Returns the millisecond and the nanoseconds since it began.
#[inline]
fn split(time: SystemTime) -> (Timestamp, u32) {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => from_unix(since),
        Err(_) => (Timestamp::MIN, 0),
    }
}

#[inline]
fn from_unix(since: Duration) -> (Timestamp, u32) {
    // Seconds and nanoseconds apart: `as_millis` would go through u128.
    let millis = since
        .as_secs()
        .saturating_mul(1000)
        .saturating_add(u64::from(since.subsec_millis()));
    (
        Timestamp::saturating_from_unix_millis(millis),
        since.subsec_nanos() % 1_000_000,
    )
}

/// The operating system's wall clock as of its last tick: a fraction of the price, and up to one
/// tick (1 to 10 ms, on most systems 4) behind. It follows steps as [`SystemClock`] does.
///
/// Keys rise as strictly as ever, since the counter does that; only the time in them is coarse.
/// Where the system has no such clock (`CLOCK_REALTIME_COARSE`, Linux), it is [`SystemClock`].
#[derive(Debug, Clone, Copy, Default)]
pub struct CoarseClock;

impl Clock for CoarseClock {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[inline]
    fn now(&self) -> Timestamp {
        // No `Duration` between, and one check for all: they would cost as much as the reading.
        const LAST_SECOND: u64 = Timestamp::MAX.as_unix_millis() / 1_000;
        let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
        // Negative seconds, of a time before 1970, are huge ones here; nanoseconds are below 10^9.
        let (seconds, nanos) = (now.tv_sec.cast_unsigned(), now.tv_nsec.cast_unsigned());
        if seconds < LAST_SECOND {
            return Timestamp(seconds * 1_000 + nanos / 1_000_000);
        }
        end_of_time(now.tv_sec < 0)
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn now_with_nanos(&self) -> (Timestamp, u32) {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
        match Duration::try_from(now) {
            Ok(since) => from_unix(since),
            Err(_) => (Timestamp::MIN, 0),
        }
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    #[inline]
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    #[inline]
    fn now_with_nanos(&self) -> (Timestamp, u32) {
        SystemClock.now_with_nanos()
    }
}

/// What a clock beyond the timestamps reads. A function, so that it is not in the way of the others.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[cold]
fn end_of_time(past: bool) -> Timestamp {
    if past { Timestamp::MIN } else { Timestamp::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_coarse_clock_is_at_most_some_ticks_behind() {
        for _ in 0..1_000 {
            let before = SystemClock.now().as_unix_millis();
            let coarse = CoarseClock.now().as_unix_millis();
            let after = SystemClock.now().as_unix_millis();
            let (again, nanos) = CoarseClock.now_with_nanos();
            assert!(again.as_unix_millis() >= coarse && nanos < 1_000_000);
            // A tick is at most 10 ms; a busy machine may deliver it late.
            assert!(
                coarse <= after && coarse + 500 >= before,
                "{before} {coarse} {after}"
            );
        }
    }

    #[test]
    fn nanoseconds_are_those_of_the_millisecond() {
        let time = from_unix(Duration::new(1_645_557_742, 123_456_789));
        assert_eq!(time.0.as_unix_millis(), 1_645_557_742_123);
        assert_eq!(time.1, 456_789);
        assert_eq!(
            split(UNIX_EPOCH - Duration::from_nanos(1)),
            (Timestamp::MIN, 0)
        );
    }
}
