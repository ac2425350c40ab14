//! UUID version 7 with fractions of a millisecond: 48 bits of milliseconds, 12 bits of 1/4096 milliseconds, an 8-bit
//! counter, 54 fresh random bits.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------------------------------+
//! |                  unix_ts_ms (upper 32 bits)                   |
//! +-------------------------------+-------+-----------------------+
//! |  unix_ts_ms (lower 16 bits)   | ver 7 | fraction of the ms    |
//! +---+---------------+-----------+-------+-----------------------+
//! |var| counter (8)   |        random (upper 22 bits)             |
//! +---+---------------+-------------------------------------------+
//! |                  random (lower 32 bits)                       |
//! +---------------------------------------------------------------+
//! ```
//!
//! Bytes are in network order, and keys compare byte by byte. Time and fraction are in the same bits as in PostgreSQL
//! 18's `uuidv7()`, so keys of the application and of the database interleave by time to a quarter of a microsecond.
//! Within 1/4096 millisecond 256 keys count up, and then the next fraction begins. After 1,048,576 keys in a
//! millisecond, the [`Overflow`](crate::generator::Overflow) policy acts. Whoever knows one key has 54 bits of the
//! next one to guess.
//!
//! The clock must have fractions ([`Clock::now_with_nanos`](crate::clock::Clock::now_with_nanos)).
//!
//! # References
//!
//! RFC 9562 section 5.7 (layout) and 6.2 (method 3, replace leftmost random bits with increased
//! clock precision); PostgreSQL 18 manual, section 9.14.

use uuid::Uuid;

use crate::{
    clock::{TimeScale, Timestamp},
    error::Error,
    generator::{Slot, Slotted},
    key::{RisesAsBytes, RisesInMariaDbUuid, Scheme},
    scheme::{
        UuidV7,
        anatomy::{Certainty, Inspection, Layout, TimeOrdered},
    },
};

/// The scheme `uuid_v7_sub_millis`.
#[derive(Debug)]
pub enum UuidV7SubMillis {}

impl Scheme for UuidV7SubMillis {
    rfc_9562!("uuid_v7_sub_millis", version 7, UuidV7::ORDERS);

    fn timestamp(raw: &Uuid) -> Option<Timestamp> {
        UuidV7::timestamp(raw)
    }
}

impl RisesAsBytes for UuidV7SubMillis {}
impl RisesInMariaDbUuid for UuidV7SubMillis {}

impl Slotted for UuidV7SubMillis {
    type Node = ();

    const SCALE: TimeScale = TimeScale::ticks_per_millis(4_096, 1, 0);
    const TICK_BITS: u32 = 60;
    const INDEX_BITS: u32 = 20;
    const FRACTION_BITS: u32 = 12;
    const SEED_BITS: u32 = 0;
    const RANDOM_BITS: u32 = 54;

    #[inline]
    fn encode(slot: Slot<()>) -> Uuid {
        let high = (slot.time << 16) | 0x7000 | (slot.count >> 8);
        let count_low = slot.count & 0xff;
        Uuid::from_u64_pair(high, (0b10 << 62) | count_low << 54 | slot.random)
    }
}

/// The fields of a UUID of version 7 with fractions of a millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// Milliseconds since 1970: 48 bits.
    pub unix_ts_ms: u64,
    /// 1/4096 of a millisecond, rounded down: 12 bits.
    pub fraction: u16,
    /// The count within the fraction.
    pub counter: u8,
    /// 54 random bits.
    pub random: u64,
}

/// # Example: the RFC's fraction
///
/// ```
/// use ordid_core::scheme::{Layout, UuidV7SubMillis, uuid_v7_sub_millis::Parts};
///
/// // 2023-01-01T12:34:56.1234567Z, RFC 9562 section 6.2: 0.4567 of a millisecond is 0x74e.
/// let parts = Parts {
///     unix_ts_ms: 1_672_576_496_123,
///     fraction: 0x74e,
///     counter: 0,
///     random: 0,
/// };
/// let key = UuidV7SubMillis::pack(parts)?;
/// assert_eq!(key.to_string(), "01856d53-f1fb-774e-8000-000000000000");
/// let moment = UuidV7SubMillis::inspect(&key)?.moment.unwrap();
/// assert_eq!(moment.unix_nanos, 1_672_576_496_123_456_543);
/// # Ok::<(), ordid_core::Error>(())
/// ```
impl Layout for UuidV7SubMillis {
    fields_around_version!(7: unix_ts_ms = 48, fraction = 12, counter = 8, random = 54);

    /// Accepts any UUID of version 7, because a key does not say whether it has fractions.
    fn inspect(raw: &Uuid) -> Result<Inspection, Error> {
        let parts = Self::unpack(raw)?;
        let ticks = parts.unix_ts_ms << 12 | u64::from(parts.fraction);
        Ok(Inspection {
            moment: Some(Self::SCALE.moment_at(ticks)),
            counter: Some(u64::from(parts.counter)),
            version: Some(7),
            ..Inspection::of::<Self>(Certainty::Likely)
        })
    }
}

/// The bounds are those of [`UuidV7`], and include any UUID of version 7.
impl TimeOrdered for UuidV7SubMillis {
    fn bounds_at(timestamp: Timestamp) -> Result<(Uuid, Uuid), Error> {
        UuidV7::bounds_at(timestamp)
    }
}

generator! {
    /// Makes UUIDs of version 7 with fractions of a millisecond, strictly rising over all threads that
    /// share it.
    UuidV7SubMillisGenerator: UuidV7SubMillis
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::scheme::testing::*;

    /// Milliseconds after the start, fraction, counter.
    fn parts(raw: Uuid) -> (u64, u64, u64) {
        let (high, low) = raw.as_u64_pair();
        ((high >> 16) - START, high & 0xfff, (low >> 54) & 0xff)
    }

    #[test]
    fn the_fraction_is_4096ths_of_the_millisecond_rounded_down() {
        let generator = scripted::<UuidV7SubMillis>();
        let next = |nanos| {
            generator.clock().set_nanos(nanos);
            parts(next(&generator))
        };
        assert_eq!(next(0), (0, 0, 0));
        assert_eq!(next(244), (0, 0, 1));
        assert_eq!(next(245), (0, 1, 0));
        assert_eq!(next(500_000), (0, 2_048, 0));
        // A step back inside the millisecond is held like any other.
        assert_eq!(next(499_000), (0, 2_048, 1));
        assert_eq!(next(999_999), (0, 4_095, 0));
    }

    #[test]
    fn a_full_fraction_goes_on_in_the_next() {
        let generator = scripted::<UuidV7SubMillis>();
        let keys: Vec<Uuid> = (0..600).map(|_| next(&generator)).collect();
        assert!(keys.is_sorted_by(|a, b| a < b));
        assert_eq!(parts(keys[255]), (0, 0, 255));
        assert_eq!(parts(keys[256]), (0, 1, 0));
        assert_eq!(parts(keys[599]), (0, 2, 87));
    }

    #[test]
    fn parts_of_generated_keys_are_what_was_counted() {
        let generator = scripted::<UuidV7SubMillis>();
        generator.clock().set_nanos(456_700);
        for count in 0..3 {
            let parts = UuidV7SubMillis::unpack(&next(&generator)).unwrap();
            assert_eq!((parts.unix_ts_ms, parts.fraction), (START, 0x74e));
            assert_eq!(parts.counter, count);
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_named() {
        let parts = Parts {
            unix_ts_ms: (1 << 48) - 1,
            fraction: 0xfff,
            counter: 0xff,
            random: (1 << 54) - 1,
        };
        let raw = UuidV7SubMillis::pack(parts).unwrap();
        assert_eq!(raw.to_string(), "ffffffff-ffff-7fff-bfff-ffffffffffff");
        let fraction = 0x1000;
        let random = 1 << 54;
        let unix_ts_ms = 1 << 48;
        does_not_fit::<UuidV7SubMillis, _>([
            (Parts { fraction, ..parts }, "fraction 4096", 12),
            (Parts { random, ..parts }, "random 18014398509481984", 54),
            (
                Parts {
                    unix_ts_ms,
                    ..parts
                },
                "unix_ts_ms 281474976710656",
                48,
            ),
        ]);
    }
}
