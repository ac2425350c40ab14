//! What UUID versions 1 and 6 share: 60 bits of 100 ns ticks since 1582-10-15, a clock sequence, a
//! node.

use uuid::Uuid;

use crate::{
    clock::{TimeScale, Timestamp},
    error::Error,
    generator::Slot,
    key::Scheme,
    scheme::{
        UuidNode,
        anatomy::{Certainty, Inspection, Layout, fits, out_of_time},
    },
};

pub(super) const SCALE: TimeScale = TimeScale::GREGORIAN_TICKS;
pub(super) const TICK_BITS: u32 = 60;
/// Ticks that are counted ahead of the clock in one unit of the engine's time: 819.2 microseconds.
pub(super) const COUNTED_BITS: u32 = 13;

/// The fields of a UUID of version 1 or 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// 100 nanoseconds since 1582-10-15T00:00:00Z: 60 bits, which end in the year 5236.
    pub ticks: u64,
    /// The clock sequence: 14 bits; 13 in the rearranged form of 2017.
    pub clock_seq: u16,
    /// The node id: 48 bits, its first octet first.
    pub node: [u8; 6],
}

impl Parts {
    /// Checks that all fit, and returns ticks, and clock sequence and node as in the lower half.
    pub(super) fn to_halves<S: Scheme>(self, clock_seq_bits: u32) -> Result<(u64, u64), Error> {
        fits::<S>("ticks", self.ticks, TICK_BITS)?;
        fits::<S>("clock_seq", self.clock_seq, clock_seq_bits)?;
        let low = u64::from(self.clock_seq) << 48 | to_number(self.node);
        Ok((self.ticks, low))
    }

    /// The inverse of [`to_halves`](Self::to_halves), ignoring what is above the clock sequence.
    pub(super) const fn from_halves(ticks: u64, low: u64, clock_seq_bits: u32) -> Self {
        let [_, _, node @ ..] = low.to_be_bytes();
        Self {
            ticks,
            clock_seq: (low >> 48 & ((1 << clock_seq_bits) - 1)) as u16,
            node,
        }
    }

    pub(super) fn inspect<S: Scheme>(self, version: u8) -> Inspection {
        Inspection {
            moment: Some(SCALE.moment_at(self.ticks)),
            node: Some(to_number(self.node)),
            counter: Some(u64::from(self.clock_seq)),
            version: Some(version),
            ..Inspection::of::<S>(Certainty::Stated)
        }
    }
}

pub(super) const fn to_number(node: [u8; 6]) -> u64 {
    let [a, b, c, d, e, f] = node;
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

/// Returns ticks, and clock sequence (14 bits) and node as in the lower half.
#[inline]
pub(super) const fn halves_of(slot: Slot<UuidNode>) -> (u64, u64) {
    let clock_seq = slot.identity & 0x3fff;
    let low = clock_seq << 48 | slot.node.bits(slot.identity);
    (slot.time << COUNTED_BITS | slot.count, low)
}

/// Returns the time of ticks, where 1970 and after.
pub(super) const fn timestamp(ticks: u64) -> Option<Timestamp> {
    SCALE.moment_at(ticks).timestamp()
}

/// The first half of version 1: `time_low`, `time_mid`, version, `time_hi`.
pub(super) const fn time_low_first(ticks: u64) -> u64 {
    ticks << 32 | (ticks >> 32 & 0xffff) << 16 | 0x1000 | ticks >> 48
}

pub(super) const fn from_time_low_first(high: u64) -> u64 {
    (high & 0xfff) << 48 | (high >> 16 & 0xffff) << 32 | high >> 32
}

/// The first half of version 6: `time_high`, `time_mid`, version, `time_low`.
pub(super) const fn time_high_first(ticks: u64) -> u64 {
    ticks >> 12 << 16 | 0x6000 | ticks & 0xfff
}

pub(super) const fn from_time_high_first(high: u64) -> u64 {
    high >> 16 << 12 | high & 0xfff
}

/// [`TimeOrdered::bounds_at`](crate::scheme::TimeOrdered::bounds_at) of these layouts.
pub(super) fn bounds_at<S>(timestamp: Timestamp, clock_seq_bits: u32) -> Result<(Uuid, Uuid), Error>
where
    S: Layout<Raw = Uuid, Parts = Parts>,
{
    let last = (1 << TICK_BITS) - 1;
    // The last millisecond has all of its ticks, or none.
    let ticks_at = |nanos| match SCALE.ticks_at(timestamp.as_unix_millis(), nanos) {
        Some(ticks) if ticks <= last => Ok(ticks),
        _ => Err(out_of_time(timestamp, SCALE.timestamp_at(last - 9_999))),
    };
    let lowest = Parts {
        ticks: ticks_at(0)?,
        clock_seq: 0,
        node: [0; 6],
    };
    let highest = Parts {
        ticks: ticks_at(999_999)?,
        clock_seq: (1 << clock_seq_bits) - 1,
        node: [0xff; 6],
    };
    Ok((S::pack(lowest)?, S::pack(highest)?))
}

/// What the tests of these layouts share.
#[cfg(test)]
#[cfg(not(loom))]
pub(super) mod testing {
    use super::*;
    use crate::{
        clock::ManualClock,
        entropy::SeededEntropy,
        generator::{Generator, OrderedGenerator, Policy, Slotted},
        layout::Comparison,
    };

    pub(crate) const START: u64 = 1_645_557_742_000;

    pub(crate) type Scripted<S> = OrderedGenerator<S, ManualClock, SeededEntropy>;

    pub(crate) fn scripted<S: Slotted<Node = UuidNode>>(node: UuidNode, seed: u64) -> Scripted<S> {
        let clock = ManualClock::at_unix_millis(START);
        OrderedGenerator::with_node(node, clock, SeededEntropy::new(seed), Policy::DEFAULT)
    }

    pub(crate) fn next<S: Slotted<Node = UuidNode, Raw = Uuid>>(generator: &Scripted<S>) -> Uuid {
        generator.try_generate().unwrap().into_raw()
    }

    /// Keys of one generator over a day: bursts that carry over the lower bytes of the ticks, and
    /// steps that carry over `time_low` and `time_mid`.
    pub(crate) fn day<S: Slotted<Node = UuidNode, Raw = Uuid>>(node: UuidNode) -> Vec<Uuid> {
        let generator = scripted::<S>(node, 11);
        let mut keys = Vec::new();
        for step in 0..200 {
            generator.clock().set_unix_millis(START + step * 432_000);
            keys.extend((0..300).map(|_| next(&generator)));
        }
        assert!(keys.is_sorted_by(|a, b| S::cmp(a, b).is_lt()));
        keys
    }

    pub(crate) fn rules_that_hold(keys: &[Uuid]) -> Vec<Comparison> {
        Comparison::ALL
            .into_iter()
            .filter(|rule| {
                keys.is_sorted_by(|a, b| rule.sort_key(a.as_bytes()) < rule.sort_key(b.as_bytes()))
            })
            .collect()
    }

    pub(crate) fn declared<S: Scheme>() -> Vec<Comparison> {
        Comparison::ALL
            .into_iter()
            .filter(|rule| S::ORDERS.contains(*rule))
            .collect()
    }

    /// The vectors of a file in `tests/vectors`.
    pub(crate) fn vectors(name: &str) -> serde_json::Value {
        let file = format!("{}/tests/vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
        serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
    }

    pub(crate) fn uuid(value: &serde_json::Value) -> Uuid {
        value.as_str().unwrap().parse().unwrap()
    }

    pub(crate) fn hex(value: &serde_json::Value) -> u64 {
        let digits = value.as_str().unwrap();
        u64::from_str_radix(digits.trim_start_matches("0x"), 16).unwrap()
    }

    pub(crate) fn node(value: &serde_json::Value) -> [u8; 6] {
        let [_, _, node @ ..] = hex(value).to_be_bytes();
        node
    }
}
