//! Keys taken apart and put together: what every scheme tells of a key, and what it makes of given
//! parts.

use core::fmt;

use uuid::{Uuid, Variant};

use crate::{
    clock::{Moment, TimeScale, Timestamp},
    error::{Error, ErrorKind},
    key::{RawKey as _, Scheme},
};

/// A scheme whose keys can be put together from their parts, and taken apart again.
pub trait Layout: Scheme {
    /// The fields of a key, named as in the scheme's source.
    type Parts: Copy + Eq + fmt::Debug;

    /// Puts a key together: the same parts give the same key, on every machine.
    ///
    /// # Errors
    ///
    /// A part that has more bits than its field gives an error that [`is_layout`](Error::is_layout)
    /// and names the field; nothing is cut off.
    fn pack(parts: Self::Parts) -> Result<Self::Raw, Error>;

    /// Takes a key apart: [`pack`](Self::pack) of the result is the same key.
    ///
    /// # Errors
    ///
    /// A value that is not of the scheme gives an error that [`is_layout`](Error::is_layout).
    fn unpack(raw: &Self::Raw) -> Result<Self::Parts, Error>;

    /// Says what a key tells, in terms that all schemes share.
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
    note = "a scheme such as `uuid_v7` is ordered by its time; for this one, the table needs a column with the time"
)]
pub trait TimeOrdered: Layout {
    /// Returns the lowest and the highest key that the scheme can make in a millisecond, in the
    /// scheme's order ([`Scheme::cmp`]): the ends of a range query by time.
    ///
    /// Where the scheme's steps are longer than a millisecond, these are the ends of the step that
    /// the millisecond begins in.
    ///
    /// # Errors
    ///
    /// If the time does not fit the layout; the error [`is_clock`](Error::is_clock).
    fn bounds_at(timestamp: Timestamp) -> Result<(Self::Raw, Self::Raw), Error>;
}

/// What a key tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// The scheme's name.
    pub scheme: &'static str,
    /// When the key was made, as finely as it says.
    pub moment: Option<Moment>,
    /// What tells this generator from others: a node, worker, machine, shard or server.
    pub node: Option<u64>,
    /// The count within the moment: a counter, a sequence, a clock sequence.
    pub counter: Option<u64>,
    /// The UUID version.
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
            node: None,
            counter: None,
            version: None,
            certainty,
        }
    }
}

/// How surely a value is of a scheme, rising.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Certainty {
    /// Nothing in the value speaks against it, and nothing for it.
    Possible,
    /// Fixed bits or the time fit, though other schemes may fit as well.
    Likely,
    /// The value says so itself: version and variant, or a form that only this scheme has.
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

/// Puts the 48, 12 and 62 bits before, between and behind a UUID's version and variant.
pub(crate) const fn around_version(version: u64, [first, middle, last]: [u64; 3]) -> Uuid {
    Uuid::from_u64_pair(first << 16 | version << 12 | middle, 0b10 << 62 | last)
}

/// As [`around_version`], of the fields that have these bits, with their names.
pub(crate) fn fields_around_version<S: Scheme>(
    version: u64,
    fields: [(&'static str, u64); 3],
) -> Result<Uuid, Error> {
    for ((field, value), bits) in fields.into_iter().zip([48, 12, 62]) {
        fits::<S>(field, value, bits)?;
    }
    Ok(around_version(version, fields.map(|(_, value)| value)))
}

/// Returns the 48, 12 and 62 bits before, between and behind the version and the variant.
///
/// # Errors
///
/// As [`Layout::unpack`].
pub(crate) fn beside_version<S: Scheme<Raw = Uuid>>(raw: &Uuid) -> Result<(u64, u16, u64), Error> {
    check::<S>(raw)?;
    let (high, low) = raw.as_u64_pair();
    Ok((high >> 16, (high & 0xfff) as u16, low & !(0b11 << 62)))
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
