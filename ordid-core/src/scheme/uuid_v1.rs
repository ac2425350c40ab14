//! UUID version 1: 60 bits of 100 ns ticks since 1582-10-15, lowest bits first, then a clock
//! sequence and a node.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                 time_low (lower 32 bits of ticks)             |
//! +-------------------------------+-------+-----------------------+
//! |           time_mid            | ver 1 |   time_high (12 bits) |
//! +---+---------------------------+-------+-----------------------+
//! |var|     clock_seq (14)        |     node (upper 16 bits)      |
//! +---+---------------------------+-------------------------------+
//! |                     node (lower 32 bits)                      |
//! +---------------------------------------------------------------+
//! ```
//!
//! Bytes are in network order. The scheme's order ([`Scheme::cmp`]) is by ticks, then clock sequence, then node: the
//! order in which keys were made. **No database compares the bytes in this way.** The result of MySQL's
//! `UUID_TO_BIN(x, 1)` does compare so, and is the only rule that the scheme declares:
//!
//! - as bytes, keys fall back whenever `time_low` overflows, every 429 seconds;
//! - MariaDB's `UUID` compares node, clock sequence, then time. The keys of *one* generator rise there, until a fork
//!   or until it follows a clock back. Keys of two generators are in two separate ranges, whatever their times, and
//!   that is not the order of the keys;
//! - SQL Server compares node, clock sequence, then the bytes of the time from the right, and falls
//!   back every 256 ticks.
//!
//! To keep the order, store [`uuid_v6`](super::uuid_v6), which is the same key with its time rearranged
//! ([`convert`](super::convert)), or use the column [`Binary16Swapped`](crate::storage::column::Binary16Swapped),
//! which holds the result of that function.
//!
//! Ticks, clock sequence and node are as in [`uuid_v6`](super::uuid_v6). Whoever knows one key knows all of the next
//! one but its tick.
//!
//! # References
//!
//! RFC 9562 section 5.1 (layout), 6.1 (timestamps), 6.10 (node ids that are no MAC addresses).

use core::cmp::Ordering;

use uuid::Uuid;

use crate::{
    clock::Timestamp,
    key::{RisesAsUuidToBin, Scheme},
    layout::{Comparison, Orders},
    scheme::gregorian,
};

pub use super::gregorian::Parts;

/// The scheme `uuid_v1`.
#[derive(Debug)]
pub enum UuidV1 {}

impl Scheme for UuidV1 {
    rfc_9562!("uuid_v1", version 1, Orders::NONE.and(Comparison::UuidToBin));

    /// Returns `None` also for times before 1970.
    fn timestamp(raw: &Uuid) -> Option<Timestamp> {
        gregorian::timestamp::<Self>(raw)
    }

    /// Compares ticks, then clock sequence, then node.
    #[inline]
    fn cmp(left: &Uuid, right: &Uuid) -> Ordering {
        // Over any bits, so that it is an order of all values; the version is the same in all keys.
        let key = |raw: &Uuid| {
            let (high, low) = raw.as_u64_pair();
            (high << 48 | (high & 0xffff_0000) << 16 | high >> 32, low)
        };
        key(left).cmp(&key(right))
    }
}

impl RisesAsUuidToBin for UuidV1 {}

gregorian::layout! {
    /// # Example: the RFC's own vector
    ///
    /// ```
    /// use ordid_core::scheme::{Layout, UuidV1, uuid_v1::Parts};
    ///
    /// let parts = Parts {
    ///     ticks: 138_648_505_420_000_000, // 2022-02-22T19:22:22Z
    ///     clock_seq: 0x33c8,
    ///     node: [0x9f, 0x6b, 0xde, 0xce, 0xd8, 0x46],
    /// };
    /// let key = UuidV1::pack(parts)?;
    /// assert_eq!(key.to_string(), "c232ab00-9414-11ec-b3c8-9f6bdeced846");
    /// assert_eq!(UuidV1::unpack(&key)?, parts);
    /// # Ok::<(), ordid_core::Error>(())
    /// ```
    UuidV1, version: 1, variant: 0b10 << 62, clock_seq_bits: 14, time_low_first,
    from_time_low_first
}

generator! {
    /// Makes UUIDs of version 1, strictly rising over all threads that share it.
    ///
    /// # Example: a node of one's own
    ///
    /// ```
    /// use ordid_core::{
    ///     clock::SystemClock, entropy::ThreadEntropy, generator::{Generator, Policy},
    ///     scheme::{Layout, UuidNode, UuidV1, uuid_v1::UuidV1Generator}, key::Scheme,
    /// };
    ///
    /// let node = UuidNode::hashed(b"account 7", [17, 4]); // a salt of your own
    /// let keys = UuidV1Generator::with_node(node, SystemClock, ThreadEntropy, Policy::DEFAULT);
    /// let [first, second] = [keys.try_generate()?.into_raw(), keys.try_generate()?.into_raw()];
    /// assert!(UuidV1::cmp(&first, &second).is_lt());
    /// assert_eq!(UuidV1::unpack(&first)?.node, UuidV1::unpack(&second)?.node);
    /// # Ok::<(), ordid_core::Error>(())
    /// ```
    UuidV1Generator: UuidV1
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::{
        generator::Policy,
        scheme::{Layout, UuidNode, testing::*},
    };

    #[test]
    fn the_swapped_form_orders_all_keys_and_mariadb_those_of_one_generator() {
        assert_eq!(declared::<UuidV1>(), [Comparison::UuidToBin]);
        let keys = day::<UuidV1>(UuidNode::RANDOM);
        assert_eq!(
            rules_that_hold(&keys),
            [Comparison::MariaDbUuid, Comparison::UuidToBin]
        );
        // Two generators in turn: each pair is in order of time, and one of the two stays below.
        let nodes = [[1, 0, 0, 0, 0, 2], [1, 0, 0, 0, 0, 1]].map(UuidNode::danger_exact);
        let [left, right] =
            nodes.map(|node| scripted_with::<UuidV1>(node, START, 12, Policy::DEFAULT));
        let mut keys = Vec::new();
        for step in 1..50 {
            for (generator, ahead) in [(&left, 0), (&right, 1)] {
                generator.clock().set_unix_millis(START + 2 * step + ahead);
                keys.push(next(generator));
            }
        }
        assert!(keys.is_sorted_by(|a, b| UuidV1::cmp(a, b).is_lt()));
        let rules = rules_that_hold(&keys);
        assert!(rules.contains(&Comparison::UuidToBin));
        assert!(!rules.contains(&Comparison::MariaDbUuid));
    }

    #[test]
    fn the_order_is_by_ticks_then_clock_sequence_then_node() {
        let pack = |ticks, clock_seq, last| {
            let node = [0, 0, 0, 0, 0, last];
            UuidV1::pack(Parts {
                ticks,
                clock_seq,
                node,
            })
            .unwrap()
        };
        let rising = [
            pack(0xffff_ffff, 9, 9),
            pack(1 << 32, 1, 1),
            pack(1 << 32, 1, 2),
            pack(1 << 32, 2, 0),
            pack((1 << 48) - 1, 0, 0),
            pack(1 << 48, 0, 0),
            pack((1 << 60) - 1, 0, 0),
        ];
        assert!(rising.is_sorted_by(|a, b| UuidV1::cmp(a, b).is_lt()));
    }
}
