//! A raw key's bytes without its type.

use core::fmt;

use super::{KeyType, RawKey};

/// The bytes of a raw key, in network order, without its type. All key types share this form, so that keys of
/// different entities can be held and compared together.
///
/// Equal keys of one type have equal bytes. The bytes alone do not tell the type.
///
/// # Example
///
/// ```
/// use ordid_core::{key::KeyBytes, uuid::Uuid};
///
/// let key = Uuid::from_u128(7);
/// let bytes = KeyBytes::of(key);
/// assert_eq!(bytes.as_bytes(), key.as_bytes());
/// assert_eq!(bytes.to_key(), Some(key));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyBytes {
    bytes: [u8; Self::MAX],
    length: u8,
}

impl KeyBytes {
    /// The largest number of bytes of a raw key: that of a key of several columns.
    pub const MAX: usize = 48;

    /// Returns the bytes of a key. For a raw key of more than [`MAX`](Self::MAX) bytes, the call does not compile.
    #[inline]
    pub fn of<K: KeyType>(key: K) -> Self {
        Self::of_raw(key.to_raw())
    }

    /// Returns the bytes of a raw key. For one of more than [`MAX`](Self::MAX) bytes, the call does not compile.
    #[inline]
    pub fn of_raw<R: RawKey>(raw: R) -> Self {
        const {
            assert!(
                size_of::<R::Bytes>() <= Self::MAX,
                "a raw key has at most 48 bytes"
            );
        }
        let raw = raw.to_bytes();
        let raw = raw.as_ref();
        let mut bytes = [0; Self::MAX];
        bytes[..raw.len()].copy_from_slice(raw);
        Self {
            bytes,
            // At most 48.
            length: u8::try_from(raw.len()).unwrap_or(u8::MAX),
        }
    }

    /// Takes bytes that [`as_bytes`](Self::as_bytes) returned; `None` if there are more than [`MAX`](Self::MAX).
    pub fn from_slice(slice: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::MAX];
        bytes.get_mut(..slice.len())?.copy_from_slice(slice);
        let length = u8::try_from(slice.len()).ok()?;
        Some(Self { bytes, length })
    }

    /// Returns the bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Returns the key of a type that has these bytes; `None` if their number is wrong, or they are not a key of the
    /// type's scheme.
    pub fn to_key<K: KeyType>(self) -> Option<K> {
        K::from_raw(self.to_raw()?).ok()
    }

    /// Returns the raw key that has these bytes; `None` if their number is wrong.
    pub fn to_raw<R: RawKey>(self) -> Option<R> {
        let mut raw = R::Bytes::default();
        let bytes = raw.as_mut();
        if bytes.len() != usize::from(self.length) {
            return None;
        }
        bytes.copy_from_slice(self.as_bytes());
        Some(R::from_bytes(raw))
    }
}

/// The bytes in hex.
impl fmt::Debug for KeyBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyBytes(")?;
        for byte in self.as_bytes() {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::key::{Generated, Scheme};

    /// Another type with keys of as many bytes.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    struct Flake(i64);

    impl fmt::Display for Flake {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.fmt(f)
        }
    }

    impl KeyType for Flake {
        type Raw = i64;
        type Scheme = crate::scheme::Snowflake<crate::scheme::snowflake::Twitter>;

        const NAME: &'static str = "Flake";
        const PREFIX: Option<&'static str> = None;

        fn from_generated(generated: Generated<Self::Scheme>) -> Self {
            Self(generated.into_raw())
        }

        fn to_raw(self) -> i64 {
            self.0
        }

        fn from_raw(raw: i64) -> Result<Self, crate::Error> {
            Generated::check(raw, Self::NAME).map(Self::from_generated)
        }
    }

    #[test]
    fn key_bytes_convert_to_the_raw_key_and_back() {
        let key = Uuid::from_u128(0x0102);
        let bytes = KeyBytes::of(key);
        assert_eq!(bytes.as_bytes(), key.as_bytes());
        assert_eq!(bytes.to_key(), Some(key));
        assert_eq!(
            format!("{bytes:?}"),
            "KeyBytes(00000000000000000000000000000102)"
        );
        let flake = KeyBytes::of(Flake(7));
        assert_eq!(flake.as_bytes(), 7_i64.to_be_bytes());
        assert_eq!(flake.to_key(), Some(Flake(7)));
    }

    #[test]
    fn bytes_of_another_length_or_scheme_are_refused() {
        assert_eq!(KeyBytes::of(Flake(7)).to_key::<Uuid>(), None);
        assert_eq!(KeyBytes::of(Uuid::nil()).to_key::<Flake>(), None);
        let negative = Flake(-1);
        assert!(!<Flake as KeyType>::Scheme::check(&-1));
        assert_eq!(KeyBytes::of(negative).to_key::<Flake>(), None);
    }

    #[test]
    fn it_is_small() {
        assert_eq!(size_of::<KeyBytes>(), 49);
        assert_eq!(size_of::<Option<(u16, KeyBytes)>>(), 54);
    }
}
