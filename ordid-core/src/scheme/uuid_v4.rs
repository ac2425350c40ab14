//! UUID version 4: 122 random bits, in no order.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                   random_a (upper 32 bits)                    |
//! +-------------------------------+-------+-----------------------+
//! |   random_a (lower 16 bits)    | ver 4 |     random_b (12)     |
//! +---+---------------------------+-------+-----------------------+
//! |var|                 random_c (upper 30 bits)                  |
//! +---+-----------------------------------------------------------+
//! |                     random_c (lower 32 bits)                  |
//! +---------------------------------------------------------------+
//! ```
//!
//! This scheme is here for comparison with the ordered ones, and for keys that must reveal nothing. No rule orders
//! its keys, so it lacks the traits that an ordered column requires, and it has no time. Once a table has outgrown
//! the memory, inserting such keys is dozens of times slower than inserting ordered keys. Whoever knows one key has
//! 122 bits of the next one to guess.
//!
//! # Example: no order to keep
//!
//! ```compile_fail
//! use ordid_core::{scheme::UuidV4, key::RisesAsBytes};
//!
//! fn ordered<S: RisesAsBytes>() {}
//! ordered::<UuidV4>();
//! ```
//!
//! # References
//!
//! RFC 9562 section 5.4 (layout), 8 (security considerations).

use uuid::Uuid;

#[cfg(feature = "std")]
use crate::{entropy::ThreadEntropy, scheme::random::ProcessEntropy};
use crate::{
    error::Error,
    key::Scheme,
    scheme::{
        anatomy::{Certainty, Inspection, Layout},
        random::{Random, RandomGenerator},
    },
};

/// The scheme `uuid_v4`.
#[derive(Debug)]
pub enum UuidV4 {}

impl Scheme for UuidV4 {
    without_order!(rfc_9562!("uuid_v4", version 4));
}

impl Random for UuidV4 {
    #[inline]
    fn from_random(bits: u128) -> Uuid {
        Uuid::from_u128(bits & !(0xf << 76 | 0b11 << 62) | 4 << 76 | 0b10 << 62)
    }
}

/// The fields of a UUID of version 4, as RFC 9562 names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// 48 bits.
    pub random_a: u64,
    /// 12 bits.
    pub random_b: u16,
    /// 62 bits.
    pub random_c: u64,
}

/// # Example: the RFC's own vector
///
/// ```
/// use ordid_core::scheme::{Layout, UuidV4, uuid_v4::Parts};
///
/// let parts = Parts {
///     random_a: 0x9191_08f7_52d1,
///     random_b: 0x320,
///     random_c: 0x1bac_f847_db41_48a8,
/// };
/// let key = UuidV4::pack(parts)?;
/// assert_eq!(key.to_string(), "919108f7-52d1-4320-9bac-f847db4148a8");
/// assert_eq!(UuidV4::unpack(&key)?, parts);
/// # Ok::<(), ordid_core::Error>(())
/// ```
impl Layout for UuidV4 {
    fields_around_version!(4: random_a = 48, random_b = 12, random_c = 62);

    fn inspect(raw: &Uuid) -> Result<Inspection, Error> {
        Inspection::of_version::<Self>(raw, 4, Certainty::Stated)
    }
}

/// Makes UUIDs of version 4, in no order.
#[cfg(feature = "std")]
pub type UuidV4Generator<E = ThreadEntropy> = RandomGenerator<UuidV4, E>;

/// The same type as with `std`, but without defaults.
#[cfg(not(feature = "std"))]
pub type UuidV4Generator<E> = RandomGenerator<UuidV4, E>;

#[cfg(feature = "std")]
super::random::process_wide_without_order!(
    UuidV4,
    UuidV4Generator<ProcessEntropy> = UuidV4Generator::new(ProcessEntropy)
);

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::{
        clock::Timestamp,
        entropy::SeededEntropy,
        generator::{Events, Generator},
        key::{Generated, StaticScheme},
        scheme::{
            UuidV1, UuidV5, UuidV6, UuidV7, UuidV8Sha256,
            testing::{declared, does_not_fit, ones, rules_that_hold, uuid, vectors},
        },
    };

    fn scripted() -> UuidV4Generator<SeededEntropy> {
        UuidV4Generator::new(SeededEntropy::new(42))
    }

    #[test]
    fn random_bits_of_the_rfc_make_its_key() {
        let vector = &vectors("rfc9562")["v4"][0];
        let bits = u128::from_str_radix(vector["random"].as_str().unwrap(), 16).unwrap();
        assert_eq!(UuidV4::from_random(bits), uuid(&vector["uuid"]));
        let bytes = uuid::Builder::from_random_bytes(bits.to_be_bytes());
        assert_eq!(UuidV4::from_random(bits), bytes.into_uuid());
    }

    #[test]
    fn each_scheme_takes_its_own_of_the_rfcs_vectors_and_no_other() {
        let json = vectors("rfc9562");
        type Takes = fn(&Uuid) -> bool;
        let schemes: [(u64, Takes); 6] = [
            (1, UuidV1::check),
            (4, UuidV4::check),
            (5, UuidV5::check),
            (6, UuidV6::check),
            (7, UuidV7::check),
            (8, UuidV8Sha256::check),
        ];
        let mut seen = 0;
        for version in [1, 3, 4, 5, 6, 7, 8] {
            for vector in json[format!("v{version}")].as_array().unwrap() {
                let raw = uuid(&vector["uuid"]);
                for (own, takes) in schemes {
                    assert_eq!(takes(&raw), own == version, "{raw}");
                }
                seen += 1;
            }
        }
        assert_eq!(seen, 8);
    }

    #[test]
    fn keys_differ_in_every_way_to_make_them() {
        let generator = scripted();
        let mut keys = vec![generator.try_generate().unwrap().into_raw()];
        generator
            .try_fill_with(1_000, |key| keys.push(key.into_raw()))
            .unwrap();
        let mut reserved = generator.reserve(3).unwrap();
        assert_eq!(reserved.len(), 3);
        keys.extend(reserved.by_ref().map(|key| key.unwrap().into_raw()));
        assert!(reserved.next().is_none());
        keys.extend(UuidV4::reserve(5).unwrap().map(Generated::into_raw));
        UuidV4::fill_with(100, |key| keys.push(key.into_raw()));
        keys.push(UuidV4::generate().into_raw());
        assert_eq!(keys.len(), 1_110);
        assert!(keys.iter().all(UuidV4::check));
        assert_eq!(keys.iter().collect::<HashSet<_>>().len(), 1_110);
        assert_eq!(generator.events(), Events::default());
    }

    #[test]
    fn no_rule_orders_keys() {
        assert_eq!(declared::<UuidV4>(), []);
        let generator = scripted();
        let keys: Vec<_> = (0..100)
            .map(|_| generator.try_generate().unwrap().into_raw())
            .collect();
        assert_eq!(rules_that_hold(&keys), []);
    }

    #[test]
    fn all_122_bits_are_drawn() {
        let mut keys = Vec::new();
        scripted()
            .try_fill_with(10_000, |key| keys.push(key.into_raw().as_u128()))
            .unwrap();
        let ones = ones::<128>(keys.into_iter());
        let fixed = ones.iter().filter(|&&ones| ones == 0 || ones == 10_000);
        assert_eq!(fixed.count(), 6);
        // Seven standard deviations of 50 around 5,000.
        let drawn = ones.iter().filter(|ones| (4_650..5_350).contains(*ones));
        assert_eq!(drawn.count(), 122);
    }

    #[test]
    fn a_fork_and_a_reservation_over_it_draw_anew() {
        let generator = scripted();
        let mut reserved = generator.reserve(2).unwrap();
        let parent = reserved.next().unwrap().unwrap().into_raw();
        generator.entropy.fork();
        let child = reserved.next().unwrap().unwrap().into_raw();
        assert_ne!(parent, child);
    }

    #[test]
    fn there_is_no_key_for_a_given_time() {
        let error = scripted().generate_at(Timestamp::MIN).unwrap_err();
        assert!(error.is_unsupported());
        assert_eq!(
            error.to_string(),
            "scheme uuid_v4 makes no key for a given time: its keys have none; generate one \
             without"
        );
        assert!(UuidV4::generate_at(Timestamp::MIN).is_err());
        assert_eq!(UuidV4::timestamp(&UuidV4::generate().into_raw()), None);
    }

    #[test]
    fn parts_that_do_not_fit_are_named() {
        let parts = Parts {
            random_a: 1 << 48,
            random_b: 0,
            random_c: 0,
        };
        does_not_fit::<UuidV4, _>([(parts, "random_a 281474976710656", 48)]);
    }
}
