//! `serde`: the canonical text in formats for people, such as JSON, and the raw key's bytes or its
//! integer in others, such as CBOR. Both are masked where the key type has a mask. A key type with
//! `json = number` is an integer everywhere.

use alloc::format;
use core::{fmt, marker::PhantomData};

use serde_core::{
    Deserializer, Serializer,
    de::{self, Unexpected, Visitor},
};

use crate::{
    __private::{check_json_number, text_in},
    Error, KeyType, RawKey, Scheme,
    key::{
        BinaryForm,
        text::{self, Room},
    },
};

/// Body of a key type's `serialize`.
///
/// # Errors
///
/// Only what the serializer returns.
pub fn serialize<K: KeyType, S: Serializer>(key: K, serializer: S) -> Result<S::Ok, S::Error> {
    const { check_json_number::<K>() };
    if serializer.is_human_readable() && !K::IS_JSON_NUMBER {
        // On the stack, and whole: by `collect_str` each piece would be looked at by itself.
        let mut room = Room::new();
        return match text_in::<K>(key.to_outside(), &mut room) {
            Some(text) => serializer.serialize_str(text),
            None => serializer.collect_str(&key),
        };
    }
    let bytes = key.to_outside().to_bytes();
    let integer = || <[u8; 8]>::try_from(bytes.as_ref());
    match (K::Raw::BINARY, integer()) {
        (BinaryForm::I64, Ok(bytes)) => serializer.serialize_i64(i64::from_be_bytes(bytes)),
        (BinaryForm::U64, Ok(bytes)) => serializer.serialize_u64(u64::from_be_bytes(bytes)),
        _ => serializer.serialize_bytes(bytes.as_ref()),
    }
}

/// Body of a key type's `deserialize`.
///
/// # Errors
///
/// What is not of the form that [`serialize`] writes, and keys of another scheme.
pub fn deserialize<'de, K: KeyType, D: Deserializer<'de>>(deserializer: D) -> Result<K, D::Error> {
    const { check_json_number::<K>() };
    if deserializer.is_human_readable() && !K::IS_JSON_NUMBER {
        return deserializer.deserialize_str(Text(PhantomData));
    }
    match K::Raw::BINARY {
        BinaryForm::Bytes => deserializer.deserialize_bytes(Binary(PhantomData)),
        BinaryForm::I64 => deserializer.deserialize_i64(Binary(PhantomData)),
        BinaryForm::U64 => deserializer.deserialize_u64(Binary(PhantomData)),
    }
}

/// Takes text, and bytes.
struct Text<K>(PhantomData<K>);

impl<K: KeyType> Visitor<'_> for Text<K> {
    type Value = K;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the text of a `{}`", K::NAME)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<K, E> {
        if let Some(raw) = K::Scheme::read_text(K::PREFIX, text) {
            return K::from_outside(raw).map_err(E::custom);
        }
        match K::Scheme::parse_text(K::PREFIX, text) {
            Ok(raw) => K::from_outside(raw).map_err(E::custom),
            Err(error) => Err(not_a::<K, E>(&error)),
        }
    }

    // Serde's buffer behind `flatten` and `untagged` calls itself human-readable whatever it was
    // filled from, and so hands out the bytes of a binary format here.
    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<K, E> {
        match K::Raw::BINARY {
            BinaryForm::Bytes => of_bytes(bytes),
            _ => Err(E::invalid_type(Unexpected::Bytes(bytes), &self)),
        }
    }
}

/// Takes bytes or an integer, whichever the raw key is.
struct Binary<K>(PhantomData<K>);

impl<K: KeyType> Binary<K> {
    fn of_integer<E: de::Error>(
        self,
        bytes: Option<[u8; 8]>,
        found: Unexpected<'_>,
    ) -> Result<K, E> {
        bytes.map_or_else(
            || Err(E::invalid_value(found, &self)),
            |bytes| of_bytes(&bytes),
        )
    }
}

impl<K: KeyType> Visitor<'_> for Binary<K> {
    type Value = K;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = match K::Raw::BINARY {
            BinaryForm::Bytes => "bytes",
            BinaryForm::I64 => "signed integer",
            BinaryForm::U64 => "unsigned integer",
        };
        write!(f, "the {form} of a `{}`", K::NAME)
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<K, E> {
        match K::Raw::BINARY {
            BinaryForm::Bytes => of_bytes(bytes),
            _ => Err(E::invalid_type(Unexpected::Bytes(bytes), &self)),
        }
    }

    // Formats that write a small integer in fewer bytes do not say what it was, signed or not.
    fn visit_i64<E: de::Error>(self, integer: i64) -> Result<K, E> {
        let found = Unexpected::Signed(integer);
        match K::Raw::BINARY {
            BinaryForm::Bytes => Err(E::invalid_type(found, &self)),
            BinaryForm::I64 => self.of_integer(Some(integer.to_be_bytes()), found),
            BinaryForm::U64 => {
                let bytes = u64::try_from(integer).map(u64::to_be_bytes);
                self.of_integer(bytes.ok(), found)
            }
        }
    }

    fn visit_u64<E: de::Error>(self, integer: u64) -> Result<K, E> {
        let found = Unexpected::Unsigned(integer);
        match K::Raw::BINARY {
            BinaryForm::Bytes => Err(E::invalid_type(found, &self)),
            BinaryForm::I64 => {
                let bytes = i64::try_from(integer).map(i64::to_be_bytes);
                self.of_integer(bytes.ok(), found)
            }
            BinaryForm::U64 => self.of_integer(Some(integer.to_be_bytes()), found),
        }
    }
}

/// Takes the raw key's bytes.
fn of_bytes<K: KeyType, E: de::Error>(found: &[u8]) -> Result<K, E> {
    let mut bytes = <K::Raw as RawKey>::Bytes::default();
    let expected = bytes.as_ref().len();
    if found.len() != expected {
        let error = Error::parse(format!(
            "expected {expected} bytes, found {}: {}",
            found.len(),
            text::excerpt(found)
        ));
        return Err(not_a::<K, E>(&error));
    }
    bytes.as_mut().copy_from_slice(found);
    K::from_outside(K::Raw::from_bytes(bytes)).map_err(E::custom)
}

/// An error of a form, which does not name the key type as one of a scheme does.
fn not_a<K: KeyType, E: de::Error>(error: &Error) -> E {
    E::custom(format_args!("not a `{}`: {error}", K::NAME))
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use alloc::{string::String, vec::Vec};
    use core::str::FromStr;

    use serde::{Serialize, de::DeserializeOwned};

    use super::*;
    use crate::{
        __private,
        clock::Timestamp,
        key::{Generated, TextForm},
        layout::Orders,
    };

    /// A raw key and a key type of an integer: even numbers are keys.
    macro_rules! integer_key {
        ($raw:ident, $key:ident, $scheme:ident: $integer:ident, $binary:ident) => {
            #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
            struct $raw($integer);

            impl RawKey for $raw {
                type Bytes = [u8; 8];

                const TEXT: TextForm = TextForm::Pattern("-?[0-9]+");
                const BINARY: BinaryForm = BinaryForm::$binary;

                fn to_bytes(self) -> [u8; 8] {
                    self.0.to_be_bytes()
                }

                fn from_bytes(bytes: [u8; 8]) -> Self {
                    Self($integer::from_be_bytes(bytes))
                }

                fn write_text(self, _: Option<&str>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    write!(f, "{}", self.0)
                }

                fn parse_text(_: Option<&str>, text: &str) -> Result<Self, Error> {
                    let error = |_| Error::parse("expected a number");
                    $integer::from_str(text).map(Self).map_err(error)
                }

                fn describe(self) -> String {
                    format!("{}", self.0)
                }
            }

            enum $scheme {}

            impl Scheme for $scheme {
                type Raw = $raw;

                const NAME: &'static str = "even";
                const ORDERS: Orders = Orders::BYTES;
                const EXPECTED: &'static str = "an even number";

                fn check(raw: &$raw) -> bool {
                    raw.0 & 1 == 0
                }

                fn timestamp(_: &$raw) -> Option<Timestamp> {
                    None
                }
            }

            #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
            struct $key($raw);

            impl KeyType for $key {
                type Raw = $raw;
                type Scheme = $scheme;

                const NAME: &'static str = stringify!($key);
                const PREFIX: Option<&'static str> = None;

                fn from_generated(generated: Generated<$scheme>) -> Self {
                    Self(generated.into_raw())
                }

                fn to_raw(self) -> $raw {
                    self.0
                }

                fn from_raw(raw: $raw) -> Result<Self, Error> {
                    __private::from_raw(raw)
                }
            }

            impl fmt::Display for $key {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    __private::fmt_display(*self, f)
                }
            }

            impl fmt::Debug for $key {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    __private::fmt_debug(*self, f)
                }
            }

            crate::__private::key_type_interop! { $key }
        };
    }

    integer_key!(Signed, SignedId, SignedEven: i64, I64);
    integer_key!(Unsigned, UnsignedId, UnsignedEven: u64, U64);

    fn to_cbor<T: Serialize>(value: T) -> Vec<u8> {
        let mut bytes = Vec::new();
        ciborium::into_writer(&value, &mut bytes).unwrap();
        bytes
    }

    fn of_cbor<T: DeserializeOwned>(value: impl Serialize) -> Result<T, String> {
        ciborium::from_reader(&to_cbor(value)[..]).map_err(|error| format!("{error}"))
    }

    #[test]
    fn integer_keys_are_integers_in_binary_formats() {
        for integer in [0, 2, -2, 1 << 40, i64::MAX - 1, i64::MIN] {
            let key = SignedId(Signed(integer));
            assert_eq!(to_cbor(key), to_cbor(integer));
            assert_eq!(of_cbor(integer), Ok(key));
            let bytes = postcard::to_allocvec(&key).unwrap();
            assert_eq!(bytes, postcard::to_allocvec(&integer).unwrap());
            assert_eq!(postcard::from_bytes(&bytes), Ok(key));
        }
        for integer in [0, 2, 1 << 40, u64::MAX - 1] {
            let key = UnsignedId(Unsigned(integer));
            assert_eq!(to_cbor(key), to_cbor(integer));
            assert_eq!(of_cbor(integer), Ok(key));
            let bytes = postcard::to_allocvec(&key).unwrap();
            assert_eq!(bytes, postcard::to_allocvec(&integer).unwrap());
            assert_eq!(postcard::from_bytes(&bytes), Ok(key));
        }
    }

    #[test]
    fn integer_keys_are_text_in_human_readable_formats() {
        let key = SignedId(Signed(-4));
        assert_eq!(serde_json::to_string(&key).unwrap(), "\"-4\"");
        assert_eq!(serde_json::from_str::<SignedId>("\"-4\"").unwrap(), key);
        // A number in JSON may have lost its last digits on the way.
        let error = serde_json::from_str::<SignedId>("-4").unwrap_err();
        assert_eq!(
            format!("{error}"),
            "invalid type: integer `-4`, expected the text of a `SignedId` at line 1 column 2"
        );
    }

    #[test]
    fn a_value_that_is_no_such_integer_is_an_error() {
        use serde_core::de::value::Error as Found;

        // Most formats refuse these by themselves.
        let found: Result<_, Found> = Binary::<UnsignedId>(PhantomData).visit_i64(-2);
        assert_eq!(
            format!("{}", found.unwrap_err()),
            "invalid value: integer `-2`, expected the unsigned integer of a `UnsignedId`"
        );
        let found: Result<_, Found> = Binary::<SignedId>(PhantomData).visit_u64(1 << 63);
        assert_eq!(
            format!("{}", found.unwrap_err()),
            "invalid value: integer `9223372036854775808`, expected the signed integer of a \
             `SignedId`"
        );
        let found = of_cbor::<SignedId>(3).unwrap_err();
        assert!(
            found.contains("not a `SignedId`: scheme even expects an even number, found 3"),
            "{found}"
        );
        assert!(of_cbor::<UnsignedId>(-2).is_err());
        assert!(of_cbor::<SignedId>(u64::MAX).is_err());
        assert!(of_cbor::<SignedId>("4").is_err());
        assert!(of_cbor::<SignedId>(4.0).is_err());
    }
}
