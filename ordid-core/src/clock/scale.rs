//! Scales of time: from when, and in which steps, a layout counts.

use super::Timestamp;

const NANOS_PER_MILLI: u32 = 1_000_000;

/// The epoch from which a layout counts time, and the length of its ticks.
///
/// # Example: the two clocks of UUID versions 1 and 7
///
/// ```
/// use ordid_core::clock::TimeScale;
///
/// let unix_millis = 1_645_557_742_000; // 2022-02-22T19:22:22Z, RFC 9562 appendix A
/// assert_eq!(TimeScale::UNIX_MILLIS.ticks_at(unix_millis, 0), Some(unix_millis));
/// assert_eq!(TimeScale::GREGORIAN_TICKS.ticks_at(unix_millis, 0), Some(138_648_505_420_000_000));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeScale {
    /// Ticks of `denominator` milliseconds.
    numerator: u32,
    denominator: u32,
    /// Milliseconds since 1970 of tick 0; negative before 1970.
    epoch_unix_millis: i64,
}

impl TimeScale {
    /// Milliseconds since 1970-01-01: UUID version 7, ULID, push ids.
    pub const UNIX_MILLIS: Self = Self::ticks_per_millis(1, 1, 0);
    /// Seconds since 1970-01-01: ObjectId.
    pub const UNIX_SECONDS: Self = Self::ticks_per_millis(1, 1_000, 0);
    /// 100 nanoseconds since 1582-10-15, when the Gregorian calendar began: UUID versions 1 and 6
    /// (RFC 9562 section 5.1).
    pub const GREGORIAN_TICKS: Self = Self::ticks_per_millis(10_000, 1, -12_219_292_800_000);
    /// 100 nanoseconds since 0001-01-01: `DateTime.Ticks` of .NET.
    pub const DOTNET_TICKS: Self = Self::ticks_per_millis(10_000, 1, -62_135_596_800_000);
    /// Milliseconds since 0001-01-01: `DateTime.Ticks / 10000` of .NET.
    pub const DOTNET_MILLIS: Self = Self::ticks_per_millis(1, 1, -62_135_596_800_000);
    /// 1/300 seconds since 1900-01-01: the steps of SQL Server's `datetime`.
    pub const SQL_SERVER_DATETIME: Self = Self::ticks_per_millis(3, 10, -2_208_988_800_000);

    /// Makes a scale with this many `ticks` in each `millis` milliseconds. Tick 0 begins `epoch_unix_millis`
    /// milliseconds after 1970-01-01T00:00:00Z, or before it if negative.
    ///
    /// # Panics
    ///
    /// If `ticks` or `millis` is zero, or if a tick would be shorter than a nanosecond. In a `const` this is a
    /// compile error.
    pub const fn ticks_per_millis(ticks: u32, millis: u32, epoch_unix_millis: i64) -> Self {
        assert!(ticks > 0 && millis > 0, "a scale has ticks and a length");
        assert!(
            ticks as u64 <= millis as u64 * NANOS_PER_MILLI as u64,
            "a tick has at least a nanosecond"
        );
        Self {
            numerator: ticks,
            denominator: millis,
            epoch_unix_millis,
        }
    }

    /// Returns when tick 0 begins, in milliseconds since 1970-01-01T00:00:00Z.
    pub const fn epoch_unix_millis(self) -> i64 {
        self.epoch_unix_millis
    }

    /// Returns the length of a tick in nanoseconds, rounded down.
    pub const fn tick_nanos(self) -> u64 {
        self.denominator as u64 * NANOS_PER_MILLI as u64 / self.numerator as u64
    }

    /// Whether nanoseconds within the millisecond have a say.
    pub(crate) const fn is_fine(self) -> bool {
        self.numerator > 1
    }

    /// Returns the tick of a time, which is given as milliseconds since 1970 and the nanoseconds since that
    /// millisecond began. Returns `None` before the epoch, or if the tick needs more than 64 bits.
    // Always: every key asks, of a scale that its scheme fixes. As a function of any scale it would
    // divide twice, where a subtraction is what most layouts need.
    #[inline(always)]
    pub const fn ticks_at(self, unix_millis: u64, nanos: u32) -> Option<u64> {
        let epoch = self.epoch_unix_millis.unsigned_abs();
        let millis = if self.epoch_unix_millis < 0 {
            unix_millis.checked_add(epoch)
        } else {
            unix_millis.checked_sub(epoch)
        };
        let Some(millis) = millis else {
            return None;
        };
        if self.numerator == 1 && self.denominator == 1 {
            return Some(millis);
        }
        let numerator = self.numerator as u64;
        let Some(whole) = millis.checked_mul(numerator) else {
            return None;
        };
        let part = nanos as u64 * numerator / NANOS_PER_MILLI as u64;
        match whole.checked_add(part) {
            Some(ticks) => Some(ticks / self.denominator as u64),
            None => None,
        }
    }

    /// Returns when a tick begins, in nanoseconds since 1970-01-01T00:00:00Z, rounded up. The result is negative
    /// before 1970.
    pub const fn unix_nanos_at(self, ticks: u64) -> i128 {
        // In steps that need no division of 128 bits, which a program without `std` may not link.
        let (numerator, denominator) = (self.numerator as u64, self.denominator as u64);
        let part = ticks % numerator * denominator;
        let nanos = (part % numerator * NANOS_PER_MILLI as u64).div_ceil(numerator);
        let whole = (ticks / numerator) as i128 * denominator as i128;
        let millis = whole + (part / numerator) as i128 + self.epoch_unix_millis as i128;
        millis * NANOS_PER_MILLI as i128 + nanos as i128
    }

    /// Returns the time at which a tick begins, with the tick's length.
    pub const fn moment_at(self, ticks: u64) -> Moment {
        Moment {
            unix_nanos: self.unix_nanos_at(ticks),
            tick_nanos: self.tick_nanos(),
        }
    }

    /// Returns the millisecond in which a tick begins, or the nearest that a [`Timestamp`] can hold.
    pub const fn timestamp_at(self, ticks: u64) -> Timestamp {
        self.moment_at(ticks).saturating_timestamp()
    }

    /// Returns how many ticks begin in so many milliseconds, rounded down.
    #[inline]
    pub(crate) const fn ticks_in(self, millis: u64) -> u64 {
        let ticks = millis.saturating_mul(self.numerator as u64);
        // Asked for each key that is ahead of the clock, of a scale that is no constant there: most
        // need no division.
        if self.denominator == 1 {
            ticks
        } else {
            ticks / self.denominator as u64
        }
    }

    /// Returns the milliseconds of so many ticks, rounded up.
    pub(crate) const fn millis_in(self, ticks: u64) -> u64 {
        ticks
            .saturating_mul(self.denominator as u64)
            .div_ceil(self.numerator as u64)
    }
}

/// A time as a key states it, and how precise it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment {
    /// Nanoseconds since 1970-01-01T00:00:00Z; negative before 1970.
    pub unix_nanos: i128,
    /// The length, in nanoseconds, of the tick that begins at this moment.
    pub tick_nanos: u64,
}

impl Moment {
    /// Returns the millisecond of the moment; `None` before 1970 or beyond 48 bits.
    pub const fn timestamp(self) -> Option<Timestamp> {
        let timestamp = self.saturating_timestamp();
        let begin = timestamp.as_unix_millis() as i128 * NANOS_PER_MILLI as i128;
        if self.unix_nanos >= begin && self.unix_nanos - begin < NANOS_PER_MILLI as i128 {
            Some(timestamp)
        } else {
            None
        }
    }

    /// Returns the millisecond of the moment, or the nearest that a [`Timestamp`] can hold.
    pub const fn saturating_timestamp(self) -> Timestamp {
        let end = (Timestamp::MAX.as_unix_millis() as i128 + 1) * NANOS_PER_MILLI as i128;
        if self.unix_nanos < 0 {
            Timestamp::MIN
        } else if self.unix_nanos >= end {
            Timestamp::MAX
        } else {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "below 2^68, and so below 2^62"
            )]
            let sixty_fourths = (self.unix_nanos >> 6) as u64;
            // A million is 2^6 times 15,625.
            Timestamp::saturating_from_unix_millis(sixty_fourths / (NANOS_PER_MILLI as u64 >> 6))
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    const SCALES: [TimeScale; 6] = [
        TimeScale::UNIX_MILLIS,
        TimeScale::UNIX_SECONDS,
        TimeScale::GREGORIAN_TICKS,
        TimeScale::DOTNET_TICKS,
        TimeScale::DOTNET_MILLIS,
        TimeScale::SQL_SERVER_DATETIME,
    ];

    #[test]
    fn epochs_match_their_published_dates() {
        // 2025-12-31T23:59:59.9999999Z is DateTime.Ticks 639028223999999999.
        let millis = 1_767_225_599_999;
        let ticks = TimeScale::DOTNET_TICKS.ticks_at(millis, 999_900);
        assert_eq!(ticks, Some(639_028_223_999_999_999));
        // 25,567 days from 1900 to 1970.
        assert_eq!(
            TimeScale::SQL_SERVER_DATETIME.ticks_at(0, 0),
            Some(25_567 * 86_400 * 300)
        );
        assert_eq!(TimeScale::UNIX_SECONDS.ticks_at(1_999, 999_999), Some(1));
    }

    #[test]
    fn the_start_of_a_tick_belongs_to_that_tick() {
        for scale in SCALES {
            for millis in [0, 1, 999, 1_645_557_742_123, (1 << 48) - 1] {
                for nanos in [0, 1, 456_789, 999_999] {
                    let ticks = scale.ticks_at(millis, nanos).unwrap();
                    let at = i128::from(millis) * 1_000_000 + i128::from(nanos);
                    assert!(scale.unix_nanos_at(ticks) <= at, "{scale:?} {at}");
                    assert!(at < scale.unix_nanos_at(ticks + 1), "{scale:?} {at}");
                    // And back: the begin of a tick, to the nanosecond, is of that tick.
                    let begin = scale.unix_nanos_at(ticks);
                    if let Ok(begin) = u64::try_from(begin) {
                        let nanos = u32::try_from(begin % 1_000_000).unwrap();
                        assert_eq!(scale.ticks_at(begin / 1_000_000, nanos), Some(ticks));
                    }
                }
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn a_timestamp_and_its_moment_agree(
            ticks: u64,
            shift in 0..64_u32,
            numerator in 1..=u32::MAX,
            denominator in 1..=u32::MAX,
            epoch: i64,
        ) {
            let odd = TimeScale::ticks_per_millis(numerator, denominator, epoch);
            let small = TimeScale::ticks_per_millis(numerator >> 20 | 1, denominator >> 20 | 1, 0);
            for scale in SCALES.into_iter().chain([odd, small]) {
                let ticks = ticks >> shift;
                let expected = scale.moment_at(ticks).saturating_timestamp();
                proptest::prop_assert_eq!(scale.timestamp_at(ticks), expected, "{:?}", scale);
            }
        }
    }

    #[test]
    fn times_before_the_epoch_have_no_tick() {
        let twitter = TimeScale::ticks_per_millis(1, 1, 1_288_834_974_657);
        assert_eq!(twitter.ticks_at(1_288_834_974_656, 999_999), None);
        assert_eq!(twitter.ticks_at(1_288_834_974_657, 0), Some(0));
        assert_eq!(TimeScale::DOTNET_TICKS.ticks_at(u64::MAX, 0), None);
        let earliest = TimeScale::ticks_per_millis(1, 1, i64::MIN);
        assert_eq!(earliest.ticks_at(7, 0), Some((1 << 63) + 7));
        let before = TimeScale::GREGORIAN_TICKS.moment_at(0);
        assert_eq!(before.timestamp(), None);
        assert_eq!(before.saturating_timestamp(), Timestamp::MIN);
    }
}
