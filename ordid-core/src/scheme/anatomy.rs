//! Keys taken apart and put together: what every scheme tells of a key, and what it makes of given
//! parts.

use core::fmt;

use uuid::{Uuid, Variant};

use crate::{
    clock::{Moment, TimeScale, Timestamp},
    error::{Error, ErrorKind},
    key::{RawKey, Scheme},
};

/// A scheme whose keys can be made from their fields, and taken apart again.
pub trait Layout: Scheme {
    /// The fields of a key, named as in the scheme's source.
    type Parts: Copy + Eq + fmt::Debug;

    /// Makes a key from its fields. The same fields give the same key on every machine.
    ///
    /// # Errors
    ///
    /// A part that has more bits than its field gives an error that [`is_layout`](Error::is_layout)
    /// and names the field; nothing is cut off.
    fn pack(parts: Self::Parts) -> Result<Self::Raw, Error>;

    /// Takes a key apart. [`pack`](Self::pack) of the result gives the same key.
    ///
    /// # Errors
    ///
    /// A value that is not of the scheme gives an error that [`is_layout`](Error::is_layout).
    fn unpack(raw: &Self::Raw) -> Result<Self::Parts, Error>;

    /// Describes a key in terms that all schemes share.
    ///
    /// # Errors
    ///
    /// As [`unpack`](Self::unpack).
    fn inspect(raw: &Self::Raw) -> Result<Inspection, Error>;
}

/// A scheme whose keys are ordered by a time inside them.
#[diagnostic::on_unimplemented(
    message = "keys of scheme `{Self}` are not ordered by a time inside them",
    label = "no range of keys has a time",
    note = "a scheme such as `uuid_v7` is ordered by its time, and keys that are spread have `SpreadKey::ranges`; \
            for any other, the table needs a column with the time"
)]
pub trait TimeOrdered: Layout {
    /// Returns the lowest and the highest key that the scheme can make in a millisecond, in the
    /// scheme's order ([`Scheme::cmp`]): the ends of a range query by time.
    ///
    /// If the scheme counts time in steps longer than a millisecond, these are the ends of the step that contains the
    /// start of the millisecond.
    ///
    /// # Errors
    ///
    /// If the time does not fit the layout; the error [`is_clock`](Error::is_clock).
    fn bounds_at(timestamp: Timestamp) -> Result<(Self::Raw, Self::Raw), Error>;
}

/// The information that a key contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// The scheme's name.
    pub scheme: &'static str,
    /// The time at which the key was made, as precisely as the key tells.
    pub moment: Option<Moment>,
    /// The bucket of a key that is [spread](crate::scheme::spread); `None` in other schemes.
    pub bucket: Option<u16>,
    /// The number that tells the generator from others: a node, worker, machine, shard or server.
    pub node: Option<u64>,
    /// The count within the moment: a counter, a sequence or a clock sequence.
    pub counter: Option<u64>,
    /// The UUID version, if the scheme has one.
    pub version: Option<u8>,
    /// How surely the key is of the scheme.
    pub certainty: Certainty,
}

impl Inspection {
    /// Begins with nothing but the name.
    pub(crate) const fn of<S: Scheme>(certainty: Certainty) -> Self {
        Self {
            scheme: S::NAME,
            moment: None,
            bucket: None,
            node: None,
            counter: None,
            version: None,
            certainty,
        }
    }

    /// Describes only the version of a UUID.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Layout::unpack`].
    pub(crate) fn of_version<S: Layout>(
        raw: &S::Raw,
        version: u8,
        certainty: Certainty,
    ) -> Result<Self, Error> {
        S::unpack(raw)?;
        Ok(Self {
            version: Some(version),
            ..Self::of::<S>(certainty)
        })
    }
}

/// How certain it is that a value belongs to a scheme, in rising order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Certainty {
    /// Nothing in the value speaks against the scheme, and nothing for it.
    Possible,
    /// Fixed bits or the time fit the scheme, but may fit others, too.
    Likely,
    /// The value itself names the scheme, by version and variant, or by a form that only this scheme has.
    Stated,
}

/// The error of [`Layout::unpack`] for a value of another scheme.
pub(crate) fn not_of<S: Scheme>(raw: &S::Raw) -> Error {
    Error::new(ErrorKind::Layout {
        key_type: S::NAME,
        scheme: S::NAME,
        expected: S::EXPECTED,
        found: raw.describe(),
    })
}

/// Refuses a value of another scheme, as [`Layout::unpack`] does.
pub(crate) fn check<S: Scheme>(raw: &S::Raw) -> Result<(), Error> {
    if S::check(raw) {
        Ok(())
    } else {
        Err(not_of::<S>(raw))
    }
}

/// Checks that a part fits its field.
pub(crate) fn fits<S: Scheme>(
    field: &'static str,
    value: impl Into<u128>,
    bits: u32,
) -> Result<(), Error> {
    let value = value.into();
    if bits < 128 && value >> bits != 0 {
        return Err(Error::field(S::NAME, field, value, bits));
    }
    Ok(())
}

/// Whether a UUID has this version, and the variant of RFC 9562.
pub(crate) fn has_version(raw: &Uuid, version: usize) -> bool {
    raw.get_version_num() == version && raw.get_variant() == Variant::RFC4122
}

/// Puts fields one after the other, the first on top, each with its name and its bits.
fn join<S: Scheme, const N: usize>(fields: [(&'static str, u128, u32); N]) -> Result<u128, Error> {
    let mut joined = 0;
    for (field, value, bits) in fields {
        fits::<S>(field, value, bits)?;
        joined = joined << bits | value;
    }
    Ok(joined)
}

/// The inverse of [`join`].
pub(crate) fn split<const N: usize>(mut joined: u128, bits: [u32; N]) -> [u128; N] {
    let mut fields = [0; N];
    for (field, bits) in fields.iter_mut().zip(bits).rev() {
        *field = joined & ((1 << bits) - 1);
        joined >>= bits;
    }
    fields
}

/// A field as the type that has room for its bits.
pub(crate) fn narrowed<T: TryFrom<u128, Error: fmt::Debug>>(field: u128) -> T {
    T::try_from(field).expect("the type has the bits of the field")
}

/// Does [`Layout::pack`] for keys that consist of their fields.
pub(crate) fn pack<S: Scheme, const N: usize>(
    fields: [(&'static str, u128, u32); N],
) -> Result<S::Raw, Error> {
    let joined = join::<S, N>(fields)?.to_be_bytes();
    let mut bytes = <S::Raw as RawKey>::Bytes::default();
    let own = bytes.as_mut();
    own.copy_from_slice(&joined[joined.len() - own.len()..]);
    Ok(S::Raw::from_bytes(bytes))
}

/// Does [`Layout::unpack`] for keys that consist of their fields.
pub(crate) fn unpack<S: Scheme, const N: usize>(
    raw: &S::Raw,
    bits: [u32; N],
) -> Result<[u128; N], Error> {
    check::<S>(raw)?;
    let mut joined = [0; 16];
    let own = raw.to_bytes();
    joined[16 - own.as_ref().len()..].copy_from_slice(own.as_ref());
    Ok(split(u128::from_be_bytes(joined), bits))
}

/// [`Layout::pack`] of UUIDs whose fields go around version and variant: 48, 12 and 62 bits before,
/// between and behind them.
pub(crate) fn pack_around_version<S: Scheme, const N: usize>(
    version: u8,
    fields: [(&'static str, u128, u32); N],
) -> Result<Uuid, Error> {
    let [first, middle, last] = split(join::<S, N>(fields)?, [48, 12, 62]);
    let raw = first << 80 | middle << 64 | last;
    Ok(with_version(Uuid::from_u128(raw), version))
}

/// [`Layout::unpack`] of UUIDs whose fields go around version and variant.
pub(crate) fn unpack_around_version<S: Scheme<Raw = Uuid>, const N: usize>(
    raw: &Uuid,
    bits: [u32; N],
) -> Result<[u128; N], Error> {
    check::<S>(raw)?;
    let [first, _, middle, _, last] = split(raw.as_u128(), [48, 4, 12, 2, 62]);
    Ok(split(first << 74 | middle << 62 | last, bits))
}

/// [`Scheme::coerce`] of UUIDs: sets the version, and the variant of RFC 9562.
pub(crate) fn with_version(raw: Uuid, version: u8) -> Uuid {
    let mut bytes = raw.into_bytes();
    bytes[6] = version << 4 | bytes[6] & 0x0f;
    bytes[8] = 0x80 | bytes[8] & 0x3f;
    Uuid::from_bytes(bytes)
}

/// The error of a time that a layout has no tick for.
pub(crate) fn out_of_time(timestamp: Timestamp, last: Timestamp) -> Error {
    Error::new(ErrorKind::TimestampRange {
        millis: timestamp.as_unix_millis(),
        max_millis: last.as_unix_millis(),
    })
}

/// Returns the tick of a time, if it is within the first two to the power of `bits`.
pub(crate) fn tick_at(scale: TimeScale, bits: u32, timestamp: Timestamp) -> Result<u64, Error> {
    let Some(tick) = scale.ticks_at(timestamp.as_unix_millis(), 0) else {
        return Err(Error::new(ErrorKind::BeforeScale {
            millis: timestamp.as_unix_millis(),
            epoch_millis: scale.epoch_unix_millis(),
        }));
    };
    if bits < 64 && tick >> bits != 0 {
        return Err(out_of_time(timestamp, scale.timestamp_at((1 << bits) - 1)));
    }
    Ok(tick)
}
