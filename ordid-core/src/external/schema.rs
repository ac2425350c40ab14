//! What JSON Schema and OpenAPI say alike: a key is a string in the key type's canonical form, or an
//! integer where the key type has `json = number`.

use alloc::{borrow::Cow, format, string::String};

use crate::{__private::check_json_number, KeyType, Scheme, key::TextForm};

/// Returns the largest key where keys are numbers.
pub(super) fn largest_number<K: KeyType>() -> Option<u64> {
    const { check_json_number::<K>() };
    K::IS_JSON_NUMBER.then(|| (1 << K::Scheme::INTEGER_BITS) - 1)
}

/// The string's form: one of the two.
pub(super) struct StringForm {
    pub(super) format: Option<&'static str>,
    /// Anchored at both ends.
    pub(super) pattern: Option<String>,
}

impl StringForm {
    pub(super) fn of<K: KeyType>() -> Self {
        let (prefix, form) = match K::PREFIX {
            None => (String::new(), K::Scheme::TEXT),
            Some("") => (String::new(), K::Scheme::SUFFIX),
            Some(prefix) => (format!("{prefix}_"), K::Scheme::SUFFIX),
        };
        match form {
            // No pattern beside it: generators of code make a type of the language of it, such as
            // Java's `UUID`, and validators refuse a pattern of what is no string.
            TextForm::Format(format) => Self {
                format: prefix.is_empty().then_some(format),
                pattern: None,
            },
            TextForm::Pattern(pattern) => Self {
                format: None,
                pattern: Some(format!("^{prefix}{pattern}$")),
            },
        }
    }
}

/// Body of a key type's `schema_name`.
pub fn schema_name<K: KeyType>() -> Cow<'static, str> {
    Cow::Borrowed(K::NAME)
}
