//! The generator of every scheme whose keys are a time, a count and random bits.

use core::fmt;

use super::{
    Events, Generator, Lease, Policy,
    engine::{Cut, Engine, Slots},
    sync::const_unless_loom,
};
#[cfg(feature = "std")]
use crate::{clock::SystemClock, entropy::ThreadEntropy};
use crate::{
    clock::{Clock, Timestamp},
    entropy::Entropy,
    error::{Error, ErrorKind},
    key::{Generated, Scheme},
};

/// Keys of one batch: the random words of a batch are drawn together.
const BATCH: usize = 256;
/// Keys that [`Generator::try_fill_with`] claims at a time.
pub(crate) const PIECE: usize = 65_536;

/// A scheme whose keys are the slots of one count, in order: what [`OrderedGenerator`] makes.
///
/// A slot is a millisecond and an index in it; where [`FRACTION_BITS`](Self::FRACTION_BITS) is not
/// zero, the upper bits of the index are a fraction of the millisecond. The scheme puts the slot
/// into a key, with random bits below.
pub trait Slotted: Scheme {
    /// Bits of the index: two to the power of them are the keys of one millisecond. 16 to 20.
    const INDEX_BITS: u32;
    /// The upper bits of the index that are a fraction of the millisecond.
    const FRACTION_BITS: u32 = 0;
    /// Random bits of a millisecond's first count, the same for all keys of the millisecond;
    /// at most 63.
    const SEED_BITS: u32;
    /// Fresh random bits of each key; at most 64.
    const RANDOM_BITS: u32;

    /// Puts the fields into their places.
    ///
    /// `millis` since 1970 has 48 bits. `count` is the millisecond's seed plus the slot's index.
    /// `random` has [`RANDOM_BITS`](Self::RANDOM_BITS).
    fn encode(millis: u64, count: u64, random: u64) -> Self::Raw;
}

pub(super) const fn cut_of<S: Slotted>() -> Cut {
    const { assert!(S::INDEX_BITS >= 16 && S::INDEX_BITS <= 20 && S::FRACTION_BITS < S::INDEX_BITS) };
    const { assert!(S::SEED_BITS < 64 && S::RANDOM_BITS <= 64) };
    Cut {
        index_bits: S::INDEX_BITS,
        fraction_bits: S::FRACTION_BITS,
    }
}

/// Returns the seed of a millisecond: a PRF of it under the shared secret.
pub(super) fn seed_of<S: Slotted>(secret: [u64; 2], millis: u64) -> u64 {
    use core::hash::Hasher as _;
    if S::SEED_BITS == 0 {
        return 0;
    }
    let mut hasher = siphasher::sip::SipHasher13::new_with_keys(secret[0], secret[1]);
    hasher.write_u64(millis);
    hasher.finish() >> (64 - S::SEED_BITS)
}

/// As [`seed_of`], remembered per thread: most keys are of the same millisecond as the last.
#[cfg(feature = "std")]
#[inline]
fn remembered_seed_of<S: Slotted>(secret: [u64; 2], millis: u64) -> u64 {
    use std::cell::Cell;
    thread_local! {
        static LAST: Cell<(u64, u64, u64)> = const { Cell::new((0, u64::MAX, 0)) };
    }
    #[cold]
    #[inline(never)]
    fn remember<S: Slotted>(high: u64, low: u64, millis: u64) -> u64 {
        let seed = seed_of::<S>([high, low], millis);
        LAST.set((high, millis, seed));
        seed
    }
    if S::SEED_BITS == 0 {
        return 0;
    }
    // The first half of a secret names it, and with it the generator and its scheme: two that
    // agree in 64 random bits do not happen.
    let (name, last_millis, seed) = LAST.get();
    if name == secret[0] && last_millis == millis {
        return seed;
    }
    remember::<S>(secret[0], secret[1], millis)
}

#[cfg(not(feature = "std"))]
fn remembered_seed_of<S: Slotted>(secret: [u64; 2], millis: u64) -> u64 {
    seed_of::<S>(secret, millis)
}

/// Random words of one key.
const fn words_a_key<S: Slotted>() -> usize {
    if S::RANDOM_BITS <= 32 { 1 } else { 2 }
}

/// Cuts the random bits of a key out of its words, the first of them above.
#[inline]
const fn cut_random<S: Slotted>(words: u64) -> u64 {
    let drawn = if words_a_key::<S>() == 1 { 32 } else { 64 };
    words >> (drawn - S::RANDOM_BITS)
}

/// Draws the random bits of one key, with the epoch that they are of.
#[inline]
pub(super) fn draw_of<S: Slotted>(entropy: &impl Entropy) -> Result<(u32, u64), Error> {
    let (epoch, words) = if words_a_key::<S>() == 1 {
        let (epoch, word) = entropy.epoch_and_u32()?;
        (epoch, u64::from(word))
    } else {
        entropy.epoch_and_u64()?
    };
    Ok((epoch, cut_random::<S>(words)))
}

/// The one way a key type's infallible functions end without a key.
#[cfg(feature = "std")]
#[cold]
pub(super) fn no_key(error: &Error) -> ! {
    panic!("cannot make a key: {error}")
}

/// Makes keys of a scheme, strictly rising over all threads that share it.
///
/// It takes no lock: a key is one compare-and-swap of a shared number. Where threads need not
/// share one order, [`lease`](Self::lease) gives each a block of the count, and
/// [`into_local`](Self::into_local) makes it the generator of one thread.
#[derive(Debug)]
pub struct OrderedGenerator<S, C, E> {
    engine: Engine,
    clock: C,
    entropy: E,
    policy: Policy,
    scheme: core::marker::PhantomData<fn() -> S>,
}

impl<S: Slotted, C: Clock, E: Entropy> OrderedGenerator<S, C, E> {
    const_unless_loom! {
        /// Makes a generator of its own order.
        pub fn new(clock: C, entropy: E, policy: Policy) -> Self {
            Self {
                engine: Engine::new(),
                clock,
                entropy,
                policy,
                scheme: core::marker::PhantomData,
            }
        }
    }

    /// Goes on above a key of an earlier run, whatever the clock reads.
    ///
    /// # Errors
    ///
    /// If the key has no time, or if its time is further ahead of the clock than the policy holds:
    /// keys would not rise above it, so the caller has to decide. The error
    /// [`is_clock`](Error::is_clock).
    ///
    /// # Example: after a restart
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// use ordid_core::{
    ///     clock::ManualClock, entropy::SeededEntropy,
    ///     generator::{Generator, Policy}, scheme::uuid_v7::UuidV7Generator,
    /// };
    ///
    /// let before = UuidV7Generator::new(
    ///     ManualClock::at_unix_millis(1_645_557_742_000), SeededEntropy::new(1), Policy::DEFAULT);
    /// let newest = before.try_generate()?.into_raw(); // SELECT max(id)
    ///
    /// // The clock is three seconds behind.
    /// let after = UuidV7Generator::new(
    ///     ManualClock::at_unix_millis(1_645_557_739_000), SeededEntropy::new(2), Policy::DEFAULT);
    /// after.start_above(&newest)?;
    /// assert!(after.try_generate()?.into_raw() > newest);
    /// # }
    /// # Ok::<(), ordid_core::Error>(())
    /// ```
    pub fn start_above(&self, newest: &S::Raw) -> Result<(), Error> {
        match S::timestamp(newest) {
            Some(timestamp) => self.start_after(timestamp),
            None => Err(Error::parse(alloc::format!(
                "cannot start above {newest:?}: it has no time; scheme {} expects {}",
                S::NAME,
                S::EXPECTED
            ))),
        }
    }

    /// As [`start_above`](Self::start_above), above all keys of a millisecond.
    ///
    /// # Errors
    ///
    /// As [`start_above`](Self::start_above).
    pub fn start_after(&self, newest: Timestamp) -> Result<(), Error> {
        let now = self.clock.now().as_unix_millis();
        let behind_millis = newest.as_unix_millis().saturating_sub(now);
        let max_millis = self.policy.most_millis();
        // One less, because the first key is in the millisecond after.
        if behind_millis > 0 && behind_millis >= max_millis {
            return Err(Error::new(ErrorKind::Rollback {
                behind_millis,
                max_millis,
            }));
        }
        if newest.as_unix_millis() >= cut_of::<S>().max_millis() {
            return Err(Error::new(ErrorKind::TimestampRange {
                millis: newest.as_unix_millis(),
                max_millis: cut_of::<S>().max_millis(),
            }));
        }
        self.engine
            .start_above(cut_of::<S>(), newest.as_unix_millis());
        Ok(())
    }

    /// Makes a lease: keys in blocks of the shared count, for one thread at a time. They are unique
    /// over all threads and rise strictly on this one; those of different leases are in the order
    /// of time only as far as the clock tells them apart.
    pub fn lease(&self) -> Lease<&Self> {
        Lease::new(self)
    }

    /// Makes it the generator of one thread at a time, which needs no atomic operation for most of
    /// its keys.
    ///
    /// # Example: one a thread
    ///
    /// ```
    /// use ordid_core::{
    ///     clock::CoarseClock, entropy::ThreadEntropy, generator::{Generator, Policy},
    ///     scheme::uuid_v7::{UuidV7Generator, UuidV7LocalGenerator},
    /// };
    ///
    /// thread_local! {
    ///     static KEYS: UuidV7LocalGenerator<CoarseClock> = const {
    ///         UuidV7Generator::new(CoarseClock, ThreadEntropy, Policy::DEFAULT).into_local()
    ///     };
    /// }
    /// let [first, second] =
    ///     [(); 2].map(|()| KEYS.with(|keys| keys.try_generate()).unwrap().into_raw());
    /// assert!(first < second);
    /// ```
    pub const fn into_local(self) -> Lease<Self> {
        Lease::new(self)
    }

    pub(crate) fn clock(&self) -> &C {
        &self.clock
    }

    pub(crate) fn entropy(&self) -> &E {
        &self.entropy
    }

    pub(super) fn policy(&self) -> Policy {
        self.policy
    }

    #[inline]
    pub(crate) fn claim(&self, count: u64) -> Result<Slots, Error> {
        self.claim_in(count, self.entropy.epoch())
    }

    #[inline]
    pub(super) fn claim_in(&self, count: u64, epoch: u32) -> Result<Slots, Error> {
        self.engine.reserve(
            cut_of::<S>(),
            count,
            epoch,
            &self.clock,
            &self.entropy,
            &self.policy,
        )
    }

    /// Claims slots although the policy's patience is at an end: by following the clock, as
    /// [`Rollback::HoldThenFollow`](crate::generator::Rollback) does.
    ///
    /// # Panics
    ///
    /// If the operating system has no entropy.
    #[cfg(feature = "std")]
    pub(crate) fn claim_or_follow(&self, count: u64) -> Slots {
        loop {
            let error = match self.claim(count) {
                Ok(slots) => return slots,
                Err(error) if error.is_entropy() => error,
                Err(_) => match self
                    .engine
                    .follow(cut_of::<S>(), &self.clock, &self.entropy)
                {
                    Ok(()) => continue,
                    Err(error) => error,
                },
            };
            no_key(&error);
        }
    }

    /// Makes the key of a slot.
    #[inline]
    fn key(slots: Slots, random: u64) -> Generated<S> {
        let (millis, index) = cut_of::<S>().split(slots.first);
        let count = remembered_seed_of::<S>(slots.secret, millis) + index;
        Generated::new(S::encode(millis, count, random))
    }

    /// Claims the slot of a key where something stands in the way, with the random bits for it.
    ///
    /// Returns what a key is made of, not the key: so there is one place that makes the key, in
    /// registers, and writes it where the caller wants it.
    #[cold]
    #[inline(never)]
    fn claim_slowly(&self, random: u64) -> Result<(Slots, u64), Error> {
        let epoch = self.entropy.epoch();
        let slots = self.claim_in(1, epoch)?;
        if slots.epoch != epoch {
            // The random bits are of the process before.
            return Ok((slots, draw_of::<S>(&self.entropy)?.1));
        }
        Ok((slots, random))
    }

    /// Makes the key of a slot that was claimed before its random bits are drawn.
    pub(crate) fn key_of(&self, slots: Slots) -> Result<Generated<S>, Error> {
        let random = draw_of::<S>(&self.entropy)?.1;
        Ok(Self::key(slots, random))
    }

    /// Makes the keys of `slots.first..slots.first + count`.
    pub(crate) fn keys(
        &self,
        slots: Slots,
        count: usize,
        put: &mut impl FnMut(Generated<S>),
    ) -> Result<(), Error> {
        let cut = cut_of::<S>();
        let mut words = [0; BATCH];
        let words_a_key = words_a_key::<S>();
        let mut slot = slots.first;
        let mut left = count;
        while left > 0 {
            let (millis, index) = cut.split(slot);
            let until_next = usize::try_from(cut.slots() - index).unwrap_or(usize::MAX);
            let batch = left.min(BATCH / words_a_key).min(until_next);
            let words = &mut words[..batch * words_a_key];
            self.entropy.fill(words)?;
            let first = remembered_seed_of::<S>(slots.secret, millis) + index;
            for (count, words) in (first..).zip(words.chunks_exact(words_a_key)) {
                let words = words
                    .iter()
                    .fold(0, |above, &word| above << 32 | u64::from(word));
                put(Generated::new(S::encode(
                    millis,
                    count,
                    cut_random::<S>(words),
                )));
            }
            slot += batch as u64;
            left -= batch;
        }
        Ok(())
    }
}

impl<S: Slotted, C: Clock, E: Entropy> Generator for OrderedGenerator<S, C, E> {
    type Scheme = S;
    type Reserved<'g>
        = Reserved<'g, S, C, E>
    where
        Self: 'g;

    #[inline]
    fn try_generate(&self) -> Result<Generated<S>, Error> {
        let cut = cut_of::<S>();
        let look = self.engine.look(cut, &self.clock);
        // One look at the thread's state gives random bits and the epoch.
        let (epoch, random) = draw_of::<S>(&self.entropy)?;
        let at_once = self
            .engine
            .reserve_at_once(cut, look, 1, epoch, &self.policy);
        let (slots, random) = match at_once {
            Some(slots) => (slots, random),
            None => self.claim_slowly(random)?,
        };
        Ok(Self::key(slots, random))
    }

    fn generate_at(&self, timestamp: Timestamp) -> Result<Generated<S>, Error> {
        let count = if S::SEED_BITS == 0 {
            0
        } else {
            self.entropy.next_u64()? >> (64 - S::SEED_BITS)
        };
        let random = draw_of::<S>(&self.entropy)?.1;
        Ok(Generated::new(S::encode(
            timestamp.as_unix_millis(),
            count,
            random,
        )))
    }

    fn try_fill_with(&self, count: usize, mut put: impl FnMut(Generated<S>)) -> Result<(), Error> {
        // Claimed piece by piece, so that the keys of a long fill keep to the clock.
        let mut left = count;
        while left > 0 {
            let piece = left.min(PIECE);
            self.keys(self.claim(piece as u64)?, piece, &mut put)?;
            left -= piece;
        }
        Ok(())
    }

    fn reserve(&self, count: usize) -> Result<Reserved<'_, S, C, E>, Error> {
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

/// Keys that were claimed together, given out one by one. Those not asked for are never used.
pub struct Reserved<'g, S, C, E> {
    generator: &'g OrderedGenerator<S, C, E>,
    slots: Option<Slots>,
    left: usize,
}

#[cfg(feature = "std")]
impl<S: Slotted> Reserved<'static, S, SystemClock, ThreadEntropy> {
    /// Claims the rest anew although the policy's patience is at an end.
    pub(crate) fn claim_or_follow(&mut self) {
        self.slots = Some(self.generator.claim_or_follow(self.left as u64));
    }
}

impl<S: Slotted, C: Clock, E: Entropy> Iterator for Reserved<'_, S, C, E> {
    type Item = Result<Generated<S>, Error>;

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
        let key = self.generator.key_of(slots);
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

impl<S: Slotted, C: Clock, E: Entropy> ExactSizeIterator for Reserved<'_, S, C, E> {}

/// Without the secret behind the count.
impl<S, C, E> fmt::Debug for Reserved<'_, S, C, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserved")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}
