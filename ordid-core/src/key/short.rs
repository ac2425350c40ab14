//! Short public ids of integer keys: `ord_Uk3fWq` for `ord_281474976`, by [Sqids](https://sqids.org).
//!
//! The database and all other texts keep the number. A short id hides nothing: whoever has the alphabet can read the
//! number, and anybody else can find the alphabet out from a few ids. The alphabet, the minimum length and the
//! blocklist must not change as long as such ids are in use.
//!
//! Sqids decodes several texts to the same number. [`ShortKey::from_short`] encodes the number again and refuses any
//! other text, so that a key has one short id.

use alloc::{format, string::String};

pub use sqids::Sqids;

use super::{
    KeyType, RawKey,
    text::{PREFIX_MAX, excerpt},
};
use crate::error::Error;

/// The largest length of a short id without its prefix. Sqids allows a minimum length of 255 characters.
const LENGTH_MAX: usize = 255;

mod sealed {
    pub trait Integer {}

    impl Integer for i64 {}
    impl Integer for u64 {}
}

/// A raw key that is an integer: `i64` or `u64`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no integer, and has no short id",
    label = "no integer",
    note = "take `short` off, or take a scheme of integers, such as `snowflake` or `sequence`"
)]
pub trait IntegerKey: RawKey + sealed::Integer + TryInto<u64> + TryFrom<u64> {}

impl IntegerKey for i64 {}
impl IntegerKey for u64 {}

/// A key type of integers whose keys have short public ids: `#[ordid(short = SHORT)]`.
///
/// # Example: what the derive writes
///
/// ```
/// use std::sync::LazyLock;
///
/// use ordid_core::{KeyType, key::short::{ShortKey, Sqids}};
///
/// // Shuffle the alphabet once, and keep it.
/// static SHORT: LazyLock<Sqids> = LazyLock::new(|| {
///     let alphabet = "k3G7QAe51FCsPW92uEOyq4Bg6Sp8YzVTmnU0liwDdHXLajZrfxNhobJIRcMvKt".chars().collect();
///     Sqids::builder().alphabet(alphabet).min_length(6).build().expect("62 different letters")
/// });
///
/// # #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
/// # struct OrderId(i64);
/// # impl std::fmt::Display for OrderId {
/// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { self.0.fmt(f) }
/// # }
/// # impl KeyType for OrderId {
/// #     type Raw = i64;
/// #     type Scheme = ordid_core::scheme::Sequence;
/// #     const NAME: &'static str = "OrderId";
/// #     const PREFIX: Option<&'static str> = Some("ord");
/// #     fn from_generated(key: ordid_core::key::Generated<Self::Scheme>) -> Self { Self(key.into_raw()) }
/// #     fn to_raw(self) -> i64 { self.0 }
/// #     fn from_raw(raw: i64) -> Result<Self, ordid_core::Error> {
/// #         ordid_core::key::Generated::check(raw, "OrderId").map(Self::from_generated)
/// #     }
/// # }
/// impl ShortKey for OrderId {
///     fn sqids() -> &'static Sqids {
///         &SHORT
///     }
/// }
///
/// let id = OrderId::from_raw(4_711)?;
/// let short = id.to_short()?;
/// assert!(short.starts_with("ord_") && short.len() == 10);
/// assert_eq!(OrderId::from_short(&short)?, id);
/// assert!(OrderId::from_short("ord_4711").is_err());
/// # Ok::<(), ordid_core::Error>(())
/// ```
pub trait ShortKey: KeyType<Raw: IntegerKey> {
    /// Returns the alphabet, the minimum length and the blocklist.
    fn sqids() -> &'static Sqids;

    /// Returns the short id: the key type's prefix and `_`, if there is one, and the number as Sqids writes it.
    ///
    /// # Errors
    ///
    /// Returns an error that [`is_conversion`](Error::is_conversion) if Sqids finds no text without a word of the
    /// blocklist, or if the number is negative, which no scheme makes. On a machine of 32 bits, such as WebAssembly,
    /// also for a number of 2^32 or more: Sqids would write another text than on other machines.
    fn to_short(self) -> Result<String, Error> {
        let number = self.to_raw().try_into().map_err(|_| no_short_id(self))?;
        if !is_counted(number) {
            return Err(Error::conversion(format!(
                "{self} has no short id on this machine: Sqids counts with 32 bits here, and would write another one \
                 than other machines do"
            )));
        }
        let short = Self::sqids().encode(&[number]);
        let short = short.map_err(|_| no_short_id(self))?;
        Ok(match Self::PREFIX {
            None | Some("") => short,
            Some(prefix) => format!("{prefix}_{short}"),
        })
    }

    /// Reads what [`to_short`](Self::to_short) returned, and nothing else.
    ///
    /// # Errors
    ///
    /// Returns an error that [`is_parse`](Error::is_parse) for any other text, even if Sqids would decode it to the
    /// same number, and on a machine of 32 bits for numbers of 2^32 or more. Returns an error that
    /// [`is_layout`](Error::is_layout) if the number is not a key of the scheme.
    fn from_short(text: &str) -> Result<Self, Error> {
        // The time that Sqids needs grows with the square of the length.
        let fits = text.len() <= PREFIX_MAX + 1 + LENGTH_MAX;
        let digits = match Self::PREFIX {
            None | Some("") => Some(text),
            Some(prefix) => text
                .strip_prefix(prefix)
                .and_then(|rest| rest.strip_prefix('_')),
        };
        let Some(digits) = digits.filter(|_| fits) else {
            return Err(no_key::<Self>(text, "of another form"));
        };
        let [number] = Self::sqids().decode(digits)[..] else {
            return Err(no_key::<Self>(text, "of another form"));
        };
        if !is_counted(number) {
            return Err(no_key::<Self>(
                text,
                "a number above the 32 bits of this machine",
            ));
        }
        if Self::sqids().encode(&[number]).as_deref() != Ok(digits) {
            return Err(no_key::<Self>(text, "not canonical"));
        }
        let too_large = |_| no_key::<Self>(text, "a number that is too large");
        Self::from_raw(number.try_into().map_err(too_large)?)
    }
}

/// Whether Sqids writes this number as all machines do: version 0.4 computes the start of a text in `usize`.
fn is_counted(number: u64) -> bool {
    usize::try_from(number).is_ok()
}

#[cold]
fn no_short_id<K: KeyType>(key: K) -> Error {
    Error::conversion(format!(
        "{key} has no short id: it is negative, or each of its texts has a word that is left out"
    ))
}

#[cold]
fn no_key<K: KeyType>(text: &str, what: &str) -> Error {
    let prefix = match K::PREFIX {
        None | Some("") => String::new(),
        Some(prefix) => format!(" with the prefix {prefix:?}"),
    };
    Error::parse(format!(
        "not a `{}`: expected a short id{prefix}, found {}, {what}",
        K::NAME,
        excerpt(text.as_bytes())
    ))
}
