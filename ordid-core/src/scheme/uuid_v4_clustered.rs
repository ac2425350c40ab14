//! UUID version 4, clustered: random keys that share their first 16 bits for a week, or for
//! another period.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------------------------------+
//! |     prefix of the period      |           random_a            |
//! +-------------------------------+-------+-----------------------+
//! |           random_a            | ver 4 |     random_b (12)     |
//! +---+---------------------------+-------+-----------------------+
//! |var|                 random_c (upper 30 bits)                  |
//! +---+-----------------------------------------------------------+
//! |                     random_c (lower 32 bits)                  |
//! +---------------------------------------------------------------+
//! ```
//!
//! These are Percona's pseudo-ordered UUIDs. The prefix is the first two bytes of an MD5, so the rows of one period
//! are next to each other in the index, at a place that has nothing to do with the previous period's. This saves the
//! reads that [`uuid_v4`](super::uuid_v4) costs once a table has outgrown the memory. Pages are filled as poorly as
//! with version 4.
//!
//! | [`Period`] | MD5 of |
//! |---|---|
//! | [`Week`](Period::Week), the original | the year and MySQL's `WEEK(now, 0)`, 0 to 53, both unpadded: `2024` and `9` give `20249` |
//! | [`Seconds`](Period::Seconds), [`MINUTE`](Period::MINUTE) | the number of such periods since 1970-01-01T00:00:00, as decimal digits |
//!
//! Both count in local time ([`Clusters::utc_offset_minutes`]), because the original uses the session's time zone. A
//! key type states the period by a type ([`Clustering`]): `#[ordid(scheme = uuid_v4_clustered(period = Minute))]`. A
//! generator takes it as a value.
//!
//! There are two schemes. `uuid_v4_clustered` has the variant of RFC 9562. `uuid_v4_clustered_compat` leaves those
//! two bits random, as the original does, so a reader that checks the variant does not accept its keys as UUIDs of
//! version 4.
//!
//! **No rule orders the keys**: neither those of one period, which are random, nor the periods. One in 65,536 pairs
//! of periods has the same prefix. MariaDB's `UUID` type compares version 4 from its last segment, where the keys are
//! random; the prefix has no effect there, so use `BINARY(16)`. The prefix does not state a time, but anyone can
//! compute the prefixes of all weeks and find the few that fit a key. Whoever knows one key has 106 bits of the next
//! one to guess, 108 in the compat scheme.
//!
//! # References
//!
//! Percona, "UUIDs are popular, but bad for performance"; MySQL 8.4 manual, `WEEK()`, mode 0.

use core::{
    fmt,
    marker::PhantomData,
    num::NonZeroU32,
    sync::atomic::{AtomicU64, Ordering},
};

use uuid::Uuid;

#[cfg(feature = "std")]
use crate::scheme::random::{ProcessClock, ProcessEntropy};
use crate::{
    clock::{Clock, Timestamp},
    entropy::Entropy,
    error::Error,
    generator::{Events, Generator},
    key::{Generated, Scheme},
    scheme::{
        UuidV4,
        anatomy::{Certainty, Inspection, Layout, narrowed, pack, unpack},
        random::{Drawn, Random, draw_all},
    },
};

mod by_period;

pub use by_period::{ByPeriod, Clustering, Minute, Seconds, Week};

/// The scheme `uuid_v4_clustered`.
#[derive(Debug)]
pub enum UuidV4Clustered {}

impl Scheme for UuidV4Clustered {
    without_order!(rfc_9562!("uuid_v4_clustered", version 4));
}

/// The scheme `uuid_v4_clustered_compat`: with random variant bits, as in the original.
#[derive(Debug)]
pub enum UuidV4ClusteredCompat {}

impl Scheme for UuidV4ClusteredCompat {
    without_order!(version_of_any_variant!(
        "uuid_v4_clustered_compat",
        version 4: "version 4 and any variant"
    ));
}

/// The schemes whose keys a [`ClusteredGenerator`] makes: [`UuidV4Clustered`], [`UuidV4ClusteredCompat`], and
/// [`ByPeriod`] of them. The trait is sealed.
pub trait Clustered: Layout<Raw = Uuid, Parts = Parts> + sealed::Sealed {}

impl Clustered for UuidV4Clustered {}
impl Clustered for UuidV4ClusteredCompat {}

mod sealed {
    use super::{Random as _, Uuid, UuidV4, UuidV4Clustered, UuidV4ClusteredCompat};

    pub trait Sealed {
        /// Puts random bits into the fields below the prefix.
        fn below(bits: u128) -> Uuid;
    }

    impl Sealed for UuidV4Clustered {
        fn below(bits: u128) -> Uuid {
            UuidV4::from_random(bits)
        }
    }

    impl Sealed for UuidV4ClusteredCompat {
        fn below(bits: u128) -> Uuid {
            Uuid::from_u128(bits & !(0xf << 76) | 4 << 76)
        }
    }
}

/// The fields of a clustered UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// The prefix of the period ([`Clusters::prefix_at`]): 16 bits.
    pub prefix: u16,
    /// 32 random bits.
    pub random_a: u32,
    /// 12 random bits.
    pub random_b: u16,
    /// 62 random bits; 64 in the compat form, the variant being the upper two.
    pub random_c: u64,
}

impl Layout for UuidV4Clustered {
    fields_around_version!(4: prefix = 16, random_a = 32, random_b = 12, random_c = 62);

    fn inspect(raw: &Uuid) -> Result<Inspection, Error> {
        Inspection::of_version::<Self>(raw, 4, Certainty::Possible)
    }
}

impl Layout for UuidV4ClusteredCompat {
    type Parts = Parts;

    fn pack(parts: Parts) -> Result<Uuid, Error> {
        pack::<Self, _>([
            ("prefix", parts.prefix.into(), 16),
            ("random_a", parts.random_a.into(), 32),
            ("version", 4, 4),
            ("random_b", parts.random_b.into(), 12),
            ("random_c", parts.random_c.into(), 64),
        ])
    }

    fn unpack(raw: &Uuid) -> Result<Parts, Error> {
        let [prefix, random_a, _, random_b, random_c] =
            unpack::<Self, _>(raw, [16, 32, 4, 12, 64])?;
        Ok(Parts {
            prefix: narrowed(prefix),
            random_a: narrowed(random_a),
            random_b: narrowed(random_b),
            random_c: narrowed(random_c),
        })
    }

    fn inspect(raw: &Uuid) -> Result<Inspection, Error> {
        Inspection::of_version::<Self>(raw, 4, Certainty::Possible)
    }
}

/// How long keys share a prefix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Period {
    /// A week that begins on Sunday and is cut at the turn of the year: MySQL's `WEEK()` in mode 0.
    #[default]
    Week,
    /// A number of seconds, counted from 1970-01-01T00:00:00 in local time.
    Seconds(NonZeroU32),
}

impl Period {
    /// A minute.
    pub const MINUTE: Self = Self::Seconds(NonZeroU32::new(60).expect("60 is not zero"));
}

/// Which keys share a prefix, and how the prefix is computed.
///
/// # Example: the original's expression
///
/// ```
/// use ordid_core::{clock::Timestamp, scheme::uuid_v4_clustered::Clusters};
///
/// // 2024-03-01T00:00:00Z: left(md5(concat(year(now()), week(now()))), 4), of `20248`.
/// let time = Timestamp::from_unix_millis(1_709_251_200_000)?;
/// assert_eq!(Clusters::DEFAULT.prefix_at(time), 0xc791);
/// # Ok::<(), ordid_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Clusters {
    /// How long keys share a prefix.
    pub period: Period,
    /// The number of minutes by which local time is ahead of UTC. If keys have to share the prefixes of keys that the
    /// database makes, use the offset of the session's `time_zone`. If that zone changes its offset in summer, the
    /// database's periods change up to an hour earlier or later than these.
    pub utc_offset_minutes: i16,
}

impl Clusters {
    /// Weeks in UTC.
    pub const DEFAULT: Self = Self {
        period: Period::Week,
        utc_offset_minutes: 0,
    };

    /// Returns the first 16 bits of the keys of a time.
    pub fn prefix_at(self, timestamp: Timestamp) -> u16 {
        self.prefix_of(self.step_at(timestamp))
    }

    /// Returns what the prefix depends on: days since 1970, or periods.
    fn step_at(self, timestamp: Timestamp) -> i64 {
        let seconds = timestamp.as_unix_millis() / 1_000;
        // 48 bits of milliseconds are far from the end.
        let local = i64::try_from(seconds).unwrap_or(i64::MAX / 2)
            + i64::from(self.utc_offset_minutes) * 60;
        let length = match self.period {
            Period::Week => 86_400,
            Period::Seconds(seconds) => i64::from(seconds.get()),
        };
        local.div_euclid(length)
    }

    fn prefix_of(self, step: i64) -> u16 {
        let text = match self.period {
            Period::Week => {
                let (year, week) = year_and_week(step);
                alloc::format!("{year}{week}")
            }
            Period::Seconds(_) => alloc::format!("{step}"),
        };
        let digest = md5::compute(text);
        u16::from_be_bytes([digest[0], digest[1]])
    }
}

/// Returns `YEAR()` and `WEEK()` in mode 0 of a day, counted from 1970-01-01: week 1 begins with
/// the first Sunday of the year, and the days before are in week 0.
///
/// The civil date is from Howard Hinnant's "chrono-Compatible Low-Level Date Algorithms",
/// `civil_from_days`, which counts years from March on.
const fn year_and_week(day: i64) -> (i64, i64) {
    let since = day + 719_468; // 0000-03-01
    let era = since.div_euclid(146_097);
    let day_of_era = since.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let since_march = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let year_from_march = year_of_era + era * 400;
    // January and February are the end of the year before.
    let (year, since_january) = if since_march >= 306 {
        (year_from_march + 1, since_march - 306)
    } else {
        let is_leap =
            year_from_march % 4 == 0 && (year_from_march % 100 != 0 || year_from_march % 400 == 0);
        (year_from_march, since_march + 59 + is_leap as i64)
    };
    // 1970-01-01 was a Thursday.
    let since_sunday = (day + 4).rem_euclid(7);
    (year, (since_january + 7 - since_sunday) / 7)
}

/// Makes clustered UUIDs of version 4, which are in no order.
///
/// Neither a wrong clock nor a fork can make it repeat a key, because keys differ by random bits.
///
/// # Example: by the minute, in the original's form
///
/// ```
/// use ordid_core::{
///     clock::SystemClock, entropy::ThreadEntropy, generator::Generator,
///     scheme::uuid_v4_clustered::{Clusters, Period, UuidV4ClusteredCompatGenerator},
/// };
///
/// let minutes = Clusters { period: Period::MINUTE, ..Clusters::DEFAULT };
/// let keys = UuidV4ClusteredCompatGenerator::new(SystemClock, ThreadEntropy, minutes);
/// assert_eq!(keys.try_generate()?.into_raw().get_version_num(), 4);
/// # Ok::<(), ordid_core::Error>(())
/// ```
pub struct ClusteredGenerator<S, C, E> {
    clock: C,
    entropy: E,
    clusters: Clusters,
    /// The step of the last key and its prefix, in one word: 48 and 16 bits. Zero before the first.
    last: AtomicU64,
    scheme: PhantomData<fn() -> S>,
}

impl<S: Clustered, C: Clock, E: Entropy> ClusteredGenerator<S, C, E> {
    /// Makes a generator.
    pub const fn new(clock: C, entropy: E, clusters: Clusters) -> Self {
        Self {
            clock,
            entropy,
            clusters,
            last: AtomicU64::new(0),
            scheme: PhantomData,
        }
    }

    fn prefix_now(&self) -> u16 {
        // Before 1970 by an offset of at most 23 days; 39 bits at most.
        const FIRST: i64 = 60 * 32_768 + 1;
        let step = self.clusters.step_at(self.clock.now());
        let name = u64::try_from(step + FIRST).unwrap_or(0);
        let last = self.last.load(Ordering::Relaxed);
        if last >> 16 == name {
            return (last & 0xffff) as u16;
        }
        let prefix = self.clusters.prefix_of(step);
        // Whoever comes second writes the same, or what is as true.
        self.last
            .store(name << 16 | u64::from(prefix), Ordering::Relaxed);
        prefix
    }

    fn key(prefix: u16, bits: u128) -> Generated<S> {
        let below = S::below(bits).as_u128();
        Generated::new(Uuid::from_u128(
            below << 16 >> 16 | u128::from(prefix) << 112,
        ))
    }
}

impl<S, C: fmt::Debug, E: fmt::Debug> fmt::Debug for ClusteredGenerator<S, C, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusteredGenerator")
            .field("clock", &self.clock)
            .field("entropy", &self.entropy)
            .field("clusters", &self.clusters)
            .finish_non_exhaustive()
    }
}

impl<S: Clustered, C: Clock, E: Entropy> Generator for ClusteredGenerator<S, C, E> {
    type Scheme = S;
    type Reserved<'g>
        = Drawn<'g, Self>
    where
        Self: 'g;

    fn try_generate(&self) -> Result<Generated<S>, Error> {
        Ok(Self::key(self.prefix_now(), self.entropy.next_u128()?))
    }

    /// Makes a key with the prefix of a given time.
    ///
    /// # Errors
    ///
    /// If the operating system has no entropy.
    fn generate_at(&self, timestamp: Timestamp) -> Result<Generated<S>, Error> {
        let prefix = self.clusters.prefix_at(timestamp);
        Ok(Self::key(prefix, self.entropy.next_u128()?))
    }

    /// Makes keys that all have the prefix of the present time.
    fn try_fill_with(&self, count: usize, mut put: impl FnMut(Generated<S>)) -> Result<(), Error> {
        let prefix = self.prefix_now();
        draw_all(&self.entropy, count, |bits| put(Self::key(prefix, bits)))
    }

    /// Claims nothing. Each key is drawn when the iterator is asked for it.
    ///
    /// # Errors
    ///
    /// None. The iterator yields an error if the operating system has no entropy.
    fn reserve(&self, count: usize) -> Result<Drawn<'_, Self>, Error> {
        Ok(Drawn::new(self, count))
    }

    fn events(&self) -> Events {
        Events::default()
    }
}

generator_alias! {
    /// Makes keys of the scheme `uuid_v4_clustered`.
    UuidV4ClusteredGenerator<C, E> = ClusteredGenerator<UuidV4Clustered, C, E>
}

generator_alias! {
    /// Makes keys of the scheme `uuid_v4_clustered_compat`.
    UuidV4ClusteredCompatGenerator<C, E> = ClusteredGenerator<UuidV4ClusteredCompat, C, E>
}

#[cfg(feature = "std")]
super::random::process_wide_without_order!(
    UuidV4Clustered,
    UuidV4ClusteredGenerator<ProcessClock, ProcessEntropy> =
        UuidV4ClusteredGenerator::new(ProcessClock, ProcessEntropy, Clusters::DEFAULT)
);
#[cfg(feature = "std")]
super::random::process_wide_without_order!(
    UuidV4ClusteredCompat,
    UuidV4ClusteredCompatGenerator<ProcessClock, ProcessEntropy> =
        UuidV4ClusteredCompatGenerator::new(ProcessClock, ProcessEntropy, Clusters::DEFAULT)
);

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
