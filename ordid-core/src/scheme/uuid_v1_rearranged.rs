//! Version 1 rearranged, as a widely read article of 2017 does it: the ticks of version 1 with
//! their highest bits first, marked as version 6 with the variant bits 111.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                     upper 32 bits of ticks                    |
//! +-------------------------------+-------+-----------------------+
//! |        middle 16 bits         | ver 6 |    lower 12 bits      |
//! +-----+-------------------------+-------+-----------------------+
//! |1 1 1|   clock_seq (13)        |     node (upper 16 bits)      |
//! +-----+-------------------------+-------------------------------+
//! |                     node (lower 32 bits)                      |
//! +---------------------------------------------------------------+
//! ```
//!
//! It is older than RFC 9562, whose version 6 differs in the variant alone: 10 there, so that the
//! third bit is the clock sequence's. The variant 111 is what the RFC reserves, and it covers that
//! bit: the way back to version 1 needs it from elsewhere ([`convert`](super::convert)). New tables
//! take [`uuid_v6`](super::uuid_v6); this scheme is for those that have such keys.
//!
//! Bytes are in network order; keys compare as their bytes do, in MariaDB's `UUID` too, which leaves
//! version 6 unswapped. Ticks, clock sequence and node are made as in [`uuid_v6`](super::uuid_v6)
//! (the article's nodes are random, MAC addresses, hashes of one, or of an account's id:
//! [`UuidNode`]), and so is what an observer of one key learns of the next: all but the tick.
//!
//! # References
//!
//! "UUID trilogy, part one" (2017): `12adde00-f100-11e6-bc64-92361f002671` becomes
//! `1e6f1001-2add-6e00-fc64-92361f002671`; RFC 9562 section 4.1 (variants).

use uuid::{Uuid, Variant};

use crate::{
    clock::{TimeScale, Timestamp},
    error::Error,
    generator::{OrderedGenerator, Slot, Slotted},
    key::{RisesAsBytes, RisesInMariaDbUuid, Scheme},
    layout::{Comparison, Orders},
    scheme::{
        UuidNode,
        anatomy::{Inspection, Layout, TimeOrdered, not_of},
        gregorian,
    },
};

pub use super::gregorian::Parts;

const CLOCK_SEQ_BITS: u32 = 13;

/// The scheme `uuid_v1_rearranged`.
#[derive(Debug)]
pub enum UuidV1Rearranged {}

impl Scheme for UuidV1Rearranged {
    type Raw = Uuid;

    const NAME: &'static str = "uuid_v1_rearranged";
    const ORDERS: Orders = Orders::BYTES.and(Comparison::MariaDbUuid);
    const EXPECTED: &'static str = "version 6 and variant 111 (reserved)";

    fn check(raw: &Uuid) -> bool {
        raw.get_version_num() == 6 && raw.get_variant() == Variant::Future
    }

    fn coerce(raw: Uuid) -> Uuid {
        let mut bytes = raw.into_bytes();
        bytes[6] = 0x60 | bytes[6] & 0x0f;
        bytes[8] |= 0xe0;
        Uuid::from_bytes(bytes)
    }

    /// Returns `None` for times before 1970 as well.
    fn timestamp(raw: &Uuid) -> Option<Timestamp> {
        let parts = Self::unpack(raw).ok()?;
        gregorian::timestamp(parts.ticks)
    }
}

impl RisesAsBytes for UuidV1Rearranged {}
impl RisesInMariaDbUuid for UuidV1Rearranged {}

impl Slotted for UuidV1Rearranged {
    type Node = UuidNode;

    const SCALE: TimeScale = gregorian::SCALE;
    const TICK_BITS: u32 = gregorian::TICK_BITS;
    const INDEX_BITS: u32 = gregorian::COUNTED_BITS;
    const FRACTION_BITS: u32 = gregorian::COUNTED_BITS;
    const SEED_BITS: u32 = 0;
    const RANDOM_BITS: u32 = 0;
    const IDENTITY: bool = true;

    fn is_drawn(node: UuidNode) -> bool {
        node == UuidNode::RANDOM
    }

    #[inline]
    fn encode(slot: Slot<UuidNode>) -> Uuid {
        let (ticks, low) = gregorian::halves_of(slot);
        // The variant covers the highest bit of the clock sequence.
        Uuid::from_u64_pair(gregorian::time_high_first(ticks), 0b111 << 61 | low)
    }
}

/// # Example: the published pair
///
/// ```
/// use ordid_core::scheme::{Layout, UuidV1, UuidV1Rearranged};
///
/// let v1 = UuidV1::unpack(&"12adde00-f100-11e6-bc64-92361f002671".parse()?)?;
/// let parts = UuidV1Rearranged::unpack(&"1e6f1001-2add-6e00-fc64-92361f002671".parse()?)?;
/// assert_eq!((parts.ticks, parts.node), (v1.ticks, v1.node));
/// assert_eq!((v1.clock_seq, parts.clock_seq), (0x3c64, 0x1c64)); // less its highest bit
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl Layout for UuidV1Rearranged {
    type Parts = Parts;

    fn pack(parts: Parts) -> Result<Uuid, Error> {
        let (ticks, low) = parts.to_halves::<Self>(CLOCK_SEQ_BITS)?;
        Ok(Uuid::from_u64_pair(
            gregorian::time_high_first(ticks),
            0b111 << 61 | low,
        ))
    }

    fn unpack(raw: &Uuid) -> Result<Parts, Error> {
        if !Self::check(raw) {
            return Err(not_of::<Self>(raw));
        }
        let (high, low) = raw.as_u64_pair();
        let ticks = gregorian::from_time_high_first(high & !0xf000);
        Ok(Parts::from_halves(ticks, low, CLOCK_SEQ_BITS))
    }

    fn inspect(raw: &Uuid) -> Result<Inspection, Error> {
        Ok(Self::unpack(raw)?.inspect::<Self>(6))
    }
}

impl TimeOrdered for UuidV1Rearranged {
    fn bounds_at(timestamp: Timestamp) -> Result<(Uuid, Uuid), Error> {
        gregorian::bounds_at::<Self>(timestamp, CLOCK_SEQ_BITS)
    }
}

generator_alias! {
    /// Makes rearranged UUIDs of version 1, strictly rising over all threads that share it.
    UuidV1RearrangedGenerator<C, E> = OrderedGenerator<UuidV1Rearranged, C, E>
}

process_wide!(UuidV1Rearranged);

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        key::{Generated, StaticScheme},
        scheme::{UuidV6, gregorian::testing::*},
    };

    #[test]
    fn keys_rise_under_the_declared_rules_and_no_others() {
        for node in [UuidNode::RANDOM, UuidNode::hashed(b"account 7", [1, 2])] {
            assert_eq!(
                rules_that_hold(&day::<UuidV1Rearranged>(node)),
                declared::<UuidV1Rearranged>()
            );
        }
    }

    #[test]
    fn keys_are_those_of_version_6_but_for_the_variant() {
        let rearranged = day::<UuidV1Rearranged>(UuidNode::RANDOM);
        for (raw, v6) in rearranged.iter().zip(day::<UuidV6>(UuidNode::RANDOM)) {
            assert_eq!(raw.as_u128(), v6.as_u128() | 0b111 << 61);
            assert!(UuidV1Rearranged::check(raw) && !UuidV6::check(raw));
            assert!(!UuidV1Rearranged::check(&v6));
        }
    }

    #[test]
    fn the_variant_tells_it_from_version_6_and_reserved_others() {
        for (text, is) in [
            ("1e6f1001-2add-6e00-fc64-92361f002671", true),
            ("1e6f1001-2add-6e00-ffff-92361f002671", true),
            ("1e6f1001-2add-6e00-e000-92361f002671", true),
            ("1e6f1001-2add-6e00-dfff-92361f002671", false),
            ("1e6f1001-2add-6e00-bc64-92361f002671", false),
            ("1e6f1001-2add-7e00-fc64-92361f002671", false),
            ("ffffffff-ffff-ffff-ffff-ffffffffffff", false),
        ] {
            let raw: Uuid = text.parse().unwrap();
            assert_eq!(UuidV1Rearranged::check(&raw), is, "{text}");
            assert_eq!(UuidV1Rearranged::timestamp(&raw).is_some(), is, "{text}");
        }
        let v6: Uuid = "1ec9414c-232a-6b00-b3c8-9f6bdeced846".parse().unwrap();
        assert_eq!(
            UuidV1Rearranged::unpack(&v6).unwrap_err().to_string(),
            "not a `uuid_v1_rearranged`: scheme uuid_v1_rearranged expects version 6 and variant \
             111 (reserved), found version 6 and variant RFC 9562 in \
             1ec9414c-232a-6b00-b3c8-9f6bdeced846"
        );
    }

    #[test]
    fn a_clock_sequence_of_14_bits_is_refused() {
        let parts = Parts {
            ticks: 0,
            clock_seq: 0x1fff,
            node: [0; 6],
        };
        let raw = UuidV1Rearranged::pack(parts).unwrap();
        assert_eq!(raw.to_string(), "00000000-0000-6000-ffff-000000000000");
        let clock_seq = 0x2000;
        let error = UuidV1Rearranged::pack(Parts { clock_seq, ..parts }).unwrap_err();
        assert_eq!(
            error.to_string(),
            "clock_seq 8192 does not fit: scheme uuid_v1_rearranged has 13 bits for it"
        );
    }

    #[test]
    fn process_wide_keys_rise() {
        let mut keys = vec![UuidV1Rearranged::generate()];
        keys.extend(UuidV1Rearranged::reserve(10).unwrap());
        let keys: Vec<Uuid> = keys.into_iter().map(Generated::into_raw).collect();
        assert!(keys.is_sorted_by(|a, b| a < b));
        assert!(keys.iter().all(UuidV1Rearranged::check));
    }

    proptest! {
        #[test]
        fn any_parts_give_a_key_and_come_back(
            ticks in 0..1_u64 << 60,
            clock_seq in 0..1_u16 << 13,
            node: [u8; 6],
        ) {
            let parts = Parts { ticks, clock_seq, node };
            let raw = UuidV1Rearranged::pack(parts).unwrap();
            prop_assert!(UuidV1Rearranged::check(&raw));
            prop_assert_eq!(UuidV1Rearranged::unpack(&raw).unwrap(), parts);
        }
    }
}
