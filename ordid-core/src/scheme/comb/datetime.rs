//! The COMBs of NHibernate, and of RT.Comb's legacy provider: days since 1900 and 1/300 seconds of
//! the day, as SQL Server's `datetime` counts them.
//!
//! ```text
//! text     | b0 b1 b2 b3 | b4 b5 | b6 b7 | b8 b9 | b10 b11 | b12 b13 b14 b15 |
//!          | random      |random | 40 c  | v,c c | days    | units of the day|
//! ```
//!
//! `4` is the version, `0` four zero bits, `v` the variant, `c` the count: 14 bits beside the variant, then 8 in
//! `b7`. The other 48 bits are random; whoever knows one key has them to guess for the next. Days and units are
//! big-endian numbers of 16 and 32 bits.
//!
//! Up to 1,048,576 keys are made in a unit of 3.33 ms. In the originals they are in random order (NHibernate's issue
//! 2869). The originals wrap on 2079-06-07, when 16 bits of days are used up, so that keys fall below all earlier
//! ones. ordid's generators end with an error 6.67 ms before that.
//!
//! # Rounding
//!
//! A day has 25,920,000 units. ordid counts them without a remainder. The originals compute with
//! floating-point numbers, and differ:
//!
//! * NHibernate divides the milliseconds of the day by 3.333333, which gives up to 25,920,002: two
//!   units more than ordid for a time late in the day, but never the next day's.
//! * RT.Comb multiplies by 0.3, which agrees with ordid but for some boundaries of units. In the
//!   last four ticks of 100 ns before midnight (three before 2014) its day is the next one already,
//!   with the old day's units: such keys stand a day ahead.
//!
//! [`DateTimeParts::nhibernate_at`] and [`DateTimeParts::rt_legacy_at`] compute as the originals
//! do. The time of a decoded key is the one ordid would have made it at, so up to 9 ms later than
//! the time that NHibernate made it at.
//!
//! # References
//!
//! NHibernate `src/NHibernate/Id/GuidCombGenerator.cs`; RT.Comb `src/RT.Comb/SqlDateTimeStrategy.cs`
//! and its `Legacy` provider; Jimmy Nilsson, "The Cost of GUIDs as Primary Keys" (2002).

use core::cmp::Ordering;

use uuid::Uuid;

use super::{AT_END, MADE_AT_END};
use crate::{
    clock::{Moment, TimeScale, Timestamp},
    error::Error,
    generator::{Slot, Slotted},
    key::{RisesInMariaDbUuid, RisesInSqlServer, Scheme},
    layout::{Comparison, Orders},
    scheme::{
        anatomy::{Certainty, Inspection, Layout, TimeOrdered, check, out_of_time},
        guid::{self, INDEX_BITS, SEED_BITS},
    },
};

/// Units of 1/300 s in a day.
const DAY: u64 = 86_400 * 300;
/// The units that 16 bits of days have.
const END: u64 = DAY << 16;
/// Bits of the units that generators count.
const TICK_BITS: u32 = 40;
/// Those units begin so many after 1900 that they end where the days do. It is a multiple of three,
/// since an epoch is a whole millisecond, so two units are left over.
const FIRST: u64 = (END - (1 << TICK_BITS)) / 3 * 3;
/// They begin on 1963-04-17.
const SINCE_FIRST: TimeScale = TimeScale::ticks_per_millis(
    3,
    10,
    TimeScale::SQL_SERVER_DATETIME
        .epoch_unix_millis()
        .checked_add_unsigned(FIRST / 3 * 10)
        .expect("a time in 1963"),
);
/// .NET's ticks of 100 ns from 0001-01-01 to 1900-01-01.
const DOTNET_TICKS_AT_1900: u64 = 599_266_080_000_000_000;
/// .NET's ticks in a day.
const DOTNET_TICKS_A_DAY: u64 = 864_000_000_000;

/// Returns the last six bytes of a unit's keys, as one number.
#[inline]
const fn days_and_units(since_1900: u64) -> u64 {
    (since_1900 / DAY) << 32 | (since_1900 % DAY)
}

/// The fields of a COMB with days and units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateTimeParts {
    /// The first ten bytes of the GUID that the original began with, in wire order: random bits, with version 4 and
    /// RFC 9562's variant if the GUID was a random UUID. For other bytes, [`pack`](Layout::pack) makes the value that
    /// the original makes, which is not a key of the scheme.
    pub guid: [u8; 10],
    /// Days since 1900-01-01.
    pub days: u16,
    /// Units of 1/300 s since midnight UTC: below 25,920,000, or up to 25,920,002 in NHibernate's keys.
    pub units: u32,
}

impl DateTimeParts {
    /// Computes days and units as NHibernate does, from a UTC time in .NET's ticks (`DateTime.Ticks`), with the
    /// rounding of today's .NET.
    ///
    /// # Errors
    ///
    /// A time before 1900, or after 2079-06-06, when the original wraps to 1900, gives an error that
    /// [`is_clock`](Error::is_clock).
    ///
    /// # Example: late in the day
    ///
    /// ```
    /// use ordid_core::scheme::comb::DateTimeParts;
    ///
    /// // 2000-02-29T23:59:59.999Z
    /// let parts = DateTimeParts::nhibernate_at(630_874_655_999_990_000, [0; 10])?;
    /// assert_eq!((parts.days, parts.units), (36_583, 25_920_002));
    /// let parts = DateTimeParts::rt_legacy_at(630_874_655_999_990_000, [0; 10])?;
    /// assert_eq!((parts.days, parts.units), (36_583, 25_919_999));
    /// # Ok::<(), ordid_core::Error>(())
    /// ```
    pub fn nhibernate_at(dotnet_ticks: u64, guid: [u8; 10]) -> Result<Self, Error> {
        let since_1900 = since_1900(dotnet_ticks)?;
        let of_day = millis_of_day(since_1900);
        Ok(Self {
            guid,
            days: days(since_1900 / DOTNET_TICKS_A_DAY, dotnet_ticks)?,
            units: truncated(of_day / 3.333_333),
        })
    }

    /// As [`nhibernate_at`](Self::nhibernate_at), but as RT.Comb's legacy provider computes them: with the next day
    /// in the last four ticks before midnight.
    ///
    /// # Errors
    ///
    /// As [`nhibernate_at`](Self::nhibernate_at).
    pub fn rt_legacy_at(dotnet_ticks: u64, guid: [u8; 10]) -> Result<Self, Error> {
        let since_1900 = since_1900(dotnet_ticks)?;
        let of_day = millis_of_day(since_1900);
        Ok(Self {
            guid,
            days: days(
                u64::from(truncated(float(since_1900) / float(DOTNET_TICKS_A_DAY))),
                dotnet_ticks,
            )?,
            units: truncated(of_day * 0.3),
        })
    }

    fn pack(self) -> Uuid {
        let mut wire = [0; 16];
        wire[..10].copy_from_slice(&self.guid);
        wire[10..12].copy_from_slice(&self.days.to_be_bytes());
        wire[12..].copy_from_slice(&self.units.to_be_bytes());
        Uuid::from_bytes_le(wire)
    }

    fn unpack(raw: &Uuid) -> Self {
        let [guid @ .., d0, d1, u0, u1, u2, u3] = raw.to_bytes_le();
        Self {
            guid,
            days: u16::from_be_bytes([d0, d1]),
            units: u32::from_be_bytes([u0, u1, u2, u3]),
        }
    }

    /// The unit that ordid counts in the same place of the order: a time of day beyond the day is
    /// its last.
    fn moment(self) -> Moment {
        let units = u64::from(self.units).min(DAY - 1);
        TimeScale::SQL_SERVER_DATETIME.moment_at(u64::from(self.days) * DAY + units)
    }

    fn certainty(self, last: u64) -> Certainty {
        if u64::from(self.units) > last {
            return Certainty::Possible;
        }
        guid::certainty(self.moment())
    }
}

fn since_1900(dotnet_ticks: u64) -> Result<u64, Error> {
    let since = dotnet_ticks.checked_sub(DOTNET_TICKS_AT_1900);
    since.ok_or_else(|| out_of_days(dotnet_ticks))
}

fn days(days: u64, dotnet_ticks: u64) -> Result<u16, Error> {
    u16::try_from(days).map_err(|_| out_of_days(dotnet_ticks))
}

#[cold]
fn out_of_days(dotnet_ticks: u64) -> Error {
    out_of_time(TimeScale::DOTNET_TICKS.timestamp_at(dotnet_ticks), last())
}

/// The last millisecond of the days.
const fn last() -> Timestamp {
    TimeScale::SQL_SERVER_DATETIME.timestamp_at(END - 1)
}

/// `TimeSpan.TotalMilliseconds` of the time of day.
fn millis_of_day(since_1900: u64) -> f64 {
    float(since_1900 % DOTNET_TICKS_A_DAY) / 10_000.0
}

/// As C# converts a `long` to a `double`: to the nearest.
#[expect(clippy::cast_precision_loss, reason = "the original's")]
fn float(value: u64) -> f64 {
    value as f64
}

/// As C# converts a `double` to an integer: towards zero.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "days and units of a day, both far below 32 bits and none negative"
)]
fn truncated(value: f64) -> u32 {
    value as u32
}

/// The COMBs of one layout; they differ in the original's rounding only.
macro_rules! comb {
    ($(#[$docs:meta])* $scheme:ident, $name:literal, last: $last:expr, $generator:ident) => {
        $(#[$docs])*
        #[derive(Debug)]
        pub enum $scheme {}

        impl Scheme for $scheme {
            rfc_9562!($name, version 4, Orders::SQL_SERVER.and(Comparison::MariaDbUuid));

            fn timestamp(raw: &Uuid) -> Option<Timestamp> {
                Self::check(raw)
                    .then(|| DateTimeParts::unpack(raw).moment().timestamp())
                    .flatten()
            }

            fn cmp(left: &Uuid, right: &Uuid) -> Ordering {
                guid::cmp(Comparison::SqlServer, left, right)
            }
        }

        impl RisesInMariaDbUuid for $scheme {}
        impl RisesInSqlServer for $scheme {}

        impl Slotted for $scheme {
            counter_bits!(index: INDEX_BITS, seed: SEED_BITS, random: MADE_AT_END.random_bits());

            const SCALE: TimeScale = SINCE_FIRST;
            const TICK_BITS: u32 = TICK_BITS;

            #[inline]
            fn encode(slot: Slot<()>) -> Uuid {
                let time = days_and_units(FIRST + slot.time);
                Uuid::from_bytes(MADE_AT_END.lay(time, slot.count, slot.random))
            }
        }

        impl Layout for $scheme {
            type Parts = DateTimeParts;

            fn pack(parts: DateTimeParts) -> Result<Uuid, Error> {
                Ok(parts.pack())
            }

            fn unpack(raw: &Uuid) -> Result<DateTimeParts, Error> {
                check::<Self>(raw)?;
                Ok(DateTimeParts::unpack(raw))
            }

            fn inspect(raw: &Uuid) -> Result<Inspection, Error> {
                let parts = Self::unpack(raw)?;
                Ok(Inspection {
                    moment: Some(parts.moment()),
                    version: Some(4),
                    ..Inspection::of::<Self>(parts.certainty($last))
                })
            }
        }

        impl TimeOrdered for $scheme {
            fn bounds_at(timestamp: Timestamp) -> Result<(Uuid, Uuid), Error> {
                let millis = timestamp.as_unix_millis();
                let since_1900 = TimeScale::SQL_SERVER_DATETIME
                    .ticks_at(millis, 0)
                    .filter(|&ticks| ticks < END)
                    .ok_or_else(|| out_of_time(timestamp, last()))?;
                let time = days_and_units(since_1900);
                Ok(AT_END.ends(time, time))
            }
        }

        generator! {
            #[doc = concat!("Makes keys of the scheme `", $name, "`, strictly rising over all ")]
            #[doc = "threads that share it, until 2079-06-06T23:59:59.990Z."]
            $generator: $scheme
        }
    };
}

comb! {
    /// The scheme `comb_nhibernate`: NHibernate's `guid.comb`.
    ///
    /// # Example: a key of NHibernate, taken apart
    ///
    /// ```
    /// use ordid_core::scheme::{CombNHibernate, Layout};
    ///
    /// let key = "0157867d-fc70-4f65-aec0-a87100e3f761".parse()?;
    /// let parts = CombNHibernate::unpack(&key)?;
    /// assert_eq!((parts.days, parts.units), (43_121, 14_940_001));
    /// assert_eq!(CombNHibernate::pack(parts)?, key);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    CombNHibernate, "comb_nhibernate", last: DAY + 2, CombNHibernateGenerator
}

comb! {
    /// The scheme `comb_rt_legacy`: RT.Comb's `Provider.Legacy`, which is also the original COMB of 2002.
    CombRtLegacy, "comb_rt_legacy", last: DAY - 1, CombRtLegacyGenerator
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
