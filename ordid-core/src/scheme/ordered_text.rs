//! Ordered text: keys that consist of a time and random bits, written as 22 or 32 characters that sort as the bytes
//! do.
//!
//! ```text
//! ordered_text_22         48 bits: milliseconds | 80 bits: random            16 bytes, 22 characters
//! ordered_text_22_time64  64 bits: milliseconds | 64 bits: random            16 bytes, 22 characters
//! ordered_text_32         64 bits: milliseconds | 128 bits: random           24 bytes, 32 characters
//! ```
//!
//! ordid's generators fill the random part as follows, most significant bits first:
//!
//! ```text
//! ordered_text_22         18 bits: counter | 62 fresh random bits
//! ordered_text_22_time64  18 bits: counter | 46 fresh random bits
//! ordered_text_32         64 bits: counter | 64 fresh random bits
//! ```
//!
//! Each scheme has two variants: with the alphabet `0-9A-Z_a-z~` ([`Tilde`]), and as `.._push` with that of Firebase,
//! `-0-9A-Z_a-z` ([`Push`]). Time is in milliseconds since 1970, bytes are in network order, and keys and their texts
//! compare byte by byte. The 128 bits are not an RFC 9562 UUID: they have neither version nor variant.
//!
//! The counter starts each millisecond at 17 (or 63) unpredictable bits below a zero bit and rises by one with each
//! key. After **131,072 keys in a millisecond** the [`Overflow`](crate::generator::Overflow) policy acts. Whoever
//! knows one key has the fresh random bits of the next one to guess: 62, 46 or 64. In the published original, keys of
//! one millisecond are in random order.
//!
//! The order is lost under a collation that is not binary, which may ignore `_` and `~` or the difference between
//! upper and lower case, and under every rule that does not compare byte by byte: MariaDB's `UUID` (where keys that
//! by chance look like version 1 to 5 sort elsewhere), SQL Server's `uniqueidentifier` and .NET's byte order.
//!
//! With a prefix, keys of 128 bits are TypeIDs and those of 192 bits `prefix_` and the 32 characters
//! ([`text`]).
//!
//! # References
//!
//! sorra, "UUID as a database primary key, with an ordered 22-character text" (layouts, alphabets,
//! two published keys).

use core::{fmt, marker::PhantomData};

use uuid::Uuid;

#[cfg(feature = "std")]
use crate::{clock::SystemClock, entropy::ThreadEntropy};
use crate::{
    clock::{TimeScale, Timestamp},
    error::Error,
    generator::{OrderedGenerator, Slot, Slotted},
    key::{
        Key192, RisesAsBytes, Scheme, TextForm,
        text::{self, Alphabet, Push, Tilde},
    },
    layout::Orders,
    scheme::anatomy::{Certainty, Inspection, Layout, TimeOrdered},
};

/// Of all: keys of a millisecond, as a power of two.
const INDEX_BITS: u32 = 17;
/// The counter of the 128-bit forms; it begins with a zero.
const COUNTER_BITS: u32 = INDEX_BITS + 1;

/// 48 bits of time and 80 random bits, as 22 characters of the alphabet.
#[derive(Debug)]
pub struct Text22<A>(PhantomData<A>);

/// 64 bits of time and 64 random bits, as 22 characters of the alphabet.
#[derive(Debug)]
pub struct Text22Time64<A>(PhantomData<A>);

/// 64 bits of time and 128 random bits, as 32 characters of the alphabet.
#[derive(Debug)]
pub struct Text32<A>(PhantomData<A>);

/// The scheme `ordered_text_22`.
pub type OrderedText22 = Text22<Tilde>;
/// The scheme `ordered_text_22_push`.
pub type OrderedText22Push = Text22<Push>;
/// The scheme `ordered_text_22_time64`.
pub type OrderedText22Time64 = Text22Time64<Tilde>;
/// The scheme `ordered_text_22_time64_push`.
pub type OrderedText22Time64Push = Text22Time64<Push>;
/// The scheme `ordered_text_32`.
pub type OrderedText32 = Text32<Tilde>;
/// The scheme `ordered_text_32_push`.
pub type OrderedText32Push = Text32<Push>;

impl<A: Alphabet> Scheme for Text22<A> {
    any_value!(A::SCHEMES[0], Uuid: "48 bits of milliseconds and 80 random bits", Orders::BYTES);

    const TEXT: TextForm = A::TEXT_22;

    fn timestamp(raw: &Uuid) -> Option<Timestamp> {
        let (high, _) = raw.as_u64_pair();
        Some(Timestamp::saturating_from_unix_millis(high >> 16))
    }

    own_text_without_prefix! {
        text: text::encode_ordered22::<A>, parse: text::parse_ordered22::<A>, read: text::read_ordered22::<A>
    }
}

impl<A: Alphabet> Scheme for Text22Time64<A> {
    any_value!(A::SCHEMES[1], Uuid: "64 bits of milliseconds and 64 random bits", Orders::BYTES);

    const TEXT: TextForm = A::TEXT_22;

    /// Returns the time; `None` if it is after the year 10889.
    fn timestamp(raw: &Uuid) -> Option<Timestamp> {
        let (unix_time_ms, _) = raw.as_u64_pair();
        Timestamp::from_unix_millis(unix_time_ms).ok()
    }

    own_text_without_prefix! {
        text: text::encode_ordered22::<A>, parse: text::parse_ordered22::<A>, read: text::read_ordered22::<A>
    }
}

impl<A: Alphabet> Scheme for Text32<A> {
    any_value!(A::SCHEMES[2], Key192: "64 bits of milliseconds and 128 random bits", Orders::BYTES);

    const TEXT: TextForm = A::TEXT_32;
    const SUFFIX: TextForm = Self::TEXT;

    /// Returns the time; `None` if it is after the year 10889.
    fn timestamp(raw: &Key192) -> Option<Timestamp> {
        Timestamp::from_unix_millis(fields_of_192(*raw).unix_time_ms).ok()
    }

    #[inline]
    fn write_text(raw: Key192, prefix: Option<&str>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        raw.write_text_in::<A>(prefix, f)
    }

    #[inline]
    fn text_in<'r>(raw: Key192, prefix: Option<&str>, room: &'r mut text::Room) -> Option<&'r str> {
        raw.text_with::<A>(prefix, room)
    }

    fn parse_text(prefix: Option<&str>, text: &str) -> Result<Key192, Error> {
        Key192::parse_text_in::<A>(prefix, text)
    }

    #[inline]
    fn read_text(prefix: Option<&str>, text: &str) -> Option<Key192> {
        Key192::read_text_in::<A>(prefix, text)
    }
}

impl<A: Alphabet> RisesAsBytes for Text22<A> {}
impl<A: Alphabet> RisesAsBytes for Text22Time64<A> {}
impl<A: Alphabet> RisesAsBytes for Text32<A> {}

impl<A: Alphabet> Slotted for Text22<A> {
    counter_bits!(index: INDEX_BITS, seed: INDEX_BITS, random: 80 - COUNTER_BITS);

    #[inline]
    fn encode(slot: Slot<()>) -> Uuid {
        // Two bits of the counter are in the lower half.
        let high = slot.time << 16 | slot.count >> 2;
        Uuid::from_u64_pair(high, slot.count << Self::RANDOM_BITS | slot.random)
    }
}

impl<A: Alphabet> Slotted for Text22Time64<A> {
    counter_bits!(index: INDEX_BITS, seed: INDEX_BITS, random: 64 - COUNTER_BITS);

    #[inline]
    fn encode(slot: Slot<()>) -> Uuid {
        Uuid::from_u64_pair(slot.time, slot.count << Self::RANDOM_BITS | slot.random)
    }
}

impl<A: Alphabet> Slotted for Text32<A> {
    counter_bits!(index: INDEX_BITS, seed: 63, random: 64);

    #[inline]
    fn encode(slot: Slot<()>) -> Key192 {
        let random = u128::from(slot.count) << 64 | u128::from(slot.random);
        key_of_fields(slot.time, random)
    }
}

/// The fields of `ordered_text_22`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts22 {
    /// Milliseconds since 1970: 48 bits.
    pub unix_ts_ms: u64,
    /// 80 bits.
    pub random: u128,
}

/// The fields of `ordered_text_22_time64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts22Time64 {
    /// Milliseconds since 1970.
    pub unix_time_ms: u64,
    /// 64 bits.
    pub random: u64,
}

/// The fields of `ordered_text_32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts32 {
    /// Milliseconds since 1970.
    pub unix_time_ms: u64,
    /// 128 bits.
    pub random: u128,
}

fn key_of_fields(unix_time_ms: u64, random: u128) -> Key192 {
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&unix_time_ms.to_be_bytes());
    bytes[8..].copy_from_slice(&random.to_be_bytes());
    Key192::from_bytes(bytes)
}

fn fields_of_192(raw: Key192) -> Parts32 {
    let mut unix_time_ms = [0; 8];
    let mut random = [0; 16];
    unix_time_ms.copy_from_slice(&raw.as_bytes()[..8]);
    random.copy_from_slice(&raw.as_bytes()[8..]);
    Parts32 {
        unix_time_ms: u64::from_be_bytes(unix_time_ms),
        random: u128::from_be_bytes(random),
    }
}

/// What a key of any of them tells: its time, and nothing that speaks for the scheme.
fn inspection_of<S: Scheme>(unix_millis: u64) -> Inspection {
    Inspection {
        moment: Some(TimeScale::UNIX_MILLIS.moment_at(unix_millis)),
        ..Inspection::of::<S>(Certainty::Possible)
    }
}

/// # Example: a published key
///
/// ```
/// use ordid_core::{key::Generated, scheme::{Layout, OrderedText22}};
///
/// let key: Generated<OrderedText22> = "0NQ_LnK8m~Cv5uYuAOTzUG".parse()?;
/// assert_eq!(key.into_raw().simple().to_string(), "0176a4572508c7f33a1798b929877e79");
/// let parts = OrderedText22::unpack(&key.into_raw())?;
/// assert_eq!(parts.unix_ts_ms, 1_609_074_943_240); // 2020-12-27T13:15:43.240Z
/// # Ok::<(), ordid_core::Error>(())
/// ```
impl<A: Alphabet> Layout for Text22<A> {
    fields!(Parts22: unix_ts_ms = 48, random = 80);

    fn inspect(raw: &Uuid) -> Result<Inspection, Error> {
        Ok(inspection_of::<Self>(Self::unpack(raw)?.unix_ts_ms))
    }
}

impl<A: Alphabet> Layout for Text22Time64<A> {
    fields!(Parts22Time64: unix_time_ms = 64, random = 64);

    fn inspect(raw: &Uuid) -> Result<Inspection, Error> {
        Ok(inspection_of::<Self>(Self::unpack(raw)?.unix_time_ms))
    }
}

impl<A: Alphabet> Layout for Text32<A> {
    type Parts = Parts32;

    fn pack(parts: Parts32) -> Result<Key192, Error> {
        Ok(key_of_fields(parts.unix_time_ms, parts.random))
    }

    fn unpack(raw: &Key192) -> Result<Parts32, Error> {
        Ok(fields_of_192(*raw))
    }

    fn inspect(raw: &Key192) -> Result<Inspection, Error> {
        Ok(inspection_of::<Self>(fields_of_192(*raw).unix_time_ms))
    }
}

impl<A: Alphabet> TimeOrdered for Text22<A> {
    fn bounds_at(timestamp: Timestamp) -> Result<(Uuid, Uuid), Error> {
        let unix_ts_ms = timestamp.as_unix_millis();
        let key = |random| Self::pack(Parts22 { unix_ts_ms, random });
        Ok((key(0)?, key((1 << 80) - 1)?))
    }
}

impl<A: Alphabet> TimeOrdered for Text22Time64<A> {
    fn bounds_at(timestamp: Timestamp) -> Result<(Uuid, Uuid), Error> {
        let time = timestamp.as_unix_millis();
        Ok((
            Uuid::from_u64_pair(time, 0),
            Uuid::from_u64_pair(time, u64::MAX),
        ))
    }
}

impl<A: Alphabet> TimeOrdered for Text32<A> {
    fn bounds_at(timestamp: Timestamp) -> Result<(Key192, Key192), Error> {
        let time = timestamp.as_unix_millis();
        Ok((key_of_fields(time, 0), key_of_fields(time, u128::MAX)))
    }
}

/// Makes keys of [`Text22`], [`Text22Time64`] or [`Text32`], strictly rising over all threads that
/// share it.
///
/// # Example: keys and their texts rise together
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// use ordid_core::{
///     clock::ManualClock, entropy::SeededEntropy, generator::{Generator, Policy},
///     scheme::{OrderedText22, ordered_text::OrderedTextGenerator},
/// };
///
/// let clock = ManualClock::at_unix_millis(1_645_557_742_000);
/// let keys = OrderedTextGenerator::<OrderedText22, _, _>::new(
///     clock, SeededEntropy::new(1), Policy::DEFAULT);
/// let texts = [(); 3].map(|()| keys.try_generate().unwrap().to_string());
/// assert!(texts.is_sorted() && texts.iter().all(|text| text.len() == 22));
/// # }
/// ```
#[cfg(feature = "std")]
pub type OrderedTextGenerator<S, C = SystemClock, E = ThreadEntropy> = OrderedGenerator<S, C, E>;

/// The same type as with `std`, but without defaults.
#[cfg(not(feature = "std"))]
pub type OrderedTextGenerator<S, C, E> = OrderedGenerator<S, C, E>;

// A generic scheme cannot have a static of its own; each of the six has.
process_wide! {
    OrderedText22,
    OrderedText22Push,
    OrderedText22Time64,
    OrderedText22Time64Push,
    OrderedText32,
    OrderedText32Push,
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
