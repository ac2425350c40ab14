//! Keys as people spell them: canonical, in upper case, in braces, as hex, with a prefix.

use std::borrow::Cow;

use ordid_core::{
    clock::Timestamp,
    scheme::catalogue::{self, AnyKey, Detection, Unknown},
};

/// A scheme for each type of raw key whose canonical text is that type's own, and which takes each value.
const BY_VALUE: [&str; 5] = [
    "ulid",
    "snowflake",
    "object_id",
    "push_id",
    "ordered_text_32",
];

/// The reading of a text.
#[derive(Debug)]
pub(crate) struct Reading {
    /// How it differs from the canonical text.
    pub(crate) spelled: Option<&'static str>,
    /// The prefix in front of it.
    pub(crate) prefix: Option<String>,
    /// The schemes that it may be of.
    pub(crate) detection: Detection,
    /// The raw key's bytes, the most significant first, if they are known.
    bytes: Option<Vec<u8>>,
    text: String,
}

impl Reading {
    /// Returns the raw key's bytes, the most significant first, where the spelling says them.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        self.bytes.as_deref()
    }

    /// Returns the text in its canonical spelling, where that is known.
    pub(crate) fn canonical(&self) -> &str {
        &self.text
    }

    /// Returns the key that a candidate sees in the text; `None` for a UUID that no scheme makes.
    pub(crate) fn key_of(&self, scheme: &str) -> Option<AnyKey> {
        let entry = catalogue::find(scheme)?;
        let of_bytes = self
            .bytes
            .as_ref()
            .and_then(|bytes| entry.key_of(bytes).ok());
        of_bytes.or_else(|| entry.parse(None, &self.text).ok())
    }
}

/// Reads a text.
pub(crate) fn read(text: &str, now: Timestamp) -> Reading {
    let reading = |spelled, prefix, text: &str, bytes: Option<Vec<u8>>| {
        let detection = match &bytes {
            Some(bytes) => catalogue::detect(Unknown::Bytes(bytes), now),
            None => catalogue::detect(Unknown::Text(text), now),
        };
        Reading {
            spelled,
            prefix,
            detection,
            bytes,
            text: text.to_owned(),
        }
    };
    let canonical = reading(None, None, text, None);
    if text.len() == 32
        && let Some((spelled, bytes)) = hex(text)
    {
        // More often a UUID than ordered text that has no other letters.
        let mut uuid = reading(Some(spelled), None, text, Some(bytes));
        uuid.detection
            .candidates
            .extend(canonical.detection.candidates);
        return uuid;
    }
    if !canonical.detection.candidates.is_empty() {
        return canonical;
    }
    if let Some((spelled, canonical)) = respelled(text) {
        return reading(Some(spelled), None, &canonical, None);
    }
    if let Some((spelled, bytes)) = hex(text) {
        return reading(Some(spelled), None, text, Some(bytes));
    }
    // A key's own text may have the separator, too: the shortest prefix goes first.
    for (end, _) in text.match_indices('_') {
        let prefix = &text[..end];
        for scheme in BY_VALUE.iter().filter_map(|name| catalogue::find(name)) {
            if let Ok(key) = scheme.parse(Some(prefix), text) {
                let bytes = key.as_bytes().to_vec();
                return reading(None, Some(prefix.to_owned()), text, Some(bytes));
            }
        }
    }
    canonical
}

/// Returns the canonical text of a UUID or ULID that is spelled in another way.
fn respelled(text: &str) -> Option<(&'static str, Cow<'_, str>)> {
    let (spelled, uuid) = if let Some(uuid) = text.strip_prefix("urn:uuid:") {
        ("as a URN", uuid)
    } else if let Some(uuid) = text
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
    {
        ("in braces", uuid)
    } else {
        ("in upper case", text)
    };
    let bytes = uuid.as_bytes();
    let is_hyphenated = bytes.len() == 36
        && bytes.iter().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    if is_hyphenated {
        return Some((spelled, uuid.to_ascii_lowercase().into()));
    }
    let is_ulid = text.len() == 26 && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let upper = text.to_ascii_uppercase();
    (is_ulid && upper != text).then_some(("in lower case", upper.into()))
}

/// Reads hex, as SQL and programs write bytes.
fn hex(text: &str) -> Option<(&'static str, Vec<u8>)> {
    let quoted = |before: &str| text.strip_prefix(before)?.strip_suffix('\'');
    let (spelled, digits) = if let Some(digits) = text.strip_prefix("0x") {
        ("as hex", digits)
    } else if let Some(digits) = text.strip_prefix("\\x") {
        ("as PostgreSQL's bytea", digits)
    } else if let Some(digits) = quoted("X'").or_else(|| quoted("x'")) {
        ("as SQL's hex", digits)
    } else {
        ("as hex without hyphens", text)
    };
    let bytes = bytes_of_hex(digits)?;
    matches!(bytes.len(), 8 | 12 | 15 | 16 | 24).then_some((spelled, bytes))
}

/// Reads pairs of hex digits; `None` if it is something else.
pub(crate) fn bytes_of_hex(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8; 2]| u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).ok();
    match rest {
        [] if !pairs.is_empty() => pairs.iter().map(byte).collect(),
        _ => None,
    }
}

/// Writes bytes as pairs of hex digits, in lower case.
pub(crate) fn hex_of(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let pairs = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    pairs
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(text: &str) -> Reading {
        read(
            text,
            Timestamp::from_unix_millis(1_795_000_000_000).unwrap(),
        )
    }

    #[test]
    fn one_key_is_read_in_all_spellings() {
        for (text, spelled) in [
            ("017f22e2-79b0-7cc3-98c4-dc0c0c07398f", None),
            (
                "017F22E2-79B0-7CC3-98C4-DC0C0C07398F",
                Some("in upper case"),
            ),
            ("{017f22e2-79b0-7cc3-98c4-dc0c0c07398f}", Some("in braces")),
            (
                "urn:uuid:017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
                Some("as a URN"),
            ),
            (
                "017f22e279b07cc398c4dc0c0c07398f",
                Some("as hex without hyphens"),
            ),
            ("0x017f22e279b07cc398c4dc0c0c07398f", Some("as hex")),
            ("X'017f22e279b07cc398c4dc0c0c07398f'", Some("as SQL's hex")),
            (
                "\\x017f22e279b07cc398c4dc0c0c07398f",
                Some("as PostgreSQL's bytea"),
            ),
            ("line_item_01fwhe4ydgfk1shh6w1g60eecf", None),
        ] {
            let reading = reading(text);
            assert_eq!(reading.spelled, spelled, "{text}");
            let certain = reading
                .detection
                .certain()
                .map(|candidate| candidate.scheme);
            // 32 hex digits may be ordered text as well.
            if spelled != Some("as hex without hyphens") {
                assert_eq!(certain, Some("uuid_v7"), "{text}: {reading:?}");
            }
        }
        let typed = reading("line_item_01fwhe4ydgfk1shh6w1g60eecf");
        assert_eq!(typed.prefix.as_deref(), Some("line_item"));
        let key = typed.key_of("uuid_v7").unwrap();
        assert_eq!(key.to_string(), "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
    }

    #[test]
    fn what_is_no_key_has_no_candidates() {
        for text in [
            "",
            "_",
            "é",
            "no key",
            "0x",
            "X'1'",
            "{}",
            "urn:uuid:",
            "___________",
        ] {
            let reading = reading(text);
            assert!(
                reading.detection.candidates.is_empty(),
                "{text}: {reading:?}"
            );
        }
    }

    #[test]
    fn hex_is_pairs_of_digits() {
        assert_eq!(bytes_of_hex("00fF"), Some(vec![0, 255]));
        assert_eq!(hex_of(&[0, 255]), "00ff");
        assert!(bytes_of_hex("0").is_none() && bytes_of_hex("0g").is_none());
    }
}
