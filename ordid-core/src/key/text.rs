//! Text forms of 128-bit keys: one canonical string per key, all others refused.
//!
//! | form | length | alphabet | source |
//! |---|---|---|---|
//! | hyphenated | 36 | lower-case hex | RFC 9562 section 4 |
//! | TypeID | prefix, `_`, 26 | Crockford's base32, lower case | TypeID 0.3.0 |
//! | ordered 22 | 22 | `0-9A-Z_a-z~`, base64 in ASCII order | sorra, "UUID as a database primary key" |
//!
//! All three sort as their bytes do under a binary collation.

use alloc::{format, string::String};

use data_encoding::Encoding;
use data_encoding_macro::new_encoding;
use uuid::Uuid;

use crate::error::Error;

/// Length of a TypeID's suffix.
const SUFFIX: usize = 26;
/// Length of the longest TypeID: a prefix of 63, the underscore, the suffix.
pub(crate) const TYPE_ID_MAX: usize = 63 + 1 + SUFFIX;
/// Length of the ordered text.
const ORDERED: usize = 22;

const BASE32: Encoding = new_encoding! { symbols: "0123456789abcdefghjkmnpqrstvwxyz", };

const BASE64_ORDERED: Encoding =
    new_encoding! { symbols: "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~", };

/// Shows foreign text in a message: quoted, and cut when long, so that a megabyte of it does not
/// become a megabyte of error.
pub(crate) fn excerpt(text: &[u8]) -> String {
    const SHOWN: usize = 80;
    let shown = String::from_utf8_lossy(&text[..text.len().min(SHOWN)]);
    if text.len() > SHOWN {
        format!("{shown:?}... ({} bytes)", text.len())
    } else {
        format!("{shown:?}")
    }
}

/// Checks a TypeID prefix at compile time: up to 63 of `a-z` and `_`, a letter first and last; or
/// empty for a bare suffix.
///
/// # Panics
///
/// With the rule that the prefix breaks; in a `const` this is a compile error.
///
/// # References
///
/// TypeID 0.3.0, section "Prefix": `^([a-z]([a-z_]{0,61}[a-z])?)?$`.
pub const fn check_prefix(prefix: &str) {
    let bytes = prefix.as_bytes();
    if bytes.is_empty() {
        return;
    }
    assert!(bytes.len() <= 63, "a prefix has at most 63 letters");
    let mut i = 0;
    while i < bytes.len() {
        assert!(
            bytes[i].is_ascii_lowercase() || bytes[i] == b'_',
            "a prefix is made of the letters a-z and `_`"
        );
        i += 1;
    }
    assert!(
        bytes[0] != b'_' && bytes[bytes.len() - 1] != b'_',
        "a prefix begins and ends with a letter, not with `_`"
    );
}

/// Writes `prefix_suffix`, or the bare suffix for an empty prefix, into the buffer.
pub(crate) fn encode_type_id<'b>(
    prefix: &str,
    raw: Uuid,
    buffer: &'b mut [u8; TYPE_ID_MAX],
) -> &'b str {
    let mut length = 0;
    if !prefix.is_empty() {
        buffer[..prefix.len()].copy_from_slice(prefix.as_bytes());
        buffer[prefix.len()] = b'_';
        length = prefix.len() + 1;
    }
    // The suffix is 130 bits with two zero bits in front; the codec wants whole groups of 40, so
    // 32 zero bits go in front, of which 30 come out as six leading '0'.
    let mut wide = [0; 20];
    wide[4..].copy_from_slice(raw.as_bytes());
    let mut digits = [0; 32];
    BASE32.encode_mut(&wide, &mut digits);
    buffer[length..length + SUFFIX].copy_from_slice(&digits[6..]);
    core::str::from_utf8(&buffer[..length + SUFFIX]).expect("the prefix and the alphabet are ASCII")
}

/// Reads a TypeID with this prefix.
pub(crate) fn parse_type_id(prefix: &str, text: &str) -> Result<Uuid, Error> {
    // Before any look inside: a megabyte of hostile text is refused at once.
    if text.len() > TYPE_ID_MAX {
        return Err(Error::parse(format!(
            "a TypeID has at most {TYPE_ID_MAX} characters, found {}",
            excerpt(text.as_bytes())
        )));
    }
    let (found, suffix) = match text.rsplit_once('_') {
        Some((found, suffix)) => (Some(found), suffix),
        None => (None, text),
    };
    match found {
        None if prefix.is_empty() => {}
        Some(found) if found == prefix && !prefix.is_empty() => {}
        found => {
            return Err(Error::parse(format!(
                "expected the prefix {prefix:?}, found {:?} in {}",
                found.unwrap_or(""),
                excerpt(text.as_bytes())
            )));
        }
    }
    let wrong = |why: &str| {
        Error::parse(format!(
            "expected {SUFFIX} characters of 0-9 and a-z without i, l, o, u after the prefix, \
             found {} ({why})",
            excerpt(suffix.as_bytes())
        ))
    };
    if suffix.len() != SUFFIX {
        return Err(wrong(&format!("{} characters", suffix.len())));
    }
    let mut digits = *b"00000000000000000000000000000000";
    digits[6..].copy_from_slice(suffix.as_bytes());
    let mut wide = [0; 20];
    match BASE32.decode_mut(&digits, &mut wide) {
        Ok(20) => {}
        _ => return Err(wrong("a character outside the alphabet")),
    }
    if wide[..4] != [0; 4] {
        return Err(wrong(
            "more than 128 bits: the first character is at most 7",
        ));
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&wide[4..]);
    Ok(Uuid::from_bytes(bytes))
}

/// Writes the 36 characters of the hyphenated form, in lower case.
pub(crate) fn encode_hyphenated(raw: Uuid) -> [u8; 36] {
    let mut buffer = [0; 36];
    raw.hyphenated().encode_lower(&mut buffer);
    buffer
}

/// Reads the hyphenated form, in lower case only: another case would be a second text for the
/// same key, and databases compare the text.
pub(crate) fn parse_hyphenated(text: &[u8]) -> Result<Uuid, Error> {
    if text.len() == 36
        && !text.iter().any(u8::is_ascii_uppercase)
        && let Ok(uuid) = Uuid::try_parse_ascii(text)
    {
        return Ok(uuid);
    }
    let why = if text.len() == 36 && text.iter().any(u8::is_ascii_uppercase) {
        " (upper case is not canonical: convert it with `lower()`)"
    } else {
        ""
    };
    Err(Error::parse(format!(
        "expected a UUID as 36 characters of lower-case hex with hyphens, found {}{why}",
        excerpt(text)
    )))
}

/// Writes the ordered 22-character text.
pub(crate) fn encode_ordered22(raw: Uuid) -> [u8; ORDERED] {
    let mut buffer = [0; ORDERED];
    BASE64_ORDERED.encode_mut(raw.as_bytes(), &mut buffer);
    buffer
}

/// Reads the ordered 22-character text. The last character carries two bits; one that carries more
/// would be a second text for the same key, and is refused.
pub(crate) fn parse_ordered22(text: &[u8]) -> Result<Uuid, Error> {
    let mut bytes = [0; 16];
    if text.len() == ORDERED && matches!(BASE64_ORDERED.decode_mut(text, &mut bytes), Ok(16)) {
        return Ok(Uuid::from_bytes(bytes));
    }
    Err(Error::parse(format!(
        "expected {ORDERED} characters of 0-9, A-Z, _, a-z, ~, found {}",
        excerpt(text)
    )))
}

#[cfg(test)]
mod tests;
