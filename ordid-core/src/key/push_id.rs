//! The raw key of Firebase's push ids: 120 bits, 20 characters.

use alloc::{format, string::String};
use core::fmt;

use super::{
    RawKey, TextForm,
    text::{self, PUSH_ID, Push},
};
use crate::{
    clock::Timestamp,
    error::{Error, ErrorKind},
};

/// Bits below the milliseconds.
const RANDOM_BITS: u32 = 72;

/// Firebase's push id: 48 bits of milliseconds since 1970, then 72 random bits. Its text has 20 characters.
///
/// It sorts as its bytes and its text do. The scheme [`push_id`](crate::scheme::push_id) makes it.
///
/// # Example: one that Firebase published
///
/// ```
/// use ordid_core::key::PushId;
///
/// let id: PushId = "-JhLeOlGIEjaIOFHR0xd".parse()?;
/// assert_eq!(id.timestamp().as_unix_millis(), 1_423_088_131_153); // 2015-02-04T22:15:31.153Z
/// assert_eq!(id.successor()?.to_string(), "-JhLeOlGIEjaIOFHR0xe");
/// # Ok::<(), ordid_core::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PushId([u8; 15]);

impl PushId {
    as_bytes!(15);

    /// Returns the time in the id.
    pub fn timestamp(self) -> Timestamp {
        let (unix_ts_ms, _) = self.to_fields();
        Timestamp::saturating_from_unix_millis(unix_ts_ms)
    }

    /// Returns the next id of the same millisecond: the random part plus one, with carry.
    ///
    /// # Errors
    ///
    /// If all twelve random characters are the last of the alphabet, with an error that
    /// [`is_overflow`](Error::is_overflow). In this case, Firebase's own code sets them all to the first character,
    /// so that the next id sorts below (`NextPushId.ts`, where the loop ends at -1).
    pub fn successor(self) -> Result<Self, Error> {
        let (unix_ts_ms, random) = self.to_fields();
        if random == (1 << RANDOM_BITS) - 1 {
            return Err(Error::new(ErrorKind::NoSuccessor(format!(
                "{self} has no successor in its millisecond: its random part is used up; make an \
                 id of the next millisecond"
            ))));
        }
        Ok(Self::from_fields(unix_ts_ms, random + 1))
    }

    /// Puts 48 bits of time above 72 random bits.
    pub(crate) fn from_fields(unix_ts_ms: u64, random: u128) -> Self {
        let mut bytes = [0; 15];
        let wide = u128::from(unix_ts_ms) << RANDOM_BITS | random;
        bytes.copy_from_slice(&wide.to_be_bytes()[1..]);
        Self(bytes)
    }

    /// Returns the time and the random part.
    pub(crate) fn to_fields(self) -> (u64, u128) {
        let mut wide = [0; 16];
        wide[1..].copy_from_slice(&self.0);
        let wide = u128::from_be_bytes(wide);
        let unix_ts_ms = (wide >> RANDOM_BITS) as u64;
        (unix_ts_ms, wide & ((1 << RANDOM_BITS) - 1))
    }
}

impl RawKey for PushId {
    raw_bytes!(15);

    const TEXT: TextForm = TextForm::Pattern("[-0-9A-Z_a-z]{20}");

    #[inline]
    fn write_text(self, prefix: Option<&str>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::write_prefixed(prefix, &text::ordered::<Push, 15, PUSH_ID>(&self.0), f)
    }

    #[inline]
    fn text_in<'r>(self, prefix: Option<&str>, room: &'r mut text::Room) -> Option<&'r str> {
        room.join(prefix, &text::ordered::<Push, 15, PUSH_ID>(&self.0))
    }

    fn parse_text(prefix: Option<&str>, text: &str) -> Result<Self, Error> {
        let text = text::strip_prefix(prefix, PUSH_ID, text)?;
        text::parse_ordered::<Push, 15, PUSH_ID>(text).map(Self)
    }

    #[inline]
    fn read_text(prefix: Option<&str>, text: &str) -> Option<Self> {
        let text = text::after_prefix(prefix, text)?;
        text::read_ordered::<Push, 15, PUSH_ID>(text.as_bytes()).map(Self)
    }

    fn describe(self) -> String {
        format!("the push id {self}")
    }
}

own_text!(PushId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn push_id_size() {
        assert_eq!(size_of::<PushId>(), 15);
    }
}
