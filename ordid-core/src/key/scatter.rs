//! Keys with a bucket number in front, for stores that split their data by ranges of keys.
//!
//! In such a store, rising keys all go to the last range: an object store's prefix, a tablet, a shard. A bucket
//! number in front spreads keys over several ranges, and keeps their order within each bucket.
//!
//! ```text
//! bytes  bucket (1 byte; 2 for more than 256 buckets) | the key's bytes
//! text   bucket (2 or 4 digits of lower-case hex) | "-" | the key's text
//! ```
//!
//! The bucket is computed from the key ([`Scatter::by_hash`], [`Scatter::by_reversed_bits`]), so a known key is found
//! with one look-up. A range of keys needs one scan in each bucket ([`Scatter::ranges`]). The number of buckets and
//! the rule are part of the data: if either changes, stored keys are not found any more. Readers refuse a key with a
//! wrong bucket.
//!
//! Within a bucket, keys are in the order of their bytes. Schemes that rise only under another rule (COMBs,
//! version 1) do not rise here.
//!
//! The bucket tells nothing that the key does not tell. It does not protect against somebody who chooses keys,
//! because they can choose them all in one bucket.
//!
//! # Example: a hot partition in 16 parts
//!
//! ```
//! use ordid_core::key::scatter::Scatter;
//! use uuid::Uuid;
//!
//! const OBJECTS: Scatter = Scatter::by_hash(16);
//!
//! let key: Uuid = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f".parse()?;
//! let scattered = OBJECTS.scatter(key);
//! assert_eq!(scattered.to_string(), "04-017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
//! assert_eq!(OBJECTS.parse::<Uuid>(&scattered.to_string())?.key(), &key);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # References
//!
//! Amazon S3, "Best practices design patterns: optimizing performance" (request rates per prefix);
//! Google Cloud Spanner, "Schema design best practices" (hash the key, bit-reversed values).

use alloc::{format, string::String, vec::Vec};
use core::{fmt, hash::Hasher as _};

use siphasher::sip::SipHasher24;
use uuid::Uuid;

use super::{Key192, KeyType, ObjectId, PushId, RawKey, text::excerpt};
use crate::error::Error;

/// The key of the hash, so that every program computes the same buckets.
const HASH_KEY: &[u8; 16] = b"ordid scatter v1";
/// Longest text of a key that is looked into.
const TEXT_MAX: usize = 1024;

/// A key that can have a bucket number in front.
///
/// Implemented for 128-bit keys, [`ObjectId`], [`PushId`], [`Key192`], integers, and text of up to 1,024 bytes, such
/// as a scheme's own text form.
pub trait Scatterable: Ord + Sized {
    /// Passes the key's bytes to `take`. They sort as the keys do.
    fn with_bytes<R>(&self, take: impl FnOnce(&[u8]) -> R) -> R;

    /// Reads the bytes of a key.
    ///
    /// # Errors
    ///
    /// Bytes that are not those of a key give an error that [`is_parse`](Error::is_parse).
    fn from_bytes(bytes: &[u8]) -> Result<Self, Error>;

    /// Writes the key's text. Texts sort as the keys do.
    ///
    /// # Errors
    ///
    /// Only what the formatter returns.
    fn write_text(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// Reads what [`write_text`](Self::write_text) wrote, and nothing else.
    ///
    /// # Errors
    ///
    /// Any other text gives an error that [`is_parse`](Error::is_parse).
    fn parse_text(text: &str) -> Result<Self, Error>;
}

fn array<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Error> {
    bytes.try_into().map_err(|_| {
        Error::parse(format!(
            "expected a key of {N} bytes after the bucket, found {} bytes {}",
            bytes.len(),
            excerpt(bytes)
        ))
    })
}

macro_rules! raw_keys {
    ($($raw:ty: $from:path;)+) => {
        $(impl Scatterable for $raw {
            fn with_bytes<R>(&self, take: impl FnOnce(&[u8]) -> R) -> R {
                take(self.as_bytes())
            }

            fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
                array(bytes).map($from)
            }

            fn write_text(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                RawKey::write_text(*self, None, f)
            }

            fn parse_text(text: &str) -> Result<Self, Error> {
                RawKey::parse_text(None, text)
            }
        })+
    };
}

raw_keys! {
    Uuid: Uuid::from_bytes;
    ObjectId: ObjectId::from_bytes;
    PushId: PushId::from_bytes;
    Key192: Key192::from_bytes;
}

/// 8 bytes, most significant first; as text 20 decimal digits.
impl Scatterable for u64 {
    fn with_bytes<R>(&self, take: impl FnOnce(&[u8]) -> R) -> R {
        take(&self.to_be_bytes())
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        array(bytes).map(Self::from_be_bytes)
    }

    fn write_text(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:020}")
    }

    fn parse_text(text: &str) -> Result<Self, Error> {
        digits(text, 20)
    }
}

/// 8 bytes, most significant first, with the sign bit turned over; as text 19 decimal digits.
///
/// No scheme makes negative keys. For the sake of order their text is `-` and 16 digits of hex:
/// the bytes.
impl Scatterable for i64 {
    fn with_bytes<R>(&self, take: impl FnOnce(&[u8]) -> R) -> R {
        take(&(self.cast_unsigned() ^ 1 << 63).to_be_bytes())
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let turned = array(bytes).map(u64::from_be_bytes)?;
        Ok((turned ^ 1 << 63).cast_signed())
    }

    fn write_text(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self < 0 {
            write!(f, "-{:016x}", self.cast_unsigned() ^ 1 << 63)
        } else {
            write!(f, "{self:019}")
        }
    }

    fn parse_text(text: &str) -> Result<Self, Error> {
        let Some(hex) = text.strip_prefix('-') else {
            return digits(text, 19);
        };
        let is_hex = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if hex.len() == 16
            && hex.bytes().all(is_hex)
            && let Ok(turned) = u64::from_str_radix(hex, 16)
            && turned < 1 << 63
        {
            return Ok((turned ^ 1 << 63).cast_signed());
        }
        Err(Error::parse(format!(
            "expected 16 digits of hex below 8000000000000000 after the `-`, found {}",
            excerpt(hex.as_bytes())
        )))
    }
}

fn digits<T: core::str::FromStr>(text: &str, count: usize) -> Result<T, Error> {
    if text.len() == count
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && let Ok(value) = text.parse()
    {
        return Ok(value);
    }
    Err(Error::parse(format!(
        "expected an integer key of {count} digits, found {}",
        excerpt(text.as_bytes())
    )))
}

/// The bytes of the text.
impl Scatterable for String {
    fn with_bytes<R>(&self, take: impl FnOnce(&[u8]) -> R) -> R {
        take(self.as_bytes())
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() > TEXT_MAX {
            return Err(too_long(bytes));
        }
        core::str::from_utf8(bytes).map(Self::from).map_err(|_| {
            Error::parse(format!(
                "expected a text key after the bucket, found {}, which is not UTF-8",
                excerpt(bytes)
            ))
        })
    }

    fn write_text(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }

    fn parse_text(text: &str) -> Result<Self, Error> {
        Self::from_bytes(text.as_bytes())
    }
}

fn too_long(text: &[u8]) -> Error {
    Error::parse(format!(
        "expected a key of at most {TEXT_MAX} bytes, found {}",
        excerpt(text)
    ))
}

/// A rule that spreads keys over a number of buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scatter {
    buckets: u16,
    by: By,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum By {
    Hash,
    /// So many bits up from this one.
    ReversedBits {
        lowest: u32,
        bits: u32,
    },
}

impl Scatter {
    /// Spreads by a hash: the bucket is SipHash-2-4 of the key's bytes, under the 16 bytes `ordid scatter v1`, modulo
    /// `buckets`.
    ///
    /// The distribution is even for any keys, including keys that were made one after the other.
    ///
    /// # Panics
    ///
    /// If `buckets` is zero; in a `const` this is a compile error.
    pub const fn by_hash(buckets: u16) -> Self {
        assert!(buckets > 0, "keys are spread over one bucket at least");
        Self {
            buckets,
            by: By::Hash,
        }
    }

    /// Spreads by some of the key's own bits, in reversed order, so that consecutive keys go to buckets that are far
    /// apart. `lowest` is the number of the lowest of these bits, where bit 0 is the last bit of the key's bytes.
    ///
    /// For a counter, `lowest` is 0. For the milliseconds of a 128-bit key with 48 bits of time, `lowest` is 80: then
    /// all keys of a millisecond are in one bucket, and those of the next millisecond in another. The distribution is
    /// as even as these bits are. For text use [`by_hash`](Self::by_hash).
    ///
    /// # Panics
    ///
    /// If `buckets` is not a power of two; in a `const` this is a compile error.
    ///
    /// # Example: a sequence of integers
    ///
    /// ```
    /// use ordid_core::key::scatter::Scatter;
    ///
    /// let scatter = Scatter::by_reversed_bits(8, 0);
    /// let buckets = [1_i64, 2, 3, 4].map(|key| scatter.bucket(&key));
    /// assert_eq!(buckets, [4, 2, 6, 1]);
    /// ```
    pub const fn by_reversed_bits(buckets: u16, lowest: u32) -> Self {
        assert!(
            buckets.is_power_of_two(),
            "reversed bits make a power of two of buckets"
        );
        Self {
            buckets,
            by: By::ReversedBits {
                lowest,
                bits: buckets.ilog2(),
            },
        }
    }

    /// Returns how many buckets there are.
    pub const fn buckets(self) -> u16 {
        self.buckets
    }

    /// Returns the bucket of a key.
    pub fn bucket<K: Scatterable>(self, key: &K) -> u16 {
        key.with_bytes(|bytes| match self.by {
            By::Hash => {
                let mut hasher = SipHasher24::new_with_key(HASH_KEY);
                hasher.write(bytes);
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "less than `buckets`, a u16"
                )]
                let bucket = (hasher.finish() % u64::from(self.buckets)) as u16;
                bucket
            }
            By::ReversedBits { lowest, bits } => (0..bits).fold(0, |bucket, bit| {
                bucket << 1 | bit_of(bytes, lowest.saturating_add(bit))
            }),
        })
    }

    /// Puts the bucket number in front of a key.
    pub fn scatter<K: Scatterable>(self, key: K) -> Scattered<K> {
        Scattered {
            bucket: self.bucket(&key),
            wide: self.is_wide(),
            key,
        }
    }

    /// Returns, for each bucket from the first to the last, the two ends of a range of keys, both included. Reading
    /// the range takes a scan of each bucket.
    pub fn ranges<K: Scatterable + Clone>(
        self,
        lowest: K,
        highest: K,
    ) -> impl Iterator<Item = (Scattered<K>, Scattered<K>)> {
        let wide = self.is_wide();
        (0..self.buckets).map(move |bucket| {
            let [low, high] = [&lowest, &highest].map(|key| Scattered {
                bucket,
                wide,
                key: key.clone(),
            });
            (low, high)
        })
    }

    /// Reads what [`Scattered::to_bytes`] wrote.
    ///
    /// # Errors
    ///
    /// Bytes that are not those of a key, and a bucket that is not the key's, give an error that
    /// [`is_parse`](Error::is_parse).
    pub fn read<K: Scatterable>(self, bytes: &[u8]) -> Result<Scattered<K>, Error> {
        let (bucket, key) = match (self.is_wide(), bytes) {
            (false, [bucket, key @ ..]) => (u16::from(*bucket), key),
            (true, [high, low, key @ ..]) => (u16::from_be_bytes([*high, *low]), key),
            _ => {
                return Err(Error::parse(format!(
                    "expected a bucket and a key, found {} bytes",
                    bytes.len()
                )));
            }
        };
        self.checked(bucket, K::from_bytes(key)?)
    }

    /// Reads the text of a [`Scattered`] key.
    ///
    /// # Errors
    ///
    /// Text that is not that of a key, and a bucket that is not the key's, give an error that
    /// [`is_parse`](Error::is_parse).
    pub fn parse<K: Scatterable>(self, text: &str) -> Result<Scattered<K>, Error> {
        // Before any look inside.
        if text.len() > TEXT_MAX + 5 {
            return Err(too_long(text.as_bytes()));
        }
        let width = if self.is_wide() { 4 } else { 2 };
        let is_hex = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let bucket = match text.split_once('-') {
            Some((hex, key)) if hex.len() == width && hex.bytes().all(is_hex) => {
                u16::from_str_radix(hex, 16).ok().zip(Some(key))
            }
            _ => None,
        };
        let Some((bucket, key)) = bucket else {
            return Err(Error::parse(format!(
                "expected a bucket of {width} digits of lower-case hex, `-` and a key, found {}",
                excerpt(text.as_bytes())
            )));
        };
        self.checked(bucket, K::parse_text(key)?)
    }

    const fn is_wide(self) -> bool {
        self.buckets > 256
    }

    fn checked<K: Scatterable>(self, bucket: u16, key: K) -> Result<Scattered<K>, Error> {
        let scattered = self.scatter(key);
        if scattered.bucket == bucket {
            return Ok(scattered);
        }
        Err(Error::parse(format!(
            "expected bucket {} of {} for this key, found bucket {bucket} in {}: it was spread by \
             another rule, or altered",
            scattered.bucket,
            self.buckets,
            excerpt(
                Scattered {
                    bucket,
                    ..scattered
                }
                .text()
                .as_bytes()
            )
        )))
    }
}

/// A key type whose keys are spread by one rule: `#[ordid(scatter(buckets = 16))]`.
///
/// The key type itself does not change, in its columns and in its text. Its scattered form is for stores that split
/// their data by ranges of keys.
///
/// # Example
///
/// ```
/// use ordid_core::{KeyType, key::scatter::{Scatter, ScatteredKey}, uuid::Uuid};
///
/// // `#[derive(KeyType)]` writes this for a key type of yours.
/// # #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
/// # struct ObjectName(Uuid);
/// # impl std::fmt::Display for ObjectName {
/// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { self.0.fmt(f) }
/// # }
/// # impl KeyType for ObjectName {
/// #     type Raw = Uuid;
/// #     type Scheme = ordid_core::scheme::UuidV7;
/// #     const NAME: &'static str = "ObjectName";
/// #     const PREFIX: Option<&'static str> = None;
/// #     fn from_generated(key: ordid_core::key::Generated<Self::Scheme>) -> Self { Self(key.into_raw()) }
/// #     fn to_raw(self) -> Uuid { self.0 }
/// #     fn from_raw(raw: Uuid) -> Result<Self, ordid_core::Error> {
/// #         ordid_core::key::Generated::check(raw, "ObjectName").map(Self::from_generated)
/// #     }
/// # }
/// impl ScatteredKey for ObjectName {
///     const SCATTER: Scatter = Scatter::by_hash(16);
/// }
///
/// let name = ObjectName::generate();
/// let stored = name.scattered().to_string(); // 04-017f22e2-79b0-7cc3-98c4-dc0c0c07398f
/// assert_eq!(ObjectName::parse_scattered(&stored)?, name);
/// assert_eq!(ObjectName::from_scattered_bytes(&name.scattered().to_bytes())?, name);
/// # Ok::<(), ordid_core::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "the keys of `{Self}` have no rule that spreads them",
    label = "not spread",
    note = "add `#[ordid(scatter(buckets = 16))]` to `{Self}`; how many buckets there are is part of \
            the data"
)]
pub trait ScatteredKey: KeyType<Raw: Scatterable> {
    /// The rule. It is part of the data: do not change it while there are scattered keys.
    const SCATTER: Scatter;

    /// Puts the bucket number in front of the key.
    fn scattered(self) -> Scattered<Self::Raw> {
        Self::SCATTER.scatter(self.to_raw())
    }

    /// Reads what [`Scattered::to_bytes`] wrote.
    ///
    /// # Errors
    ///
    /// As [`Scatter::read`], and as [`KeyType::from_raw`] for a key of another scheme.
    fn from_scattered_bytes(bytes: &[u8]) -> Result<Self, Error> {
        Self::from_raw(Self::SCATTER.read(bytes)?.into_key())
    }

    /// Reads the text of the [`Scattered`] key.
    ///
    /// # Errors
    ///
    /// As [`Scatter::parse`], and as [`KeyType::from_raw`] for a key of another scheme.
    fn parse_scattered(text: &str) -> Result<Self, Error> {
        Self::from_raw(Self::SCATTER.parse(text)?.into_key())
    }
}

/// Returns a bit of the bytes as one number; zero above its end.
fn bit_of(bytes: &[u8], bit: u32) -> u16 {
    let from_end = usize::try_from(bit / 8).unwrap_or(usize::MAX);
    let byte = bytes
        .len()
        .checked_sub(1)
        .and_then(|last| last.checked_sub(from_end))
        .map_or(0, |at| bytes[at]);
    u16::from(byte >> (bit % 8) & 1)
}

/// A key with its bucket number in front, made by [`Scatter`].
///
/// It sorts by bucket, then by key, and so do its bytes and its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scattered<K> {
    bucket: u16,
    /// Whether the bucket has two bytes; the same for all keys of a rule.
    wide: bool,
    key: K,
}

impl<K: Scatterable> Scattered<K> {
    /// Returns the bucket.
    pub const fn bucket(&self) -> u16 {
        self.bucket
    }

    /// Returns the key.
    pub const fn key(&self) -> &K {
        &self.key
    }

    /// Returns the key alone.
    pub fn into_key(self) -> K {
        self.key
    }

    /// Returns the bucket's byte (two bytes for more than 256 buckets, the higher first) and the key's bytes. Store
    /// them in a column that compares byte by byte from the first.
    pub fn to_bytes(&self) -> Vec<u8> {
        let bucket = self.bucket.to_be_bytes();
        let bucket = &bucket[usize::from(!self.wide)..];
        self.key.with_bytes(|key| [bucket, key].concat())
    }

    fn text(&self) -> String {
        use alloc::string::ToString as _;
        self.to_string()
    }
}

impl<K: Scatterable> fmt::Display for Scattered<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Without the width and fill that are meant for the whole.
        struct Plain<'k, K>(&'k Scattered<K>);

        impl<K: Scatterable> fmt::Display for Plain<'_, K> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let width = if self.0.wide { 4 } else { 2 };
                write!(f, "{:0width$x}-", self.0.bucket)?;
                self.0.key.write_text(f)
            }
        }

        if f.width().is_none() && f.precision().is_none() {
            return Plain(self).fmt(f);
        }
        f.pad(&format!("{}", Plain(self)))
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
