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
//! Bytes are in network order, and keys compare byte by byte, in MariaDB's `UUID`, too, which does not swap
//! version 6. Keys of different generators interleave by time to 100 ns.
//!
//! The generator reads the clock's tick. If keys are made faster than ticks, or the clock is coarser, it counts on
//! from there: ten million keys a second. Node and clock sequence stay the same for a generator, until a fork or
//! until it follows a clock back. RFC 9562 section 5.6 prefers new ones for every key, but lets implementations keep
//! them. So **whoever knows one key knows all of the next one but its tick**. If that matters, use
//! [`uuid_v7_unguessable`](super::uuid_v7_unguessable). The node is random unless a
//! [`UuidNode`](crate::scheme::UuidNode) is given.
//!
//! # References
//!
//! RFC 9562 section 5.6 (layout), 6.1 (timestamps), 6.10 (node ids that are no MAC addresses).

use uuid::Uuid;

use crate::{
    clock::Timestamp,
    key::{RisesAsBytes, RisesInMariaDbUuid, Scheme},
    layout::{Comparison, Orders},
    scheme::gregorian,
};

pub use super::gregorian::Parts;

/// The scheme `uuid_v6`.
#[derive(Debug)]
pub enum UuidV6 {}

impl Scheme for UuidV6 {
    rfc_9562!("uuid_v6", version 6, Orders::BYTES.and(Comparison::MariaDbUuid));

    /// Returns `None` also for times before 1970.
    fn timestamp(raw: &Uuid) -> Option<Timestamp> {
        gregorian::timestamp::<Self>(raw)
    }
}

impl RisesAsBytes for UuidV6 {}
impl RisesInMariaDbUuid for UuidV6 {}

gregorian::layout! {
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
    UuidV6, version: 6, variant: 0b10 << 62, clock_seq_bits: 14, time_high_first,
    from_time_high_first
}

generator! {
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
    UuidV6Generator: UuidV6
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::{
        generator::{Generator, Slotted},
        scheme::{Layout, UuidNode, testing::*},
    };

    #[test]
    fn a_large_batch_rises_by_one_tick_a_key_on_a_stopped_clock() {
        let generator = scripted_at::<UuidV6>(UuidNode::RANDOM, START);
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
