//! The raw key of 192 bits, for those to whom 128 are too few.

use alloc::{format, string::String};
use core::fmt;

use super::{
    RawKey, TextForm,
    text::{self, ORDERED_32, Tilde},
};
use crate::error::Error;

/// A key of 192 bits: 24 bytes. Its text has 32 characters of [`Tilde`].
///
/// It sorts as its bytes and its text do. The schemes [`ordered_text_32`](crate::scheme::ordered_text) and
/// `ordered_text_32_push` make it. Keys of the latter have a text in the other alphabet, [`Push`](super::text::Push).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
// As numbers are, so that a `Result` of it is moved in whole registers.
#[repr(align(8))]
pub struct Key192([u8; 24]);

impl Key192 {
    as_bytes!(24);

    /// Writes it with an alphabet of the scheme's choice.
    #[inline]
    pub(crate) fn write_text_in<A: text::Alphabet>(
        self,
        prefix: Option<&str>,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        text::write_prefixed(prefix, &text::ordered::<A, 24, ORDERED_32>(&self.0), f)
    }

    /// Makes the text on the stack.
    #[inline]
    pub(crate) fn text_with<'r, A: text::Alphabet>(
        self,
        prefix: Option<&str>,
        room: &'r mut text::Room,
    ) -> Option<&'r str> {
        room.join(prefix, &text::ordered::<A, 24, ORDERED_32>(&self.0))
    }

    /// Reads what [`write_text_in`](Self::write_text_in) wrote.
    #[inline]
    pub(crate) fn read_text_in<A: text::Alphabet>(
        prefix: Option<&str>,
        text: &str,
    ) -> Option<Self> {
        let text = text::after_prefix(prefix, text)?;
        text::read_ordered::<A, 24, ORDERED_32>(text.as_bytes()).map(Self)
    }

    /// As [`read_text_in`](Self::read_text_in), or says why not.
    pub(crate) fn parse_text_in<A: text::Alphabet>(
        prefix: Option<&str>,
        text: &str,
    ) -> Result<Self, Error> {
        let text = text::strip_prefix(prefix, ORDERED_32, text)?;
        text::parse_ordered::<A, 24, ORDERED_32>(text).map(Self)
    }
}

impl RawKey for Key192 {
    raw_bytes!(24);

    const TEXT: TextForm = TextForm::Pattern("[0-9A-Z_a-z~]{32}");

    #[inline]
    fn write_text(self, prefix: Option<&str>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_text_in::<Tilde>(prefix, f)
    }

    #[inline]
    fn text_in<'r>(self, prefix: Option<&str>, room: &'r mut text::Room) -> Option<&'r str> {
        self.text_with::<Tilde>(prefix, room)
    }

    fn parse_text(prefix: Option<&str>, text: &str) -> Result<Self, Error> {
        Self::parse_text_in::<Tilde>(prefix, text)
    }

    #[inline]
    fn read_text(prefix: Option<&str>, text: &str) -> Option<Self> {
        Self::read_text_in::<Tilde>(prefix, text)
    }

    fn describe(self) -> String {
        format!("the 192 bits {self}")
    }
}

own_text!(Key192);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key192_size() {
        assert_eq!(size_of::<Key192>(), 24);
    }
}
