//! UUID version 7, unguessable: 48 bits of time, an 18-bit counter, 56 fresh random bits.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------------------------------+
//! |                  unix_ts_ms (upper 32 bits)                   |
//! +-------------------------------+-------+-----------------------+
//! |  unix_ts_ms (lower 16 bits)   | ver 7 | counter (upper 12)    |
//! +---+-----------+---------------+-------+-----------------------+
//! |var| cnt (low 6)|          random (upper 24 bits)              |
//! +---+-----------+-----------------------------------------------+
//! |                  random (lower 32 bits)                       |
//! +---------------------------------------------------------------+
//! ```
//!
//! Bytes are in network order; keys compare as their bytes do. Seen as one number of 74 bits, each
//! key is the one before plus a random step of 1 to 2^57: the counter above rises by one, and the 56
//! bits below are drawn anew. So whoever knows a key does not know 56 bits of the next one, where
//! the dense [`uuid_v7`](super::uuid_v7) leaves 32 unknown.
//!
//! The price is the keys of a millisecond. The counter starts at 17 unpredictable bits below a zero
//! bit, which leaves **131,072 keys a millisecond**; then the
//! [`Overflow`](crate::generator::Overflow) policy acts.
//!
//! # References
//!
//! RFC 9562 section 5.7 (layout), 6.2 (methods 1 and 2), 8 (security considerations).

use uuid::Uuid;

#[cfg(all(feature = "std", not(loom)))]
use crate::generator::{Policy, ProcessWide};
#[cfg(feature = "std")]
use crate::{clock::SystemClock, entropy::ThreadEntropy};
use crate::{
    clock::Timestamp,
    generator::{OrderedGenerator, Slot, Slotted},
    key::{RisesAsBytes, RisesInMariaDbUuid, Scheme},
    layout::Orders,
    scheme::UuidV7,
};

/// The scheme `uuid_v7_unguessable`.
#[derive(Debug)]
pub enum UuidV7Unguessable {}

impl Scheme for UuidV7Unguessable {
    type Raw = Uuid;

    const NAME: &'static str = "uuid_v7_unguessable";
    const ORDERS: Orders = UuidV7::ORDERS;
    const EXPECTED: &'static str = UuidV7::EXPECTED;

    fn check(raw: &Uuid) -> bool {
        UuidV7::check(raw)
    }

    fn coerce(raw: Uuid) -> Uuid {
        UuidV7::coerce(raw)
    }

    fn timestamp(raw: &Uuid) -> Option<Timestamp> {
        UuidV7::timestamp(raw)
    }
}

impl RisesAsBytes for UuidV7Unguessable {}
impl RisesInMariaDbUuid for UuidV7Unguessable {}

impl Slotted for UuidV7Unguessable {
    type Node = ();

    const INDEX_BITS: u32 = 17;
    /// The counter has one more, which begins as zero.
    const SEED_BITS: u32 = 17;
    const RANDOM_BITS: u32 = 56;

    #[inline]
    fn encode(slot: Slot<()>) -> Uuid {
        let high = (slot.time << 16) | 0x7000 | (slot.count >> 6);
        let counter_low = slot.count & 0x3f;
        Uuid::from_u64_pair(high, (0b10 << 62) | counter_low << 56 | slot.random)
    }
}

generator_alias! {
    /// Makes unguessable UUIDs of version 7, strictly rising over all threads that share it.
    UuidV7UnguessableGenerator<C, E> = OrderedGenerator<UuidV7Unguessable, C, E>
}

#[cfg(all(feature = "std", not(loom)))]
impl ProcessWide for UuidV7Unguessable {
    fn process_wide() -> &'static UuidV7UnguessableGenerator {
        static GENERATOR: UuidV7UnguessableGenerator =
            UuidV7UnguessableGenerator::new(SystemClock, ThreadEntropy, Policy::DEFAULT);
        &GENERATOR
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::{
        clock::ManualClock,
        entropy::SeededEntropy,
        generator::{Generator, Overflow, Rollback},
    };

    const START: u64 = 1_645_557_742_000;

    /// Time, counter, random bits.
    fn parts(raw: Uuid) -> (u64, u64, u64) {
        let (high, low) = raw.as_u64_pair();
        let counter = (high & 0xfff) << 6 | (low >> 56) & 0x3f;
        (high >> 16, counter, low & ((1 << 56) - 1))
    }

    fn scripted(policy: Policy) -> UuidV7UnguessableGenerator<ManualClock, SeededEntropy> {
        let clock = ManualClock::at_unix_millis(START);
        UuidV7UnguessableGenerator::new(clock, SeededEntropy::new(7), policy)
    }

    #[test]
    fn the_counter_rises_by_one_above_56_random_bits() {
        let generator = scripted(Policy::DEFAULT);
        let keys: Vec<Uuid> = (0..10_000)
            .map(|_| generator.try_generate().unwrap().into_raw())
            .collect();
        assert!(keys.is_sorted_by(|a, b| a < b));
        assert!(keys.iter().all(UuidV7Unguessable::check));
        let (time, first, _) = parts(keys[0]);
        assert!(time == START && first < 1 << 17);
        let mut ones = [0_u32; 56];
        for (key, count) in keys.iter().zip(0..) {
            let (_, counter, random) = parts(*key);
            assert_eq!(counter, first + count);
            for (bit, ones) in ones.iter_mut().enumerate() {
                *ones += u32::from(random >> bit & 1 == 1);
            }
        }
        // Seven standard deviations of 50 around 5,000: all 56 bits are drawn.
        assert!(
            ones.iter().all(|ones| (4_650..5_350).contains(ones)),
            "{ones:?}"
        );
    }

    #[test]
    fn a_millisecond_has_131072_keys_and_then_the_policy_acts() {
        let policy = |overflow| Policy {
            rollback: Rollback::ERROR,
            overflow,
        };
        let generator = scripted(policy(Overflow::Error));
        let mut made = 0;
        generator.try_fill_with(131_072, |_| made += 1).unwrap();
        assert_eq!(made, 131_072);
        assert!(generator.try_generate().unwrap_err().is_overflow());

        let generator = scripted(policy(Overflow::Wait));
        generator.try_fill_with(131_072, |_| ()).unwrap();
        let next = generator.try_generate().unwrap().into_raw();
        assert_eq!(parts(next).0, START + 1);
        assert_eq!(generator.events().counter_waits, 1);
    }

    #[test]
    fn one_seed_gives_the_same_keys_on_every_machine() {
        let generator = scripted(Policy::DEFAULT);
        let keys = [(); 2].map(|()| generator.try_generate().unwrap().into_raw().to_string());
        assert_eq!(
            keys,
            [
                "017f22e2-79b0-74ff-8423-d743bb286553",
                "017f22e2-79b0-74ff-8509-3e3ae3ba0bb7"
            ]
        );
    }
}
