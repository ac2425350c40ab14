//! What a key has beside its time and its count: the seed of its unit of time, its generator's identity,
//! and random bits of its own.

use super::Slotted;
use crate::{entropy::Entropy, error::Error};

/// Returns the seed of a unit of time: a PRF of it under the shared secret.
pub(in crate::generator) fn seed_of<S: Slotted>(secret: [u64; 2], time: u64) -> u64 {
    if S::SEED_BITS == 0 {
        return 0;
    }
    cut::<S>(prf(secret, time))
}

/// Returns as many bits as the scheme's seeds have.
#[inline(always)]
const fn cut<S: Slotted>(whole: u64) -> u64 {
    whole >> (64 - S::SEED_BITS)
}

/// Returns what the secret's generator is known by. No unit of time is `u64::MAX`.
pub(in crate::generator) fn identity_of<S: Slotted>(secret: [u64; 2]) -> u64 {
    if S::IDENTITY {
        prf(secret, u64::MAX)
    } else {
        0
    }
}

fn prf(secret: [u64; 2], input: u64) -> u64 {
    use core::hash::Hasher as _;
    let mut hasher = siphasher::sip::SipHasher13::new_with_keys(secret[0], secret[1]);
    // Not `write_u64`, which takes the bytes in the machine's order: a seed means the same keys on every machine.
    hasher.write(&input.to_le_bytes());
    hasher.finish()
}

#[cfg(feature = "std")]
std::thread_local! {
    /// The last seed of a thread: half of the secret, the unit of time, and all bits of the seed, since generators of
    /// several schemes that are given the same numbers for entropy, as in tests, have the same secret. Most keys are of the
    /// same millisecond as the last.
    static SEED: core::cell::Cell<(u64, u64, u64)> = const { core::cell::Cell::new((0, u64::MAX, 0)) };
    /// The last identity of a thread, with half of its secret.
    static IDENTITY: core::cell::Cell<(u64, u64)> = const { core::cell::Cell::new((0, 0)) };
}

/// As [`seed_of`] and [`identity_of`], if the thread remembers both.
///
/// The first half of a secret names it: two that agree in 64 random bits do not happen.
#[cfg(feature = "std")]
#[inline(always)]
pub(super) fn remembered<S: Slotted>(secret: [u64; 2], time: u64) -> Option<(u64, u64)> {
    let [name, _] = secret;
    let mut seed_and_identity = (0, 0);
    if S::SEED_BITS > 0 {
        let (of, last_time, seed) = SEED.get();
        if of != name || last_time != time {
            return None;
        }
        seed_and_identity.0 = cut::<S>(seed);
    }
    if S::IDENTITY {
        let (of, identity) = IDENTITY.get();
        if of != name {
            return None;
        }
        seed_and_identity.1 = identity;
    }
    Some(seed_and_identity)
}

/// Computes what is to be [`remembered`].
#[cfg(feature = "std")]
#[cold]
#[inline(never)]
pub(super) fn remember<S: Slotted>(high: u64, low: u64, time: u64) -> (u64, u64) {
    let secret = [high, low];
    let (mut seed, identity) = (0, identity_of::<S>(secret));
    if S::SEED_BITS > 0 {
        let whole = prf(secret, time);
        SEED.set((secret[0], time, whole));
        seed = cut::<S>(whole);
    }
    if S::IDENTITY {
        IDENTITY.set((secret[0], identity));
    }
    (seed, identity)
}

#[cfg(not(feature = "std"))]
pub(super) fn remembered<S: Slotted>(secret: [u64; 2], time: u64) -> Option<(u64, u64)> {
    Some(remember::<S>(secret[0], secret[1], time))
}

#[cfg(not(feature = "std"))]
pub(super) fn remember<S: Slotted>(high: u64, low: u64, time: u64) -> (u64, u64) {
    let secret = [high, low];
    (seed_of::<S>(secret, time), identity_of::<S>(secret))
}

/// Returns seed and identity of a unit of time.
#[inline]
pub(super) fn seed_and_identity_of<S: Slotted>(secret: [u64; 2], time: u64) -> (u64, u64) {
    remembered::<S>(secret, time).unwrap_or_else(|| remember::<S>(secret[0], secret[1], time))
}

/// Random words of one key.
pub(super) const fn words_a_key<S: Slotted>() -> usize {
    S::RANDOM_BITS.div_ceil(32) as usize
}

/// Cuts the random bits of a key out of its words, the first of them above.
#[inline]
pub(super) const fn random_bits_of<S: Slotted>(words: u64) -> u64 {
    let drawn = if words_a_key::<S>() == 2 { 64 } else { 32 };
    words >> (drawn - S::RANDOM_BITS)
}

/// Draws the random bits of one key, with the epoch that they are of.
#[inline]
pub(in crate::generator) fn draw_of<S: Slotted>(
    entropy: &impl Entropy,
) -> Result<(u32, u64), Error> {
    if S::RANDOM_BITS == 0 {
        return Ok((entropy.epoch(), 0));
    }
    let (epoch, words) = if words_a_key::<S>() == 1 {
        let (epoch, word) = entropy.epoch_and_u32()?;
        (epoch, u64::from(word))
    } else {
        entropy.epoch_and_u64()?
    };
    Ok((epoch, random_bits_of::<S>(words)))
}

#[cfg(all(test, feature = "std", not(loom)))]
mod tests {
    use crate::{
        clock::ManualClock,
        entropy::SeededEntropy,
        generator::{Generator, OrderedGenerator, Policy},
        key::Scheme,
        scheme::{OrderedText32, Ulid, UuidV7},
    };

    fn first<S>(number: u64) -> S::Raw
    where
        S: crate::generator::Slotted<Node: crate::generator::DefaultNode>,
    {
        let clock = ManualClock::at_unix_millis(1_645_557_742_000);
        let entropy = SeededEntropy::new(number);
        let generator = OrderedGenerator::<S, _, _>::new(clock, entropy, Policy::DEFAULT);
        generator
            .try_generate()
            .expect("the clock stands still")
            .into_raw()
    }

    /// A test of many key types may have such generators: their secret and their time are the same, and their seeds have
    /// different lengths.
    #[test]
    fn generators_of_one_secret_on_one_thread_do_not_disturb_each_other() {
        let alone = |make: fn() -> u128| std::thread::spawn(make).join().expect("it makes a key");
        let ulid = || first::<Ulid>(1).as_u128();
        let version_7 = || first::<UuidV7>(1).as_u128();
        let (ulid_alone, version_7_alone) = (alone(ulid), alone(version_7));
        let _: <OrderedText32 as Scheme>::Raw = first::<OrderedText32>(1);
        assert_eq!((ulid(), version_7()), (ulid_alone, version_7_alone));
        assert!(UuidV7::check(&first::<UuidV7>(1)));
    }
}
