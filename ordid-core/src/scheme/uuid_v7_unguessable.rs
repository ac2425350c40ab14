//! UUID version 7, unguessable: 48 bits of time, an 18-bit counter, 56 fresh random bits.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------------------------------+
//! |                  unix_ts_ms (upper 32 bits)                   |
//! +-------------------------------+-------+-----------------------+
//! |  unix_ts_ms (lower 16 bits)   | ver 7 | counter (upper 12)    |
//! +---+-----------+---------------+-------+-----------------------+
//! |var| cnt (low 6)|          random (upper 24 bits)              |
//! +---+-----------+-----------------------------------------------+
//! |                  random (lower 32 bits)                       |
//! +---------------------------------------------------------------+
//! ```
//!
//! Bytes are in network order, and keys compare byte by byte. Seen as one number of 74 bits, each key is the previous
//! one plus a random step between 1 and 2^57: the counter rises by one, and the 56 bits below are drawn anew. So
//! whoever knows one key has 56 bits of the next one to guess, compared with 32 in the dense
//! [`uuid_v7`](super::uuid_v7).
//!
//! The price is fewer keys in a millisecond. The counter starts at 17 unpredictable bits below a zero bit, which
//! leaves **131,072 keys a millisecond**. Then the [`Overflow`](crate::generator::Overflow) policy acts.
//!
//! # References
//!
//! RFC 9562 section 5.7 (layout), 6.2 (methods 1 and 2), 8 (security considerations).

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

/// Lower bits of the counter, beside the variant.
const COUNTER_LOW_BITS: u32 = 6;

/// The scheme `uuid_v7_unguessable`.
#[derive(Debug)]
pub enum UuidV7Unguessable {}

impl Scheme for UuidV7Unguessable {
    rfc_9562!("uuid_v7_unguessable", version 7, UuidV7::ORDERS);

    fn timestamp(raw: &Uuid) -> Option<Timestamp> {
        UuidV7::timestamp(raw)
    }
}

impl RisesAsBytes for UuidV7Unguessable {}
impl RisesInMariaDbUuid for UuidV7Unguessable {}

impl Slotted for UuidV7Unguessable {
    counter_bits!(index: 17, seed: 17, random: 56);

    #[inline]
    fn encode(slot: Slot<()>) -> Uuid {
        let high = (slot.time << 16) | 0x7000 | (slot.count >> COUNTER_LOW_BITS);
        let counter_low = slot.count & 0x3f;
        Uuid::from_u64_pair(high, (0b10 << 62) | counter_low << 56 | slot.random)
    }
}

/// The fields of an unguessable UUID of version 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// Milliseconds since 1970: 48 bits.
    pub unix_ts_ms: u64,
    /// 18 bits.
    pub counter: u32,
    /// 56 random bits.
    pub random: u64,
}

impl Layout for UuidV7Unguessable {
    fields_around_version!(7: unix_ts_ms = 48, counter = 18, random = 56);

    /// Accepts any UUID of version 7, because a key does not say whether it is unguessable.
    fn inspect(raw: &Uuid) -> Result<Inspection, Error> {
        let parts = Self::unpack(raw)?;
        Ok(Inspection {
            moment: Some(TimeScale::UNIX_MILLIS.moment_at(parts.unix_ts_ms)),
            counter: Some(u64::from(parts.counter)),
            version: Some(7),
            ..Inspection::of::<Self>(Certainty::Likely)
        })
    }
}

/// The bounds are those of [`UuidV7`], and include any UUID of version 7.
impl TimeOrdered for UuidV7Unguessable {
    fn bounds_at(timestamp: Timestamp) -> Result<(Uuid, Uuid), Error> {
        UuidV7::bounds_at(timestamp)
    }
}

generator! {
    /// Makes unguessable UUIDs of version 7, strictly rising over all threads that share it.
    UuidV7UnguessableGenerator: UuidV7Unguessable
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::scheme::testing::*;

    #[test]
    fn parts_that_do_not_fit_are_named() {
        let parts = Parts {
            unix_ts_ms: (1 << 48) - 1,
            counter: (1 << 18) - 1,
            random: (1 << 56) - 1,
        };
        let raw = UuidV7Unguessable::pack(parts).unwrap();
        assert_eq!(raw.to_string(), "ffffffff-ffff-7fff-bfff-ffffffffffff");
        let counter = 1 << 18;
        let random = 1 << 56;
        let unix_ts_ms = 1 << 48;
        does_not_fit::<UuidV7Unguessable, _>([
            (Parts { counter, ..parts }, "counter 262144", 18),
            (Parts { random, ..parts }, "random 72057594037927936", 56),
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

    /// The counter is the 12 bits beside the version and 6 beside the variant.
    #[test]
    fn parts_are_taken_from_their_bits() {
        let raw = "017f22e2-79b0-74ff-8423-d743bb286553".parse().unwrap();
        let parts = UuidV7Unguessable::unpack(&raw).unwrap();
        let expected = Parts {
            unix_ts_ms: START,
            counter: 0x4ff << 6 | 4,
            random: 0x23_d743_bb28_6553,
        };
        assert_eq!(parts, expected);
    }
}
