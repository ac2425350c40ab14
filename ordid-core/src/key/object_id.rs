//! Twelve bytes as a raw key: MongoDB's ObjectId.

use alloc::{format, string::String};
use core::{fmt, str::FromStr};

use data_encoding::{Encoding, HEXLOWER};

use super::{
    RawKey, TextForm,
    text::{Room, after_prefix, excerpt, strip_prefix, write_prefixed},
};
use crate::error::Error;

/// In one place: a constant would be put together anew with each use.
static HEX: Encoding = HEXLOWER;
/// Length of the text.
const DIGITS: usize = 24;

/// Twelve bytes, which compare from the first: MongoDB's ObjectId.
///
/// The text is 24 digits of lower-case hex, with a prefix `prefix_` and these digits. The scheme says what the bytes
/// mean: [`object_id`](crate::scheme::object_id).
///
/// # Example
///
/// ```
/// use ordid_core::key::ObjectId;
///
/// let id: ObjectId = "56e1fc72e0c917e9c4714161".parse()?;
/// assert_eq!(id.as_bytes()[..4], [0x56, 0xe1, 0xfc, 0x72]);
/// assert_eq!(id.to_string(), "56e1fc72e0c917e9c4714161");
/// # Ok::<(), ordid_core::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId([u8; 12]);

impl ObjectId {
    as_bytes!(12);

    /// Returns the bytes.
    pub const fn to_bytes(self) -> [u8; 12] {
        self.0
    }

    /// Returns the digits of the text.
    #[inline]
    fn digits(self) -> [u8; DIGITS] {
        let mut digits = [0; DIGITS];
        HEX.encode_mut(&self.0, &mut digits);
        digits
    }
}

impl RawKey for ObjectId {
    raw_bytes!(12);

    const TEXT: TextForm = TextForm::Pattern("[0-9a-f]{24}");

    #[inline]
    fn write_text(self, prefix: Option<&str>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_prefixed(prefix, &self.digits(), f)
    }

    #[inline]
    fn text_in<'r>(self, prefix: Option<&str>, room: &'r mut Room) -> Option<&'r str> {
        room.join(prefix, &self.digits())
    }

    /// Lower case only: another case would be a second text for the same key.
    fn parse_text(prefix: Option<&str>, text: &str) -> Result<Self, Error> {
        let digits = strip_prefix(prefix, DIGITS, text)?;
        read_digits(digits).ok_or_else(|| not_an_object_id(digits))
    }

    #[inline]
    fn read_text(prefix: Option<&str>, text: &str) -> Option<Self> {
        read_digits(after_prefix(prefix, text)?.as_bytes())
    }

    fn describe(self) -> String {
        format!("the 12 bytes {self}")
    }
}

#[inline]
fn read_digits(digits: &[u8]) -> Option<ObjectId> {
    let mut bytes = [0; 12];
    (digits.len() == DIGITS && matches!(HEX.decode_mut(digits, &mut bytes), Ok(12)))
        .then_some(ObjectId(bytes))
}

#[cold]
fn not_an_object_id(digits: &[u8]) -> Error {
    let why = if digits.len() == DIGITS && digits.iter().any(u8::is_ascii_uppercase) {
        " (upper case is not canonical: convert it with `lower()`)"
    } else {
        ""
    };
    Error::parse(format!(
        "expected an ObjectId as {DIGITS} digits of lower-case hex, found {}{why}",
        excerpt(digits)
    ))
}

impl fmt::Display for ObjectId {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_text(None, f)
    }
}

/// As the text.
impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ObjectId {
    type Err = Error;

    #[inline]
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse_text(None, text)
    }
}

impl From<[u8; 12]> for ObjectId {
    fn from(bytes: [u8; 12]) -> Self {
        Self(bytes)
    }
}

impl From<ObjectId> for [u8; 12] {
    fn from(id: ObjectId) -> Self {
        id.0
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use alloc::string::ToString as _;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn object_id_is_twelve_bytes() {
        assert_eq!(size_of::<ObjectId>(), 12);
    }

    #[test]
    fn every_other_text_is_refused() {
        for text in [
            "",
            "56e1fc72e0c917e9c471416",
            "56e1fc72e0c917e9c47141610",
            "56E1FC72E0C917E9C4714161",
            "56e1fc72e0c917e9c471416g",
            "0x6e1fc72e0c917e9c4714161",
            " 56e1fc72e0c917e9c471416",
            "ord_56e1fc72e0c917e9c4714161",
        ] {
            let error = ObjectId::parse_text(None, text).unwrap_err();
            assert!(error.is_parse(), "{text}");
        }
        let error = "56E1FC72E0C917E9C4714161".parse::<ObjectId>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "expected an ObjectId as 24 digits of lower-case hex, found \
             \"56E1FC72E0C917E9C4714161\" (upper case is not canonical: convert it with `lower()`)"
        );
        assert!(
            "0".repeat(1_000_000)
                .parse::<ObjectId>()
                .unwrap_err()
                .to_string()
                .len()
                < 200
        );
    }

    proptest! {
        #[test]
        fn texts_come_back_and_sort_as_the_bytes(left: [u8; 12], right: [u8; 12]) {
            let [left, right] = [left, right].map(ObjectId::from);
            prop_assert_eq!(left.to_string().cmp(&right.to_string()), left.cmp(&right));
            prop_assert_eq!(left.to_string().parse::<ObjectId>().unwrap(), left);
            struct Prefixed(ObjectId);
            impl fmt::Display for Prefixed {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    self.0.write_text(Some("ord"), f)
                }
            }
            let text = Prefixed(left).to_string();
            prop_assert!(text.starts_with("ord_"));
            prop_assert_eq!(ObjectId::parse_text(Some("ord"), &text).unwrap(), left);
        }
    }
}
