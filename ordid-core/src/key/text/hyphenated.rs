//! The hyphenated form: 36 characters of lower-case hex and hyphens, RFC 9562 section 4.
//!
//! It is read here and not by `uuid`, whose parser takes capitals and other forms: to refuse them
//! would take a second look at each character. Eight digits at a time are the bytes of a number.

use alloc::format;

use uuid::Uuid;

use super::excerpt;
use crate::error::Error;

/// Writes the 36 characters of the hyphenated form, in lower case.
#[inline]
pub(crate) fn encode_hyphenated(raw: Uuid) -> [u8; 36] {
    let mut buffer = [0; 36];
    raw.hyphenated().encode_lower(&mut buffer);
    buffer
}

/// Reads the hyphenated form, in lower case only: another case would be a second text for the
/// same key, and databases compare the text.
#[inline]
pub(crate) fn read_hyphenated(text: &[u8]) -> Option<Uuid> {
    let text: &[u8; 36] = text.try_into().ok()?;
    if [text[8], text[13], text[18], text[23]] != [b'-'; 4] {
        return None;
    }
    let four = |at: usize| Some(u64::from(u32::from_le_bytes(*text[at..].first_chunk()?)));
    let eight = |first, second| read_eight(four(first)? | four(second)? << 32);
    let [a, b] = [eight(0, 4)?, eight(9, 14)?];
    let [c, d] = [eight(19, 24)?, eight(28, 32)?];
    let number = u128::from(a | b << 32) | u128::from(c | d << 32) << 64;
    Some(Uuid::from_bytes(number.to_le_bytes()))
}

/// Reads eight digits, the first in the lowest byte, as four bytes in the lower half.
///
/// ```text
/// digit         value is the digit without   value       value + 6
/// 0-9           0x30                         0 to 9      below 16
/// a-f           0x30 + 0x27                  10 to 15    16 or more
/// :;<=>?        0x30                         10 to 15    16 or more
/// W-Z, [ to `   0x30 + 0x27                  0 to 9      below 16
/// others                                     16 or more
/// ```
///
/// A byte that is no digit may borrow from the next one; itself, it is seen.
#[inline]
fn read_eight(digits: u64) -> Option<u64> {
    // The bit that of all digits the letters have.
    let letter = digits >> 6 & each(0x01);
    let values = digits.wrapping_sub(each(0x30) + letter * 0x27);
    let wrong = values | values.wrapping_add(each(6)) ^ letter << 4;
    if wrong & each(0xf0) != 0 {
        return None;
    }
    let pairs = (values << 4 | values >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    Some((fours | fours >> 16) & 0xffff_ffff)
}

/// A number with this byte eight times.
const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// As [`read_hyphenated`], or says why not.
#[inline]
pub(crate) fn parse_hyphenated(text: &[u8]) -> Result<Uuid, Error> {
    read_hyphenated(text).ok_or_else(|| not_hyphenated(text))
}

#[cold]
fn not_hyphenated(text: &[u8]) -> Error {
    let why = if text.len() == 36 && text.iter().any(u8::is_ascii_uppercase) {
        " (upper case is not canonical: convert it with `lower()`)"
    } else {
        ""
    };
    Error::parse(format!(
        "expected a UUID as 36 characters of lower-case hex with hyphens, found {}{why}",
        excerpt(text)
    ))
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is read is what `uuid` reads and writes again.
    fn by_the_library(text: &[u8]) -> Option<Uuid> {
        let uuid = Uuid::try_parse_ascii(text).ok()?;
        (encode_hyphenated(uuid) == text).then_some(uuid)
    }

    #[test]
    fn each_byte_in_each_place_is_read_as_by_the_library_in_lower_case() {
        let digits = *b"0123456789abcdef0123456789abcdef0123";
        for start in 0..16 {
            let mut text = digits;
            text.rotate_left(start);
            for at in [8, 13, 18, 23] {
                text[at] = b'-';
            }
            assert!(read_hyphenated(&text).is_some());
            for at in 0..text.len() {
                for byte in 0..=u8::MAX {
                    let mut text = text;
                    text[at] = byte;
                    assert_eq!(read_hyphenated(&text), by_the_library(&text), "{text:?}");
                }
            }
        }
    }

    #[test]
    fn a_text_of_another_length_is_refused() {
        let text = [b'0'; 72];
        for length in 0..text.len() {
            assert_eq!(read_hyphenated(&text[..length]), None);
        }
    }

    proptest! {
        /// Several wrong characters do not make up for each other.
        #[test]
        fn any_bytes_are_read_as_by_the_library_in_lower_case(
            raw: u128,
            wrong in proptest::collection::vec((0_usize..36, any::<u8>()), 0..4),
        ) {
            let mut text = encode_hyphenated(Uuid::from_u128(raw));
            for (at, byte) in wrong {
                text[at] = byte;
            }
            prop_assert_eq!(read_hyphenated(&text), by_the_library(&text));
        }
    }
}
