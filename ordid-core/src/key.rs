//! Keys: raw values, the user's key types over them, and the schemes they belong to.
//!
//! A *raw key* is the plain value, such as [`uuid::Uuid`]. A *key type* is the user's newtype over a raw key, usually
//! one per entity, made by `#[derive(KeyType)]`. A *scheme* says what the bits of a raw key mean, and under which
//! byte or number order keys sort by creation time.

use alloc::{format, string::String};
use core::{cmp::Ordering, fmt, hash::Hash, ops::Range, str::FromStr};

use uuid::{Uuid, Variant, fmt::Hyphenated};

use crate::{
    clock::Timestamp,
    error::{Error, ErrorKind},
    layout::Orders,
    scheme::{FromName, TimeOrdered},
};

/// The bytes of a raw key that is nothing but these.
macro_rules! as_bytes {
    ($length:literal) => {
        /// Takes the bytes, most significant first.
        pub const fn from_bytes(bytes: [u8; $length]) -> Self {
            Self(bytes)
        }

        /// Returns the bytes, most significant first.
        pub const fn as_bytes(&self) -> &[u8; $length] {
            &self.0
        }
    };
}

/// Declares the same functions for a [`RawKey`].
macro_rules! raw_bytes {
    ($length:literal) => {
        type Bytes = [u8; $length];

        fn to_bytes(self) -> [u8; $length] {
            self.0
        }

        fn from_bytes(bytes: [u8; $length]) -> Self {
            Self(bytes)
        }
    };
}

/// `Display`, `Debug` and `FromStr` of a raw key by its own text.
macro_rules! own_text {
    ($key:ident) => {
        impl core::fmt::Display for $key {
            #[inline]
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                self.write_text(None, f)
            }
        }

        impl core::fmt::Debug for $key {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, concat!(stringify!($key), "({})"), self)
            }
        }

        impl core::str::FromStr for $key {
            type Err = Error;

            /// Reads the canonical text.
            ///
            /// # Errors
            ///
            /// Any other text gives an error that [`is_parse`](Error::is_parse).
            #[inline]
            fn from_str(text: &str) -> Result<Self, Error> {
                Self::parse_text(None, text)
            }
        }
    };
}

mod bytes;
mod composite;
mod form;
mod integer;
mod key192;
mod object_id;
mod push_id;
pub mod scatter;
#[cfg(feature = "sqids04")]
pub mod short;
pub mod text;

pub use bytes::KeyBytes;
pub use composite::{
    CompositeBytes, CompositeKey, CompositeRaw, CompositeScheme, EnsuredFields, EnsuredPart,
    KeyFields, KeyPart, KeyParts, KeyStart, LeadingField, PartField,
};
pub use form::{BinaryForm, TextForm};
pub use key192::Key192;
pub use object_id::ObjectId;
pub use push_id::PushId;

/// A plain key value, without a type of its own. Schemes make it, and columns store it.
pub trait RawKey: Copy + Eq + Ord + Hash + fmt::Debug + Send + Sync + 'static {
    /// The bytes of a key, usually an array: all keys of one type have the same length.
    type Bytes: Copy + Default + AsRef<[u8]> + AsMut<[u8]>;

    /// The form of the text that [`write_text`](Self::write_text) writes without a prefix.
    const TEXT: TextForm;
    /// The form of the text after a prefix and its `_`, or of the whole text if the prefix is empty.
    const SUFFIX: TextForm = Self::TEXT;
    /// How binary formats, such as CBOR, carry the key.
    const BINARY: BinaryForm = BinaryForm::Bytes;

    /// Returns the bytes in network order: the most significant first.
    fn to_bytes(self) -> Self::Bytes;

    /// Takes bytes in network order. Every value is a raw key.
    fn from_bytes(bytes: Self::Bytes) -> Self;

    /// Writes the canonical text. Without a prefix this is the raw key's own form. With a prefix, a key of 128 bits
    /// has the TypeID form `prefix_suffix`; any other key has the prefix, `_` and its own form. See [`text`].
    ///
    /// # Errors
    ///
    /// Only what the formatter returns.
    fn write_text(self, prefix: Option<&str>, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// Makes the text of [`write_text`](Self::write_text) on the stack, for raw keys whose longest text fits there.
    #[doc(hidden)]
    #[inline]
    fn text_in<'r>(self, _prefix: Option<&str>, _room: &'r mut text::Room) -> Option<&'r str> {
        None
    }

    /// Reads what [`write_text`](Self::write_text) wrote, and nothing else.
    ///
    /// # Errors
    ///
    /// Any other text gives an error that [`is_parse`](Error::is_parse).
    fn parse_text(prefix: Option<&str>, text: &str) -> Result<Self, Error>;

    /// Does the same as [`parse_text`](Self::parse_text), but returns no reason for a failure. `FromStr` of a key
    /// type calls this first, because it is faster.
    #[inline]
    fn read_text(prefix: Option<&str>, text: &str) -> Option<Self> {
        Self::parse_text(prefix, text).ok()
    }

    /// Returns a description of the value for error messages, such as `version 4 and variant RFC 9562 in ...`.
    fn describe(self) -> String;
}

impl RawKey for Uuid {
    type Bytes = [u8; 16];

    const TEXT: TextForm = TextForm::Format("uuid");
    // 130 bits, of which the first two are zero.
    const SUFFIX: TextForm = TextForm::Pattern("[0-7][0-9a-hjkmnp-tv-z]{25}");

    #[inline]
    fn to_bytes(self) -> [u8; 16] {
        self.into_bytes()
    }

    #[inline]
    fn from_bytes(bytes: [u8; 16]) -> Self {
        Self::from_bytes(bytes)
    }

    // A key type's prefix is constant: only here, inside its own code, does the match fold.
    #[inline(always)]
    fn write_text(self, prefix: Option<&str>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match prefix {
            None => text::pad(
                self.hyphenated().encode_lower(&mut [0; Hyphenated::LENGTH]),
                f,
            ),
            Some(_) => text::write_prefixed(prefix, &text::suffix(self), f),
        }
    }

    #[inline(always)]
    fn text_in<'r>(self, prefix: Option<&str>, room: &'r mut text::Room) -> Option<&'r str> {
        match prefix {
            None => Some(self.hyphenated().encode_lower(room.bytes())),
            Some(_) => room.join(prefix, &text::suffix(self)),
        }
    }

    fn parse_text(prefix: Option<&str>, text: &str) -> Result<Self, Error> {
        match prefix {
            None => text::parse_hyphenated(text.as_bytes()),
            Some(prefix) => text::parse_type_id(prefix, text),
        }
    }

    // As of `write_text`.
    #[inline(always)]
    fn read_text(prefix: Option<&str>, text: &str) -> Option<Self> {
        match prefix {
            None => text::read_hyphenated(text.as_bytes()),
            Some(prefix) => text::read_type_id(prefix, text),
        }
    }

    fn describe(self) -> String {
        let variant = match self.get_variant() {
            Variant::NCS => "NCS",
            Variant::RFC4122 => "RFC 9562",
            Variant::Microsoft => "Microsoft",
            _ => "reserved",
        };
        format!(
            "version {} and variant {variant} in {self}",
            self.get_version_num()
        )
    }
}

/// An algorithm that makes keys. It says what the bits of a raw key mean, and under which comparisons keys stay in
/// order.
///
/// A scheme is a type without values, named in `#[ordid(scheme = ...)]` by [`NAME`](Self::NAME).
pub trait Scheme: Sized + 'static {
    /// The type of the plain values that the scheme makes.
    type Raw: RawKey;

    /// The scheme's name as users write it, such as `uuid_v7`.
    const NAME: &'static str;

    /// The comparison rules under which keys sort in the order in which they were made.
    const ORDERS: Orders;

    /// The values that [`check`](Self::check) accepts, for error messages, such as `version 7 and variant RFC 9562`.
    const EXPECTED: &'static str;

    /// The form of the text that [`write_text`](Self::write_text) writes without a prefix.
    const TEXT: TextForm = <Self::Raw as RawKey>::TEXT;

    /// The form of the text after a prefix and its `_`, or of the whole text if the prefix is empty.
    const SUFFIX: TextForm = <Self::Raw as RawKey>::SUFFIX;

    /// The number of bits of integer keys: each key is at least 0 and below 2^`INTEGER_BITS`. Other keys ignore it.
    const INTEGER_BITS: u32 = 64;

    /// Whether keys are computed from names ([`FromName`]). Whoever knows the name can compute the key.
    const IS_NAMED: bool = false;

    /// The number of buckets over which keys are [spread](crate::scheme::spread). Keys rise within a bucket, but not
    /// over all buckets.
    const BUCKETS: u16 = 1;

    /// Returns the bucket of a key, below [`BUCKETS`](Self::BUCKETS).
    fn bucket(_raw: &Self::Raw) -> u16 {
        0
    }

    /// Returns whether the raw value can be a key of this scheme, for example by its version and variant.
    fn check(raw: &Self::Raw) -> bool;

    /// Turns any raw value into a key of the scheme. A value that [checks](Self::check) stays the same. Any other
    /// value changes in the bits that the scheme fixes, and in no others.
    ///
    /// It is for tests that need keys of arbitrary bits. A scheme whose check refuses values has to implement this
    /// method; otherwise those values are dropped.
    ///
    /// # Example: version and variant
    ///
    /// ```
    /// use ordid_core::{Scheme, scheme::UuidV7, uuid::Uuid};
    ///
    /// let key = UuidV7::coerce(Uuid::max());
    /// assert_eq!(key.to_string(), "ffffffff-ffff-7fff-bfff-ffffffffffff");
    /// assert_eq!(UuidV7::coerce(key), key);
    /// ```
    fn coerce(raw: Self::Raw) -> Self::Raw {
        raw
    }

    /// Returns the time in the key, if the scheme embeds one.
    fn timestamp(raw: &Self::Raw) -> Option<Timestamp>;

    /// Compares two raw keys in the scheme's order, which is the order in which they were made. By default this is
    /// the order of the raw keys; a scheme whose time is not in the first bits has its own.
    #[inline]
    fn cmp(left: &Self::Raw, right: &Self::Raw) -> Ordering {
        left.cmp(right)
    }

    /// Writes the canonical text of a key. Without a prefix this is the scheme's own text, by default the raw key's.
    /// With a prefix, a key of 128 bits is a TypeID in every scheme.
    ///
    /// # Errors
    ///
    /// Only what the formatter returns.
    #[inline(always)]
    fn write_text(raw: Self::Raw, prefix: Option<&str>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        raw.write_text(prefix, f)
    }

    /// Whether the text is the raw key's own. A scheme says so that has no [`write_text`](Self::write_text) of its own.
    #[doc(hidden)]
    const TEXT_IS_RAW: bool = false;

    /// Makes the text of [`write_text`](Self::write_text) on the stack, as [`RawKey::text_in`]. `None` if only `write_text`
    /// knows it.
    #[doc(hidden)]
    #[inline(always)]
    fn text_in<'r>(
        raw: Self::Raw,
        prefix: Option<&str>,
        room: &'r mut text::Room,
    ) -> Option<&'r str> {
        match Self::TEXT_IS_RAW {
            true => raw.text_in(prefix, room),
            false => None,
        }
    }

    /// Reads what [`write_text`](Self::write_text) wrote, and nothing else.
    ///
    /// # Errors
    ///
    /// Any other text gives an error that [`is_parse`](Error::is_parse).
    fn parse_text(prefix: Option<&str>, text: &str) -> Result<Self::Raw, Error> {
        Self::Raw::parse_text(prefix, text)
    }

    /// Does the same as [`parse_text`](Self::parse_text), but returns no reason for a failure. A scheme that
    /// implements `parse_text` has to implement this method, too.
    #[inline(always)]
    fn read_text(prefix: Option<&str>, text: &str) -> Option<Self::Raw> {
        Self::Raw::read_text(prefix, text)
    }
}

/// A scheme whose keys stay in order where a database compares bytes from the first, or integers as numbers.
pub trait RisesAsBytes: Scheme {}

/// A scheme whose keys stay in order in MariaDB's `UUID` type.
pub trait RisesInMariaDbUuid: Scheme {}

/// A scheme whose keys stay in order in SQL Server's `uniqueidentifier`.
pub trait RisesInSqlServer: Scheme {}

/// A scheme whose keys stay in order where a database compares the bytes of .NET's `Guid.ToByteArray`.
pub trait RisesAsDotNetBytes: Scheme {}

/// A scheme whose keys stay in order where a database compares the bytes that MySQL's `UUID_TO_BIN(x, 1)` returns.
pub trait RisesAsUuidToBin: Scheme {}

/// A scheme whose keys need only time and entropy, so that the process can have one generator for it.
///
/// Schemes that need a node or a segment do not implement it; make a generator for them.
#[diagnostic::on_unimplemented(
    message = "scheme `{Self}` has no generator for the process",
    label = "no generator for the process",
    note = "if a node of your own tells its keys apart, make a generator with it, `let generator = \
            OrderedGenerator::with_node(...)`, and ask it: `generator.try_generate_key::<OrderId>()?` \
            for a key, `order.ensure_key_with(&generator)?` for an entity's",
    note = "keys of `uuid_v5` and `uuid_v8_sha256` are made of names: `OrderId::named(namespace, [name])`, with \
            the feature `named` of `ordid`",
    note = "where nodes come from: https://github.com/ordid/ordid/blob/main/docs/src/coordinated-ids.md"
)]
pub trait StaticScheme: Scheme {
    /// The iterator that [`reserve`](Self::reserve) returns.
    type Reserved: Iterator<Item = Generated<Self>>;

    /// Makes the next key.
    ///
    /// If the scheme has an order, the key is above all keys that this process made before, in whichever thread. The
    /// exception is a clock that steps back by more than the [default policy](crate::generator::Policy) holds, ten
    /// seconds: the order then breaks once.
    ///
    /// # Panics
    ///
    /// If the operating system has no entropy at the first key or after a fork, or if the layout has no room for the
    /// clock's time, for example after the layout's end. A scheme of your own whose keys are told apart by a node
    /// alone also panics in the child of a fork, and if the clock was set back by more than its policy holds.
    fn generate() -> Generated<Self>;

    /// Makes a key for a given time. The key is not ordered with the keys of [`generate`](Self::generate).
    ///
    /// # Errors
    ///
    /// If the time does not fit the layout, if the scheme's keys have no time
    /// ([`is_unsupported`](Error::is_unsupported)), or if the operating system has no entropy.
    fn generate_at(timestamp: Timestamp) -> Result<Generated<Self>, Error>;

    /// Makes `count` keys and passes them to `put`, in rising order if the scheme has one.
    ///
    /// # Panics
    ///
    /// As [`generate`](Self::generate).
    fn fill_with(count: usize, put: impl FnMut(Generated<Self>));

    /// Claims `count` consecutive keys at once.
    ///
    /// # Errors
    ///
    /// If `count` keys would run too far ahead of the clock ([`is_overflow`](Error::is_overflow)), or for the reasons
    /// for which [`generate`](Self::generate) panics.
    fn reserve(count: usize) -> Result<Self::Reserved, Error>;
}

/// A raw key that is known to belong to its scheme, because a generator made it or it was checked.
// Aligned, so that in a `Result` the key lies beside the tag in whole words, as the error does. At
// its own alignment of 1 it began right after the tag, and compilers that take the `Result` apart
// cut a key into pieces of 7, 1 and 8 bytes, which the processor then has to wait for.
#[repr(align(8))]
pub struct Generated<S: Scheme>(S::Raw);

impl<S: Scheme> Generated<S> {
    /// Takes a raw value that is known to be of the scheme, since it was a key before. For adapters.
    #[doc(hidden)]
    pub const fn new(raw: S::Raw) -> Self {
        Self(raw)
    }

    /// Checks that a raw value belongs to the scheme. An error names `key_type`.
    ///
    /// # Errors
    ///
    /// A value of another scheme, such as another UUID version, gives an error that [`is_layout`](Error::is_layout).
    #[inline]
    pub fn check(raw: S::Raw, key_type: &'static str) -> Result<Self, Error> {
        if S::check(&raw) {
            return Ok(Self(raw));
        }
        Err(Self::refused(raw, key_type))
    }

    #[cold]
    fn refused(raw: S::Raw, key_type: &'static str) -> Error {
        Error::new(ErrorKind::Layout {
            key_type,
            scheme: S::NAME,
            expected: S::EXPECTED,
            found: raw.describe(),
        })
    }

    /// Returns the raw value.
    #[inline]
    pub fn into_raw(self) -> S::Raw {
        self.0
    }
}

impl<S: Scheme> Clone for Generated<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Scheme> Copy for Generated<S> {}

impl<S: Scheme> fmt::Debug for Generated<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Generated").field(&self.0).finish()
    }
}

/// The scheme's canonical text, without a prefix.
impl<S: Scheme> fmt::Display for Generated<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        S::write_text(self.0, None, f)
    }
}

/// Reads the scheme's canonical text, without a prefix.
///
/// # Errors
///
/// Any other text gives an error that [`is_parse`](Error::is_parse). The text of a key of another scheme gives an
/// error that [`is_layout`](Error::is_layout).
impl<S: Scheme> FromStr for Generated<S> {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::check(S::parse_text(None, text)?, S::NAME)
    }
}

/// The canonical text of a scheme's key, with the prefix that its key type has.
pub(crate) struct SchemeText<'p, S: Scheme> {
    pub(crate) raw: S::Raw,
    pub(crate) prefix: Option<&'p str>,
}

impl<S: Scheme> SchemeText<'_, S> {
    /// Writes the text in parentheses, after the key type's name, and whether it is masked.
    pub(crate) fn fmt_named(
        &self,
        name: &str,
        is_masked: bool,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let mut tuple = f.debug_tuple(name);
        tuple.field(self);
        if is_masked {
            tuple.field(&format_args!("masked"));
        }
        tuple.finish()
    }
}

impl<S: Scheme> fmt::Display for SchemeText<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        S::write_text(self.raw, self.prefix, f)
    }
}

impl<S: Scheme> fmt::Debug for SchemeText<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The iterator over keys that were claimed together; see [`KeyType::reserve`].
pub type ReservedKeys<K> = core::iter::Map<
    <<K as KeyType>::Scheme as StaticScheme>::Reserved,
    fn(Generated<<K as KeyType>::Scheme>) -> K,
>;

/// An id type: a newtype over a raw key with a scheme, usually one per entity.
///
/// `#[derive(KeyType)]` makes it. Its `Ord` is the scheme's order. [`uuid::Uuid`] is itself a key type, of scheme
/// `uuid_v7`, so that existing structs work unchanged.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an ordered key type",
    label = "not a key type",
    note = "give the entity a key type of its own, `#[derive(ordid::KeyType)] struct \
            OrderId(uuid::Uuid);`, or use `uuid::Uuid`"
)]
#[doc(alias("guid", "sequential id", "autoincrement", "auto increment"))]
pub trait KeyType: Copy + Ord + Hash + fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// The plain value inside.
    type Raw: RawKey;
    /// The algorithm that makes the keys.
    type Scheme: Scheme<Raw = Self::Raw>;

    /// The type's name, for error messages.
    const NAME: &'static str;
    /// The prefix of the text, by TypeID's rules; `None` if keys have the scheme's own text.
    const PREFIX: Option<&'static str>;

    /// Takes a raw value that is known to belong to the scheme.
    fn from_generated(generated: Generated<Self::Scheme>) -> Self;

    /// Returns the raw value.
    fn to_raw(self) -> Self::Raw;

    /// Takes a raw value, if it belongs to the scheme. `Uuid` and [`ObjectId`] as key types take every value.
    ///
    /// # Errors
    ///
    /// A value of another scheme, such as another UUID version, gives an error that [`is_layout`](Error::is_layout).
    fn from_raw(raw: Self::Raw) -> Result<Self, Error>;

    /// Whether the texts of the keys are masked: `#[ordid(mask = MASK)]`.
    const IS_MASKED: bool = false;

    /// Whether JSON and other text formats carry keys as numbers: `#[ordid(json = number)]`.
    ///
    /// If keys of the scheme may have more than 53 bits, code that serializes or deserializes a key does not compile.
    const IS_JSON_NUMBER: bool = false;

    /// Returns the raw value that texts and serde carry. It is the key's own value, or the
    /// [masked](crate::scheme::masked::MaskedKey) one if the key type has a mask.
    #[inline]
    fn to_outside(self) -> Self::Raw {
        self.to_raw()
    }

    /// Takes a value that [`to_outside`](Self::to_outside) returned.
    ///
    /// # Errors
    ///
    /// The errors of [`from_raw`](Self::from_raw). If the key type has a mask, an unmasked value is an error, too.
    #[inline]
    fn from_outside(outside: Self::Raw) -> Result<Self, Error> {
        Self::from_raw(outside)
    }

    /// Returns what shows that a cursor of the key, with this text, was made here; `None` if the key type has no mask.
    #[doc(hidden)]
    #[inline]
    fn __cursor_seal(self, _text: &str) -> Option<u64> {
        None
    }

    /// Makes the next key.
    ///
    /// If the scheme has an order, the key is above all keys of the scheme that this process made before, in
    /// whichever thread. The exception is a clock that steps back by more than the
    /// [default policy](crate::generator::Policy) holds, ten seconds: the order then breaks once.
    ///
    /// # Panics
    ///
    /// If the operating system has no entropy at the first key or after a fork, or if the layout has no room for the
    /// clock's time, for example after the layout's end. For a scheme of your own, see [`StaticScheme::generate`].
    #[inline]
    fn generate() -> Self
    where
        Self::Scheme: StaticScheme,
    {
        Self::from_generated(Self::Scheme::generate())
    }

    /// Makes a key for a given time, for example for a row that was created before its table had such keys.
    ///
    /// Its random bits are drawn for it alone. Keys that this function makes for one millisecond are in no order,
    /// neither among each other nor with the keys that [`generate`](Self::generate) made in it.
    ///
    /// # Errors
    ///
    /// If the time does not fit the scheme's layout ([`is_clock`](Error::is_clock)), if the scheme's keys have no
    /// time ([`is_unsupported`](Error::is_unsupported)), or if the operating system has no entropy.
    fn generate_at(timestamp: Timestamp) -> Result<Self, Error>
    where
        Self::Scheme: StaticScheme,
    {
        Self::Scheme::generate_at(timestamp).map(Self::from_generated)
    }

    /// Fills the slice with new keys, rising from its first element to its last if the scheme has an order.
    ///
    /// # Panics
    ///
    /// As [`generate`](Self::generate).
    fn fill(keys: &mut [Self])
    where
        Self::Scheme: StaticScheme,
    {
        let count = keys.len();
        let mut slots = keys.iter_mut();
        Self::Scheme::fill_with(count, |generated| {
            if let Some(slot) = slots.next() {
                *slot = Self::from_generated(generated);
            }
        });
    }

    /// Claims `count` keys at once and returns them one by one. If the scheme has an order, they rise, and no other
    /// key of this process falls between them.
    ///
    /// # Errors
    ///
    /// If `count` keys would run too far ahead of the clock ([`is_overflow`](Error::is_overflow)), or for the reasons
    /// for which [`generate`](Self::generate) panics.
    fn reserve(count: usize) -> Result<ReservedKeys<Self>, Error>
    where
        Self::Scheme: StaticScheme,
    {
        Ok(Self::Scheme::reserve(count)?.map(Self::from_generated as fn(_) -> _))
    }

    /// Returns the range of keys for a range of time. It begins at the smallest key that the scheme can make at the
    /// start of the time range and ends before the smallest key at its end. The two ends need not be keys of rows.
    ///
    /// [`Timestamp`] converts from the times of `std` and, behind features of these names, from those of `chrono`,
    /// `jiff` and `time`. Adjacent time ranges give adjacent key ranges, without overlap. If the scheme counts time
    /// in steps longer than a millisecond (a second for `object_id`), each end is rounded down to its step. The times
    /// in keys come from the clock of the machine that made each key. For a scheme whose keys are not ordered by
    /// time, the call does not compile.
    ///
    /// # Errors
    ///
    /// If an end does not fit the layout; the error [`is_clock`](Error::is_clock).
    ///
    /// # Example: the keys of a day
    ///
    /// ```
    /// use ordid_core::{KeyType, clock::Timestamp, uuid::Uuid};
    ///
    /// let from = Timestamp::from_unix_millis(1_704_067_200_000)?; // 2024-01-01T00:00:00Z
    /// let to = Timestamp::from_unix_millis(1_704_153_600_000)?;
    /// let day = Uuid::range(from..to)?; // WHERE id >= day.start AND id < day.end
    /// assert!(day.contains(&Uuid::generate_at(from)?));
    /// assert!(!day.contains(&Uuid::generate_at(to)?));
    /// # Ok::<(), ordid_core::Error>(())
    /// ```
    fn range(times: Range<Timestamp>) -> Result<Range<Self>, Error>
    where
        Self::Scheme: TimeOrdered,
    {
        let lowest_at = |time| {
            let bounds = Self::Scheme::bounds_at(time);
            bounds.map(|(lowest, _)| Self::from_generated(Generated::new(lowest)))
        };
        Ok(lowest_at(times.start)?..lowest_at(times.end)?)
    }

    /// Makes the key of a name. The same namespace and parts give the same key in every program, at any time.
    ///
    /// One part gives the key that RFC 9562 makes of these bytes. If there are several, each part is a name in the
    /// namespace that the parts before it make, so `["ab", "c"]` and `["a", "bc"]` give two keys. The namespace is a
    /// UUID that you choose once for each key type, or another key, such as an order's for the keys of its lines.
    /// Named keys have no order and no time, and are no secret; see [`scheme::named`](crate::scheme::named).
    ///
    /// It does not compile for an array without parts. The schemes that make keys of names need the
    /// feature `named`.
    ///
    /// # Example: an import that runs twice
    ///
    #[cfg_attr(feature = "named", doc = "```")]
    #[cfg_attr(not(feature = "named"), doc = "```ignore")]
    /// use ordid_core::{KeyType, uuid::{Uuid, uuid}};
    ///
    /// # #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    /// # struct OrderId(Uuid);
    /// # impl std::fmt::Display for OrderId {
    /// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { self.0.fmt(f) }
    /// # }
    /// # impl KeyType for OrderId {
    /// #     type Raw = Uuid;
    /// #     type Scheme = ordid_core::scheme::UuidV5;
    /// #     const NAME: &'static str = "OrderId";
    /// #     const PREFIX: Option<&'static str> = None;
    /// #     fn from_generated(key: ordid_core::key::Generated<Self::Scheme>) -> Self { Self(key.into_raw()) }
    /// #     fn to_raw(self) -> Uuid { self.0 }
    /// #     fn from_raw(raw: Uuid) -> Result<Self, ordid_core::Error> {
    /// #         ordid_core::key::Generated::check(raw, "OrderId").map(Self::from_generated)
    /// #     }
    /// # }
    /// // #[derive(KeyType)]
    /// // #[ordid(scheme = uuid_v5)]
    /// // struct OrderId(Uuid);
    /// const ORDERS: Uuid = uuid!("5d3a1f0e-52a5-4a6b-9a0c-0d2f6d1c7f11"); // random, and never changed
    ///
    /// let key = OrderId::named(ORDERS, ["shop 7", "4711"]);
    /// assert_eq!(key, OrderId::named(ORDERS, ["shop 7", "4711"]));
    /// assert_ne!(key, OrderId::named(ORDERS, ["shop 74", "711"]));
    /// ```
    fn named<P: AsRef<[u8]>, const N: usize>(namespace: impl Into<Uuid>, parts: [P; N]) -> Self
    where
        Self::Scheme: FromName,
    {
        const { assert!(N > 0, "a name has one part at least") };
        let key = parts.iter().fold(namespace.into(), |namespace, part| {
            Self::Scheme::from_name(&namespace, part.as_ref())
        });
        Self::from_generated(Generated::new(key))
    }

    /// Returns the time in the key, if its scheme embeds one.
    fn timestamp(self) -> Option<Timestamp> {
        Self::Scheme::timestamp(&self.to_raw())
    }
}

/// A key type that belongs to one entity, so that a field of this type identifies the parent entity.
///
/// `#[derive(KeyType)]` implements it. Raw keys do not: a `Uuid` may be any entity's.
#[diagnostic::on_unimplemented(
    message = "a parent cannot be found by `{Self}`: it may be the key of any entity",
    label = "name the parent: `#[ordid(parent = ...)]`",
    note = "write `#[ordid(parent = Customer)]`, or give the parent a key type of its own with \
            `#[derive(ordid::KeyType)]`"
)]
pub trait TypedKey: KeyType {}

/// The type of a field that holds a key: `K`, or `Option<K>` if the key may be unassigned or absent.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot hold an ordered key",
    label = "expected a key type `K`, or `Option<K>`",
    note = "give the entity a key type of its own, `#[derive(ordid::KeyType)] struct \
            OrderId(uuid::Uuid);`, or use `uuid::Uuid`"
)]
pub trait KeyField: 'static {
    /// The key type inside.
    type Key: KeyType;
    /// The key type of the key's first column, by which rows are sorted. If the key has one column, the same as
    /// [`Key`](Self::Key).
    type Leading: KeyType;
    /// Whether the field can be without a key.
    const OPTIONAL: bool;

    /// Returns the key, if there is one.
    fn get(&self) -> Option<Self::Key>;

    /// Sets the key, and replaces one that was there.
    fn set(&mut self, key: Self::Key);

    /// Makes a field that holds the key.
    fn with(key: Self::Key) -> Self
    where
        Self: Sized;

    /// Returns the raw key of the first column.
    #[doc(hidden)]
    fn leading(raw: <Self::Key as KeyType>::Raw) -> <Self::Leading as KeyType>::Raw;
}

#[diagnostic::do_not_recommend]
impl<K: KeyType> KeyField for K {
    type Key = K;
    type Leading = K;
    const OPTIONAL: bool = false;

    fn get(&self) -> Option<K> {
        Some(*self)
    }

    fn set(&mut self, key: K) {
        *self = key;
    }

    fn with(key: K) -> Self {
        key
    }

    fn leading(raw: K::Raw) -> K::Raw {
        raw
    }
}

#[diagnostic::do_not_recommend]
impl<K: KeyType> KeyField for Option<K> {
    type Key = K;
    type Leading = K;
    const OPTIONAL: bool = true;

    fn get(&self) -> Option<K> {
        *self
    }

    fn set(&mut self, key: K) {
        *self = Some(key);
    }

    fn with(key: K) -> Self {
        Some(key)
    }

    fn leading(raw: K::Raw) -> K::Raw {
        raw
    }
}
