//! UUID version 6: the 60 bits of 100 ns ticks since 1582-10-15 of version 1, highest bits first.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                 time_high (upper 32 bits of ticks)            |
//! +-------------------------------+-------+-----------------------+
//! |           time_mid            | ver 6 |   time_low (12 bits)  |
//! +---+---------------------------+-------+-----------------------+
//! |var|     clock_seq (14)        |     node (upper 16 bits)      |
//! +---+---------------------------+-------------------------------+
//! |                     node (lower 32 bits)                      |
//! +---------------------------------------------------------------+
//! ```
//!
//! Bytes are in network order; keys compare as their bytes do, in MariaDB's `UUID` too, which
//! leaves version 6 unswapped. Keys of different generators interleave by time to 100 ns.
//!
//! The generator reads the clock's tick and counts on from it where keys are faster than ticks, or
//! the clock is coarser: ten million keys a second. Node and clock sequence stay the same for a
//! generator, until a fork or until it follows a clock back: RFC 9562 section 5.6 would rather
//! have them drawn for every key, and lets implementations keep them. So **whoever knows one key
//! knows the next one but for its tick**; where that matters, take
//! [`uuid_v7_unguessable`](super::uuid_v7_unguessable). The node is random unless a
//! [`UuidNode`] is given.
//!
//! # References
//!
//! RFC 9562 section 5.6 (layout), 6.1 (timestamps), 6.10 (node ids that are no MAC addresses).

use uuid::{Uuid, Variant};

use crate::{
    clock::{TimeScale, Timestamp},
    error::Error,
    generator::{OrderedGenerator, Slot, Slotted},
    key::{RisesAsBytes, RisesInMariaDbUuid, Scheme},
    layout::{Comparison, Orders},
    scheme::{
        UuidNode,
        anatomy::{Inspection, Layout, TimeOrdered, not_of, with_version},
        gregorian,
    },
};

pub use super::gregorian::Parts;

const CLOCK_SEQ_BITS: u32 = 14;

/// The scheme `uuid_v6`.
#[derive(Debug)]
pub enum UuidV6 {}

impl Scheme for UuidV6 {
    type Raw = Uuid;

    const NAME: &'static str = "uuid_v6";
    const ORDERS: Orders = Orders::BYTES.and(Comparison::MariaDbUuid);
    const EXPECTED: &'static str = "version 6 and variant RFC 9562";

    fn check(raw: &Uuid) -> bool {
        raw.get_version_num() == 6 && raw.get_variant() == Variant::RFC4122
    }

    fn coerce(raw: Uuid) -> Uuid {
        with_version(raw, 6)
    }

    /// Returns `None` for times before 1970 as well.
    fn timestamp(raw: &Uuid) -> Option<Timestamp> {
        let parts = Self::unpack(raw).ok()?;
        gregorian::timestamp(parts.ticks)
    }
}

impl RisesAsBytes for UuidV6 {}
impl RisesInMariaDbUuid for UuidV6 {}

impl Slotted for UuidV6 {
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
        Uuid::from_u64_pair(gregorian::time_high_first(ticks), 0b10 << 62 | low)
    }
}

/// # Example: the RFC's own vector
///
/// ```
/// use ordid_core::scheme::{Layout, UuidV6, uuid_v6::Parts};
///
/// let parts = Parts {
///     ticks: 138_648_505_420_000_000, // 2022-02-22T19:22:22Z
///     clock_seq: 0x33c8,
///     node: [0x9f, 0x6b, 0xde, 0xce, 0xd8, 0x46],
/// };
/// let key = UuidV6::pack(parts)?;
/// assert_eq!(key.to_string(), "1ec9414c-232a-6b00-b3c8-9f6bdeced846");
/// assert_eq!(UuidV6::unpack(&key)?, parts);
/// # Ok::<(), ordid_core::Error>(())
/// ```
impl Layout for UuidV6 {
    type Parts = Parts;

    fn pack(parts: Parts) -> Result<Uuid, Error> {
        let (ticks, low) = parts.to_halves::<Self>(CLOCK_SEQ_BITS)?;
        Ok(Uuid::from_u64_pair(
            gregorian::time_high_first(ticks),
            0b10 << 62 | low,
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

impl TimeOrdered for UuidV6 {
    fn bounds_at(timestamp: Timestamp) -> Result<(Uuid, Uuid), Error> {
        gregorian::bounds_at::<Self>(timestamp, CLOCK_SEQ_BITS)
    }
}

generator_alias! {
    /// Makes UUIDs of version 6, strictly rising over all threads that share it.
    ///
    /// # Example: a node of one's own
    ///
    /// ```
    /// use ordid_core::{
    ///     clock::SystemClock, entropy::ThreadEntropy, generator::{Generator, Policy},
    ///     scheme::{Layout, UuidNode, UuidV6, uuid_v6::UuidV6Generator},
    /// };
    ///
    /// let node = UuidNode::hashed(b"account 7", [17, 4]); // a salt of your own
    /// let keys = UuidV6Generator::with_node(node, SystemClock, ThreadEntropy, Policy::DEFAULT);
    /// let [first, second] = [keys.try_generate()?.into_raw(), keys.try_generate()?.into_raw()];
    /// assert!(first < second);
    /// assert_eq!(UuidV6::unpack(&first)?.node, UuidV6::unpack(&second)?.node);
    /// # Ok::<(), ordid_core::Error>(())
    /// ```
    UuidV6Generator<C, E> = OrderedGenerator<UuidV6, C, E>
}

process_wide!(UuidV6);

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::{generator::Generator, scheme::gregorian::testing::*};

    #[test]
    fn parts_meet_the_vectors_of_the_rfc_and_of_the_uuid_crate() {
        let rfc = vectors("rfc9562");
        let vector = &rfc["v6"][0];
        let parts = Parts {
            ticks: hex(&vector["time_high"]) << 28
                | hex(&vector["time_mid"]) << 12
                | hex(&vector["time_low"]),
            clock_seq: u16::try_from(hex(&vector["clock_seq"])).unwrap(),
            node: node(&vector["node"]),
        };
        assert_eq!(parts.ticks, rfc["greg_100ns"].as_u64().unwrap());
        assert_eq!(UuidV6::pack(parts).unwrap(), uuid(&vector["uuid"]));
        assert_eq!(UuidV6::unpack(&uuid(&vector["uuid"])).unwrap(), parts);
        let millis = UuidV6::timestamp(&uuid(&vector["uuid"])).unwrap();
        assert_eq!(millis.as_unix_millis(), rfc["unix_ms"].as_u64().unwrap());

        let vector = &vectors("uuid_rs")["v6"][0];
        let millis = vector["unix_s"].as_u64().unwrap() * 1_000;
        let nanos = u32::try_from(vector["nanos"].as_u64().unwrap()).unwrap();
        let millis = millis + u64::from(nanos / 1_000_000);
        let parts = Parts {
            ticks: UuidV6::SCALE.ticks_at(millis, nanos % 1_000_000).unwrap(),
            clock_seq: u16::try_from(vector["clock_seq"].as_u64().unwrap()).unwrap(),
            node: node(&vector["node"]),
        };
        assert_eq!(UuidV6::pack(parts).unwrap(), uuid(&vector["uuid"]));
    }

    #[test]
    fn keys_rise_under_the_declared_rules_and_no_others() {
        for node in [UuidNode::RANDOM, UuidNode::danger_exact([2, 0, 0, 0, 0, 7])] {
            assert_eq!(rules_that_hold(&day::<UuidV6>(node)), declared::<UuidV6>());
        }
    }

    #[test]
    fn a_large_batch_rises_by_one_tick_a_key_on_a_stopped_clock() {
        let generator = scripted::<UuidV6>(UuidNode::RANDOM, 6);
        generator.clock().freeze();
        let mut expected = UuidV6::SCALE.ticks_at(START, 0).unwrap();
        generator
            .try_fill_with(200_000, |key| {
                let ticks = UuidV6::unpack(&key.into_raw()).unwrap().ticks;
                assert_eq!(ticks, expected);
                expected += 1;
            })
            .unwrap();
        assert_eq!(UuidV6::unpack(&next(&generator)).unwrap().ticks, expected);
    }
}
