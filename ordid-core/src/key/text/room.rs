//! The whole text of a key on the stack: what writes it elsewhere then writes once, and allocates once.

use super::{ORDERED_32, PREFIX_MAX};

/// Length of the longest text: a prefix, `_`, and the longest text without one.
const LONGEST: usize = PREFIX_MAX + 1 + ORDERED_32;
/// The bytes that the check for UTF-8 looks at in one step.
const STEP: usize = 16;
const _: () = assert!(
    LONGEST.is_multiple_of(STEP),
    "the longest text is checked in whole steps"
);

/// A buffer on the stack for the longest text of a key. It is written once.
///
/// It is aligned and checked in steps of 16 bytes, since the check for UTF-8 takes the odd bytes of an end one by one.
#[derive(Debug)]
#[repr(align(16))]
pub struct Room([u8; LONGEST]);

impl Room {
    /// Makes an empty buffer.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self([0; LONGEST])
    }

    /// Writes prefix, `_` and text, or the text alone if there is no prefix. Returns `None` if the whole is too long.
    // Inlined, so that the compiler knows the lengths of prefix and text.
    #[inline(always)]
    pub(crate) fn join(&mut self, prefix: Option<&str>, text: &[u8]) -> Option<&str> {
        let start = match prefix {
            None | Some("") => 0,
            Some(prefix) => {
                let (lead, rest) = self.0.split_at_mut_checked(prefix.len())?;
                lead.copy_from_slice(prefix.as_bytes());
                *rest.first_mut()? = b'_';
                prefix.len() + 1
            }
        };
        let end = start + text.len();
        self.0.get_mut(start..end)?.copy_from_slice(text);
        // What is behind the text are zeros, which are ASCII.
        let checked = self.0.get(..end.next_multiple_of(STEP))?;
        str::from_utf8(checked).ok()?.get(..end)
    }

    /// Returns the whole buffer, for callers that write the text themselves.
    #[inline]
    pub(crate) const fn bytes(&mut self) -> &mut [u8; LONGEST] {
        &mut self.0
    }
}

impl Default for Room {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn a_text_of_any_length_is_the_prefix_the_underscore_and_the_rest() {
        let letters = [b'x'; LONGEST];
        for length in 0..=LONGEST {
            let text = &letters[..length];
            let shown = str::from_utf8(text).unwrap();
            assert_eq!(Room::new().join(None, text), Some(shown));
            assert_eq!(Room::new().join(Some(""), text), Some(shown));
            for prefix in [
                "a",
                "order",
                "ü",
                &"p".repeat(PREFIX_MAX),
                &"p".repeat(LONGEST),
            ] {
                let whole = format!("{prefix}_{shown}");
                let expected = (whole.len() <= LONGEST).then_some(&*whole);
                assert_eq!(Room::new().join(Some(prefix), text), expected);
            }
        }
    }
}
