//! ULID: 48 bits of time and 80 random bits, as 26 characters of Crockford's base32.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                   unix_ts_ms (upper 32 bits)                  |
//! +-------------------------------+-------------------------------+
//! |  unix_ts_ms (lower 16 bits)   |      counter (upper 16)       |
//! +---+---------------------------+-------------------------------+
//! |cnt|                  random (upper 30 bits)                   |
//! +---+-----------------------------------------------------------+
//! |                    random (lower 32 bits)                     |
//! +---------------------------------------------------------------+
//! ```
//!
//! The specification only has 80 random bits below the time. The counter of 18 bits is ordid's. It starts each
//! millisecond at 17 unpredictable bits below a zero bit and rises by one with each key. The 62 bits below it are
//! random: whoever knows one ULID has them to guess for the next. (The specification's monotonic generator adds one,
//! so that the next is known.) After **131,072 keys in a millisecond** the [`Overflow`](crate::generator::Overflow)
//! policy acts, and nothing wraps.
//!
//! Bytes are in network order; ULIDs and their texts compare byte by byte. They are not UUIDs of RFC 9562: any 128
//! bits are a ULID, and the bits of version and variant are random. So they lose their order in MariaDB's `UUID`
//! (where those that look like version 1 to 5 sort elsewhere), in SQL Server's `uniqueidentifier` and in .NET's byte
//! order.
//!
//! A ULID has **one text**: upper case, first character at most 7. Other spellings, such as lower case or Crockford's
//! `i`, `l` and `o`, are refused, because databases compare the text. [`Ulid::parse_lenient`] reads them where people
//! type. With a prefix the text is a TypeID, with the same digits in lower case.
//!
//! # References
//!
//! The ULID specification, `ulid/spec` README. Crockford, "Base 32".

use alloc::format;

use uuid::Uuid;

use crate::{
    clock::{TimeScale, Timestamp},
    error::{Error, ErrorKind},
    generator::{Slot, Slotted},
    key::{Generated, RisesAsBytes, Scheme, TextForm, text},
    layout::Orders,
    scheme::{
        UuidV7,
        anatomy::{Certainty, Inspection, Layout, TimeOrdered},
    },
};

/// Bits below the time.
const RANDOM_PART: u32 = 80;
const RANDOM_MASK: u128 = (1 << RANDOM_PART) - 1;

/// The scheme `ulid`.
///
/// Its raw key is [`Uuid`], as 128 bits. A ULID and its UUID have the same bytes.
///
/// # Example: a ULID is a UUID's bytes in another spelling
///
/// ```
/// use ordid_core::{Scheme as _, key::Generated, scheme::Ulid};
///
/// let key: Generated<Ulid> = "01ARYZ6S41TSV4RRFFQ69G5FAV".parse()?;
/// let uuid = key.into_raw();
/// assert_eq!(uuid.to_string(), "01563df3-6481-d676-4c61-efb99302bd5b");
/// assert_eq!(Ulid::timestamp(&uuid).unwrap().as_unix_millis(), 1_469_918_176_385);
/// assert_eq!(Generated::<Ulid>::check(uuid, "ulid")?.to_string(), "01ARYZ6S41TSV4RRFFQ69G5FAV");
/// # Ok::<(), ordid_core::Error>(())
/// ```
#[derive(Debug)]
pub enum Ulid {}

impl Ulid {
    /// Reads a ULID as people type it: in any case, with `i` and `l` for 1 and `o` for 0. `Display` writes the key as
    /// the canonical text.
    ///
    /// # Errors
    ///
    /// Any other text gives an error that [`is_parse`](Error::is_parse): hyphens, `u`, more than
    /// 128 bits.
    ///
    /// # Example
    ///
    /// ```
    /// use ordid_core::scheme::Ulid;
    ///
    /// let key = Ulid::parse_lenient("olaryz6s4itsv4rrffq69g5fav")?;
    /// assert_eq!(key.to_string(), "01ARYZ6S41TSV4RRFFQ69G5FAV");
    /// # Ok::<(), ordid_core::Error>(())
    /// ```
    pub fn parse_lenient(text: &str) -> Result<Generated<Self>, Error> {
        text::parse_ulid_lenient(text.as_bytes()).map(Generated::new)
    }

    /// Returns the next ULID of the same millisecond: the random part plus one.
    ///
    /// # Errors
    ///
    /// If the random part is all ones, with an error that [`is_overflow`](Error::is_overflow).
    pub fn successor(raw: Uuid) -> Result<Uuid, Error> {
        if raw.as_u128() & RANDOM_MASK == RANDOM_MASK {
            return Err(Error::new(ErrorKind::NoSuccessor(format!(
                "{} has no successor in its millisecond: its random part is used up; make a ULID \
                 of the next millisecond",
                text::as_text(&text::ulid(raw))
            ))));
        }
        Ok(Uuid::from_u128(raw.as_u128() + 1))
    }

    /// Returns the same bytes as a UUID of version 7, if they are one.
    ///
    /// # Errors
    ///
    /// A ULID has random bits where version 7 has its version and variant. Unless these six bits happen to be those
    /// of version 7, they would be lost, and the original with them. The error
    /// [`is_conversion`](Error::is_conversion). Store the ULID's bytes as they are instead, or make a new key for its
    /// time with `UuidV7::generate_at`.
    pub fn to_uuid_v7(raw: Uuid) -> Result<Uuid, Error> {
        if UuidV7::check(&raw) {
            return Ok(raw);
        }
        Err(Error::conversion(format!(
            "{} is no UUID of version 7: it has random bits in the place of version and variant, \
             which would be lost; store its bytes as they are, or make a new key for its time",
            text::as_text(&text::ulid(raw))
        )))
    }
}

impl Scheme for Ulid {
    any_value!("ulid", Uuid: "48 bits of milliseconds and 80 random bits", Orders::BYTES);

    const TEXT: TextForm = TextForm::Pattern("[0-7][0-9A-HJKMNP-TV-Z]{25}");

    fn timestamp(raw: &Uuid) -> Option<Timestamp> {
        let (high, _) = raw.as_u64_pair();
        Some(Timestamp::saturating_from_unix_millis(high >> 16))
    }

    own_text_without_prefix! {
        text: text::ulid,
        parse: text::parse_ulid,
        read: text::read_ulid
    }
}

impl RisesAsBytes for Ulid {}

impl Slotted for Ulid {
    counter_bits!(index: 17, seed: 17, random: 62);

    #[inline]
    fn encode(slot: Slot<()>) -> Uuid {
        // Two bits of the counter are in the lower half.
        let high = slot.time << 16 | slot.count >> 2;
        Uuid::from_u64_pair(high, slot.count << Self::RANDOM_BITS | slot.random)
    }
}

/// The fields of a ULID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// Milliseconds since 1970: 48 bits, the first ten characters.
    pub unix_ts_ms: u64,
    /// 80 bits: the last sixteen characters.
    pub random: u128,
}

impl Layout for Ulid {
    fields!(Parts: unix_ts_ms = 48, random = RANDOM_PART);

    fn inspect(raw: &Uuid) -> Result<Inspection, Error> {
        let parts = Self::unpack(raw)?;
        Ok(Inspection {
            moment: Some(TimeScale::UNIX_MILLIS.moment_at(parts.unix_ts_ms)),
            ..Inspection::of::<Self>(Certainty::Possible)
        })
    }
}

impl TimeOrdered for Ulid {
    fn bounds_at(timestamp: Timestamp) -> Result<(Uuid, Uuid), Error> {
        let unix_ts_ms = timestamp.as_unix_millis();
        let key = |random| Self::pack(Parts { unix_ts_ms, random });
        Ok((key(0)?, key(RANDOM_MASK)?))
    }
}

generator! {
    /// Makes ULIDs, strictly rising over all threads that share it.
    UlidGenerator: Ulid
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
