//! Keys whose time strangers cannot read: version 7 in the database, version 4 outside of it.
//!
//! ```text
//! inside   | unix_ts_ms (48)                 | 7 | rand_a (12) | var | rand_b (62) |
//! outside  | unix_ts_ms XOR hash of the rest | 4 | rand_a (12) | var | rand_b (62) |
//! ```
//!
//! The database keeps the ordered key. In ids that leave the program, such as those in links and in answers, the time
//! is masked. A key type with a mask writes only the masked form: `Display`, `Debug`, `FromStr` and serde have no
//! other, and [`MaskedKey::unmasked`] returns the text of the key inside. The time is XORed with the lower 48 bits of
//! SipHash-2-4 of the other 74 bits, under a key of 128 bits. Unmasking is the same operation. The form and its bytes
//! are those of the project uuidv47.
//!
//! # What it does not do
//!
//! - **It is not encryption**, and a masked id is no secret, no token and no proof: any version 4 unmasks to some
//!   version 7. Whoever has the mask's key can read the times of all ids. If the key is lost, all masked ids in
//!   circulation are lost, too. An id has no room to say by which of several keys it was masked.
//! - **The 74 bits stay as they are.** They are the key's counter and random bits, unencrypted:
//!   - Two ids with equal 74 bits have equal masks, so the XOR of the two ids is the XOR of their times. With 74
//!     random bits, the chance of such a pair is one in a hundred among about twenty thousand million ids. **Schemes
//!     whose last 74 bits are a counter without entropy give their times away**: do not mask them.
//!   - [`uuid_v7`](super::uuid_v7), dense: 41 bits are drawn once a millisecond, and 32 for each key. The 74 bits of
//!     two keys of different milliseconds are equal as rarely as any 73 random bits are, so the times stay hidden.
//!     But the ids of one millisecond have neighbouring counters. Everybody can see that they are of one millisecond,
//!     in which order they were made, and how many are between them. Of the next one in the millisecond, **32 bits**
//!     are unknown.
//!   - **An unmasked id of the same scheme shows the time of a masked one** if the same process made both in the same
//!     millisecond, for whomever. All key types of a scheme share one generator, so the counters of the two ids are
//!     neighbours, and the unmasked id has the time. The way out: give masked key types a scheme that no unmasked type
//!     uses, such as `uuid_v7_unguessable`. The generator of each scheme has a secret of its own, from which its
//!     counters start.
//!   - [`uuid_v7_unguessable`](super::uuid_v7_unguessable): the same applies to its counter. The counter's start has
//!     only 17 bits, so ids of different milliseconds have the same one more often; 56 bits of the next id are
//!     unknown.
//!   - [`uuid_v7_sub_millis`](super::uuid_v7_sub_millis): everybody can see the fraction of the millisecond.
//! - Masked ids do not rise. Sort and page by the key inside. Accept [cursors](crate::page::Cursor) from strangers,
//!   not ids: **never compare an id from outside by `<` or `>`**. Whoever sees which rows are listed before an id
//!   that they made up can find the times of those rows, one bit after the other. A cursor has a hash that cannot be
//!   computed without the mask.
//!
//! # References
//!
//! `stateless-me/uuidv47`, `uuidv47.h` and README; J.-P. Aumasson and D. J. Bernstein, "SipHash: a
//! fast short-input PRF" (2012).

use alloc::format;
use core::{fmt, hash::Hasher as _};

use siphasher::sip::SipHasher24;
use uuid::Uuid;

use super::{UuidV4, UuidV7, UuidV7SubMillis, UuidV7Unguessable, anatomy::check};
use crate::{
    error::{Error, ErrorKind},
    key::{KeyType, RawKey as _, Scheme, SchemeText},
};

/// Masks the time of UUIDs of version 7, and unmasks it.
///
/// Its `Debug` text hides the key, and dropping it overwrites the key.
///
/// # Example
///
/// ```
/// use ordid_core::scheme::UuidMask;
///
/// let mask = UuidMask::new(0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210); // yours: random
/// let key = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f".parse()?;
/// let outside = mask.mask(&key)?;
/// assert_eq!(outside.to_string(), "ff86d1d8-79db-4cc3-98c4-dc0c0c07398f");
/// assert_eq!(mask.unmask(&outside)?, key);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct UuidMask {
    k0: u64,
    k1: u64,
}

impl UuidMask {
    /// Makes a mask from the two halves of a SipHash key: 128 random bits that are kept secret.
    ///
    /// If the key is given as 16 bytes, each half is eight of them, least significant first (`u64::from_le_bytes`).
    pub const fn new(k0: u64, k1: u64) -> Self {
        Self { k0, k1 }
    }

    /// Returns the masked form, of version 4.
    ///
    /// # Errors
    ///
    /// A UUID of another version or variant gives an error that [`is_layout`](Error::is_layout).
    pub fn mask(&self, key: &Uuid) -> Result<Uuid, Error> {
        check::<UuidV7>(key)?;
        Ok(self.turn(key, 4))
    }

    /// Returns the key inside, of version 7.
    ///
    /// An id that was never masked, or that was masked with another key, unmasks to a key with a wrong time. So look
    /// the key up, and trust it only if a row has it.
    ///
    /// # Errors
    ///
    /// A UUID of another version than 4, or of another variant, gives an error that [`is_layout`](Error::is_layout).
    pub fn unmask(&self, outside: &Uuid) -> Result<Uuid, Error> {
        check::<UuidV4>(outside)?;
        Ok(self.turn(outside, 7))
    }

    /// Returns a hash of a key, its type and the text of a cursor that only those can compute who have the mask.
    fn seal(&self, key: &Uuid, key_type: &str, cursor: &str) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.k0, self.k1);
        // The text is longer than the one that masks a key, so it never has the same hash by being the same.
        hasher.write(b"cursor");
        hasher.write(key.as_bytes());
        hasher.write(key_type.as_bytes());
        // No text has this byte.
        hasher.write(&[0xff]);
        hasher.write(cursor.as_bytes());
        hasher.finish()
    }

    fn wipe(&mut self) {
        let Self { k0, k1 } = self;
        (*k0, *k1) = (0, 0);
    }

    fn turn(&self, raw: &Uuid, version: u64) -> Uuid {
        let mut hidden = [0; 10];
        hidden.copy_from_slice(&raw.as_bytes()[6..]);
        // Without version and variant, which are not random.
        hidden[0] &= 0x0f;
        hidden[2] &= 0x3f;
        let mut hasher = SipHasher24::new_with_keys(self.k0, self.k1);
        hasher.write(&hidden);
        let (high, low) = raw.as_u64_pair();
        let high = high ^ hasher.finish() << 16;
        Uuid::from_u64_pair(high & !0xf000 | version << 12, low)
    }
}

/// The key does not stay in memory after use. But copies in registers, on the stack of a call, and in the place where
/// the mask was moved from are not overwritten.
impl Drop for UuidMask {
    fn drop(&mut self) {
        self.wipe();
        // Otherwise the compiler leaves out writes that nobody reads.
        core::hint::black_box(self);
    }
}

impl fmt::Debug for UuidMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UuidMask").finish_non_exhaustive()
    }
}

/// A scheme of UUIDs of version 7, whose time a [`UuidMask`] can mask.
#[diagnostic::on_unimplemented(
    message = "keys of scheme `{Self}` cannot be masked: they are not of version 7",
    label = "not of version 7",
    note = "mask keys of `uuid_v7` or `uuid_v7_unguessable`, or of `uuid_v7_sub_millis`, whose fraction \
            of the millisecond is seen"
)]
pub trait Maskable: Scheme<Raw = Uuid> {}

impl Maskable for UuidV7 {}
impl Maskable for UuidV7SubMillis {}
impl Maskable for UuidV7Unguessable {}

/// A key type whose keys are masked when they leave the program: `#[ordid(mask = MASK)]`.
///
/// The derive makes `Display`, `FromStr`, `Debug` and serde use the masked form, so that nobody can forget it.
/// Columns of databases keep the key inside, and so do [`to_raw`](KeyType::to_raw) and the conversions to and from
/// `Uuid`. Keep the mask as long as masked ids are in use. These are ids in links and in clients' data, but also in
/// data that the program itself stores by serde, such as JSON in a column or the journal of a flush. With another
/// mask, they are read as other keys.
///
/// # Example: what the derive writes
///
/// ```
/// use std::sync::LazyLock;
///
/// use ordid_core::{KeyType, scheme::{UuidMask, masked::MaskedKey}, uuid::Uuid};
///
/// // Of two numbers that the program is given and nobody else knows.
/// static MASK: LazyLock<UuidMask> =
///     LazyLock::new(|| UuidMask::new(0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210));
///
/// # #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
/// # struct OrderId(Uuid);
/// # impl std::fmt::Display for OrderId {
/// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { self.0.fmt(f) }
/// # }
/// # impl KeyType for OrderId {
/// #     type Raw = Uuid;
/// #     type Scheme = ordid_core::scheme::UuidV7Unguessable;
/// #     const NAME: &'static str = "OrderId";
/// #     const PREFIX: Option<&'static str> = None;
/// #     fn from_generated(key: ordid_core::key::Generated<Self::Scheme>) -> Self { Self(key.into_raw()) }
/// #     fn to_raw(self) -> Uuid { self.0 }
/// #     fn from_raw(raw: Uuid) -> Result<Self, ordid_core::Error> {
/// #         ordid_core::key::Generated::check(raw, "OrderId").map(Self::from_generated)
/// #     }
/// # }
/// impl MaskedKey for OrderId {
///     fn uuid_mask() -> &'static UuidMask {
///         &MASK
///     }
/// }
///
/// let id = OrderId::from_raw("017f22e2-79b0-7cc3-98c4-dc0c0c07398f".parse()?)?;
/// let outside = id.masked();
/// assert_eq!(outside.to_string(), "ff86d1d8-79db-4cc3-98c4-dc0c0c07398f");
/// assert_eq!(OrderId::from_masked(&outside)?, id);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait MaskedKey: KeyType<Raw = Uuid, Scheme: Maskable> {
    /// Returns the mask.
    fn uuid_mask() -> &'static UuidMask;

    /// Returns the masked form, of version 4.
    fn masked(self) -> Uuid {
        Self::uuid_mask().turn(&self.to_raw(), 4)
    }

    /// Returns the key inside; see [`UuidMask::unmask`] for its limits.
    ///
    /// # Errors
    ///
    /// A UUID of another version than 4, or of another variant, gives an error that [`is_layout`](Error::is_layout).
    /// The message says so if it is a key that was not masked.
    fn from_masked(outside: &Uuid) -> Result<Self, Error> {
        if !UuidV4::check(outside) {
            return Err(not_masked::<Self>(outside));
        }
        Self::from_raw(Self::uuid_mask().turn(outside, 7))
    }

    /// Returns what shows that a cursor of the key was made here.
    #[doc(hidden)]
    fn __seal(self, cursor: &str) -> u64 {
        Self::uuid_mask().seal(&self.to_raw(), Self::NAME, cursor)
    }

    /// Returns the text of the key inside, with its prefix, for people and programs that may know its time.
    fn unmasked(self) -> impl fmt::Display {
        SchemeText::<Self::Scheme> {
            raw: self.to_raw(),
            prefix: Self::PREFIX,
        }
    }

    /// Reads the text of [`unmasked`](Self::unmasked).
    ///
    /// # Errors
    ///
    /// Any other text gives an error that [`is_parse`](Error::is_parse), and a masked one an error that
    /// [`is_layout`](Error::is_layout).
    fn parse_unmasked(text: &str) -> Result<Self, Error> {
        Self::from_raw(Self::Scheme::parse_text(Self::PREFIX, text)?)
    }
}

#[cold]
fn not_masked<K: MaskedKey>(found: &Uuid) -> Error {
    let what = if K::Scheme::check(found) {
        "an unmasked key, "
    } else {
        ""
    };
    Error::new(ErrorKind::Layout {
        key_type: K::NAME,
        scheme: K::Scheme::NAME,
        expected: "a masked key, of version 4 and variant RFC 9562",
        found: format!("{what}{}", found.describe()),
    })
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scheme::testing::{hex, uuid, vectors};

    #[test]
    fn the_hash_is_siphash_24_of_the_reference() {
        let json = &vectors("uuidv47")["siphash24"];
        let rows = json["out_le_hex_by_len"].as_array().unwrap();
        for (length, row) in (0_u8..).zip(rows) {
            let message: Vec<u8> = (0..length).collect();
            let mut hasher = SipHasher24::new_with_keys(hex(&json["k0"]), hex(&json["k1"]));
            hasher.write(&message);
            assert_eq!(hasher.finish().swap_bytes(), hex(row), "{length} bytes");
        }
        assert_eq!(rows.len(), 13);
    }

    #[test]
    fn masking_matches_the_vectors_in_both_directions() {
        let json = &vectors("uuidv47")["derived_facades"];
        let mask = UuidMask::new(hex(&json["k0"]), hex(&json["k1"]));
        for pair in json["pairs"].as_array().unwrap() {
            let (inside, outside) = (uuid(&pair[0]), uuid(&pair[1]));
            assert_eq!(mask.mask(&inside).unwrap(), outside);
            assert_eq!(mask.unmask(&outside).unwrap(), inside);
        }
    }

    #[test]
    fn other_versions_and_variants_are_refused() {
        let mask = UuidMask::new(1, 2);
        let v4: Uuid = "919108f7-52d1-4320-9bac-f847db4148a8".parse().unwrap();
        let v7: Uuid = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f".parse().unwrap();
        let odd: Uuid = "017f22e2-79b0-7cc3-d8c4-dc0c0c07398f".parse().unwrap();
        for refused in [v4, odd, Uuid::nil(), Uuid::max()] {
            assert!(mask.mask(&refused).unwrap_err().is_layout());
        }
        for refused in [v7, odd, Uuid::nil(), Uuid::max()] {
            assert!(mask.unmask(&refused).unwrap_err().is_layout());
        }
        assert_eq!(
            mask.mask(&v4).unwrap_err().to_string(),
            "not a `uuid_v7`: scheme uuid_v7 expects version 7 and variant RFC 9562, found version \
             4 and variant RFC 9562 in 919108f7-52d1-4320-9bac-f847db4148a8"
        );
    }

    #[test]
    fn ids_with_equal_tails_reveal_the_difference_of_their_times() {
        // The limit that the documentation names, so that nobody takes it for encryption.
        let mask = UuidMask::new(3, 4);
        let [left, right] = [0x17f_22e2_79b0_u64, 0x17f_22e2_7fff]
            .map(|millis| Uuid::from_u64_pair(millis << 16 | 0x7001, 0b10 << 62 | 5));
        let outside = [left, right].map(|key| mask.mask(&key).unwrap().as_u128());
        assert_eq!(
            outside[0] ^ outside[1],
            left.as_u128() ^ right.as_u128(),
            "the XOR of the times"
        );
    }

    /// The limit that the documentation names, and the way out of it.
    #[cfg(feature = "std")]
    #[test]
    fn unmasked_keys_of_the_same_scheme_and_millisecond_have_neighbouring_counters() {
        use crate::key::StaticScheme as _;

        // The 42 bits that `uuid_v7` counts in. In the other scheme, the lower ones are random.
        let count = |id: &Uuid| {
            let (high, low) = id.as_u64_pair();
            (high & 0xfff) << 30 | low >> 32 & 0x3fff_ffff
        };
        let mask = UuidMask::new(3, 4);
        let (mut same, mut other) = (0, 0);
        let mut millis = 0;
        while millis < 8 {
            let unmasked = UuidV7::generate().into_raw();
            let keys = [
                UuidV7::generate().into_raw(),
                UuidV7Unguessable::generate().into_raw(),
            ];
            if keys.map(|key| UuidV7::timestamp(&key)) != [UuidV7::timestamp(&unmasked); 2] {
                continue;
            }
            let is_near = keys.map(|key| {
                let masked = mask.mask(&key).unwrap();
                count(&masked).abs_diff(count(&unmasked)) < 1 << 20
            });
            same += u32::from(is_near[0]);
            other += u32::from(is_near[1]);
            millis += 1;
        }
        // Two counters that are drawn are as near as that once in a million milliseconds.
        assert!(same == 8 && other < 2, "{same} and {other} of 8");
    }

    #[test]
    fn a_wiped_mask_has_no_key() {
        let mut mask = UuidMask::new(3, 4);
        mask.wipe();
        assert_eq!((mask.k0, mask.k1), (0, 0));
        assert!(core::mem::needs_drop::<UuidMask>());
    }

    /// Reads the place where the mask was, since no reference to it is left.
    #[cfg(all(feature = "std", target_os = "linux", not(miri)))]
    #[test]
    fn dropping_a_mask_wipes_its_key() {
        use std::{fs::File, os::unix::fs::FileExt as _};

        let memory = File::open("/proc/self/mem").unwrap();
        let key = |address| {
            let mut bytes = [0; size_of::<UuidMask>()];
            memory.read_exact_at(&mut bytes, address).unwrap();
            let half = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
            let mut halves = [half(0), half(8)];
            // The compiler chooses the order of the fields.
            halves.sort_unstable_by(|left, right| right.cmp(left));
            halves
        };
        // `clear` drops in place, and the vector keeps the memory, so nothing but the drop writes there.
        let mut masks = alloc::vec::Vec::with_capacity(1);
        masks.push(UuidMask::new(u64::MAX / 3, u64::MAX / 5));
        let address = masks.as_ptr().expose_provenance() as u64;
        let halves = [u64::MAX / 3, u64::MAX / 5];
        assert_eq!(key(address), halves);
        masks.clear();
        assert_eq!(key(address), [0, 0]);
        assert_eq!(masks.capacity(), 1);
    }

    #[test]
    fn the_debug_text_hides_the_key() {
        let text = format!("{:?}", UuidMask::new(0xdead, 0xbeef));
        assert_eq!(text, "UuidMask { .. }");
    }

    proptest! {
        #[test]
        fn every_masked_key_round_trips(k0: u64, k1: u64, high: u64, low: u64) {
            let key = Uuid::from_u64_pair(high & !0xf000 | 0x7000, low >> 2 | 0b10 << 62);
            let mask = UuidMask::new(k0, k1);
            let outside = mask.mask(&key).unwrap();
            prop_assert!(UuidV4::check(&outside));
            prop_assert_eq!(outside.as_u128() << 52, key.as_u128() << 52);
            prop_assert_eq!(mask.unmask(&outside).unwrap(), key);
        }
    }
}
