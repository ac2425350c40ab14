//! Percona's 64-bit key: 32 bits of seconds, the low 16 bits of a node, a 16-bit counter.
//!
//! ```text
//!  63                              31              15              0
//! +--------------------------------+---------------+---------------+
//! |  seconds since 1970, unsigned  |  node (2 B)   |    counter    |
//! +--------------------------------+---------------+---------------+
//! ```
//!
//! A key is a `BIGINT UNSIGNED`. From 2038-01-19 on its highest bit is one, so in a signed column keys would be
//! negative: use an unsigned column, or [`snowflake`](super::snowflake). The seconds end on 2106-02-07T06:28:15Z;
//! later times are an error. Keys compare as numbers, and so do their bytes, most significant first.
//!
//! The original uses the last two bytes of a MAC address for the node, and a counter that starts at random and wraps.
//! It repeats keys after 65,536 in a second, and its keys fall where the counter wraps. This scheme keeps the layout.
//! The counter starts each second at 15 random bits below a zero bit and has **32,768 keys a second**, so it cannot
//! wrap. Then the [`Overflow`](crate::generator::Overflow) policy acts; by default the counter runs up to ten seconds
//! ahead of the clock.
//!
//! Two hosts whose addresses have the same last bytes have the same node, and may repeat each other's keys. So assign
//! nodes instead. **No two generators may have the same node at the same time**, and after a restart a generator has
//! to begin above the last key of the run before ([`start_above`](crate::generator::OrderedGenerator::start_above),
//! [`WithHighWaterMark`](crate::generator::WithHighWaterMark)). Keys of one generator rise strictly; keys of several
//! are ordered by the second. Whoever knows one key can predict the next one of the same second.
//!
//! # References
//!
//! Percona, "UUIDs are Popular, but Bad for Performance", section "64-bit".

use crate::{
    clock::{TimeScale, Timestamp},
    error::Error,
    generator::{OrderedGenerator, Slot, Slotted},
    key::{RisesAsBytes, Scheme},
    layout::Orders,
    scheme::anatomy::{Certainty, Inspection, Layout, TimeOrdered, tick_at},
};

const SCALE: TimeScale = TimeScale::UNIX_SECONDS;

/// The scheme `percona_64`.
#[derive(Debug)]
pub enum Percona64 {}

impl Scheme for Percona64 {
    // Most significant byte first, as every database compares integers.
    any_value!("percona_64", u64: "64 bits", Orders::BYTES);

    fn timestamp(raw: &u64) -> Option<Timestamp> {
        Some(SCALE.timestamp_at(*raw >> 32))
    }
}

impl RisesAsBytes for Percona64 {}

impl Slotted for Percona64 {
    /// The two bytes of the node.
    type Node = u16;

    const SCALE: TimeScale = SCALE;
    const TICK_BITS: u32 = 32;
    const INDEX_BITS: u32 = 15;
    /// The counter has one bit more, which begins as zero.
    const SEED_BITS: u32 = 15;
    const RANDOM_BITS: u32 = 0;
    /// 15 random bits are too few to tell two runs in the same second apart.
    const RENEWS: bool = false;

    #[inline]
    fn encode(slot: Slot<u16>) -> u64 {
        slot.time << 32 | u64::from(slot.node) << 16 | slot.count
    }
}

/// The fields of a key. Every value of each field is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// Seconds since 1970, unsigned.
    pub seconds: u32,
    /// The low two bytes of a node.
    pub node: u16,
    /// The counter.
    pub counter: u16,
}

/// # Example
///
/// ```
/// use ordid_core::scheme::{Layout, Percona64, percona_64::Parts};
///
/// let parts = Parts { seconds: 1_645_557_742, node: 0x361f, counter: 7 };
/// assert_eq!(Percona64::pack(parts)?, 1_645_557_742 << 32 | 0x361f << 16 | 7);
/// # Ok::<(), ordid_core::Error>(())
/// ```
impl Layout for Percona64 {
    fields!(Parts: seconds = 32, node = 16, counter = 16);

    fn inspect(raw: &u64) -> Result<Inspection, Error> {
        let parts = Self::unpack(raw)?;
        Ok(Inspection {
            moment: Some(SCALE.moment_at(u64::from(parts.seconds))),
            node: Some(u64::from(parts.node)),
            counter: Some(u64::from(parts.counter)),
            ..Inspection::of::<Self>(Certainty::Possible)
        })
    }
}

impl TimeOrdered for Percona64 {
    fn bounds_at(timestamp: Timestamp) -> Result<(u64, u64), Error> {
        let lowest = tick_at(SCALE, 32, timestamp)? << 32;
        Ok((lowest, lowest | 0xffff_ffff))
    }
}

generator_alias! {
    /// Makes Percona's 64-bit keys for a node
    /// ([`with_node`](OrderedGenerator::with_node)), strictly rising over all threads that share it.
    Percona64Generator<C, E> = OrderedGenerator<Percona64, C, E>
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::{
        generator::{Generator, Policy},
        scheme::testing::*,
    };

    fn apart(raw: u64) -> Parts {
        Percona64::unpack(&raw).unwrap()
    }

    fn scripted(seed: u64, policy: Policy) -> Scripted<Percona64> {
        scripted_with(0x361f, START, seed, policy)
    }

    /// The original's counter wraps there and goes down.
    #[test]
    fn percona_counters_never_wrap_inside_a_second() {
        for seed in 0..20 {
            let generator = scripted(seed, Policy::DEFAULT);
            let first = next(&generator);
            assert!(apart(first).counter < 1 << 15, "15 random bits");
            let mut last = first;
            for number in 1..70_000_u32 {
                let key = next(&generator);
                assert!(key > last, "{key:x} after {last:x}");
                let seconds = apart(first).seconds + number / 32_768;
                assert_eq!((apart(key).seconds, apart(key).node), (seconds, 0x361f));
                last = key;
            }
        }
        let starts = [1, 2].map(|seed| apart(next(&scripted(seed, Policy::DEFAULT))).counter);
        assert_ne!(starts[0], starts[1]);
    }

    #[test]
    fn a_second_has_32768_keys_and_then_the_policy_acts() {
        let generator = scripted(1, STRICT);
        generator.try_fill_with(32_768, |_| ()).unwrap();
        assert!(generator.try_generate().unwrap_err().is_overflow());
        generator.clock().set_unix_millis(START + 1_000);
        next(&generator);
    }

    #[test]
    fn percona_keys_end_in_2106_with_an_error() {
        let last = u64::from(u32::MAX) * 1_000 + 999;
        let key = ends_after(&scripted(1, Policy::DEFAULT), last);
        assert_eq!(apart(key).seconds, u32::MAX);
        let after = Timestamp::from_unix_millis(last + 1).unwrap();
        assert!(Percona64::bounds_at(after).unwrap_err().is_clock());
    }

    #[test]
    fn a_key_is_seconds_node_and_counter() {
        let inspection = Percona64::inspect(&0x1122_3344_5566_7788).unwrap();
        let parts = (inspection.node, inspection.counter);
        assert_eq!(parts, (Some(0x5566), Some(0x7788)));
    }
}
