//! UUID version 7, dense: 48 bits of time, a 42-bit counter, 32 fresh random bits.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------------------------------+
//! |                  unix_ts_ms (upper 32 bits)                   |
//! +-------------------------------+-------+-----------------------+
//! |  unix_ts_ms (lower 16 bits)   | ver 7 | counter (upper 12)    |
//! +---+---------------------------+-------+-----------------------+
//! |var|                   counter (lower 30)                      |
//! +---+-----------------------------------------------------------+
//! |                        32 random bits                         |
//! +---------------------------------------------------------------+
//! ```
//!
//! Bytes are in network order; keys compare as their bytes do. The counter starts each millisecond
//! at 41 unpredictable bits below a zero bit, and rises by one a key: it cannot run over inside
//! the 1,048,576 keys that the generator gives to a millisecond. An observer of one key does not
//! know 32 bits of the next.
//!
//! # References
//!
//! RFC 9562 section 5.7 (layout) and 6.2 (method 1, fixed bit-length dedicated counter).

use std::{cell::Cell, hash::Hasher};

use siphasher::sip::SipHasher13;
use uuid::{Uuid, Variant};

use crate::{
    clock::{Clock, SystemClock, Timestamp},
    entropy::{Entropy, ThreadEntropy, next_u64},
    error::Error,
    generator::{
        Events, Generator, Policy,
        engine::{self, Engine, SLOTS, Slots},
    },
    key::{Generated, KeyType, RisesAsBytes, RisesInMariaDbUuid, Scheme, StaticScheme},
    layout::{Comparison, Orders},
};

/// Lower bits of the counter, beside the variant.
const COUNTER_LOW_BITS: u32 = 30;
/// Random bits of the counter's start; the counter has one more, which begins as zero.
const SEED_BITS: u32 = 41;
/// Keys of one batch: the random words of a batch are drawn together.
const BATCH: usize = 256;

/// The scheme `uuid_v7`.
#[derive(Debug)]
pub enum UuidV7 {}

impl Scheme for UuidV7 {
    type Raw = Uuid;

    const NAME: &'static str = "uuid_v7";
    const ORDERS: Orders = Orders::BYTES.and(Comparison::MariaDbUuid);
    const EXPECTED: &'static str = "version 7 and variant RFC 9562";

    fn check(raw: &Uuid) -> bool {
        raw.get_version_num() == 7 && raw.get_variant() == Variant::RFC4122
    }

    fn timestamp(raw: &Uuid) -> Option<Timestamp> {
        Self::check(raw).then(|| {
            let (high, _) = raw.as_u64_pair();
            Timestamp::saturating_from_unix_millis(high >> 16)
        })
    }
}

impl RisesAsBytes for UuidV7 {}
impl RisesInMariaDbUuid for UuidV7 {}

/// Puts the fields into their places.
///
/// `millis` has 48 bits, `counter` 42.
#[inline]
const fn encode(millis: u64, counter: u64, random: u32) -> Uuid {
    let low = counter & ((1 << COUNTER_LOW_BITS) - 1);
    let high = (millis << 16) | 0x7000 | (counter >> COUNTER_LOW_BITS);
    let rest = (0b10 << 62) | (low << 32) | random as u64;
    Uuid::from_u64_pair(high, rest)
}

impl Generated<UuidV7> {
    /// Encodes given fields: `millis` since 1970 (48 bits), the 12 bits of `rand_a` and the 62 of
    /// `rand_b` as RFC 9562 names them. Higher bits are not looked at.
    ///
    /// # Example: the RFC's own vector
    ///
    /// ```
    /// use ordid_core::{clock::Timestamp, key::Generated, scheme::UuidV7};
    ///
    /// let time = Timestamp::from_unix_millis(0x017f_22e2_79b0)?;
    /// let key = Generated::<UuidV7>::from_parts(time, 0xcc3, 0x18c4_dc0c_0c07_398f).into_raw();
    /// assert_eq!(key.to_string(), "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
    /// # Ok::<(), ordid_core::Error>(())
    /// ```
    pub const fn from_parts(timestamp: Timestamp, rand_a: u16, rand_b: u64) -> Self {
        let high = (timestamp.as_unix_millis() << 16) | 0x7000 | (rand_a as u64 & 0xfff);
        Self::new(Uuid::from_u64_pair(
            high,
            (0b10 << 62) | (rand_b & !(0b11 << 62)),
        ))
    }
}

/// Returns the counter's start in this millisecond: 41 bits of a PRF under the shared secret.
fn seed_of(secret: [u64; 2], millis: u64) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(secret[0], secret[1]);
    hasher.write_u64(millis);
    hasher.finish() >> (64 - SEED_BITS)
}

/// As [`seed_of`], remembered per thread: most keys are of the same millisecond as the last.
#[inline]
fn remembered_seed_of(secret: [u64; 2], millis: u64) -> u64 {
    thread_local! {
        static LAST: Cell<(u64, u64, u64)> = const { Cell::new((0, u64::MAX, 0)) };
    }
    // The first half of a secret names it: two that agree in 64 random bits do not happen.
    let (name, last_millis, seed) = LAST.get();
    if name == secret[0] && last_millis == millis {
        return seed;
    }
    let seed = seed_of(secret, millis);
    LAST.set((secret[0], millis, seed));
    seed
}

/// Makes UUIDs of version 7, strictly rising over all threads that share it.
///
/// The process-wide one stands behind [`KeyType::generate`]; make your own for a policy, a clock or
/// an entropy source of your own.
///
/// # Example: a clock that steps back
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// use std::time::Duration;
/// use ordid_core::{
///     clock::ManualClock, entropy::SeededEntropy,
///     generator::{Generator, Overflow, Policy, Rollback},
///     scheme::uuid_v7::UuidV7Generator,
/// };
///
/// let policy = Policy {
///     rollback: Rollback::HoldThenError { max: Duration::from_secs(1) },
///     overflow: Overflow::Wait,
/// };
/// let clock = ManualClock::at_unix_millis(1_645_557_742_000);
/// let keys = UuidV7Generator::new(&clock, SeededEntropy::new(1), policy);
/// let first = keys.try_generate()?.into_raw();
/// clock.set_unix_millis(1_645_557_741_000);
/// assert!(keys.try_generate()?.into_raw() > first); // one second: held
/// clock.set_unix_millis(1_645_557_740_999);
/// assert!(keys.try_generate().unwrap_err().is_clock()); // more: refused
/// # }
/// # Ok::<(), ordid_core::Error>(())
/// ```
#[derive(Debug)]
pub struct UuidV7Generator<C = SystemClock, E = ThreadEntropy> {
    engine: Engine,
    clock: C,
    entropy: E,
    policy: Policy,
}

impl<C: Clock, E: Entropy> UuidV7Generator<C, E> {
    /// Makes a generator of its own order.
    pub const fn new(clock: C, entropy: E, policy: Policy) -> Self {
        Self {
            engine: Engine::new(),
            clock,
            entropy,
            policy,
        }
    }

    #[inline]
    fn claim(&self, count: u64) -> Result<Slots, Error> {
        self.engine
            .reserve(count, &self.clock, &self.entropy, self.policy)
    }

    /// Claims slots although the policy's patience is at an end: by following the clock, as
    /// [`Rollback::HoldThenFollow`](crate::generator::Rollback) does.
    ///
    /// # Panics
    ///
    /// If the operating system has no entropy.
    fn claim_or_follow(&self, count: u64) -> Slots {
        loop {
            let error = match self.claim(count) {
                Ok(slots) => return slots,
                Err(error) if error.is_entropy() => error,
                Err(_) => match self.engine.follow(&self.clock, &self.entropy) {
                    Ok(()) => continue,
                    Err(error) => error,
                },
            };
            panic!("cannot make a key: {error}");
        }
    }

    #[inline]
    fn key(&self, slots: Slots) -> Result<Generated<UuidV7>, Error> {
        let (millis, index) = engine::split(slots.first);
        let counter = remembered_seed_of(slots.secret, millis) + index;
        Ok(Generated::new(encode(
            millis,
            counter,
            self.entropy.next_u32()?,
        )))
    }

    /// Makes the keys of `slots.first..slots.first + count`.
    fn keys(
        &self,
        slots: Slots,
        count: usize,
        put: &mut impl FnMut(Generated<UuidV7>),
    ) -> Result<(), Error> {
        let mut words = [0; BATCH];
        let mut slot = slots.first;
        let mut left = count;
        while left > 0 {
            let (millis, index) = engine::split(slot);
            let until_next = usize::try_from(SLOTS - index).unwrap_or(usize::MAX);
            let batch = left.min(BATCH).min(until_next);
            self.entropy.fill(&mut words[..batch])?;
            let first = remembered_seed_of(slots.secret, millis) + index;
            for (counter, &word) in (first..).zip(&words[..batch]) {
                put(Generated::new(encode(millis, counter, word)));
            }
            slot += batch as u64;
            left -= batch;
        }
        Ok(())
    }
}

impl<C: Clock, E: Entropy> Generator for UuidV7Generator<C, E> {
    type Scheme = UuidV7;
    type Reserved<'g>
        = Reserved<'g, C, E>
    where
        Self: 'g;

    #[inline]
    fn try_generate(&self) -> Result<Generated<UuidV7>, Error> {
        self.key(self.claim(1)?)
    }

    fn generate_at(&self, timestamp: Timestamp) -> Result<Generated<UuidV7>, Error> {
        let seed = next_u64(&self.entropy)? >> (64 - SEED_BITS);
        let random = self.entropy.next_u32()?;
        Ok(Generated::new(encode(
            timestamp.as_unix_millis(),
            seed,
            random,
        )))
    }

    fn try_fill_with(
        &self,
        count: usize,
        mut put: impl FnMut(Generated<UuidV7>),
    ) -> Result<(), Error> {
        // Claimed piece by piece, so that the keys of a long fill keep to the clock.
        let mut left = count;
        while left > 0 {
            let piece = left.min(PIECE);
            self.keys(self.claim(piece as u64)?, piece, &mut put)?;
            left -= piece;
        }
        Ok(())
    }

    fn reserve(&self, count: usize) -> Result<Reserved<'_, C, E>, Error> {
        if count == 0 {
            return Ok(Reserved {
                generator: self,
                slots: None,
                left: 0,
            });
        }
        Ok(Reserved {
            generator: self,
            slots: Some(self.claim(count as u64)?),
            left: count,
        })
    }

    fn events(&self) -> Events {
        self.engine.events()
    }
}

/// Keys that [`Generator::try_fill_with`] claims at a time.
const PIECE: usize = 65_536;

/// Keys that were claimed together, given out one by one. Those not asked for are never used.
#[derive(Debug)]
pub struct Reserved<'g, C, E> {
    generator: &'g UuidV7Generator<C, E>,
    slots: Option<Slots>,
    left: usize,
}

impl<C: Clock, E: Entropy> Iterator for Reserved<'_, C, E> {
    type Item = Result<Generated<UuidV7>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut slots = self.slots?;
        if self.left == 0 {
            return None;
        }
        if slots.epoch != self.generator.entropy.epoch() {
            // A fork: these slots are the parent's. The child claims the rest anew.
            match self.generator.claim(self.left as u64) {
                Ok(claimed) => slots = claimed,
                Err(error) => return Some(Err(error)),
            }
        }
        let key = self.generator.key(slots);
        if key.is_ok() {
            slots.first += 1;
            self.left -= 1;
        }
        self.slots = Some(slots);
        Some(key)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<C: Clock, E: Entropy> ExactSizeIterator for Reserved<'_, C, E> {}

/// The generator behind [`KeyType::generate`] of every `uuid_v7` key type: the system's clock, the
/// default policy, one strict order over all threads of the process.
pub fn process_wide() -> &'static UuidV7Generator {
    static GENERATOR: UuidV7Generator =
        UuidV7Generator::new(SystemClock, ThreadEntropy, Policy::DEFAULT);
    &GENERATOR
}

/// As [`Reserved`], for the process-wide generator, whose policy cannot fail.
#[derive(Debug)]
pub struct ProcessReserved(Reserved<'static, SystemClock, ThreadEntropy>);

impl Iterator for ProcessReserved {
    type Item = Generated<UuidV7>;

    /// # Panics
    ///
    /// If the operating system has no entropy after a fork.
    fn next(&mut self) -> Option<Generated<UuidV7>> {
        loop {
            match self.0.next()? {
                Ok(key) => return Some(key),
                Err(error) if error.is_entropy() => panic!("cannot make a key: {error}"),
                // Only a fork claims anew; what the policy then refuses, following the clock gives.
                Err(_) => {
                    self.0.slots = Some(self.0.generator.claim_or_follow(self.0.left as u64));
                }
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for ProcessReserved {}

impl StaticScheme for UuidV7 {
    type Reserved = ProcessReserved;

    #[inline]
    fn generate() -> Generated<Self> {
        let generator = process_wide();
        match generator.try_generate() {
            Ok(key) => key,
            Err(_) => generate_or_follow(generator),
        }
    }

    fn generate_at(timestamp: Timestamp) -> Result<Generated<Self>, Error> {
        process_wide().generate_at(timestamp)
    }

    fn fill_with(count: usize, mut put: impl FnMut(Generated<Self>)) {
        let generator = process_wide();
        let mut left = count;
        while left > 0 {
            let piece = left.min(PIECE);
            let slots = match generator.claim(piece as u64) {
                Ok(slots) => slots,
                Err(_) => generator.claim_or_follow(piece as u64),
            };
            if let Err(error) = generator.keys(slots, piece, &mut put) {
                panic!("cannot make a key: {error}");
            }
            left -= piece;
        }
    }

    fn reserve(count: usize) -> Result<ProcessReserved, Error> {
        process_wide().reserve(count).map(ProcessReserved)
    }
}

#[cold]
fn generate_or_follow(generator: &UuidV7Generator) -> Generated<UuidV7> {
    match generator.key(generator.claim_or_follow(1)) {
        Ok(key) => key,
        Err(error) => panic!("cannot make a key: {error}"),
    }
}

/// `Uuid` itself is a key type: it makes version 7, and holds any version.
impl KeyType for Uuid {
    type Raw = Uuid;
    type Scheme = UuidV7;

    const NAME: &'static str = "Uuid";
    const PREFIX: Option<&'static str> = None;

    #[inline]
    fn from_generated(generated: Generated<UuidV7>) -> Self {
        generated.into_raw()
    }

    #[inline]
    fn to_raw(self) -> Uuid {
        self
    }

    fn from_raw(raw: Uuid) -> Result<Self, Error> {
        Ok(raw)
    }
}

#[cfg(test)]
mod tests;
