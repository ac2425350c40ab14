//! The operating system's clocks.

#[cfg(not(any(target_os = "linux", target_os = "android")))]
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[cfg(any(target_os = "linux", target_os = "android"))]
use rustix::time::{ClockId, Timespec, clock_gettime};

use super::{Clock, Timestamp};

/// The operating system's wall clock, with the resolution that the system gives.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
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

/// What `SystemTime` asks too, without its two calls and its check between.
#[cfg(any(target_os = "linux", target_os = "android"))]
impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Timestamp {
        with_nanos(clock_gettime(ClockId::Realtime)).0
    }

    #[inline]
    fn now_with_nanos(&self) -> (Timestamp, u32) {
        with_nanos(clock_gettime(ClockId::Realtime))
    }
}

/// Returns the millisecond and the nanoseconds since it began.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[inline]
fn split(time: SystemTime) -> (Timestamp, u32) {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => from_unix(since),
        Err(_) => (Timestamp::MIN, 0),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
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

/// Returns the millisecond and the nanoseconds since it began.
// No `Duration` between, and one check for all: they would cost as much as a coarse reading.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline]
fn with_nanos(now: Timespec) -> (Timestamp, u32) {
    const LAST_SECOND: u64 = Timestamp::MAX.as_unix_millis() / 1_000;
    // Negative seconds, of a time before 1970, are huge ones here.
    let seconds = now.tv_sec.cast_unsigned();
    // Of 32 bits, whose division is a shorter multiplication.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "below 10^9"
    )]
    let nanos = now.tv_nsec as u32;
    if seconds < LAST_SECOND {
        let millis = Timestamp(seconds * 1_000 + u64::from(nanos / 1_000_000));
        return (millis, nanos % 1_000_000);
    }
    (end_of_time(now.tv_sec < 0), 0)
}

/// The operating system's wall clock as of its last tick. Reading it costs a fraction of [`SystemClock`], but it is
/// up to one tick behind (1 to 10 ms, on most systems 4). It follows steps as [`SystemClock`] does.
///
/// Keys rise as strictly as with any clock; only the time in them is coarser. On systems without
/// `CLOCK_REALTIME_COARSE`, which is all but Linux and Android, it reads [`SystemClock`].
#[derive(Debug, Clone, Copy, Default)]
pub struct CoarseClock;

impl Clock for CoarseClock {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[inline]
    fn now(&self) -> Timestamp {
        with_nanos(clock_gettime(ClockId::RealtimeCoarse)).0
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[inline]
    fn now_with_nanos(&self) -> (Timestamp, u32) {
        with_nanos(clock_gettime(ClockId::RealtimeCoarse))
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
    use std::time::UNIX_EPOCH;

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
    fn the_clocks_agree_with_the_standard_library() {
        for _ in 0..1_000 {
            let unix_nanos = |(millis, nanos): (Timestamp, u32)| {
                assert!(nanos < 1_000_000);
                u128::from(millis.as_unix_millis()) * 1_000_000 + u128::from(nanos)
            };
            let std_nanos = || UNIX_EPOCH.elapsed().unwrap().as_nanos();
            let before = std_nanos();
            let read = unix_nanos(SystemClock.now_with_nanos());
            let after = std_nanos();
            assert!(before <= read && read <= after, "{before} {read} {after}");
            let millis = u128::from(SystemClock.now().as_unix_millis());
            assert!(after / 1_000_000 <= millis && millis <= std_nanos() / 1_000_000);
        }
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[test]
    fn nanoseconds_count_from_the_start_of_the_millisecond() {
        let at = |tv_sec, tv_nsec| {
            let (millis, nanos) = with_nanos(Timespec { tv_sec, tv_nsec });
            (millis.as_unix_millis(), nanos)
        };
        assert_eq!(at(1_645_557_742, 123_456_789), (1_645_557_742_123, 456_789));
        assert_eq!(at(0, 999_999_999), (999, 999_999));
        let end = Timestamp::MAX.as_unix_millis();
        let last_second = i64::try_from(end / 1_000).unwrap();
        assert_eq!(at(last_second - 1, 0).0, end / 1_000 * 1_000 - 1_000);
        // From here on the last millisecond, and before 1970 the first.
        assert_eq!(at(last_second, 0), (end, 0));
        assert_eq!(at(i64::MAX, 0), (end, 0));
        assert_eq!(at(-1, 999_999_999), (0, 0));
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    #[test]
    fn nanoseconds_count_from_the_start_of_the_millisecond() {
        let time = from_unix(Duration::new(1_645_557_742, 123_456_789));
        assert_eq!(time.0.as_unix_millis(), 1_645_557_742_123);
        assert_eq!(time.1, 456_789);
        assert_eq!(
            split(UNIX_EPOCH - Duration::from_nanos(1)),
            (Timestamp::MIN, 0)
        );
    }
}
