//! UUID version 1 with the bytes of each of its first three groups reversed. `NEWSEQUENTIALID()` returns such keys,
//! and documentation recommends the reversal after `UuidCreateSequential`.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------------------------------+
//! |               time_low, its four bytes reversed               |
//! +-------------------------------+-------------------------------+
//! |      time_mid, reversed       | ver 1 and time_high, reversed |
//! +---+---------------------------+-------------------------------+
//! |var|         clock_seq         |             node              |
//! +---+---------------------------+-------------------------------+
//! |                             node                              |
//! +---------------------------------------------------------------+
//! ```
//!
//! Bytes are in network order. .NET and SQL Server reverse the groups once more, so they hold version 1 in network
//! order, and SQL Server compares it by node, clock sequence, and then time from its highest bits down. So the keys
//! of one generator rise there, until a fork or until it follows a clock back, when node and clock sequence change.
//! Keys of several generators are in the order of their nodes, not of time, and there is no range of keys by time
//! over all nodes.
//!
//! A key has no random bits of its own: whoever knows one key knows all of the next one but its time.
//!
//! # References
//!
//! Microsoft Learn, "NEWSEQUENTIALID (Transact-SQL)"; RFC 9562 section 5.1 for the fields.

use core::cmp::Ordering;

use uuid::Uuid;

use crate::{
    clock::Timestamp,
    error::Error,
    generator::{Slot, Slotted},
    key::{RisesInSqlServer, Scheme},
    layout::{Orders, guid},
    scheme::{
        UuidNode, UuidV1,
        anatomy::{Certainty, Inspection, Layout, not_of},
    },
};

pub use super::gregorian::Parts;

/// The scheme `uuid_create_sequential`.
#[doc(alias("newsequentialid", "sequential guid"))]
#[derive(Debug)]
pub enum UuidCreateSequential {}

/// Reverses the groups, there or back.
#[inline]
fn swapped(raw: &Uuid) -> Uuid {
    Uuid::from_bytes(guid::swap(raw.as_bytes()))
}

impl Scheme for UuidCreateSequential {
    type Raw = Uuid;

    const NAME: &'static str = "uuid_create_sequential";
    const ORDERS: Orders = Orders::SQL_SERVER;
    const EXPECTED: &'static str = "version 1 and variant RFC 9562, in .NET's byte order";
    const TEXT_IS_RAW: bool = true;

    fn check(raw: &Uuid) -> bool {
        UuidV1::check(&swapped(raw))
    }

    fn coerce(raw: Uuid) -> Uuid {
        swapped(&UuidV1::coerce(swapped(&raw)))
    }

    fn timestamp(raw: &Uuid) -> Option<Timestamp> {
        UuidV1::timestamp(&swapped(raw))
    }

    /// Compares as SQL Server does: by node and clock sequence, then by time.
    fn cmp(left: &Uuid, right: &Uuid) -> Ordering {
        let key = |raw: &Uuid| guid::sql_server_sort_key(raw.as_bytes());
        key(left).cmp(&key(right))
    }
}

impl RisesInSqlServer for UuidCreateSequential {}

impl Slotted for UuidCreateSequential {
    type Node = UuidNode;

    slot_bits_of!(UuidV1);

    fn is_drawn(node: UuidNode) -> bool {
        UuidV1::is_drawn(node)
    }

    #[inline]
    fn encode(slot: Slot<UuidNode>) -> Uuid {
        swapped(&UuidV1::encode(slot))
    }
}

/// # Example
///
/// ```
/// use ordid_core::scheme::{Layout, UuidCreateSequential, UuidV1};
///
/// let v1 = "a2a93393-c8dc-11e7-b133-2c56dc497a97".parse()?;
/// let key = UuidCreateSequential::pack(UuidV1::unpack(&v1)?)?;
/// assert_eq!(key.to_string(), "9333a9a2-dcc8-e711-b133-2c56dc497a97");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl Layout for UuidCreateSequential {
    type Parts = Parts;

    fn pack(parts: Parts) -> Result<Uuid, Error> {
        UuidV1::pack(parts).map(|v1| swapped(&v1))
    }

    fn unpack(raw: &Uuid) -> Result<Parts, Error> {
        UuidV1::unpack(&swapped(raw)).map_err(|_| not_of::<Self>(raw))
    }

    fn inspect(raw: &Uuid) -> Result<Inspection, Error> {
        let v1 = Self::unpack(raw)?.inspect::<Self>(1);
        Ok(Inspection {
            certainty: Certainty::Likely,
            ..v1
        })
    }
}

generator! {
    /// Makes UUIDs of version 1 with reversed groups, strictly rising in SQL Server over all threads that share the
    /// generator.
    UuidCreateSequentialGenerator: UuidCreateSequential
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::{
        clock::Clock as _,
        scheme::{convert, testing::*},
    };

    /// Ticks that carry out of the lowest byte: where the shuffle is needed, and where published
    /// samples of ten keys do not reach.
    #[test]
    fn keys_rise_in_sql_server_over_every_carry_and_under_no_other_rule() {
        let generator = scripted_at::<UuidCreateSequential>(UuidNode::RANDOM, START);
        let mut keys: Vec<Uuid> = Vec::new();
        for _ in 0..3 {
            keys.extend((0..70_000).map(|_| next(&generator)));
            // After 429 seconds time_low begins again.
            let now = generator.clock().now().as_unix_millis();
            generator.clock().set_unix_millis(now + 300_000);
        }
        // Under .NET's bytes time_low comes first.
        assert_eq!(rules_that_hold(&keys), declared::<UuidCreateSequential>());
        assert!(keys.iter().all(|key| {
            convert::v1_to_sequential(&convert::sequential_to_v1(key).unwrap()).unwrap() == *key
        }));
    }
}
