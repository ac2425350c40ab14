//! MongoDB's ObjectId: 32 bits of seconds, 40 random bits a process, a 24-bit counter.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                   seconds since 1970, unsigned                |
//! +---------------------------------------------------------------+
//! |                     random (upper 32 bits)                    |
//! +---------------+-----------------------------------------------+
//! | random (8)    |                   counter                     |
//! +---------------+-----------------------------------------------+
//! ```
//!
//! All fields are most significant byte first. Keys compare byte by byte, and so does the text of 24 digits. The
//! seconds are unsigned and end on 2106-02-07T06:28:15Z; later times are an error.
//!
//! Keys of one generator rise strictly. Keys of several processes are ordered by the second. The random bytes are
//! drawn for each generator, and again in the child of a fork, which the specification demands and drivers forget.
//!
//! In the original, the counter starts at random once and wraps to zero, even in the middle of a second, so keys
//! fall. Here it starts each second at 23 random bits below a zero bit and has **8,388,608 keys a second**, so it
//! cannot wrap. Then the [`Overflow`](crate::generator::Overflow) policy acts. Whoever knows one key can predict the
//! next one of the same second: never use an ObjectId as a secret.
//!
//! Until 2018 the 40 bits were three bytes of a hash of the host's name and two of the process number:
//! [`LegacyParts`]. A key does not show which of the two forms it has. [`ObjectIdLegacy`] makes keys of that form,
//! `#[ordid(scheme = object_id(machine = HostAndProcess))]`, for collections whose readers expect it.
//!
//! # References
//!
//! `mongodb/specifications@92b3c0b`, `source/bson-objectid/objectid.md`;
//! `source/bson-corpus/tests/oid.json`.

use crate::{
    clock::{TimeScale, Timestamp},
    error::Error,
    generator::{Slot, Slotted},
    key::{ObjectId, RisesAsBytes, Scheme},
    layout::Orders,
    scheme::anatomy::{Certainty, Inspection, Layout, TimeOrdered, fits, tick_at},
};

mod legacy;

pub use legacy::{HostAndProcess, ObjectIdLegacy, ObjectIdLegacyGenerator};

const SCALE: TimeScale = TimeScale::UNIX_SECONDS;
const SECOND_BITS: u32 = 32;
const RANDOM_BITS: u32 = 40;
const COUNTER_BITS: u32 = 24;

/// The scheme `object_id`.
#[derive(Debug)]
pub enum ObjectIdScheme {}

impl Scheme for ObjectIdScheme {
    any_value!("object_id", ObjectId: "12 bytes", Orders::BYTES);

    fn timestamp(raw: &ObjectId) -> Option<Timestamp> {
        Some(SCALE.timestamp_at(u64::from(apart(raw).seconds)))
    }
}

impl RisesAsBytes for ObjectIdScheme {}

impl Slotted for ObjectIdScheme {
    type Node = ();

    const SCALE: TimeScale = SCALE;
    const TICK_BITS: u32 = SECOND_BITS;
    const INDEX_BITS: u32 = 23;
    /// The counter has one bit more, which begins as zero.
    const SEED_BITS: u32 = 23;
    const RANDOM_BITS: u32 = 0;
    const IDENTITY: bool = true;

    #[inline]
    fn encode(slot: Slot<()>) -> ObjectId {
        place(slot.time, slot.identity >> (64 - RANDOM_BITS), slot.count)
    }
}

#[inline]
fn place(seconds: u64, random: u64, counter: u64) -> ObjectId {
    let bits = u128::from(seconds) << (RANDOM_BITS + COUNTER_BITS)
        | u128::from(random) << COUNTER_BITS
        | u128::from(counter);
    let [_, _, _, _, bytes @ ..] = bits.to_be_bytes();
    ObjectId::from_bytes(bytes)
}

fn apart(raw: &ObjectId) -> Parts {
    let [s0, s1, s2, s3, r0, r1, r2, r3, r4, c0, c1, c2] = *raw.as_bytes();
    Parts {
        seconds: u32::from_be_bytes([s0, s1, s2, s3]),
        random: u64::from_be_bytes([0, 0, 0, r0, r1, r2, r3, r4]),
        counter: u32::from_be_bytes([0, c0, c1, c2]),
    }
}

/// The fields of an ObjectId.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// Seconds since 1970, unsigned.
    pub seconds: u32,
    /// 40 bits: the same for all keys of a process.
    pub random: u64,
    /// 24 bits.
    pub counter: u32,
}

/// The fields of an ObjectId as drivers made it before 2018.
///
/// # Example
///
/// ```
/// use ordid_core::{key::ObjectId, scheme::object_id::LegacyParts};
///
/// let id: ObjectId = "56e1fc72e0c917e9c4714161".parse()?;
/// let parts = LegacyParts::of(&id);
/// assert_eq!((parts.machine, parts.process), (0xe0c917, 0xe9c4));
/// assert_eq!(parts.pack()?, id);
/// # Ok::<(), ordid_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LegacyParts {
    /// Seconds since 1970. Old drivers read them as a signed number, which ends in 2038; the bits are the same.
    pub seconds: u32,
    /// 24 bits of a hash of the host's name.
    pub machine: u32,
    /// The lower 16 bits of the process number.
    pub process: u16,
    /// 24 bits.
    pub counter: u32,
}

impl LegacyParts {
    /// Takes a key apart. Every key has these fields; nothing in a key says which form it has.
    pub fn of(raw: &ObjectId) -> Self {
        let [_, _, _, _, m0, m1, m2, p0, p1, ..] = *raw.as_bytes();
        let Parts {
            seconds, counter, ..
        } = apart(raw);
        Self {
            seconds,
            machine: u32::from_be_bytes([0, m0, m1, m2]),
            process: u16::from_be_bytes([p0, p1]),
            counter,
        }
    }

    /// Makes the key from its fields.
    ///
    /// # Errors
    ///
    /// As [`Layout::pack`].
    pub fn pack(self) -> Result<ObjectId, Error> {
        fits::<ObjectIdScheme>("machine", self.machine, 24)?;
        ObjectIdScheme::pack(Parts {
            seconds: self.seconds,
            random: u64::from(self.machine) << 16 | u64::from(self.process),
            counter: self.counter,
        })
    }
}

impl Layout for ObjectIdScheme {
    type Parts = Parts;

    fn pack(parts: Parts) -> Result<ObjectId, Error> {
        fits::<Self>("random", parts.random, RANDOM_BITS)?;
        fits::<Self>("counter", parts.counter, COUNTER_BITS)?;
        Ok(place(
            u64::from(parts.seconds),
            parts.random,
            u64::from(parts.counter),
        ))
    }

    fn unpack(raw: &ObjectId) -> Result<Parts, Error> {
        Ok(apart(raw))
    }

    fn inspect(raw: &ObjectId) -> Result<Inspection, Error> {
        let parts = apart(raw);
        Ok(Inspection {
            moment: Some(SCALE.moment_at(u64::from(parts.seconds))),
            node: Some(parts.random),
            counter: Some(u64::from(parts.counter)),
            ..Inspection::of::<Self>(Certainty::Possible)
        })
    }
}

impl TimeOrdered for ObjectIdScheme {
    fn bounds_at(timestamp: Timestamp) -> Result<(ObjectId, ObjectId), Error> {
        let seconds = tick_at(SCALE, SECOND_BITS, timestamp)?;
        let highest = place(seconds, (1 << RANDOM_BITS) - 1, (1 << COUNTER_BITS) - 1);
        Ok((place(seconds, 0, 0), highest))
    }
}

generator! {
    /// Makes ObjectIds, strictly rising over all threads that share it.
    ObjectIdGenerator: ObjectIdScheme
}

own_key_type! {
    /// `ObjectId` itself is a key type, and holds any value.
    ObjectId: ObjectIdScheme
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        generator::{Generator, Policy},
        key::KeyType as _,
        scheme::testing::*,
    };

    #[test]
    fn object_ids_meet_the_corpus_and_the_bson_crate() {
        let json = vectors("object_id");
        for case in json["valid"].as_array().unwrap() {
            // A document: its length, the type 7, the name `a`, the twelve bytes, the end.
            let bson = data_encoding::HEXUPPER
                .decode(case[1].as_str().unwrap().as_bytes())
                .unwrap();
            let bytes: [u8; 12] = bson[7..19].try_into().unwrap();
            let id = ObjectId::from_bytes(bytes);
            assert_eq!(id.to_string(), case[2].as_str().unwrap());
            assert_eq!(id.to_string().parse::<ObjectId>().unwrap(), id);
            assert_eq!(ObjectIdScheme::pack(apart(&id)).unwrap(), id);
            assert_eq!(LegacyParts::of(&id).pack().unwrap(), id);
        }
        for case in json["timestamps"].as_array().unwrap() {
            let seconds = u32::from_str_radix(case[0].as_str().unwrap(), 16).unwrap();
            let at = Timestamp::from_unix_millis(u64::from(seconds) * 1_000).unwrap();
            let id = place(u64::from(seconds), 1, 2);
            assert_eq!(ObjectIdScheme::timestamp(&id), Some(at));
            let theirs = bson::oid::ObjectId::from_bytes(id.to_bytes());
            let text = theirs.timestamp().try_to_rfc3339_string().unwrap();
            assert_eq!(text, case[1].as_str().unwrap());
        }
    }

    #[test]
    fn object_id_parts_that_do_not_fit_are_named() {
        let parts = Parts {
            seconds: u32::MAX,
            random: (1 << 40) - 1,
            counter: 0xff_ffff,
        };
        let id = ObjectIdScheme::pack(parts).unwrap();
        assert_eq!(id, ObjectId::from_bytes([0xff; 12]));
        let random = 1 << 40;
        let counter = 1 << 24;
        does_not_fit::<ObjectIdScheme, _>([
            (Parts { random, ..parts }, "random 1099511627776", 40),
            (Parts { counter, ..parts }, "counter 16777216", 24),
        ]);
        let legacy = LegacyParts {
            machine: 1 << 24,
            ..LegacyParts::of(&id)
        };
        assert_eq!(
            legacy.pack().unwrap_err().to_string(),
            "machine 16777216 does not fit: scheme object_id has 24 bits for it"
        );
    }

    /// The counter of the original goes from ffffff to 000000 inside a second.
    #[test]
    fn the_counter_of_a_full_second_does_not_go_back() {
        let generator = scripted::<ObjectIdScheme>();
        generator.clock().freeze();
        let first = next(&generator);
        let _ = generator.reserve((1 << 23) - 4).unwrap();
        let mut last = first;
        for number in 0..10 {
            let id = next(&generator);
            assert!(id > last, "{id} after {last}");
            let carried = u32::from(number >= 3);
            assert_eq!(apart(&id).seconds, apart(&first).seconds + carried);
            assert_eq!(apart(&id).random, apart(&first).random);
            last = id;
        }
    }

    #[test]
    fn a_second_has_8388608_keys_and_then_the_policy_acts() {
        let generator = scripted_with::<ObjectIdScheme>((), START, 7, STRICT);
        let _ = generator.reserve(1 << 23).unwrap();
        assert!(generator.try_generate().unwrap_err().is_overflow());
        generator.clock().set_unix_millis(START + 999);
        assert!(generator.try_generate().unwrap_err().is_overflow());
        generator.clock().set_unix_millis(START + 1_000);
        next(&generator);
    }

    #[test]
    fn seconds_end_in_2106_with_an_error() {
        let last = u64::from(u32::MAX) * 1_000 + 999;
        let id = ends_after(&scripted::<ObjectIdScheme>(), last);
        assert_eq!(apart(&id).seconds, u32::MAX);
        let at = |millis| Timestamp::from_unix_millis(millis).unwrap();
        assert_eq!(
            ObjectIdScheme::bounds_at(at(last)).unwrap().1,
            ObjectId::from_bytes([0xff; 12])
        );
        assert!(
            ObjectIdScheme::bounds_at(at(last + 1))
                .unwrap_err()
                .is_clock()
        );
    }

    #[test]
    fn generators_and_children_of_a_fork_have_random_bytes_of_their_own() {
        let [one, two] = [1, 2].map(|seed| {
            let generator = scripted_with::<ObjectIdScheme>((), START, seed, Policy::DEFAULT);
            next(&generator)
        });
        assert_ne!(apart(&one).random, apart(&two).random);
        let generator = scripted::<ObjectIdScheme>();
        let parent = next(&generator);
        generator.entropy().fork();
        let child = next(&generator);
        assert!(child > parent);
        assert_ne!(apart(&parent).random, apart(&child).random);
    }

    #[test]
    fn object_ids_are_made_for_the_process() {
        let [first, second] = [(); 2].map(|()| ObjectId::generate());
        assert!(first < second);
        let theirs = bson::oid::ObjectId::parse_str(second.to_string()).unwrap();
        assert_eq!(theirs.bytes(), second.to_bytes());
    }

    proptest! {
        #[test]
        fn parts_of_object_ids_match_the_bson_crate(bytes: [u8; 12]) {
            let id = ObjectId::from_bytes(bytes);
            let parts = ObjectIdScheme::unpack(&id).unwrap();
            prop_assert_eq!(LegacyParts::of(&id).pack().unwrap(), id);
            let theirs = bson::oid::ObjectId::from_bytes(bytes);
            let millis = theirs.timestamp().timestamp_millis();
            prop_assert_eq!(i128::from(millis), i128::from(parts.seconds) * 1_000);
            prop_assert_eq!(theirs.to_hex(), id.to_string());
        }
    }
}
