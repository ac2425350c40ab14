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

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::{
        testing::{START, Scripted, day, next, scripted},
        *,
    };
    use crate::{
        generator::{Generator, Slotted},
        key::{Generated, KeyType, StaticScheme},
        scheme::{TimeOrdered, UuidV1, UuidV1Rearranged, UuidV6},
    };

    /// What the three layouts have in common.
    trait Gregorian: Slotted<Node = UuidNode, Raw = Uuid> + Layout<Parts = Parts> {}

    impl<S: Slotted<Node = UuidNode, Raw = Uuid> + Layout<Parts = Parts>> Gregorian for S {}

    #[test]
    fn the_clocks_tick_is_in_the_key_and_keys_inside_a_tick_count_on() {
        the_clocks_tick_is_in_the_key_and_keys_inside_a_tick_count_on_of::<UuidV1>();
        the_clocks_tick_is_in_the_key_and_keys_inside_a_tick_count_on_of::<UuidV1Rearranged>();
        the_clocks_tick_is_in_the_key_and_keys_inside_a_tick_count_on_of::<UuidV6>();
    }

    fn the_clocks_tick_is_in_the_key_and_keys_inside_a_tick_count_on_of<S: Gregorian>() {
        let generator = scripted::<S>(UuidNode::RANDOM, 1);
        generator.clock().set_nanos(123_456);
        let start = S::SCALE.ticks_at(START, 123_456).unwrap();
        let ticks = || S::unpack(&next(&generator)).unwrap().ticks;
        assert_eq!([ticks(), ticks(), ticks()], [start, start + 1, start + 2]);
        generator.clock().set_nanos(124_000);
        assert_eq!(ticks(), start + 6);
        // A step back is held by counting on.
        generator.clock().set_unix_millis(START - 5);
        assert_eq!(ticks(), start + 7);
        let end = START + 1_000;
        generator.clock().set_unix_millis(end);
        generator.clock().set_nanos(999_999);
        assert_eq!(ticks(), S::SCALE.ticks_at(end, 999_900).unwrap());
    }

    #[test]
    fn node_and_clock_sequence_stay_until_a_fork_or_a_followed_clock() {
        node_and_clock_sequence_stay_until_a_fork_or_a_followed_clock_of::<UuidV1>();
        node_and_clock_sequence_stay_until_a_fork_or_a_followed_clock_of::<UuidV1Rearranged>();
        node_and_clock_sequence_stay_until_a_fork_or_a_followed_clock_of::<UuidV6>();
    }

    fn node_and_clock_sequence_stay_until_a_fork_or_a_followed_clock_of<S: Gregorian>() {
        let generator = scripted::<S>(UuidNode::RANDOM, 2);
        let identity = |raw: Uuid| {
            let parts = S::unpack(&raw).unwrap();
            assert_eq!(parts.node[0] & 1, 1, "multicast");
            (parts.clock_seq, parts.node)
        };
        let first = identity(next(&generator));
        assert_eq!(first, identity(next(&generator)));
        generator.entropy().fork();
        let child = identity(next(&generator));
        assert_ne!(first.0, child.0);
        assert_ne!(first.1, child.1);
        generator.clock().set_unix_millis(START - 60_000);
        let followed = identity(next(&generator));
        assert_eq!(generator.events().clock_followed, 1);
        assert_ne!(followed.0, child.0);
        assert_ne!(followed.1, child.1);
    }

    #[test]
    fn a_given_node_stays_and_its_clock_sequence_is_renewed() {
        a_given_node_stays_and_its_clock_sequence_is_renewed_of::<UuidV1>();
        a_given_node_stays_and_its_clock_sequence_is_renewed_of::<UuidV1Rearranged>();
        a_given_node_stays_and_its_clock_sequence_is_renewed_of::<UuidV6>();
    }

    fn a_given_node_stays_and_its_clock_sequence_is_renewed_of<S: Gregorian>() {
        let given = [0x92, 0x36, 0x1f, 0x00, 0x26, 0x71];
        let generator = scripted::<S>(UuidNode::danger_exact(given), 3);
        let first = S::unpack(&next(&generator)).unwrap();
        generator.entropy().fork();
        let child = S::unpack(&next(&generator)).unwrap();
        assert_eq!((first.node, child.node), (given, given));
        assert_ne!(first.clock_seq, child.clock_seq);
        assert_eq!(generator.node(), UuidNode::danger_exact(given));
    }

    #[test]
    fn keys_for_a_given_time_have_identities_of_their_own() {
        keys_for_a_given_time_have_identities_of_their_own_of::<UuidV1>();
        keys_for_a_given_time_have_identities_of_their_own_of::<UuidV1Rearranged>();
        keys_for_a_given_time_have_identities_of_their_own_of::<UuidV6>();
    }

    fn keys_for_a_given_time_have_identities_of_their_own_of<S: Gregorian>() {
        let generator = scripted::<S>(UuidNode::RANDOM, 4);
        let time = Timestamp::from_unix_millis(START).unwrap();
        let at = |generator: &Scripted<S>| generator.generate_at(time).unwrap().into_raw();
        let keys: HashSet<Uuid> = (0..10_000).map(|_| at(&generator)).collect();
        assert_eq!(keys.len(), 10_000);
        assert!(keys.iter().all(|key| S::timestamp(key) == Some(time)));
        // A given node would leave but the 14 bits of the clock sequence.
        let generator = scripted::<S>(UuidNode::danger_exact([1; 6]), 4);
        assert!(generator.generate_at(time).unwrap_err().is_unsupported());
    }

    /// The two layouts of the RFC.
    trait Rfc9562: Gregorian + StaticScheme + TimeOrdered {
        /// The text of the last key of all.
        const LAST: &'static str;

        /// The `uuid` crate's key of these parts.
        fn by_uuid(time: uuid::Timestamp, node: &[u8; 6]) -> Uuid;
    }

    impl Rfc9562 for UuidV1 {
        const LAST: &'static str = "ffffffff-ffff-1fff-bfff-ffffffffffff";

        fn by_uuid(time: uuid::Timestamp, node: &[u8; 6]) -> Uuid {
            Uuid::new_v1(time, node)
        }
    }

    impl Rfc9562 for UuidV6 {
        const LAST: &'static str = "ffffffff-ffff-6fff-bfff-ffffffffffff";

        fn by_uuid(time: uuid::Timestamp, node: &[u8; 6]) -> Uuid {
            Uuid::new_v6(time, node)
        }
    }

    #[test]
    fn the_last_tick_is_made_and_the_next_refused() {
        the_last_tick_is_made_and_the_next_refused_of::<UuidV1>();
        the_last_tick_is_made_and_the_next_refused_of::<UuidV6>();
    }

    fn the_last_tick_is_made_and_the_next_refused_of<S: Rfc9562>() {
        let last = (1 << 60) - 1;
        let parts = Parts {
            ticks: last,
            clock_seq: 0x3fff,
            node: [0xff; 6],
        };
        let raw = S::pack(parts).unwrap();
        assert_eq!(raw.to_string(), S::LAST);
        assert_eq!(S::unpack(&raw).unwrap(), parts);
        for (wrong, (part, bits)) in [
            (
                Parts {
                    ticks: last + 1,
                    ..parts
                },
                ("ticks 1152921504606846976", 60),
            ),
            (
                Parts {
                    clock_seq: 0x4000,
                    ..parts
                },
                ("clock_seq 16384", 14),
            ),
        ] {
            let error = S::pack(wrong).unwrap_err();
            assert!(error.is_layout());
            let text = format!(
                "{part} does not fit: scheme {} has {bits} bits for it",
                S::NAME
            );
            assert_eq!(error.to_string(), text);
        }
        // 5236-03-31T21:21:00.684Z is the last millisecond that has all of its ticks.
        let end = 103_072_857_660_683;
        let at = |millis| S::bounds_at(Timestamp::from_unix_millis(millis).unwrap());
        assert!(at(end).is_ok());
        let error = at(end + 1).unwrap_err();
        assert!(error.is_clock());
        let generator = scripted::<S>(UuidNode::RANDOM, 5);
        generator.clock().set_unix_millis(end + 2);
        assert!(generator.try_generate().unwrap_err().is_clock());
    }

    #[test]
    fn times_before_1970_are_told_by_inspection_alone() {
        times_before_1970_are_told_by_inspection_alone_of::<UuidV1>();
        times_before_1970_are_told_by_inspection_alone_of::<UuidV6>();
    }

    fn times_before_1970_are_told_by_inspection_alone_of<S: Rfc9562>() {
        let raw = S::pack(Parts {
            ticks: 0,
            clock_seq: 7,
            node: [0, 0, 0, 0, 1, 2],
        })
        .unwrap();
        assert_eq!(S::timestamp(&raw), None);
        let inspection = S::inspect(&raw).unwrap();
        assert_eq!(
            inspection.moment.unwrap().unix_nanos,
            -12_219_292_800_000_000_000
        );
        assert_eq!(inspection.moment.unwrap().tick_nanos, 100);
        assert_eq!((inspection.node, inspection.counter), (Some(258), Some(7)));
    }

    #[test]
    fn the_uuid_crate_makes_and_reads_the_same() {
        the_uuid_crate_makes_and_reads_the_same_of::<UuidV1>();
        the_uuid_crate_makes_and_reads_the_same_of::<UuidV6>();
    }

    fn the_uuid_crate_makes_and_reads_the_same_of<S: Rfc9562>() {
        for raw in day::<S>(UuidNode::RANDOM) {
            let parts = S::unpack(&raw).unwrap();
            let time = uuid::Timestamp::from_gregorian_time(parts.ticks, parts.clock_seq);
            assert_eq!(S::by_uuid(time, &parts.node), raw);
            assert_eq!(
                raw.get_timestamp().unwrap().to_gregorian(),
                (parts.ticks, parts.clock_seq)
            );
            assert_eq!(raw.get_node_id(), Some(parts.node));
        }
    }

    #[test]
    fn process_wide_keys_rise_over_all_ways_to_make_them() {
        process_wide_keys_rise_over_all_ways_to_make_them_of::<UuidV1>();
        process_wide_keys_rise_over_all_ways_to_make_them_of::<UuidV6>();
    }

    fn process_wide_keys_rise_over_all_ways_to_make_them_of<S: Rfc9562>() {
        let mut keys = vec![S::generate().into_raw()];
        S::fill_with(100, |key| keys.push(key.into_raw()));
        keys.extend(S::reserve(10).unwrap().map(Generated::into_raw));
        assert_eq!(keys.len(), 111);
        keys.push(S::generate().into_raw());
        assert!(keys.is_sorted_by(|a, b| S::cmp(a, b).is_lt()));
        let time = Timestamp::from_unix_millis(START).unwrap();
        let past = S::generate_at(time).unwrap().into_raw();
        assert_eq!(S::timestamp(&past), Some(time));
        assert_eq!(Uuid::from_raw(past).unwrap(), past);
    }

    fn parts_come_back<S: Rfc9562>(parts: Parts) -> Result<(), TestCaseError> {
        let raw = S::pack(parts).unwrap();
        prop_assert_eq!(S::unpack(&raw).unwrap(), parts);
        let time = uuid::Timestamp::from_gregorian_time(parts.ticks, parts.clock_seq);
        prop_assert_eq!(S::by_uuid(time, &parts.node), raw);
        Ok(())
    }

    fn is_taken_apart_or_refused<S: Rfc9562>(raw: Uuid) -> Result<(), TestCaseError> {
        match S::unpack(&raw) {
            Ok(parts) => prop_assert_eq!(S::pack(parts).unwrap(), raw),
            Err(error) => prop_assert!(error.is_layout() && !S::check(&raw)),
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn any_parts_give_a_key_and_come_back(
            ticks in 0..1_u64 << 60,
            clock_seq in 0..1_u16 << 14,
            node: [u8; 6],
        ) {
            let parts = Parts { ticks, clock_seq, node };
            parts_come_back::<UuidV1>(parts)?;
            parts_come_back::<UuidV6>(parts)?;
        }

        #[test]
        fn any_value_is_taken_apart_or_refused(bytes: [u8; 16]) {
            is_taken_apart_or_refused::<UuidV1>(Uuid::from_bytes(bytes))?;
            is_taken_apart_or_refused::<UuidV6>(Uuid::from_bytes(bytes))?;
        }
    }
}
