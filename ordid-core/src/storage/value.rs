//! Stored values: the forms that columns take and return, and their syntax in SQL.

use alloc::{format, string::String};
use core::fmt::Write as _;

/// A stored value: an array of bytes, `i64` or `u64`.
pub trait StoredValue: Copy + Ord + core::fmt::Debug + Send + Sync + 'static {
    /// Returns the value in the form in which [`Stores::decode`](super::Stores::decode) takes it.
    fn found(&self) -> Found<'_>;
}

impl<const N: usize> StoredValue for [u8; N] {
    #[inline]
    fn found(&self) -> Found<'_> {
        Found::Bytes(self)
    }
}

impl StoredValue for i64 {
    #[inline]
    fn found(&self) -> Found<'_> {
        Found::Integer(*self)
    }
}

impl StoredValue for u64 {
    #[inline]
    fn found(&self) -> Found<'_> {
        Found::Unsigned(*self)
    }
}

/// A value as a driver reads it from a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Found<'a> {
    /// Bytes, or a text as its bytes.
    Bytes(&'a [u8]),
    /// A signed integer.
    Integer(i64),
    /// An unsigned integer.
    Unsigned(u64),
}

impl<'a> From<&'a [u8]> for Found<'a> {
    #[inline]
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Found<'a> {
    #[inline]
    fn from(bytes: &'a [u8; N]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> From<&'a str> for Found<'a> {
    #[inline]
    fn from(text: &'a str) -> Self {
        Self::Bytes(text.as_bytes())
    }
}

impl From<i64> for Found<'_> {
    #[inline]
    fn from(integer: i64) -> Self {
        Self::Integer(integer)
    }
}

impl From<u64> for Found<'_> {
    #[inline]
    fn from(integer: u64) -> Self {
        Self::Unsigned(integer)
    }
}

/// The syntax of a column's values in SQL: the value, with a text before and after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Literal {
    /// The text before the value, such as `X'`.
    pub before: &'static str,
    /// The form of the value itself.
    pub written: Written,
    /// The text after the value, such as `'`.
    pub after: &'static str,
}

/// The form of a stored value inside its [`Literal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Written {
    /// The characters of a text, or the digits of an integer.
    Plain,
    /// Two upper-case hex digits for each byte.
    Hex,
    /// Sixteen bytes as hyphenated lower-case hex.
    Hyphenated,
}

impl Literal {
    pub(super) const fn new(before: &'static str, written: Written, after: &'static str) -> Self {
        Self {
            before,
            written,
            after,
        }
    }

    /// Writes a stored value.
    pub(super) fn of(self, value: Found<'_>) -> String {
        let mut sql = String::from(self.before);
        match (value, self.written) {
            (Found::Integer(integer), _) => sql.push_str(&format!("{integer}")),
            (Found::Unsigned(integer), _) => sql.push_str(&format!("{integer}")),
            // Keys' texts are ASCII without quotes or backslashes.
            (Found::Bytes(bytes), Written::Plain) => {
                sql.extend(bytes.iter().copied().map(char::from))
            }
            (Found::Bytes(bytes), written) => {
                for (index, byte) in bytes.iter().enumerate() {
                    // To a string, which takes all.
                    let _ = if written == Written::Hyphenated {
                        if matches!(index, 4 | 6 | 8 | 10) {
                            sql.push('-');
                        }
                        write!(sql, "{byte:02x}")
                    } else {
                        write!(sql, "{byte:02X}")
                    };
                }
            }
        }
        sql.push_str(self.after);
        sql
    }
}
