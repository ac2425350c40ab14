//! Time: the milliseconds that go into keys, and the clocks that they are read from.
//!
//! Generators take a [`Clock`], so that tests can use a clock that they set themselves.

use core::{fmt, time::Duration};
#[cfg(feature = "std")]
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{Error, ErrorKind};

#[cfg(feature = "std")]
mod delay;
#[cfg(any(test, feature = "test-util"))]
mod manual;
mod scale;
#[cfg(feature = "std")]
mod system;
#[cfg(feature = "tsc")]
mod tsc;

#[cfg(feature = "std")]
pub use delay::Delay;
// This is exported twice, so that the compiler names the feature if it is missing: it does so only for an item that is
// gated behind the feature alone.
#[cfg(feature = "test-util")]
pub use manual::ManualClock;
#[cfg(all(test, not(feature = "test-util")))]
pub use manual::ManualClock;
pub use scale::{Moment, TimeScale};
#[cfg(feature = "std")]
pub use system::{CoarseClock, SystemClock};
#[cfg(feature = "tsc")]
pub use tsc::TscClock;

/// Milliseconds since 1970-01-01T00:00:00Z, without leap seconds: `unix_ts_ms` of RFC 9562.
///
/// The value has at most 48 bits, which last until the year 10889.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const MIN: Self = Self(0);
    /// The largest 48-bit time, in the year 10889.
    pub const MAX: Self = Self((1 << 48) - 1);

    /// Makes a timestamp from milliseconds since 1970-01-01T00:00:00Z.
    ///
    /// # Errors
    ///
    /// A value of more than 48 bits gives an error that [`is_clock`](Error::is_clock).
    pub fn from_unix_millis(millis: u64) -> Result<Self, Error> {
        if millis > Self::MAX.0 {
            return Err(Error::new(ErrorKind::TimestampRange {
                millis,
                max_millis: Self::MAX.0,
            }));
        }
        Ok(Self(millis))
    }

    /// Makes a timestamp from milliseconds since 1970-01-01T00:00:00Z. Anything later than [`Timestamp::MAX`] becomes
    /// `MAX`.
    pub const fn saturating_from_unix_millis(millis: u64) -> Self {
        if millis > Self::MAX.0 {
            Self::MAX
        } else {
            Self(millis)
        }
    }

    /// Returns the milliseconds since 1970-01-01T00:00:00Z.
    pub const fn as_unix_millis(self) -> u64 {
        self.0
    }

    /// Returns the same instant as the standard library's type.
    #[cfg(feature = "std")]
    pub fn to_system_time(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.0)
    }
}

#[cfg(feature = "std")]
impl Timestamp {
    /// Rounds down to the millisecond.
    #[cfg(any(feature = "chrono", feature = "jiff", feature = "time"))]
    pub(crate) fn from_unix_nanos(nanos: i128) -> Result<Self, Error> {
        match u128::try_from(nanos) {
            Ok(nanos) => {
                Self::from_unix_millis(u64::try_from(nanos / 1_000_000).unwrap_or(u64::MAX))
            }
            Err(_) => Err(Error::new(ErrorKind::BeforeEpoch)),
        }
    }

    /// The error of a time that another crate's type has no room for.
    #[cfg(any(feature = "jiff", feature = "time"))]
    pub(crate) fn too_late_for(self, name: &str) -> Error {
        Error::conversion(format!(
            "timestamp {self} does not fit {name}, whose last year is 9999"
        ))
    }
}

#[cfg(feature = "std")]
impl From<Timestamp> for SystemTime {
    fn from(timestamp: Timestamp) -> Self {
        timestamp.to_system_time()
    }
}

#[cfg(feature = "std")]
impl TryFrom<SystemTime> for Timestamp {
    type Error = Error;

    /// Converts a time, rounded down to the millisecond.
    ///
    /// # Errors
    ///
    /// A time before 1970 or beyond 48 bits gives an error that [`is_clock`](Error::is_clock).
    fn try_from(time: SystemTime) -> Result<Self, Error> {
        match time.duration_since(UNIX_EPOCH) {
            Ok(since) => {
                Self::from_unix_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
            }
            Err(_) => Err(Error::new(ErrorKind::BeforeEpoch)),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timestamp({} ms)", self.0)
    }
}

/// RFC 3339 in UTC, with milliseconds: `2026-11-23T18:02:05.123Z`. RFC 3339 has no form for years after 9999; they
/// are written with a sign, as in ISO 8601: `+10889-08-02T05:31:50.655Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAY: u64 = 24 * 60 * 60 * 1_000;
        let (year, month, day) = civil(self.0 / DAY);
        let of_day = self.0 % DAY;
        let (seconds, millis) = (of_day / 1_000, of_day % 1_000);
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        // Without allocation: lists of millions of keys are written with their times.
        let mut text = *b"+00000-00-00T00:00:00.000Z";
        for (place, mut number) in [
            (1..6, year),
            (7..9, month),
            (10..12, day),
            (13..15, hour),
            (16..18, minute),
            (19..21, second),
            (22..25, millis),
        ] {
            for digit in text[place].iter_mut().rev() {
                *digit = b'0' + u8::try_from(number % 10).expect("a digit is below 10");
                number /= 10;
            }
        }
        // Sign and fifth digit are those of years beyond 9999.
        let begin = if year > 9_999 { 0 } else { 2 };
        f.pad(str::from_utf8(&text[begin..]).expect("digits and marks are ASCII"))
    }
}

/// Returns year, month and day of a day since 1970-01-01.
///
/// Years begin on March 1st, so that a leap day is their last, and are counted in eras of 400. Source: Howard Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
const fn civil(days: u64) -> (u64, u64, u64) {
    const ERA: u64 = 146_097;
    // Since 0000-03-01.
    let days = days + 719_468;
    let (era, day) = (days / ERA, days % ERA);
    let year = (day - day / 1_460 + day / 36_524 - day / (ERA - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // From March, 0, to February, 11; five months have 153 days.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year;
    if month < 10 {
        (year, month + 3, day)
    } else {
        (year + 1, month - 9, day)
    }
}

/// A source of wall-clock time.
///
/// A clock may step back, jump, or stand still. Generators do not trust it; their
/// [`Policy`](crate::generator::Policy) keeps the order.
pub trait Clock: Send + Sync {
    /// Returns the present time. A clock that is set before 1970 returns [`Timestamp::MIN`].
    fn now(&self) -> Timestamp;

    /// Returns the present time and the nanoseconds since its millisecond began, 0 to 999,999. Layouts with fractions
    /// of a millisecond use them. A clock without nanoseconds returns 0.
    fn now_with_nanos(&self) -> (Timestamp, u32) {
        (self.now(), 0)
    }

    /// Waits about this long for the clock to move on. Generators call it when their policy waits.
    ///
    /// Without the feature `std`, this method returns at once unless the clock implements it. A generator tries only
    /// a limited number of times, and then returns an error: at least a hundred times for a full counter, and once
    /// for each millisecond of `max` for a clock that stepped back.
    fn pause(&self, duration: Duration) {
        #[cfg(feature = "std")]
        std::thread::sleep(duration);
        #[cfg(not(feature = "std"))]
        let _ = duration;
    }
}

/// A pointer to a clock is a clock.
macro_rules! clock_behind {
    ($pointer:ty) => {
        impl<C: Clock + ?Sized> Clock for $pointer {
            fn now(&self) -> Timestamp {
                (**self).now()
            }

            fn now_with_nanos(&self) -> (Timestamp, u32) {
                (**self).now_with_nanos()
            }

            fn pause(&self, duration: Duration) {
                (**self).pause(duration);
            }
        }
    };
}

clock_behind!(&C);
#[cfg(feature = "std")]
clock_behind!(std::sync::Arc<C>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_end_at_48_bits() {
        assert_eq!(
            Timestamp::from_unix_millis((1 << 48) - 1).unwrap(),
            Timestamp::MAX
        );
        let error = Timestamp::from_unix_millis(1 << 48).unwrap_err();
        assert!(error.is_clock());
        assert_eq!(
            error.to_string(),
            "timestamp 281474976710656 ms does not fit: the layout ends at 281474976710655 ms \
             since 1970-01-01"
        );
        assert_eq!(
            Timestamp::saturating_from_unix_millis(u64::MAX),
            Timestamp::MAX
        );
    }

    #[test]
    fn a_timestamp_is_printed_as_rfc_3339() {
        let text = |millis| Timestamp::saturating_from_unix_millis(millis).to_string();
        assert_eq!(text(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(text(951_782_400_001), "2000-02-29T00:00:00.001Z");
        assert_eq!(text(4_107_542_399_999), "2100-02-28T23:59:59.999Z");
        assert_eq!(text(u64::MAX), "+10889-08-02T05:31:50.655Z");
        let padded = format!("{:>26}|{:.10}", Timestamp::MIN, Timestamp::MIN);
        assert_eq!(padded, "  1970-01-01T00:00:00.000Z|1970-01-01");
    }

    proptest::proptest! {
        #[test]
        fn days_are_those_of_another_library(millis in 0_u64..253_402_300_800_000) {
            let time = jiff::Timestamp::from_millisecond(millis.cast_signed()).unwrap();
            let expected = time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
            proptest::prop_assert_eq!(Timestamp(millis).to_string(), expected);
        }
    }

    #[test]
    fn system_times_round_down_to_the_millisecond() {
        let time = UNIX_EPOCH + Duration::from_micros(1_645_557_742_000_999);
        let timestamp = Timestamp::try_from(time).unwrap();
        assert_eq!(timestamp.as_unix_millis(), 1_645_557_742_000);
        assert_eq!(
            timestamp.to_system_time(),
            UNIX_EPOCH + Duration::from_millis(1_645_557_742_000)
        );
        assert_eq!(SystemTime::from(timestamp), timestamp.to_system_time());
        assert!(Timestamp::try_from(UNIX_EPOCH - Duration::from_secs(1)).is_err());
    }
}
