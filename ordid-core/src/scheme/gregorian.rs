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
    /// Units of 100 nanoseconds since 1582-10-15T00:00:00Z: 60 bits, which end in the year 5236.
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

/// [`Scheme::timestamp`] of these layouts: `None` for times before 1970 as well.
pub(super) fn timestamp<S>(raw: &Uuid) -> Option<Timestamp>
where
    S: Layout<Raw = Uuid, Parts = Parts>,
{
    let parts = S::unpack(raw).ok()?;
    SCALE.moment_at(parts.ticks).timestamp()
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

/// Implements what makes keys of a layout, takes them apart and bounds them by time.
macro_rules! layout {
    (
        $(#[$example:meta])*
        $scheme:ident, version: $version:literal, variant: $variant:expr,
        clock_seq_bits: $clock_seq_bits:literal, $to_high:ident, $from_high:ident
    ) => {
        impl $crate::generator::Slotted for $scheme {
            type Node = $crate::scheme::UuidNode;

            const SCALE: $crate::clock::TimeScale = $crate::scheme::gregorian::SCALE;
            const TICK_BITS: u32 = $crate::scheme::gregorian::TICK_BITS;
            const INDEX_BITS: u32 = $crate::scheme::gregorian::COUNTED_BITS;
            const FRACTION_BITS: u32 = $crate::scheme::gregorian::COUNTED_BITS;
            const SEED_BITS: u32 = 0;
            const RANDOM_BITS: u32 = 0;
            const IDENTITY: bool = true;

            fn is_drawn(node: $crate::scheme::UuidNode) -> bool {
                node == $crate::scheme::UuidNode::RANDOM
            }

            #[inline]
            fn encode(slot: $crate::generator::Slot<$crate::scheme::UuidNode>) -> uuid::Uuid {
                let (ticks, low) = $crate::scheme::gregorian::halves_of(slot);
                let high = $crate::scheme::gregorian::$to_high(ticks);
                uuid::Uuid::from_u64_pair(high, $variant | low)
            }
        }

        $(#[$example])*
        impl $crate::scheme::Layout for $scheme {
            type Parts = Parts;

            fn pack(parts: Parts) -> Result<uuid::Uuid, $crate::error::Error> {
                let (ticks, low) = parts.to_halves::<Self>($clock_seq_bits)?;
                let high = $crate::scheme::gregorian::$to_high(ticks);
                Ok(uuid::Uuid::from_u64_pair(high, $variant | low))
            }

            fn unpack(raw: &uuid::Uuid) -> Result<Parts, $crate::error::Error> {
                $crate::scheme::anatomy::check::<Self>(raw)?;
                let (high, low) = raw.as_u64_pair();
                let ticks = $crate::scheme::gregorian::$from_high(high);
                Ok(Parts::from_halves(ticks, low, $clock_seq_bits))
            }

            fn inspect(
                raw: &uuid::Uuid,
            ) -> Result<$crate::scheme::Inspection, $crate::error::Error> {
                Ok(Self::unpack(raw)?.inspect::<Self>($version))
            }
        }

        impl $crate::scheme::TimeOrdered for $scheme {
            fn bounds_at(
                timestamp: $crate::clock::Timestamp,
            ) -> Result<(uuid::Uuid, uuid::Uuid), $crate::error::Error> {
                $crate::scheme::gregorian::bounds_at::<Self>(timestamp, $clock_seq_bits)
            }
        }
    };
}
pub(super) use layout;

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

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::{
        generator::{Generator, Policy, Slotted},
        scheme::{TimeOrdered, UuidV1, UuidV1Rearranged, UuidV6, testing::*},
    };

    fn scripted<S: Gregorian>(node: UuidNode, seed: u64) -> Scripted<S> {
        scripted_with(node, START, seed, Policy::DEFAULT)
    }

    /// What the three layouts have in common.
    trait Gregorian: Slotted<Node = UuidNode, Raw = Uuid> + Layout<Parts = Parts> {}

    impl<S: Slotted<Node = UuidNode, Raw = Uuid> + Layout<Parts = Parts>> Gregorian for S {}

    macro_rules! each_layout {
        ($test:ident) => {{
            $test::<UuidV1>();
            $test::<UuidV1Rearranged>();
            $test::<UuidV6>();
        }};
    }

    #[test]
    fn keys_hold_the_clocks_tick_and_count_on_within_it() {
        fn holds<S: Gregorian>() {
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
        each_layout!(holds);
    }

    #[test]
    fn node_and_clock_sequence_change_after_a_fork_or_a_followed_clock() {
        fn holds<S: Gregorian>() {
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
        each_layout!(holds);
    }

    #[test]
    fn a_given_node_stays_and_its_clock_sequence_is_renewed() {
        fn holds<S: Gregorian>() {
            let given = [0x92, 0x36, 0x1f, 0x00, 0x26, 0x71];
            let generator = scripted::<S>(UuidNode::danger_exact(given), 3);
            let first = S::unpack(&next(&generator)).unwrap();
            generator.entropy().fork();
            let child = S::unpack(&next(&generator)).unwrap();
            assert_eq!((first.node, child.node), (given, given));
            assert_ne!(first.clock_seq, child.clock_seq);
            assert_eq!(generator.node(), UuidNode::danger_exact(given));
        }
        each_layout!(holds);
    }

    #[test]
    fn keys_for_a_given_time_have_identities_of_their_own() {
        fn holds<S: Gregorian>() {
            let generator = scripted::<S>(UuidNode::RANDOM, 4);
            let time = Timestamp::from_unix_millis(START).unwrap();
            let at = |generator: &Scripted<S>| generator.generate_at(time).unwrap().into_raw();
            let keys: HashSet<Uuid> = (0..10_000).map(|_| at(&generator)).collect();
            assert_eq!(keys.len(), 10_000);
            assert!(keys.iter().all(|key| S::timestamp(key) == Some(time)));
            // With a given node, only the 14 bits of the clock sequence would be left.
            let generator = scripted::<S>(UuidNode::danger_exact([1; 6]), 4);
            assert!(generator.generate_at(time).unwrap_err().is_unsupported());
        }
        each_layout!(holds);
    }

    /// The two layouts of the RFC.
    trait Rfc9562: Gregorian + TimeOrdered {
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
    fn the_last_tick_makes_a_key_and_the_next_is_an_error() {
        fn holds<S: Rfc9562>() {
            let last = (1 << 60) - 1;
            let parts = Parts {
                ticks: last,
                clock_seq: 0x3fff,
                node: [0xff; 6],
            };
            let raw = S::pack(parts).unwrap();
            assert_eq!(raw.to_string(), S::LAST);
            assert_eq!(S::unpack(&raw).unwrap(), parts);
            let ticks = last + 1;
            let clock_seq = 0x4000;
            does_not_fit::<S, _>([
                (Parts { ticks, ..parts }, "ticks 1152921504606846976", 60),
                (Parts { clock_seq, ..parts }, "clock_seq 16384", 14),
            ]);
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
        holds::<UuidV1>();
        holds::<UuidV6>();
    }

    #[test]
    fn only_inspect_shows_times_before_1970() {
        fn holds<S: Rfc9562>() {
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
        holds::<UuidV1>();
        holds::<UuidV6>();
    }

    #[test]
    fn the_uuid_crate_makes_and_reads_the_same() {
        fn holds<S: Rfc9562>() {
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
        holds::<UuidV1>();
        holds::<UuidV6>();
    }

    #[test]
    fn parts_match_the_vectors_of_the_rfc_and_of_the_uuid_crate() {
        /// Macro for the Gregorian layouts. They differ in where the ticks stand in the three fields of the time.
        fn meets<S: Rfc9562>(version: &str, [high, mid, low]: [u32; 3]) {
            let node = |vector: &serde_json::Value| {
                let [_, _, node @ ..] = hex(&vector["node"]).to_be_bytes();
                node
            };
            let rfc = vectors("rfc9562");
            let vector = &rfc[version][0];
            let key = uuid(&vector["uuid"]);
            let parts = Parts {
                ticks: hex(&vector["time_high"]) << high
                    | hex(&vector["time_mid"]) << mid
                    | hex(&vector["time_low"]) << low,
                clock_seq: u16::try_from(hex(&vector["clock_seq"])).unwrap(),
                node: node(vector),
            };
            assert_eq!(parts.ticks, rfc["greg_100ns"].as_u64().unwrap());
            assert_eq!(S::pack(parts).unwrap(), key);
            assert_eq!(S::unpack(&key).unwrap(), parts);
            let millis = S::timestamp(&key).unwrap().as_unix_millis();
            assert_eq!(millis, rfc["unix_ms"].as_u64().unwrap());

            let vector = &vectors("uuid_rs")[version][0];
            let millis = vector["unix_s"].as_u64().unwrap() * 1_000;
            let nanos = u32::try_from(vector["nanos"].as_u64().unwrap()).unwrap();
            let millis = millis + u64::from(nanos / 1_000_000);
            let parts = Parts {
                ticks: S::SCALE.ticks_at(millis, nanos % 1_000_000).unwrap(),
                clock_seq: u16::try_from(vector["clock_seq"].as_u64().unwrap()).unwrap(),
                node: node(vector),
            };
            assert_eq!(S::pack(parts).unwrap(), uuid(&vector["uuid"]));
        }
        meets::<UuidV1>("v1", [48, 32, 0]);
        meets::<UuidV6>("v6", [28, 12, 0]);
    }

    fn parts_come_back<S: Rfc9562>(parts: Parts) -> Result<(), TestCaseError> {
        let raw = S::pack(parts).unwrap();
        prop_assert_eq!(S::unpack(&raw).unwrap(), parts);
        let time = uuid::Timestamp::from_gregorian_time(parts.ticks, parts.clock_seq);
        prop_assert_eq!(S::by_uuid(time, &parts.node), raw);
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
            let parts = Parts { clock_seq: clock_seq & 0x1fff, ..parts };
            let raw = UuidV1Rearranged::pack(parts).unwrap();
            prop_assert_eq!(UuidV1Rearranged::unpack(&raw).unwrap(), parts);
        }
    }
}
