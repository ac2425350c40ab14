//! Firebase's push ids: 48 bits of time and 72 random bits, as 20 characters.
//!
//! ```text
//! 48 bits: milliseconds since 1970 | 72 bits: random
//! 8 characters                     | 12 characters, of the alphabet -0-9A-Z_a-z
//! ```
//!
//! ordid makes the random part from an 18-bit counter and 54 fresh random bits, most significant first. Ids compare
//! byte by byte, and so do their texts under a binary collation, because the alphabet is in ASCII order. Under any
//! other collation the order is lost, and one that ignores case takes two different ids for equal.
//!
//! Firebase's own generator adds one to the random part within a millisecond, so whoever knows an id knows the next.
//! If all twelve characters are the last of the alphabet, it starts again at the first, below its predecessor. When
//! the clock steps back, it draws a new random part, and its ids fall. Here the counter starts each millisecond at 17
//! unpredictable bits below a zero bit, which leaves **131,072 ids a millisecond**. Then the
//! [`Overflow`](crate::generator::Overflow) policy acts. Whoever knows one id has 54 bits of the next one to guess.
//! [`PushId::successor`] returns an error at the end.
//!
//! # References
//!
//! `firebase/firebase-js-sdk`, `packages/database/src/core/util/NextPushId.ts`; "The 2^120 Ways to
//! Ensure Unique Identifiers", Firebase blog, 2015-02-11.

use crate::{
    clock::{TimeScale, Timestamp},
    error::Error,
    generator::{Slot, Slotted},
    key::{PushId, RisesAsBytes, Scheme},
    layout::Orders,
    scheme::anatomy::{Certainty, Inspection, Layout, TimeOrdered},
};

/// Bits below the time.
const RANDOM_PART: u32 = 72;

/// The scheme `push_id`.
#[derive(Debug)]
pub enum FirebasePushId {}

impl Scheme for FirebasePushId {
    any_value!("push_id", PushId: "48 bits of milliseconds and 72 random bits", Orders::BYTES);

    fn timestamp(raw: &PushId) -> Option<Timestamp> {
        Some(raw.timestamp())
    }
}

impl RisesAsBytes for FirebasePushId {}

impl Slotted for FirebasePushId {
    counter_bits!(index: 17, seed: 17, random: 54);

    #[inline]
    fn encode(slot: Slot<()>) -> PushId {
        let random = u128::from(slot.count) << Self::RANDOM_BITS | u128::from(slot.random);
        PushId::from_fields(slot.time, random)
    }
}

/// The fields of a push id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// Milliseconds since 1970: 48 bits, the first eight characters.
    pub unix_ts_ms: u64,
    /// 72 bits: the last twelve characters, six bits each.
    pub random: u128,
}

impl Layout for FirebasePushId {
    fields!(Parts: unix_ts_ms = 48, random = RANDOM_PART);

    fn inspect(raw: &PushId) -> Result<Inspection, Error> {
        let (unix_ts_ms, _) = raw.to_fields();
        Ok(Inspection {
            moment: Some(TimeScale::UNIX_MILLIS.moment_at(unix_ts_ms)),
            // No other scheme has 120 bits.
            ..Inspection::of::<Self>(Certainty::Stated)
        })
    }
}

impl TimeOrdered for FirebasePushId {
    fn bounds_at(timestamp: Timestamp) -> Result<(PushId, PushId), Error> {
        let at = |random| PushId::from_fields(timestamp.as_unix_millis(), random);
        Ok((at(0), at((1 << RANDOM_PART) - 1)))
    }
}

generator! {
    /// Makes push ids, strictly rising over all threads that share it.
    PushIdGenerator: FirebasePushId
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
