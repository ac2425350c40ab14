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
//! It is older than RFC 9562, whose version 6 differs only in the variant: there it is 10, and the third bit belongs
//! to the clock sequence. The RFC reserves the variant 111, which covers that bit. The conversion back to version 1
//! needs the bit from elsewhere ([`convert`](super::convert)). For new tables use [`uuid_v6`](super::uuid_v6); this
//! scheme is for tables that have such keys.
//!
//! Bytes are in network order, and keys compare byte by byte, in MariaDB's `UUID`, too, which does not swap
//! version 6. Ticks, clock sequence and node are made as in [`uuid_v6`](super::uuid_v6) (in the article, nodes are
//! random, MAC addresses, or hashes of an address or of an account's id: [`UuidNode`](crate::scheme::UuidNode)).
//! Whoever knows one key knows all of the next one but its tick.
//!
//! # References
//!
//! "UUID trilogy, part one" (2017): `12adde00-f100-11e6-bc64-92361f002671` becomes
//! `1e6f1001-2add-6e00-fc64-92361f002671`; RFC 9562 section 4.1 (variants).

use uuid::{Uuid, Variant};

use crate::{
    clock::Timestamp,
    key::{RisesAsBytes, RisesInMariaDbUuid, Scheme},
    layout::{Comparison, Orders},
    scheme::gregorian,
};

pub use super::gregorian::Parts;

/// The scheme `uuid_v1_rearranged`.
#[derive(Debug)]
pub enum UuidV1Rearranged {}

impl Scheme for UuidV1Rearranged {
    type Raw = Uuid;

    const NAME: &'static str = "uuid_v1_rearranged";
    const ORDERS: Orders = Orders::BYTES.and(Comparison::MariaDbUuid);
    const EXPECTED: &'static str = "version 6 and variant 111 (reserved)";
    const TEXT_IS_RAW: bool = true;

    fn check(raw: &Uuid) -> bool {
        raw.get_version_num() == 6 && raw.get_variant() == Variant::Future
    }

    fn coerce(raw: Uuid) -> Uuid {
        let mut bytes = raw.into_bytes();
        bytes[6] = 0x60 | bytes[6] & 0x0f;
        bytes[8] |= 0xe0;
        Uuid::from_bytes(bytes)
    }

    /// Returns `None` also for times before 1970.
    fn timestamp(raw: &Uuid) -> Option<Timestamp> {
        gregorian::timestamp::<Self>(raw)
    }
}

impl RisesAsBytes for UuidV1Rearranged {}
impl RisesInMariaDbUuid for UuidV1Rearranged {}

// The variant covers the highest bit of the clock sequence.
gregorian::layout! {
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
    UuidV1Rearranged, version: 6, variant: 0b111 << 61, clock_seq_bits: 13, time_high_first,
    from_time_high_first
}

generator! {
    /// Makes rearranged UUIDs of version 1, strictly rising over all threads that share it.
    UuidV1RearrangedGenerator: UuidV1Rearranged
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::scheme::{Layout as _, UuidNode, UuidV6, testing::*};

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
    fn check_uses_the_variant_to_refuse_version_6_and_reserved_values() {
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
        does_not_fit::<UuidV1Rearranged, _>([(Parts { clock_seq, ..parts }, "clock_seq 8192", 13)]);
    }
}
