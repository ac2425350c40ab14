//! The forms in which values are written.

use super::super::model::Value;

/// A form of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Spelling {
    /// The engine's own UUID.
    Native,
    /// Bytes of this length.
    Bytes(usize),
    Integer,
    /// A number that is no integer.
    Real,
    /// A UUID with hyphens, in lower case.
    Hyphenated,
    /// The same in upper case.
    HyphenatedUpper,
    /// 32 hex digits in lower case.
    Hex,
    /// The same in upper case.
    HexUpper,
    /// A UUID in another form: braces, `urn:uuid:`, letters of both cases.
    OtherUuid,
    /// A text without blanks, with letters of both cases, as long as an id: base 64, 62 or 58.
    MixedCase(usize),
    /// A text without blanks, with letters of one case, as long as an id.
    OneCase(usize),
    /// Any other text.
    Text,
}

impl Spelling {
    /// Whether it is a UUID in one of its texts.
    pub(crate) fn is_uuid_text(self) -> bool {
        matches!(
            self,
            Self::Hyphenated | Self::HyphenatedUpper | Self::Hex | Self::HexUpper | Self::OtherUuid
        )
    }

    /// Returns its name for people.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Native => "the engine's own UUID".to_owned(),
            Self::Bytes(length) => format!("{length} bytes"),
            Self::Integer => "integer".to_owned(),
            Self::Real => "real number".to_owned(),
            Self::Hyphenated => "36 characters, lower case".to_owned(),
            Self::HyphenatedUpper => "36 characters, upper case".to_owned(),
            Self::Hex => "32 hex digits, lower case".to_owned(),
            Self::HexUpper => "32 hex digits, upper case".to_owned(),
            Self::OtherUuid => "UUID in another form".to_owned(),
            Self::MixedCase(length) => format!("{length} characters of both cases"),
            Self::OneCase(length) => format!("{length} characters of one case"),
            Self::Text => "text".to_owned(),
        }
    }

    pub(super) fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Null => return None,
            Value::Integer(_) => Self::Integer,
            Value::Real(_) => Self::Real,
            Value::Uuid(_) => Self::Native,
            Value::Bytes(bytes) => Self::Bytes(bytes.len()),
            Value::Text(text) => Self::of_text(text),
        })
    }

    pub(super) fn of_text(text: &str) -> Self {
        let has_upper = text.bytes().any(|byte| byte.is_ascii_uppercase());
        let has_lower = text.bytes().any(|byte| byte.is_ascii_lowercase());
        if uuid::Uuid::parse_str(text).is_ok() {
            return match (text.len(), has_upper, has_lower) {
                (36, false, _) => Self::Hyphenated,
                (36, true, false) => Self::HyphenatedUpper,
                (32, false, _) => Self::Hex,
                (32, true, false) => Self::HexUpper,
                _ => Self::OtherUuid,
            };
        }
        let is_id = (16..=64).contains(&text.len())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_~+/=".contains(&byte))
            && text.bytes().any(|byte| byte.is_ascii_digit());
        match (is_id, has_upper && has_lower) {
            (false, _) => Self::Text,
            (true, true) => Self::MixedCase(text.len()),
            (true, false) => Self::OneCase(text.len()),
        }
    }
}
