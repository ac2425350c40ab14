//! UUID version 7, dense: 48 bits of time, a 42-bit counter, 32 fresh random bits.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------------------------------+
//! |                  unix_ts_ms (upper 32 bits)                   |
//! +-------------------------------+-------+-----------------------+
//! |  unix_ts_ms (lower 16 bits)   | ver 7 | counter (upper 12)    |
//! +---+---------------------------+-------+-----------------------+
//! |var|                   counter (lower 30)                      |
//! +---+-----------------------------------------------------------+
//! |                        32 random bits                         |
//! +---------------------------------------------------------------+
//! ```
//!
//! Bytes are in network order, and keys compare byte by byte. In each millisecond the counter starts at 41
//! unpredictable bits below a zero bit, and rises by one with each key. It cannot overflow within the 1,048,576 keys
//! that the generator makes in a millisecond. Whoever knows one key has 32 bits of the next one to guess.
//!
//! # References
//!
//! RFC 9562 section 5.7 (layout) and 6.2 (method 1, fixed bit-length dedicated counter).

use uuid::Uuid;

use crate::{
    clock::{TimeScale, Timestamp},
    error::Error,
    generator::{LocalBlock, Slot, Slotted},
    key::{RisesAsBytes, RisesInMariaDbUuid, Scheme},
    layout::{Comparison, Orders},
    scheme::anatomy::{Certainty, Inspection, Layout, TimeOrdered},
};

/// Lower bits of the counter, beside the variant.
const COUNTER_LOW_BITS: u32 = 30;

/// The scheme `uuid_v7`.
#[doc(alias("guid", "sequential id", "time ordered uuid"))]
#[derive(Debug)]
pub enum UuidV7 {}

impl Scheme for UuidV7 {
    rfc_9562!("uuid_v7", version 7, Orders::BYTES.and(Comparison::MariaDbUuid));

    fn timestamp(raw: &Uuid) -> Option<Timestamp> {
        Self::check(raw).then(|| {
            let (high, _) = raw.as_u64_pair();
            Timestamp::saturating_from_unix_millis(high >> 16)
        })
    }
}

impl RisesAsBytes for UuidV7 {}
impl RisesInMariaDbUuid for UuidV7 {}

impl Slotted for UuidV7 {
    counter_bits!(index: 20, seed: 41, random: 32);

    #[inline]
    fn encode(slot: Slot<()>) -> Uuid {
        let low = slot.count & ((1 << COUNTER_LOW_BITS) - 1);
        let high = (slot.time << 16) | 0x7000 | (slot.count >> COUNTER_LOW_BITS);
        Uuid::from_u64_pair(high, (0b10 << 62) | (low << 32) | slot.random)
    }
}

/// The fields of a UUID of version 7, as RFC 9562 names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// Milliseconds since 1970: 48 bits.
    pub unix_ts_ms: u64,
    /// 12 bits: the upper part of the counter, or a fraction of the millisecond.
    pub rand_a: u16,
    /// 62 bits: in ordid's keys the lower 30 bits of the counter, then 32 random bits.
    pub rand_b: u64,
}

/// # Example: the RFC's own vector
///
/// ```
/// use ordid_core::scheme::{Layout, UuidV7, uuid_v7::Parts};
///
/// let parts = Parts {
///     unix_ts_ms: 0x017f_22e2_79b0,
///     rand_a: 0xcc3,
///     rand_b: 0x18c4_dc0c_0c07_398f,
/// };
/// let key = UuidV7::pack(parts)?;
/// assert_eq!(key.to_string(), "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
/// assert_eq!(UuidV7::unpack(&key)?, parts);
/// # Ok::<(), ordid_core::Error>(())
/// ```
impl Layout for UuidV7 {
    fields_around_version!(7: unix_ts_ms = 48, rand_a = 12, rand_b = 62);

    fn inspect(raw: &Uuid) -> Result<Inspection, Error> {
        let parts = Self::unpack(raw)?;
        let counter = u64::from(parts.rand_a) << COUNTER_LOW_BITS | parts.rand_b >> 32;
        Ok(Inspection {
            moment: Some(TimeScale::UNIX_MILLIS.moment_at(parts.unix_ts_ms)),
            counter: Some(counter),
            version: Some(7),
            ..Inspection::of::<Self>(Certainty::Stated)
        })
    }
}

impl TimeOrdered for UuidV7 {
    fn bounds_at(timestamp: Timestamp) -> Result<(Uuid, Uuid), Error> {
        let parts = |rand_a, rand_b| Parts {
            unix_ts_ms: timestamp.as_unix_millis(),
            rand_a,
            rand_b,
        };
        let highest = parts(0xfff, u64::MAX >> 2);
        Ok((Self::pack(parts(0, 0))?, Self::pack(highest)?))
    }
}

generator! {
    /// Makes UUIDs of version 7, strictly rising over all threads that share it.
    ///
    /// [`KeyType::generate`](crate::KeyType::generate) uses the process-wide one. Make another one if you need your
    /// own policy, clock or entropy source.
    ///
    /// # Example: a clock that steps back
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// use std::time::Duration;
    /// use ordid_core::{
    ///     clock::ManualClock, entropy::SeededEntropy,
    ///     generator::{Generator, Overflow, Policy, Rollback},
    ///     scheme::uuid_v7::UuidV7Generator,
    /// };
    ///
    /// let policy = Policy {
    ///     rollback: Rollback::HoldThenError { max: Duration::from_secs(1) },
    ///     overflow: Overflow::Wait,
    /// };
    /// let clock = ManualClock::at_unix_millis(1_645_557_742_000);
    /// let keys = UuidV7Generator::new(&clock, SeededEntropy::new(1), policy);
    /// let first = keys.try_generate()?.into_raw();
    /// clock.set_unix_millis(1_645_557_741_000);
    /// assert!(keys.try_generate()?.into_raw() > first); // one second: held
    /// clock.set_unix_millis(1_645_557_740_999);
    /// assert!(keys.try_generate().unwrap_err().is_clock()); // more: refused
    /// # }
    /// # Ok::<(), ordid_core::Error>(())
    /// ```
    UuidV7Generator: UuidV7
}

generator_alias! {
    /// Makes UUIDs of version 7 for one thread at a time, at a lower cost: a [`UuidV7Generator`] after
    /// [`into_local`](crate::generator::OrderedGenerator::into_local).
    UuidV7LocalGenerator<C, E> = LocalBlock<UuidV7Generator<C, E>>
}

own_key_type! {
    /// `Uuid` itself is a key type: it makes version 7, and holds any version.
    Uuid: UuidV7
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
