//! UUID version 8 that rises in SQL Server: the time in the bytes that `uniqueidentifier` compares
//! first, in a valid RFC 9562 UUID.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                          32 random bits                       |
//! +-------------------------------+-------+-------+---------------+
//! |        16 random bits         | ver 8 | random| count (low 8) |
//! +---+---------------------------+-------+-------+---------------+
//! |var|     count (upper 14)      |  unix_ts_ms (upper 16 bits)   |
//! +---+---------------------------+-------------------------------+
//! |                  unix_ts_ms (lower 32 bits)                   |
//! +---------------------------------------------------------------+
//! ```
//!
//! Bytes are in network order. SQL Server compares the last line's 6 bytes first, then the two with variant and
//! count, then the one with the count's lower 8 bits, then the rest. The scheme's order ([`Scheme::cmp`]) is the
//! same. The count starts each millisecond at 21 unpredictable bits below a zero bit, and rises by one with each key.
//! It cannot overflow within the 1,048,576 keys that the generator makes in a millisecond. Whoever knows one key has
//! 52 bits of the next one to guess.
//!
//! Time, the 14 bits beside the variant, version and variant are where UUIDNext puts them for SQL Server. UUIDNext
//! counts only in the 14 bits, and the 8 bits below are random.
//!
//! Elsewhere the order is lost: every other comparison begins with the random bits, and MariaDB's `UUID` refuses
//! about one in 64 values of version 8.
//!
//! # References
//!
//! RFC 9562 section 5.8 (layout), 6.2 (method 1); Microsoft Learn, "Comparing GUID and
//! uniqueidentifier values"; UUIDNext `Src/UUIDNext/Generator/UuidV8SqlServerGenerator.cs`.

use core::cmp::Ordering;

use uuid::Uuid;

use crate::{
    clock::{TimeScale, Timestamp},
    error::Error,
    generator::{Slot, Slotted},
    key::{RisesInSqlServer, Scheme},
    layout::{
        Comparison, Orders,
        along::{Along, Fixed},
    },
    scheme::{
        anatomy::{Inspection, Layout, TimeOrdered},
        guid::{self, COUNT_BITS, INDEX_BITS, SEED_BITS},
    },
};

const ALONG: Along = Along::new(Comparison::SqlServer, Fixed::rfc(8), 48, COUNT_BITS);

/// The scheme `uuid_v8_sql_server`.
#[doc(alias("comb", "sequential guid", "newsequentialid"))]
#[derive(Debug)]
pub enum UuidV8SqlServer {}

impl Scheme for UuidV8SqlServer {
    rfc_9562!("uuid_v8_sql_server", version 8, Orders::SQL_SERVER);

    fn timestamp(raw: &Uuid) -> Option<Timestamp> {
        let millis = guid::millis_at_end(raw);
        Self::check(raw).then(|| Timestamp::saturating_from_unix_millis(millis))
    }

    fn cmp(left: &Uuid, right: &Uuid) -> Ordering {
        guid::cmp(Comparison::SqlServer, left, right)
    }
}

impl RisesInSqlServer for UuidV8SqlServer {}

impl Slotted for UuidV8SqlServer {
    counter_bits!(index: INDEX_BITS, seed: SEED_BITS, random: ALONG.random_bits());

    #[inline]
    fn encode(slot: Slot<()>) -> Uuid {
        Uuid::from_bytes(ALONG.lay(slot.time, slot.count, slot.random))
    }
}

/// The fields of such a UUID, as RFC 9562 and UUIDNext name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// 48 bits: random.
    pub custom_a: u64,
    /// 12 bits: random, but the lowest 8 are the count's in ordid's keys.
    pub custom_b: u16,
    /// 14 bits: UUIDNext's counter, and the upper bits of ordid's count.
    pub sequence: u16,
    /// Milliseconds since 1970: 48 bits.
    pub unix_ts_ms: u64,
}

/// # Example: a key that UUIDNext could have made
///
/// ```
/// use ordid_core::scheme::{Layout, UuidV8SqlServer, uuid_v8_sql_server::Parts};
///
/// let parts = Parts {
///     custom_a: 0x66fb_54f1_3cab,
///     custom_b: 0x620,
///     sequence: 0x0be0,
///     unix_ts_ms: 1_516_715_400_000, // 2018-01-23T13:50:00Z
/// };
/// let key = UuidV8SqlServer::pack(parts)?;
/// assert_eq!(key.to_string(), "66fb54f1-3cab-8620-8be0-016123485b40");
/// assert_eq!(UuidV8SqlServer::unpack(&key)?, parts);
/// # Ok::<(), ordid_core::Error>(())
/// ```
impl Layout for UuidV8SqlServer {
    fields_around_version!(8: custom_a = 48, custom_b = 12, sequence = 14, unix_ts_ms = 48);

    /// The counter that is returned is the 14 bits that UUIDNext's keys have, too.
    fn inspect(raw: &Uuid) -> Result<Inspection, Error> {
        let parts = Self::unpack(raw)?;
        let moment = TimeScale::UNIX_MILLIS.moment_at(parts.unix_ts_ms);
        Ok(Inspection {
            moment: Some(moment),
            counter: Some(u64::from(parts.sequence)),
            version: Some(8),
            ..Inspection::of::<Self>(guid::certainty(moment))
        })
    }
}

impl TimeOrdered for UuidV8SqlServer {
    fn bounds_at(timestamp: Timestamp) -> Result<(Uuid, Uuid), Error> {
        let millis = timestamp.as_unix_millis();
        Ok(ALONG.ends(millis, millis))
    }
}

generator! {
    /// Makes UUIDs of version 8 that rise in SQL Server, strictly over all threads that share it.
    UuidV8SqlServerGenerator: UuidV8SqlServer
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
