//! Integers as raw keys: what `BIGINT` columns hold.
//!
//! The text is the decimal number as every database prints it: `759517997340696579`, and with a
//! prefix `prefix_759517997340696579`. It has no fixed width, so it does *not* sort as the numbers
//! do: sort keys, not their texts. And JavaScript reads numbers beyond 2^53 with loss: give it the
//! text, or a layout of at most 53 bits ([`compact`](crate::scheme::compact)).
//!
//! One text per key: no sign but the minus of a negative `i64`, no leading zero, nothing around. No
//! scheme makes a negative key; a raw `i64` may be one.

use alloc::{format, string::String};
use core::fmt;

use super::{
    BinaryForm, RawKey, TextForm,
    text::{PREFIX_MAX, after_prefix, another_prefix, excerpt, is_shaped, write_prefixed},
};
use crate::error::Error;

/// Length of the longest number: `i64::MIN`, or `u64::MAX`.
const DIGITS_MAX: usize = 20;

/// As [`after_prefix`], or says why not, of a number, whose length is not known.
fn strip_prefix<'t>(
    prefix: Option<&str>,
    text: &'t str,
    rest_max: usize,
) -> Result<&'t str, Error> {
    // Before any look inside: a megabyte of hostile text is refused at once.
    if text.len() > PREFIX_MAX + 1 + rest_max {
        return Err(too_long(PREFIX_MAX + 1 + rest_max, text));
    }
    after_prefix(prefix, text).ok_or_else(|| {
        let found = text.rsplit_once('_').map(|(found, _)| found);
        another_prefix(prefix.unwrap_or(""), found, text.as_bytes())
    })
}

/// Reads a number without a sign and without leading zeros, if 64 bits hold it. The standard library
/// takes both, which are no canonical text.
#[inline]
fn read_unsigned(text: &str) -> Option<u64> {
    match text.as_bytes() {
        b"0" | [b'1'..=b'9', ..] => text.parse().ok(),
        _ => None,
    }
}

/// As [`read_unsigned`], with a minus in front of what is below zero.
#[inline]
fn read_signed(text: &str) -> Option<i64> {
    match text.as_bytes() {
        b"0" | [b'1'..=b'9', ..] | [b'-', b'1'..=b'9', ..] => text.parse().ok(),
        _ => None,
    }
}

#[cold]
fn too_long(longest: usize, text: &str) -> Error {
    Error::parse(format!(
        "expected at most {longest} characters, found {}",
        excerpt(text.as_bytes())
    ))
}

macro_rules! integer {
    ($integer:ident, $form:ident, $pattern:literal, $expected:literal, $read:ident) => {
        impl RawKey for $integer {
            type Bytes = [u8; 8];

            const TEXT: TextForm = TextForm::Pattern($pattern);
            const BINARY: BinaryForm = BinaryForm::$form;

            fn to_bytes(self) -> [u8; 8] {
                self.to_be_bytes()
            }

            fn from_bytes(bytes: [u8; 8]) -> Self {
                Self::from_be_bytes(bytes)
            }

            #[inline]
            fn write_text(self, prefix: Option<&str>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // What would pad, cut or sign a number meets the text as a whole.
                if is_shaped(f) || f.sign_plus() || prefix.is_some_and(|it| !it.is_empty()) {
                    let mut digits = Digits::new();
                    digits.push(self)?;
                    return write_prefixed(prefix, digits.as_bytes(), f);
                }
                fmt::Display::fmt(&self, f)
            }

            fn parse_text(prefix: Option<&str>, text: &str) -> Result<Self, Error> {
                let digits = strip_prefix(prefix, text, DIGITS_MAX)?;
                $read(digits).ok_or_else(|| not_a_number($expected, digits))
            }

            #[inline]
            fn read_text(prefix: Option<&str>, text: &str) -> Option<Self> {
                $read(after_prefix(prefix, text)?)
            }

            fn describe(self) -> String {
                format!("the number {self}")
            }
        }
    };
}

integer!(
    i64,
    I64,
    "(0|-?[1-9][0-9]{0,18})",
    "a decimal number up to 9223372036854775807",
    read_signed
);
integer!(
    u64,
    U64,
    "(0|[1-9][0-9]{0,19})",
    "a decimal number up to 18446744073709551615",
    read_unsigned
);

#[cold]
fn not_a_number(expected: &str, found: &str) -> Error {
    Error::parse(format!(
        "expected {expected} without sign or leading zeros, found {}",
        excerpt(found.as_bytes())
    ))
}

/// The text of an integer, without an allocation.
struct Digits {
    bytes: [u8; DIGITS_MAX],
    length: usize,
}

impl Digits {
    const fn new() -> Self {
        Self {
            bytes: [0; DIGITS_MAX],
            length: 0,
        }
    }

    fn push(&mut self, integer: impl fmt::Display) -> fmt::Result {
        fmt::Write::write_fmt(self, format_args!("{integer}"))
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl fmt::Write for Digits {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        self.bytes
            .get_mut(self.length..end)
            .ok_or(fmt::Error)?
            .copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use alloc::string::ToString as _;

    use proptest::prelude::*;

    use super::*;

    /// A raw key and its prefix as derived code prints them.
    struct Shown<R>(R, Option<&'static str>);

    impl<R: RawKey> fmt::Display for Shown<R> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.write_text(self.1, f)
        }
    }

    #[test]
    fn the_text_is_what_a_database_prints() {
        assert_eq!(Shown(0_i64, None).to_string(), "0");
        assert_eq!(Shown(i64::MIN, None).to_string(), "-9223372036854775808");
        assert_eq!(
            Shown(u64::MAX, Some("ord")).to_string(),
            "ord_18446744073709551615"
        );
        assert_eq!(Shown(7_u64, Some("")).to_string(), "7");
        assert_eq!(format!("[{:>8}]", Shown(7_u64, Some("ord"))), "[   ord_7]");
        assert_eq!(7_i64.describe(), "the number 7");
    }

    #[test]
    fn every_other_text_is_refused() {
        for text in [
            "",
            "-",
            "+1",
            "-0",
            "00",
            "01",
            "-01",
            " 1",
            "1 ",
            "1_0",
            "0x1",
            "1.0",
            "1e3",
            "a",
            "é",
            "٣",
            "9223372036854775808",
            "-9223372036854775809",
            "000000000000000000001",
        ] {
            assert!(
                i64::parse_text(None, text).unwrap_err().is_parse(),
                "{text}"
            );
        }
        for text in ["", "-1", "+1", "01", "18446744073709551616", "1 "] {
            assert!(
                u64::parse_text(None, text).unwrap_err().is_parse(),
                "{text}"
            );
        }
        for text in [
            "1", "usr_1", "_1", "ord1", "ord_", "ord__1", "ord_+1", "x_ord_1", "ORD_1",
        ] {
            let error = u64::parse_text(Some("ord"), text).unwrap_err();
            assert!(error.is_parse(), "{text}");
        }
        assert_eq!(u64::parse_text(Some("a_b"), "a_b_12").unwrap(), 12);
        for (text, found) in [("7", "no prefix"), ("_7", "\"\""), ("cus_7", "\"cus\"")] {
            let error = u64::parse_text(Some("ord"), text).unwrap_err();
            let expected = format!("expected the prefix \"ord\", found {found} in \"{text}\"");
            assert_eq!(error.to_string(), expected);
        }
        let error = u64::parse_text(None, "+1").unwrap_err();
        assert_eq!(
            error.to_string(),
            "expected a decimal number up to 18446744073709551615 without sign or leading zeros, \
             found \"+1\""
        );
    }

    #[test]
    fn text_that_is_too_long_is_refused_by_its_length() {
        let long = "1".repeat(1_000_000);
        for prefix in [None, Some("ord")] {
            let error = i64::parse_text(prefix, &long).unwrap_err();
            assert!(error.to_string().len() < 200, "{error}");
        }
    }

    proptest! {
        #[test]
        fn texts_come_back(signed: i64, unsigned: u64) {
            for prefix in [None, Some("ord")] {
                let text = Shown(signed, prefix).to_string();
                prop_assert_eq!(i64::parse_text(prefix, &text).unwrap(), signed);
                let text = Shown(unsigned, prefix).to_string();
                prop_assert_eq!(u64::parse_text(prefix, &text).unwrap(), unsigned);
            }
        }

        #[test]
        fn what_parses_is_what_is_written(
            text in "-?[0-9]{1,21}|[-+]?0?[0-9]{17,20}|[-+]?[0-9]{0,21}|\\PC{0,24}",
        ) {
            // The standard library's numbers, if they are written so.
            let signed: Option<i64> = text.parse().ok();
            let signed = signed.filter(|number| number.to_string() == text);
            prop_assert_eq!(i64::parse_text(None, &text).ok(), signed);
            prop_assert_eq!(i64::read_text(None, &text), signed);
            let unsigned: Option<u64> = text.parse().ok();
            let unsigned = unsigned.filter(|number| number.to_string() == text);
            prop_assert_eq!(u64::parse_text(None, &text).ok(), unsigned);
            prop_assert_eq!(u64::read_text(None, &text), unsigned);
        }
    }

    #[test]
    fn the_smallest_and_largest_integers_round_trip_and_larger_ones_are_refused() {
        for number in [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX] {
            assert_eq!(i64::read_text(None, &number.to_string()), Some(number));
        }
        for number in [0, 9, 10, u64::MAX / 10, u64::MAX - 1, u64::MAX] {
            assert_eq!(u64::read_text(None, &number.to_string()), Some(number));
        }
        for number in [
            i128::from(i64::MIN) - 1,
            i128::from(i64::MAX) + 1,
            i128::from(u64::MAX) + 1,
            i128::from(u64::MAX) * 10,
            99_999_999_999_999_999_999,
        ] {
            assert_eq!(i64::read_text(None, &number.to_string()), None);
            if number < 0 || number > i128::from(u64::MAX) {
                assert_eq!(u64::read_text(None, &number.to_string()), None);
            }
        }
    }
}
