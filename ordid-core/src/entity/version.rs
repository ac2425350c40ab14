//! Versions of rows, which show whether a row has changed since it was read.

use alloc::string::{String, ToString as _};

/// The type of a column that shows whether a row has changed since it was read: `#[ordid(version)]`.
///
/// A unit of work updates and deletes a row only if it still has the version that it was read with. An update writes
/// the [`next`](Self::next) version. Integers count by one, and go from their greatest value to their least. A
/// timestamp becomes the system clock's time in whole microseconds, which databases keep, or one microsecond more
/// than before, whichever is later.
///
/// A type of your own can be a version, too.
///
/// # Example
///
/// ```
/// use ordid_core::Version;
///
/// assert_eq!(7_i64.next(), 8);
/// assert_eq!(i32::from_number(7_i32.to_number()), 7);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the version of a row",
    label = "not the type of a version",
    note = "a version is an integer (`i16` to `i64`, `u16` to `u64`), or a timestamp of the crates `chrono` or `time`, \
            with the feature of this name of `ordid`"
)]
pub trait Version: Sized {
    /// Whether [`next`](Self::next) reads a clock, so that two calls return different versions. A row that every
    /// shard has a copy of cannot be updated then, because each copy would get another version.
    const READS_CLOCK: bool = false;

    /// Returns the version that an update writes. It differs from this one.
    #[must_use]
    fn next(&self) -> Self;

    /// Returns a number that is different for each version.
    fn to_number(&self) -> i128;

    /// Returns the version whose number this is. The number comes from [`to_number`](Self::to_number).
    fn from_number(number: i128) -> Self;

    /// Returns the version as text, for messages.
    fn to_text(&self) -> String;
}

macro_rules! integers {
    ($($integer:ty)+) => {
        $(impl Version for $integer {
            fn next(&self) -> Self {
                self.wrapping_add(1)
            }

            fn to_number(&self) -> i128 {
                i128::from(*self)
            }

            fn from_number(number: i128) -> Self {
                // It was of this type.
                Self::try_from(number).unwrap_or_default()
            }

            fn to_text(&self) -> String {
                self.to_string()
            }
        })+
    };
}

integers!(i16 i32 i64 u16 u32 u64);

#[cfg(any(feature = "chrono", feature = "time"))]
mod timestamps {
    use std::time::{SystemTime, UNIX_EPOCH};

    const MICROSECOND: i128 = 1_000;

    /// Returns the nanoseconds since 1970 of the version behind the one that has these.
    pub(super) fn next(nanos: i128) -> i128 {
        let now = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i128::try_from(since.as_nanos()).unwrap_or(i128::MAX),
            Err(_) => 0,
        };
        let whole = |nanos: i128| nanos.div_euclid(MICROSECOND) * MICROSECOND;
        whole(now).max(whole(nanos) + MICROSECOND)
    }
}

#[cfg(feature = "chrono")]
mod chrono {
    use alloc::string::{String, ToString as _};
    use chrono::{DateTime, NaiveDateTime, Utc};

    use super::{Version, timestamps};

    const SECOND: i128 = 1_000_000_000;

    impl Version for DateTime<Utc> {
        const READS_CLOCK: bool = true;

        fn next(&self) -> Self {
            Self::from_number(timestamps::next(self.to_number()))
        }

        fn to_number(&self) -> i128 {
            i128::from(self.timestamp()) * SECOND + i128::from(self.timestamp_subsec_nanos())
        }

        fn from_number(number: i128) -> Self {
            let seconds = i64::try_from(number.div_euclid(SECOND)).ok();
            let nanos = u32::try_from(number.rem_euclid(SECOND)).unwrap_or_default();
            let time = seconds.and_then(|seconds| Self::from_timestamp(seconds, nanos));
            time.unwrap_or(Self::MAX_UTC)
        }

        fn to_text(&self) -> String {
            self.to_string()
        }
    }

    impl Version for NaiveDateTime {
        const READS_CLOCK: bool = true;

        fn next(&self) -> Self {
            self.and_utc().next().naive_utc()
        }

        fn to_number(&self) -> i128 {
            self.and_utc().to_number()
        }

        fn from_number(number: i128) -> Self {
            DateTime::<Utc>::from_number(number).naive_utc()
        }

        fn to_text(&self) -> String {
            self.to_string()
        }
    }
}

#[cfg(feature = "time")]
mod time {
    use alloc::string::{String, ToString as _};
    use time::{OffsetDateTime, PrimitiveDateTime, UtcOffset};

    use super::{Version, timestamps};

    /// In a number, the seconds of the offset are counted by this. The nanoseconds of all times are below its half.
    const OFFSET: i128 = 1 << 80;

    impl Version for OffsetDateTime {
        const READS_CLOCK: bool = true;

        fn next(&self) -> Self {
            Self::from_number(timestamps::next(self.unix_timestamp_nanos()))
        }

        /// Returns the nanoseconds since 1970 and, above them, the offset: SQLite compares the text of both.
        fn to_number(&self) -> i128 {
            let offset = i128::from(self.offset().whole_seconds());
            offset * OFFSET + self.unix_timestamp_nanos()
        }

        fn from_number(number: i128) -> Self {
            let offset = (number + OFFSET / 2).div_euclid(OFFSET);
            let time = Self::from_unix_timestamp_nanos(number - offset * OFFSET);
            let time = time.unwrap_or_else(|_| PrimitiveDateTime::MAX.assume_utc());
            let offset = i32::try_from(offset).ok();
            let offset = offset.and_then(|it| UtcOffset::from_whole_seconds(it).ok());
            offset.map_or(time, |offset| time.to_offset(offset))
        }

        fn to_text(&self) -> String {
            self.to_string()
        }
    }

    impl Version for PrimitiveDateTime {
        const READS_CLOCK: bool = true;

        fn next(&self) -> Self {
            Self::from_number(timestamps::next(self.to_number()))
        }

        fn to_number(&self) -> i128 {
            self.assume_utc().to_number()
        }

        fn from_number(number: i128) -> Self {
            let time = OffsetDateTime::from_number(number);
            Self::new(time.date(), time.time())
        }

        fn to_text(&self) -> String {
            self.to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next_is_another<V: Version + PartialEq + core::fmt::Debug>(versions: &[V]) {
        for version in versions {
            let next = version.next();
            assert_ne!(&next, version);
            for it in [version, &next] {
                assert_eq!(&V::from_number(it.to_number()), it);
            }
        }
    }

    #[test]
    fn integers_count_by_one_and_begin_again() {
        next_is_another(&[0_i16, 7, -1, i16::MAX]);
        next_is_another(&[0, u64::MAX - 1, u64::MAX]);
        next_is_another(&[i64::MIN, i64::MAX]);
        assert_eq!([1_i32.next(), i32::MAX.next()], [2, i32::MIN]);
        assert_eq!(u32::MAX.next(), 0);
        assert_eq!(u64::MAX.to_text(), "18446744073709551615");
    }

    #[cfg(feature = "chrono")]
    #[test]
    fn timestamps_of_chrono_rise_by_whole_microseconds() {
        use ::chrono::{DateTime, TimeDelta, Utc};

        let now = Utc::now();
        let late = now + TimeDelta::days(1_000);
        next_is_another(&[now, late, DateTime::UNIX_EPOCH - TimeDelta::nanoseconds(1)]);
        next_is_another(&[now.naive_utc()]);
        assert!(now.next() > now);
        let next = late.next();
        assert_eq!(next.timestamp_subsec_nanos() % 1_000, 0);
        assert!(next > late && next <= late + TimeDelta::microseconds(1));
        assert!((DateTime::UNIX_EPOCH.next() - now) < TimeDelta::hours(1));
    }

    #[cfg(feature = "time")]
    #[test]
    fn timestamps_of_time_rise_by_whole_microseconds() {
        use ::time::{Duration, OffsetDateTime, PrimitiveDateTime, UtcOffset};

        let now = OffsetDateTime::now_utc();
        let late = now + Duration::days(1_000);
        next_is_another(&[
            now,
            late,
            OffsetDateTime::UNIX_EPOCH - Duration::nanoseconds(1),
        ]);
        next_is_another(&[PrimitiveDateTime::new(now.date(), now.time())]);
        let far = [
            PrimitiveDateTime::MIN + Duration::DAY,
            PrimitiveDateTime::new(now.date(), now.time()),
            PrimitiveDateTime::MAX - Duration::DAY,
        ];
        for offset in [(0, 0, 0), (2, 0, 0), (-9, -30, 0), (5, 45, 1)] {
            let offset = UtcOffset::from_hms(offset.0, offset.1, offset.2).unwrap();
            for time in far.map(|it| it.assume_offset(offset)) {
                let again = OffsetDateTime::from_number(time.to_number());
                assert_eq!((again, again.offset()), (time, offset));
            }
        }
        let next = late.next();
        assert_eq!(next.nanosecond() % 1_000, 0);
        assert!(next > late && next <= late + Duration::microseconds(1));
    }
}
