//! Text forms of keys: each key has one canonical text, and all others are refused.
//!
//! | form | of | length | alphabet | source |
//! |---|---|---|---|---|
//! | hyphenated | 16 bytes | 36 | lower-case hex | RFC 9562 section 4 |
//! | TypeID | 16 bytes | prefix, `_`, 26 | Crockford's base32, lower case | TypeID 0.3.0 |
//! | ULID | 16 bytes | 26 | Crockford's base32, upper case | the ULID specification |
//! | push id | 15 bytes | 20 | [`Push`] | Firebase, `NextPushId.ts` |
//! | ordered 22 | 16 bytes | 22 | [`Tilde`] or [`Push`] | sorra, "UUID as a database primary key" |
//! | ordered 32 | 24 bytes | 32 | [`Tilde`] or [`Push`] | the same |
//!
//! All of them sort as their bytes do under a binary collation.
//!
//! # Prefixes
//!
//! A key type's prefix follows the rules of [`check_prefix`], whatever its raw key. With a prefix, keys of 128 bits
//! have the TypeID form, even if their own text is another. TypeID has no form for raw keys of other lengths; they
//! are written as prefix, `_`, and their own text. The push alphabet contains `_`, too. Such a text is split by its
//! length, not at the last `_`.

use alloc::{format, string::String};
use core::fmt;

use uuid::Uuid;

use super::TextForm;
use crate::error::Error;

mod base32;
mod digits;
mod hyphenated;
mod room;

use base32::Base32;
use digits::Digits;
pub(crate) use hyphenated::{encode_hyphenated, parse_hyphenated, read_hyphenated};
pub use room::Room;

/// Length of a TypeID's suffix, and of a ULID.
const SUFFIX: usize = base32::LENGTH;
/// Length of the longest prefix.
pub(crate) const PREFIX_MAX: usize = 63;
/// Length of the longest TypeID: a prefix of 63, the underscore, the suffix.
pub(crate) const TYPE_ID_MAX: usize = PREFIX_MAX + 1 + SUFFIX;
/// Length of the ordered text of 16 bytes.
pub(crate) const ORDERED_22: usize = 22;
/// Length of the ordered text of 24 bytes.
pub(crate) const ORDERED_32: usize = 32;
/// Length of a push id.
pub(crate) const PUSH_ID: usize = 20;

// These are statics, since constants would be copied with each use.
static BASE32: Base32 = Base32::new(b"0123456789abcdefghjkmnpqrstvwxyz");

static BASE32_UPPER: Base32 = Base32::new(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ");

/// An alphabet of 64 characters in ASCII order, so that texts sort as the bytes that they encode.
///
/// The trait is sealed: its implementations are [`Tilde`] and [`Push`].
pub trait Alphabet: sealed::Codec + fmt::Debug + Send + Sync + 'static {
    /// The characters, for messages, such as `0-9, A-Z, _, a-z, ~`.
    const CHARACTERS: &'static str;
    /// The form of the text of 16 bytes.
    const TEXT_22: TextForm;
    /// The form of the text of 24 bytes.
    const TEXT_32: TextForm;
}

/// `0-9`, `A-Z`, `_`, `a-z`, `~`. No character is special in a URL or a shell, and none is a `-` that looks like an
/// option.
#[derive(Debug, Clone, Copy)]
pub enum Tilde {}

/// `-`, `0-9`, `A-Z`, `_`, `a-z`: the alphabet of Firebase's push ids.
#[derive(Debug, Clone, Copy)]
pub enum Push {}

impl Alphabet for Tilde {
    const CHARACTERS: &'static str = "0-9, A-Z, _, a-z, ~";
    const TEXT_22: TextForm = TextForm::Pattern("[0-9A-Z_a-z~]{22}");
    const TEXT_32: TextForm = TextForm::Pattern("[0-9A-Z_a-z~]{32}");
}

impl Alphabet for Push {
    const CHARACTERS: &'static str = "-, 0-9, A-Z, _, a-z";
    const TEXT_22: TextForm = TextForm::Pattern("[-0-9A-Z_a-z]{22}");
    const TEXT_32: TextForm = TextForm::Pattern("[-0-9A-Z_a-z]{32}");
}

pub(crate) mod sealed {
    use super::*;

    /// What only this crate knows of an alphabet.
    pub trait Codec {
        #[doc(hidden)]
        fn digits() -> &'static Digits<6>;
        /// The names of the schemes `ordered_text_22`, `.._time64` and `ordered_text_32` with it.
        #[doc(hidden)]
        const SCHEMES: [&'static str; 3];
    }

    impl Codec for Tilde {
        #[inline]
        fn digits() -> &'static Digits<6> {
            static DIGITS: Digits<6> =
                Digits::new(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~");
            &DIGITS
        }

        const SCHEMES: [&'static str; 3] = [
            "ordered_text_22",
            "ordered_text_22_time64",
            "ordered_text_32",
        ];
    }

    impl Codec for Push {
        #[inline]
        fn digits() -> &'static Digits<6> {
            static DIGITS: Digits<6> =
                Digits::new(b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz");
            &DIGITS
        }

        const SCHEMES: [&'static str; 3] = [
            "ordered_text_22_push",
            "ordered_text_22_time64_push",
            "ordered_text_32_push",
        ];
    }
}

/// Shows foreign text in a message: quoted, and cut when long, so that a megabyte of it does not
/// become a megabyte of error.
pub fn excerpt(text: &[u8]) -> String {
    const SHOWN: usize = 80;
    let shown = String::from_utf8_lossy(&text[..text.len().min(SHOWN)]);
    if text.len() > SHOWN {
        format!("{shown:?}... ({} bytes)", text.len())
    } else {
        format!("{shown:?}")
    }
}

/// Checks the prefix of a key type's text, by TypeID's rules: up to 63 of `a-z` and `_`, with a letter first and
/// last, or empty for a suffix alone.
///
/// # Panics
///
/// If the prefix breaks a rule, with a message that names it. In a `const` this is a compile error.
///
/// # References
///
/// TypeID 0.3.0, section "Prefix": `^([a-z]([a-z_]{0,61}[a-z])?)?$`.
pub const fn check_prefix(prefix: &str) {
    if let Some(rule) = broken_rule(prefix) {
        panic!("{}", rule);
    }
}

/// Checks a prefix that is only known at run time, by the rules of [`check_prefix`].
///
/// # Errors
///
/// An error that [`is_parse`](Error::is_parse) and names the prefix and the rule.
pub fn try_check_prefix(prefix: &str) -> Result<(), Error> {
    match broken_rule(prefix) {
        None => Ok(()),
        Some(rule) => Err(Error::parse(format!(
            "{rule}, found {}",
            excerpt(prefix.as_bytes())
        ))),
    }
}

/// Returns the rule that a prefix breaks.
const fn broken_rule(prefix: &str) -> Option<&'static str> {
    let bytes = prefix.as_bytes();
    if bytes.is_empty() {
        return None;
    }
    if bytes.len() > PREFIX_MAX {
        return Some("a prefix has at most 63 letters");
    }
    let mut i = 0;
    while i < bytes.len() {
        if !(bytes[i].is_ascii_lowercase() || bytes[i] == b'_') {
            return Some("a prefix is made of the letters a-z and `_`");
        }
        i += 1;
    }
    if bytes[0] == b'_' || bytes[bytes.len() - 1] == b'_' {
        return Some("a prefix begins and ends with a letter, not with `_`");
    }
    None
}

/// Returns the 26 characters that follow a TypeID's prefix.
#[inline]
pub(crate) fn suffix(raw: Uuid) -> [u8; SUFFIX] {
    encode_base32(&BASE32, raw)
}

#[inline]
fn encode_base32(digits: &Base32, raw: Uuid) -> [u8; SUFFIX] {
    let (high, low) = raw.as_u64_pair();
    digits.encode(high, low)
}

/// Reads 26 digits of 128 bits.
#[inline]
fn decode_base32(digits: &Base32, text: &[u8]) -> Option<Uuid> {
    digits.decode(text.try_into().ok()?).map(Uuid::from_u128)
}

/// Says why [`decode_base32`] read nothing.
#[cold]
fn why_not_base32(digits: &Base32, text: &[u8]) -> String {
    let Ok(text) = text.try_into() else {
        return format!("{} characters", text.len());
    };
    if digits.has_digits_only(text) {
        "more than 128 bits: the first character is at most 7".into()
    } else {
        "a character outside the alphabet".into()
    }
}

/// Reads a TypeID with this prefix.
#[inline]
pub(crate) fn read_type_id(prefix: &str, text: &str) -> Option<Uuid> {
    let suffix = after_prefix(Some(prefix), text)?;
    decode_base32(&BASE32, suffix.as_bytes())
}

/// As [`read_type_id`], or says why not.
#[inline]
pub(crate) fn parse_type_id(prefix: &str, text: &str) -> Result<Uuid, Error> {
    read_type_id(prefix, text).ok_or_else(|| not_a_type_id(prefix, text))
}

#[cold]
fn not_a_type_id(prefix: &str, text: &str) -> Error {
    // Before any look inside: a megabyte of hostile text is refused at once.
    if text.len() > TYPE_ID_MAX {
        return Error::parse(format!(
            "a TypeID has at most {TYPE_ID_MAX} characters, found {}",
            excerpt(text.as_bytes())
        ));
    }
    let (found, suffix) = match text.rsplit_once('_') {
        Some((found, suffix)) => (Some(found), suffix),
        None => (None, text),
    };
    match found {
        None if prefix.is_empty() => {}
        Some(found) if found == prefix && !prefix.is_empty() => {}
        found => return another_prefix(prefix, found, text.as_bytes()),
    }
    let why = why_not_base32(&BASE32, suffix.as_bytes());
    Error::parse(format!(
        "expected {SUFFIX} characters of 0-9 and a-z without i, l, o, u after the prefix, found {} \
         ({why})",
        excerpt(suffix.as_bytes())
    ))
}

/// Says which prefix was found in a text, if one was.
#[cold]
pub(super) fn another_prefix(prefix: &str, found: Option<&str>, text: &[u8]) -> Error {
    let text = excerpt(text);
    Error::parse(match found {
        Some(found) => format!("expected the prefix {prefix:?}, found {found:?} in {text}"),
        None => format!("expected the prefix {prefix:?}, found no prefix in {text}"),
    })
}

/// Returns the 26 characters of a ULID.
#[inline]
pub(crate) fn ulid(raw: Uuid) -> [u8; SUFFIX] {
    encode_base32(&BASE32_UPPER, raw)
}

/// Reads a ULID as [`ulid`] writes it: in upper case, without the letters that Crockford
/// reads as digits.
#[inline]
pub(crate) fn read_ulid(text: &[u8]) -> Option<Uuid> {
    decode_base32(&BASE32_UPPER, text)
}

/// As [`read_ulid`], or says why not.
#[inline]
pub(crate) fn parse_ulid(text: &[u8]) -> Result<Uuid, Error> {
    read_ulid(text).ok_or_else(|| not_canonical_ulid(text))
}

#[cold]
fn not_canonical_ulid(text: &[u8]) -> Error {
    let fix = if text.len() == SUFFIX && parse_ulid_lenient(text).is_ok() {
        "; `Ulid::parse_lenient` reads it"
    } else {
        ""
    };
    not_a_ulid(text, &why_not_base32(&BASE32_UPPER, text), fix)
}

/// Reads a ULID as Crockford does: in any case, `i` and `l` for 1, `o` for 0.
pub(crate) fn parse_ulid_lenient(text: &[u8]) -> Result<Uuid, Error> {
    let mut digits = [0; SUFFIX];
    let canonical = match text.len() {
        SUFFIX => {
            for (digit, character) in digits.iter_mut().zip(text) {
                *digit = match character.to_ascii_uppercase() {
                    b'I' | b'L' => b'1',
                    b'O' => b'0',
                    other => other,
                };
            }
            &digits
        }
        _ => text,
    };
    decode_base32(&BASE32_UPPER, canonical)
        .ok_or_else(|| not_a_ulid(text, &why_not_base32(&BASE32_UPPER, canonical), ""))
}

#[cold]
fn not_a_ulid(text: &[u8], why: &str, fix: &str) -> Error {
    Error::parse(format!(
        "expected a ULID, {SUFFIX} characters of 0-9 and A-Z without I, L, O, U, found {} \
         ({why}){fix}",
        excerpt(text)
    ))
}

/// Returns `BYTES` bytes as `LENGTH` characters, which are the fewest that hold them.
#[inline]
pub(crate) fn ordered<A: Alphabet, const BYTES: usize, const LENGTH: usize>(
    bytes: &[u8; BYTES],
) -> [u8; LENGTH] {
    A::digits().encode(bytes)
}

/// Reads what [`ordered`] wrote. Where the last character carries fewer than six bits, one
/// that carries more would be a second text for the same key, and is refused.
#[inline]
pub(crate) fn read_ordered<A: Alphabet, const BYTES: usize, const LENGTH: usize>(
    text: &[u8],
) -> Option<[u8; BYTES]> {
    A::digits().decode::<BYTES, LENGTH>(text.try_into().ok()?)
}

/// As [`read_ordered`], or says why not.
#[inline]
pub(crate) fn parse_ordered<A: Alphabet, const BYTES: usize, const LENGTH: usize>(
    text: &[u8],
) -> Result<[u8; BYTES], Error> {
    read_ordered::<A, BYTES, LENGTH>(text).ok_or_else(|| not_ordered(LENGTH, A::CHARACTERS, text))
}

#[cold]
fn not_ordered(length: usize, characters: &str, text: &[u8]) -> Error {
    Error::parse(format!(
        "expected {length} characters of {characters}, found {}",
        excerpt(text)
    ))
}

/// Writes the ordered 22-character text.
#[inline]
pub(crate) fn encode_ordered22<A: Alphabet>(raw: Uuid) -> [u8; ORDERED_22] {
    ordered::<A, 16, ORDERED_22>(raw.as_bytes())
}

/// Reads the ordered 22-character text.
#[inline]
pub(crate) fn read_ordered22<A: Alphabet>(text: &[u8]) -> Option<Uuid> {
    read_ordered::<A, 16, ORDERED_22>(text).map(Uuid::from_bytes)
}

/// As [`read_ordered22`], or says why not.
#[inline]
pub(crate) fn parse_ordered22<A: Alphabet>(text: &[u8]) -> Result<Uuid, Error> {
    parse_ordered::<A, 16, ORDERED_22>(text).map(Uuid::from_bytes)
}

/// Returns digits, and the prefix where they have one, as text.
#[inline]
pub(crate) fn as_text(digits: &[u8]) -> &str {
    str::from_utf8(digits).expect("a prefix is text, and digits are ASCII")
}

/// Writes prefix, `_` and text, at once: a string that takes them then needs one allocation.
#[inline]
pub(crate) fn write_prefixed(
    prefix: Option<&str>,
    text: &[u8],
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    match (Room::new().join(prefix, text), prefix) {
        (Some(whole), _) => pad(whole, f),
        (None, None | Some("")) => f.pad(as_text(text)),
        (None, Some(prefix)) => f.pad(&format!("{prefix}_{}", as_text(text))),
    }
}

/// As `f.pad(text)`, without the call where no width and no precision ask for it.
#[inline]
pub(crate) fn pad(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if is_shaped(f) {
        return f.pad(text);
    }
    f.write_str(text)
}

/// Whether a width or a precision was asked for.
#[inline]
pub(crate) fn is_shaped(f: &fmt::Formatter<'_>) -> bool {
    f.width().is_some() || f.precision().is_some()
}

/// Takes prefix and `_` off a text.
#[inline]
pub(crate) fn after_prefix<'t>(prefix: Option<&str>, text: &'t str) -> Option<&'t str> {
    match prefix {
        None | Some("") => Some(text),
        Some(prefix) => text.strip_prefix(prefix)?.strip_prefix('_'),
    }
}

/// As [`after_prefix`], or says why not. The rest has this length, which says where it begins: it
/// may contain `_`.
pub(crate) fn strip_prefix<'t>(
    prefix: Option<&str>,
    length: usize,
    text: &'t str,
) -> Result<&'t [u8], Error> {
    match prefix {
        None | Some("") => Ok(text.as_bytes()),
        Some(prefix) => strip_named(prefix, length, text.as_bytes()),
    }
}

fn strip_named<'t>(prefix: &str, length: usize, text: &'t [u8]) -> Result<&'t [u8], Error> {
    let longest = PREFIX_MAX + 1 + length;
    if text.len() > longest {
        return Err(Error::parse(format!(
            "expected at most {longest} characters, found {}",
            excerpt(text)
        )));
    }
    // Where the key begins is known by its length alone: it may contain `_`.
    let found = match text.len().checked_sub(length + 1) {
        Some(at) if text[at] == b'_' => Some(&text[..at]),
        // The rest is too short or too long: it will be refused by its length.
        _ if text.starts_with(prefix.as_bytes()) && text.get(prefix.len()) == Some(&b'_') => {
            Some(prefix.as_bytes())
        }
        _ => None,
    };
    if found == Some(prefix.as_bytes()) {
        return Ok(&text[prefix.len() + 1..]);
    }
    if found.is_none() && text.len() != length && text.contains(&b'_') {
        return Err(Error::parse(format!(
            "expected the prefix {prefix:?}, found {}",
            excerpt(text)
        )));
    }
    let found = found.map(String::from_utf8_lossy);
    Err(another_prefix(prefix, found.as_deref(), text))
}

#[cfg(test)]
mod tests;
