//! Keys: raw values, the user's key types over them, and the schemes they belong to.
//!
//! A *raw key* is the plain value, such as [`uuid::Uuid`]. A *key type* is the user's newtype over
//! it, one per entity, made by `#[derive(KeyType)]`. A *scheme* says what the bits mean and under
//! which comparison rules they rise.

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

/// A plain key value, as schemes make it and columns store it.
pub trait RawKey: Copy + Eq + Ord + Hash + fmt::Debug + Send + Sync + 'static {
    /// The bytes of a key: an array, since all keys have as many.
    type Bytes: Copy + Default + AsRef<[u8]> + AsMut<[u8]>;

    /// What [`write_text`](Self::write_text) writes without a prefix.
    const TEXT: TextForm;
    /// What it writes after a prefix and its `_`, and alone for an empty prefix.
    const SUFFIX: TextForm = Self::TEXT;
    /// How formats that are not for people carry the key.
    const BINARY: BinaryForm = BinaryForm::Bytes;

    /// Returns the bytes in network order: the most significant first.
    fn to_bytes(self) -> Self::Bytes;

    /// Takes bytes in network order. Each value of them is a raw key.
    fn from_bytes(bytes: Self::Bytes) -> Self;

    /// Writes the canonical text: without a prefix the raw key's own form; with one the TypeID form
    /// `prefix_suffix` where the key has 128 bits, and else prefix, `_` and the own form
    /// ([`text`]).
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

    /// As [`parse_text`](Self::parse_text), without the reason why not: what a key type's `FromStr`
    /// asks first. Without room for an error, a key stays in registers.
    #[inline]
    fn read_text(prefix: Option<&str>, text: &str) -> Option<Self> {
        Self::parse_text(prefix, text).ok()
    }

    /// Returns what the value looks like, for error messages: `version 4 and variant RFC 9562 in
    /// ...`.
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

/// An algorithm for keys: what the bits of its raw key mean, and where they keep order.
///
/// A scheme is a type without values, named in `#[ordid(scheme = ...)]` by [`NAME`](Self::NAME).
pub trait Scheme: Sized + 'static {
    /// The plain value that the scheme makes.
    type Raw: RawKey;

    /// The scheme's name as users write it, such as `uuid_v7`.
    const NAME: &'static str;

    /// The comparison rules under which keys rise in the order they were made.
    const ORDERS: Orders;

    /// What [`check`](Self::check) wants, for error messages: `version 7 and variant RFC 9562`.
    const EXPECTED: &'static str;

    /// What [`write_text`](Self::write_text) writes without a prefix.
    const TEXT: TextForm = <Self::Raw as RawKey>::TEXT;

    /// What it writes after a prefix and its `_`, and alone for an empty prefix.
    const SUFFIX: TextForm = <Self::Raw as RawKey>::SUFFIX;

    /// How many bits a key has at most, where keys are integers: none is negative, or has a higher bit.
    const INTEGER_BITS: u32 = 64;

    /// Whether keys are made of names. Whoever knows a name makes the same key of it.
    const IS_NAMED: bool = false;

    /// Over how many buckets keys are [spread](crate::scheme::spread): keys rise in each, and not over all of them.
    const BUCKETS: u16 = 1;

    /// Returns the bucket of a key, below [`BUCKETS`](Self::BUCKETS).
    fn bucket(_raw: &Self::Raw) -> u16 {
        0
    }

    /// Returns whether the raw value can be of this scheme (version and variant).
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

    /// Compares two raw keys in the scheme's order: the order in which they were made. It is the
    /// raw keys' own unless the scheme puts its time elsewhere than first.
    #[inline]
    fn cmp(left: &Self::Raw, right: &Self::Raw) -> Ordering {
        left.cmp(right)
    }

    /// Writes the one canonical text of a key. Without a prefix it is the raw key's text, unless the scheme has its
    /// own. With a prefix it is the form with that prefix: a TypeID for 128 bits, whatever the scheme.
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

    /// As [`parse_text`](Self::parse_text), without the reason why not: a scheme with a text of its
    /// own has its own of both.
    #[inline(always)]
    fn read_text(prefix: Option<&str>, text: &str) -> Option<Self::Raw> {
        Self::Raw::read_text(prefix, text)
    }
}

/// A scheme whose keys rise where the database compares bytes, or integers.
pub trait RisesAsBytes: Scheme {}

/// A scheme whose keys rise in MariaDB's `UUID` type.
pub trait RisesInMariaDbUuid: Scheme {}

/// A scheme whose keys rise in SQL Server's `uniqueidentifier`.
pub trait RisesInSqlServer: Scheme {}

/// A scheme whose keys rise where the database compares the bytes of .NET's `Guid.ToByteArray`.
pub trait RisesAsDotNetBytes: Scheme {}

/// A scheme whose keys rise where the database compares what MySQL's `UUID_TO_BIN(x, 1)` returns.
pub trait RisesAsUuidToBin: Scheme {}

/// A scheme that needs nothing but time and entropy, so that one generator per process serves it.
///
/// Schemes that need a node or a segment do not have this; their generator is passed in.
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
    /// What [`reserve`](Self::reserve) returns.
    type Reserved: Iterator<Item = Generated<Self>>;

    /// Makes the next key, above all keys that this process made before.
    ///
    /// # Panics
    ///
    /// If the operating system has no entropy at the first key or after a fork: there is then no
    /// way to make a key that is safe. Also if the clock reads a time for which the layout has no room, such as one
    /// after its end. A scheme of your own whose keys are told apart by a node alone also panics in the child of a fork, and
    /// if the clock was set back by more than its policy holds.
    fn generate() -> Generated<Self>;

    /// Makes a key for a given time. The key is not ordered with the keys of [`generate`](Self::generate).
    ///
    /// # Errors
    ///
    /// If the time does not fit the layout, or the operating system has no entropy.
    fn generate_at(timestamp: Timestamp) -> Result<Generated<Self>, Error>;

    /// Hands `count` keys, rising, to `put`.
    ///
    /// # Panics
    ///
    /// As [`generate`](Self::generate).
    fn fill_with(count: usize, put: impl FnMut(Generated<Self>));

    /// Claims `count` consecutive keys at once.
    ///
    /// # Errors
    ///
    /// If so many keys would run too far ahead of the clock.
    fn reserve(count: usize) -> Result<Self::Reserved, Error>;
}

/// A raw key that is known to be of its scheme: a generator made it, or it was checked.
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

    /// Takes a raw value that may be of any scheme; `key_type` is named in the error.
    ///
    /// # Errors
    ///
    /// A value of another version or variant gives an error that [`is_layout`](Error::is_layout).
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
/// Any other text gives an error that [`is_parse`](Error::is_parse), a value of another scheme one
/// that [`is_layout`](Error::is_layout).
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

/// Keys that were claimed together; see [`KeyType::reserve`].
pub type ReservedKeys<K> = core::iter::Map<
    <<K as KeyType>::Scheme as StaticScheme>::Reserved,
    fn(Generated<<K as KeyType>::Scheme>) -> K,
>;

/// An id type: a newtype over a raw key with a scheme, usually one per entity.
///
/// Made by `#[derive(KeyType)]`. Its `Ord` is the scheme's order. [`uuid::Uuid`] is itself a key
/// type (of scheme `uuid_v7`), so that existing structs work unchanged.
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

    /// The type's name, for messages.
    const NAME: &'static str;
    /// The text prefix by TypeID's rules; `None` for the raw key's own text.
    const PREFIX: Option<&'static str>;

    /// Takes a raw value that is known to be of the scheme.
    fn from_generated(generated: Generated<Self::Scheme>) -> Self;

    /// Returns the raw value.
    fn to_raw(self) -> Self::Raw;

    /// Takes a raw value, if it is of the scheme.
    ///
    /// # Errors
    ///
    /// A value of another version or variant gives an error that [`is_layout`](Error::is_layout).
    fn from_raw(raw: Self::Raw) -> Result<Self, Error>;

    /// Whether the texts of the keys are masked: `#[ordid(mask = MASK)]`.
    const IS_MASKED: bool = false;

    /// Whether JSON and other formats for people carry keys as numbers: `#[ordid(json = number)]`.
    ///
    /// With a scheme whose keys may have more than 53 bits, it does not compile once a key is written or read.
    const IS_JSON_NUMBER: bool = false;

    /// Returns the raw value that texts and serde carry: the key's own, or the
    /// [masked](crate::scheme::masked::MaskedKey) one where the key type has a mask.
    #[inline]
    fn to_outside(self) -> Self::Raw {
        self.to_raw()
    }

    /// Takes what [`to_outside`](Self::to_outside) returned.
    ///
    /// # Errors
    ///
    /// As [`from_raw`](Self::from_raw); where the key type has a mask, also for an unmasked value.
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

    /// Makes the next key, above all keys of the scheme that this process made before, over all
    /// threads.
    ///
    /// # Panics
    ///
    /// If the operating system has no entropy at the first key or after a fork, or if the clock reads a time for which
    /// the layout has no room, such as one after its end. For a scheme of your own, see [`StaticScheme::generate`].
    #[inline]
    fn generate() -> Self
    where
        Self::Scheme: StaticScheme,
    {
        Self::from_generated(Self::Scheme::generate())
    }

    /// Makes a key for a given time, as for rows that are older than their keys.
    ///
    /// It has its own randomness and stands apart from [`generate`](Self::generate): keys made for
    /// the same millisecond are not ordered among each other.
    ///
    /// # Errors
    ///
    /// If the time does not fit the scheme's layout.
    fn generate_at(timestamp: Timestamp) -> Result<Self, Error>
    where
        Self::Scheme: StaticScheme,
    {
        Self::Scheme::generate_at(timestamp).map(Self::from_generated)
    }

    /// Fills the slice with new keys that rise from its first element to its last.
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

    /// Claims `count` keys at once and returns them one by one, rising. No other key of this
    /// process falls between them.
    ///
    /// # Errors
    ///
    /// If so many keys would run too far ahead of the clock; the error
    /// [`is_overflow`](Error::is_overflow).
    fn reserve(count: usize) -> Result<ReservedKeys<Self>, Error>
    where
        Self::Scheme: StaticScheme,
    {
        Ok(Self::Scheme::reserve(count)?.map(Self::from_generated as fn(_) -> _))
    }

    /// Returns the range of keys for a range of time: from the smallest key that the scheme can make at its start
    /// up to, but not including, the smallest at its end. The two ends are not keys of rows.
    ///
    /// [`Timestamp`] takes the times of `std`, and behind features of these names those of `chrono`, `jiff`
    /// and `time`. Ranges that meet in time meet in keys, without overlap. If the scheme's steps are longer than a
    /// millisecond (a second for `object_id`), each end is rounded down to its step. The times are those in the
    /// keys, so they come from the clock of the machine that made each key. For a scheme whose keys are not ordered
    /// by time, the call does not compile.
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

    /// Makes the key of a name: the same namespace and parts give the same key, in each program and on
    /// each day.
    ///
    /// One part makes the key that RFC 9562 makes of these bytes. If there are several, each part is a name in
    /// the namespace that the parts before it make, so `["ab", "c"]` and `["a", "bc"]` are two keys. A
    /// namespace is a UUID that you choose once for each key type, or another key, such as an order's
    /// for its lines. [`scheme::named`](crate::scheme::named) says what named keys are not: they have no
    /// order, no time, and are no secret.
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

/// A key type that belongs to one entity, so that a field of it tells which entity it refers to.
///
/// `#[derive(KeyType)]` implements it. Raw keys do not: a `Uuid` may be any entity's.
#[diagnostic::on_unimplemented(
    message = "a parent cannot be found by `{Self}`: it may be the key of any entity",
    label = "name the parent: `#[ordid(parent = ...)]`",
    note = "write `#[ordid(parent = Customer)]`, or give the parent a key type of its own with \
            `#[derive(ordid::KeyType)]`"
)]
pub trait TypedKey: KeyType {}

/// The type of a field that holds a key: `K`, or `Option<K>` where it may be unassigned or absent.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot hold an ordered key",
    label = "expected a key type `K`, or `Option<K>`",
    note = "give the entity a key type of its own, `#[derive(ordid::KeyType)] struct \
            OrderId(uuid::Uuid);`, or use `uuid::Uuid`"
)]
pub trait KeyField: 'static {
    /// The key type inside.
    type Key: KeyType;
    /// The key type of the first column, in whose order a database keeps rows: the same where there is one column.
    type Leading: KeyType;
    /// Whether the field can be without a key.
    const OPTIONAL: bool;

    /// Returns the key, if there is one.
    fn get(&self) -> Option<Self::Key>;

    /// Puts a key in, over what was there.
    fn set(&mut self, key: Self::Key);

    /// Makes a field with a key in it.
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
