//! The generator of every scheme whose keys are a time, a count and random bits.

use core::fmt;

use super::{
    Events, Generator, Lease, Policy, Rollback,
    engine::{Cut, Engine, Look, Needs, Refusal, Slots},
    sync::const_unless_loom,
};
#[cfg(feature = "std")]
use crate::{clock::SystemClock, entropy::ThreadEntropy};
use crate::{
    clock::{Clock, TimeScale, Timestamp},
    entropy::{Entropy, process},
    error::{Error, ErrorKind},
    key::{Generated, Scheme},
};

/// Keys of one batch: the random words of a batch are drawn together.
const BATCH: usize = 256;
/// Keys that [`Generator::try_fill_with`] claims at a time.
pub(crate) const PIECE: usize = 65_536;

/// A scheme whose keys are the slots of one count, in order: what [`OrderedGenerator`] makes.
///
/// A slot is a time and an index in it; where [`FRACTION_BITS`](Self::FRACTION_BITS) is not zero,
/// the upper bits of the index are ticks of the clock too. The scheme puts the slot into a key,
/// with random bits below.
pub trait Slotted: Scheme {
    /// What tells this generator's keys from another's where random bits do not: a worker's number,
    /// a shard. `()` for schemes that need none.
    type Node: Copy + fmt::Debug + Send + Sync + 'static;

    /// From when, and in which ticks, the layout counts time.
    const SCALE: TimeScale = TimeScale::UNIX_MILLIS;
    /// Bits of these ticks in the layout.
    const TICK_BITS: u32 = 48;
    /// Bits of the index: two to the power of them are the keys of one unit of time. At most 24.
    const INDEX_BITS: u32;
    /// The upper bits of the index that are ticks: the unit of time is two to the power of them.
    const FRACTION_BITS: u32 = 0;
    /// Random bits of the count's start in each unit of time, the same for all keys of the unit; at
    /// most 63.
    const SEED_BITS: u32;
    /// Fresh random bits of each key; at most 64.
    const RANDOM_BITS: u32;
    /// Whether keys carry the generator's [`identity`](Slot::identity).
    const IDENTITY: bool = false;
    /// Whether a new secret makes other keys, by seed, identity or random bits. A scheme whose keys
    /// are told apart by time, count and node alone says `false`: its generators never follow a
    /// clock back, since they would repeat, and refuse to work in the child of a fork.
    const RENEWS: bool = true;

    /// Whether what is drawn for a key tells it from all others of the same time, where the count
    /// does not: what [`generate_at`](Generator::generate_at) needs.
    fn is_drawn(node: Self::Node) -> bool {
        let _ = node;
        Self::RENEWS
    }

    /// Puts the fields of a slot into their places.
    fn encode(slot: Slot<Self::Node>) -> Self::Raw;
}

/// A node that a generator can have without being given one.
pub trait DefaultNode {
    /// The node.
    const DEFAULT: Self;
}

/// For schemes that need none.
impl DefaultNode for () {
    const DEFAULT: Self = ();
}

/// The fields of a key that a generator makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Slot<N> {
    /// Units of time: ticks of [`Slotted::SCALE`], or two to the power of
    /// [`Slotted::FRACTION_BITS`] of them.
    pub time: u64,
    /// The seed of the unit of time, plus the slot's index.
    pub count: u64,
    /// 64 random bits that the generator keeps until a fork, or until it follows a clock back. Zero
    /// unless [`Slotted::IDENTITY`].
    pub identity: u64,
    /// [`Slotted::RANDOM_BITS`] fresh random bits.
    pub random: u64,
    /// The generator's node.
    pub node: N,
}

/// A constant in memory, so that the slow ways can be told where it is: a copy for them would be
/// written by every key.
pub(super) const fn cut_of<S: Slotted>() -> &'static Cut {
    const { assert!(S::INDEX_BITS <= 24 && S::FRACTION_BITS <= S::INDEX_BITS) };
    const { assert!(S::FRACTION_BITS < S::TICK_BITS && S::TICK_BITS < 64) };
    const { assert!(S::SEED_BITS < 64 && S::RANDOM_BITS <= 64) };
    const {
        &Cut {
            scale: S::SCALE,
            tick_bits: S::TICK_BITS,
            index_bits: S::INDEX_BITS,
            fraction_bits: S::FRACTION_BITS,
        }
    }
}

/// What keys depend on beside their slots.
const fn needs_of<S: Slotted>() -> Needs {
    if S::SEED_BITS > 0 || S::IDENTITY {
        Needs::Secret
    } else if S::RENEWS {
        Needs::Version
    } else {
        Needs::Nothing
    }
}

/// Returns the seed of a unit of time: a PRF of it under the shared secret.
pub(super) fn seed_of<S: Slotted>(secret: [u64; 2], time: u64) -> u64 {
    if S::SEED_BITS == 0 {
        return 0;
    }
    prf(secret, time) >> (64 - S::SEED_BITS)
}

/// Returns what the secret's generator is known by. No unit of time is `u64::MAX`.
pub(super) fn identity_of<S: Slotted>(secret: [u64; 2]) -> u64 {
    if S::IDENTITY {
        prf(secret, u64::MAX)
    } else {
        0
    }
}

fn prf(secret: [u64; 2], input: u64) -> u64 {
    use core::hash::Hasher as _;
    let mut hasher = siphasher::sip::SipHasher13::new_with_keys(secret[0], secret[1]);
    hasher.write_u64(input);
    hasher.finish()
}

#[cfg(feature = "std")]
std::thread_local! {
    /// The last seed of a thread: half of the secret, the unit of time, the seed. Most keys are of
    /// the same millisecond as the last.
    static SEED: core::cell::Cell<(u64, u64, u64)> = const { core::cell::Cell::new((0, u64::MAX, 0)) };
    /// The last identity of a thread, with half of its secret.
    static IDENTITY: core::cell::Cell<(u64, u64)> = const { core::cell::Cell::new((0, 0)) };
}

/// As [`seed_of`] and [`identity_of`], if the thread remembers both.
///
/// The first half of a secret names it, and with it the generator and its scheme: two that agree in
/// 64 random bits do not happen.
#[cfg(feature = "std")]
#[inline(always)]
fn remembered<S: Slotted>(secret: [u64; 2], time: u64) -> Option<(u64, u64)> {
    let [name, _] = secret;
    let mut seed_and_identity = (0, 0);
    if S::SEED_BITS > 0 {
        let (of, last_time, seed) = SEED.get();
        if of != name || last_time != time {
            return None;
        }
        seed_and_identity.0 = seed;
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
fn remember<S: Slotted>(high: u64, low: u64, time: u64) -> (u64, u64) {
    let secret = [high, low];
    let (seed, identity) = (seed_of::<S>(secret, time), identity_of::<S>(secret));
    if S::SEED_BITS > 0 {
        SEED.set((secret[0], time, seed));
    }
    if S::IDENTITY {
        IDENTITY.set((secret[0], identity));
    }
    (seed, identity)
}

#[cfg(not(feature = "std"))]
fn remembered<S: Slotted>(secret: [u64; 2], time: u64) -> Option<(u64, u64)> {
    Some(remember::<S>(secret[0], secret[1], time))
}

#[cfg(not(feature = "std"))]
fn remember<S: Slotted>(high: u64, low: u64, time: u64) -> (u64, u64) {
    let secret = [high, low];
    (seed_of::<S>(secret, time), identity_of::<S>(secret))
}

/// Returns seed and identity of a unit of time.
#[inline]
fn seed_and_identity_of<S: Slotted>(secret: [u64; 2], time: u64) -> (u64, u64) {
    remembered::<S>(secret, time).unwrap_or_else(|| remember::<S>(secret[0], secret[1], time))
}

/// Random words of one key.
const fn words_a_key<S: Slotted>() -> usize {
    S::RANDOM_BITS.div_ceil(32) as usize
}

/// Cuts the random bits of a key out of its words, the first of them above.
#[inline]
const fn cut_random<S: Slotted>(words: u64) -> u64 {
    let drawn = if words_a_key::<S>() == 2 { 64 } else { 32 };
    words >> (drawn - S::RANDOM_BITS)
}

/// Draws the random bits of one key, with the epoch that they are of.
#[inline]
pub(super) fn draw_of<S: Slotted>(entropy: &impl Entropy) -> Result<(u32, u64), Error> {
    if S::RANDOM_BITS == 0 {
        return Ok((entropy.epoch(), 0));
    }
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
pub(crate) fn no_key(error: &Error) -> ! {
    panic!("cannot make a key: {error}")
}

/// Makes the key of a slot with a node that may not be its generator's.
#[inline(always)]
pub(super) fn key_with<S: Slotted>(
    node: S::Node,
    slot: u64,
    (seed, identity): (u64, u64),
    random: u64,
) -> Generated<S> {
    let (time, index) = cut_of::<S>().split(slot);
    Generated::new(S::encode(Slot {
        time,
        count: seed + index,
        identity,
        random,
        node,
    }))
}

/// Makes keys of a scheme, strictly rising over all threads that share it.
///
/// It takes no lock: a key is one compare-and-swap of a shared number. Where threads need not
/// share one order, [`lease`](Self::lease) gives each a block of the count, and
/// [`into_local`](Self::into_local) makes it the generator of one thread.
#[derive(Debug)]
pub struct OrderedGenerator<S: Slotted, C, E> {
    engine: Engine,
    clock: C,
    entropy: E,
    policy: Policy,
    node: S::Node,
    /// The process that the node is of; 0 for schemes that may be used in any.
    process: u32,
}

impl<S: Slotted<Node: DefaultNode>, C: Clock, E: Entropy> OrderedGenerator<S, C, E> {
    const_unless_loom! {
        /// Makes a generator of its own order.
        pub fn new(clock: C, entropy: E, policy: Policy) -> Self {
            const { assert!(S::RENEWS, "a node that tells keys apart has no default") };
            Self {
                engine: Engine::new(),
                clock,
                entropy,
                policy,
                node: DefaultNode::DEFAULT,
                process: 0,
            }
        }
    }
}

impl<S: Slotted, C: Clock, E: Entropy> OrderedGenerator<S, C, E> {
    /// Makes a generator with a node of its own: no other generator may have the same at the same
    /// time.
    ///
    /// Where keys are told apart by the node alone (its scheme's documentation says so), a clock is
    /// never followed back: [`Rollback::HoldThenFollow`] is taken for
    /// [`Rollback::HoldThenError`]. And the child of a fork gets errors that
    /// [`is_forked`](Error::is_forked), whatever it asks for: the node is its parent's.
    pub fn with_node(node: S::Node, clock: C, entropy: E, policy: Policy) -> Self {
        let rollback = match policy.rollback {
            Rollback::HoldThenFollow { max } if !S::RENEWS => Rollback::HoldThenError { max },
            rollback => rollback,
        };
        Self {
            engine: Engine::new(),
            clock,
            entropy,
            policy: Policy { rollback, ..policy },
            node,
            process: if S::RENEWS { 0 } else { process() },
        }
    }

    /// Returns the generator's node.
    pub fn node(&self) -> S::Node {
        self.node
    }

    /// Refuses to go on where the node is another process's.
    pub(super) fn check_process(&self) -> Result<(), Error> {
        if !S::RENEWS && self.process != process() {
            return Err(Error::new(ErrorKind::Forked { scheme: S::NAME }));
        }
        Ok(())
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
            None if S::check(newest) => Err(Error::parse(alloc::format!(
                "cannot start above {newest:?}: its time as scheme {} is none that ordid knows; \
                 another scheme may have made it",
                S::NAME
            ))),
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
        let cut = cut_of::<S>();
        let behind_millis = newest
            .as_unix_millis()
            .saturating_sub(self.clock.now().as_unix_millis());
        let max_millis = self.policy.most_millis();
        // One less, because the first key is in the millisecond after.
        if behind_millis > 0 && behind_millis >= max_millis {
            return Err(Error::new(ErrorKind::Rollback {
                behind_millis,
                max_millis,
            }));
        }
        let slot = cut
            .at(newest, 999_999)
            .map_err(|refusal| refusal.of_clock(cut, newest))?;
        let (time, _) = cut.split(slot);
        if time >= cut.max_time() {
            return Err(cut.out_of_time(newest));
        }
        self.engine.start_above(cut, time);
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
        let cut = cut_of::<S>();
        if !S::RENEWS && !self.engine.is_of(epoch) {
            self.check_process()?;
        }
        self.engine
            .reserve(cut, count, epoch, &self.clock, &self.entropy, &self.policy)
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

    /// Makes the key of a slot, of what its unit of time begins with.
    #[inline(always)]
    fn key(&self, slot: u64, (seed, identity): (u64, u64), random: u64) -> Generated<S> {
        key_with(self.node, slot, (seed, identity), random)
    }

    /// Returns the newest time that a slot was claimed of, in the units of the layout; `None` before
    /// the first. Whoever claims after this call sees what was written before it.
    pub(super) fn newest_time(&self) -> Option<u64> {
        self.engine.newest(cut_of::<S>())
    }

    /// Does what the first claim would do before it claims; see [`Engine::begin`].
    pub(super) fn begin(&self) -> Result<(), Error> {
        self.engine.begin(cut_of::<S>(), &self.clock, &self.entropy)
    }

    /// Goes on above a unit of time, whatever the policy holds.
    pub(super) fn start_above_time(&self, time: u64) {
        self.engine.start_above(cut_of::<S>(), time);
    }

    /// Claims the slot of a key where something stands in the way, and returns what its key is made
    /// of: the arguments of [`key`](Self::key).
    ///
    /// Not the key: so there is one place that makes the key, in registers, and writes it where the
    /// caller wants it. And all of what it is made of: so nothing has to be kept over this call, which
    /// is what each key would pay for.
    #[cold]
    #[inline(never)]
    fn claim_slowly(
        &self,
        version: u64,
        state: u64,
        tick: u64,
        epoch: u32,
        random: u64,
    ) -> Result<(u64, (u64, u64), u64), Error> {
        let cut = cut_of::<S>();
        let look = Look {
            version,
            state,
            tick,
        };
        // A state ahead of the clock may be a clock that was read too early: then another look is due,
        // or a rollback would be told of that was none.
        let at_once = (!cut.is_ahead(state, tick))
            .then(|| self.engine.reserve_from(cut, look, 1, epoch, &self.policy));
        let (slots, random) = match at_once.flatten() {
            Some(slots) => (slots, random),
            None => {
                let slots = self.claim_in(1, epoch)?;
                if slots.epoch == epoch {
                    (slots, random)
                } else {
                    // The random bits are of the process before.
                    (slots, draw_of::<S>(&self.entropy)?.1)
                }
            }
        };
        let (time, _) = cut.split(slots.first);
        Ok((
            slots.first,
            seed_and_identity_of::<S>(slots.secret, time),
            random,
        ))
    }

    /// Claims the slot of the next key, and returns what its key is made of: the arguments of
    /// [`key`](Self::key).
    #[inline(always)]
    pub(super) fn next_slot(&self) -> Result<(u64, (u64, u64), u64), Error> {
        let cut = cut_of::<S>();
        let needs = const { needs_of::<S>() };
        let look = self.engine.glance(cut, &self.clock, needs);
        let look = look.unwrap_or(Look::NOTHING);
        // One look at the thread's state gives random bits and the epoch.
        let (epoch, random) = draw_of::<S>(&self.entropy)?;
        let slots = self.engine.take(cut, look, epoch, needs);
        let (slot, begin, random) = match slots {
            Some(Slots { first, secret, .. }) => {
                let (time, _) = cut.split(first);
                match remembered::<S>(secret, time) {
                    Some(begin) => (first, begin, random),
                    None => (first, remember::<S>(secret[0], secret[1], time), random),
                }
            }
            None => {
                let Look {
                    version,
                    state,
                    tick,
                } = look;
                self.claim_slowly(version, state, tick, epoch, random)?
            }
        };
        Ok((slot, begin, random))
    }

    /// Makes the key of a slot that was claimed before its random bits are drawn.
    pub(crate) fn key_of(&self, slots: Slots) -> Result<Generated<S>, Error> {
        self.key_of_with(self.node, slots)
    }

    /// As [`key_of`](Self::key_of), with a node that may not be the generator's.
    pub(super) fn key_of_with(&self, node: S::Node, slots: Slots) -> Result<Generated<S>, Error> {
        let random = draw_of::<S>(&self.entropy)?.1;
        let (time, _) = cut_of::<S>().split(slots.first);
        let begin = seed_and_identity_of::<S>(slots.secret, time);
        Ok(key_with(node, slots.first, begin, random))
    }

    /// Makes the keys of `slots.first..slots.first + count`.
    pub(crate) fn keys(
        &self,
        node: S::Node,
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
            let (time, index) = cut.split(slot);
            let until_next = usize::try_from(cut.slots() - index).unwrap_or(usize::MAX);
            let batch = left.min(BATCH / words_a_key.max(1)).min(until_next);
            let words = &mut words[..batch * words_a_key];
            self.entropy.fill(words)?;
            let (seed, identity) = seed_and_identity_of::<S>(slots.secret, time);
            let first = seed + index;
            let mut make = |count, random| {
                put(Generated::new(S::encode(Slot {
                    time,
                    count,
                    identity,
                    random,
                    node,
                })));
            };
            if words_a_key == 0 {
                (first..first + batch as u64).for_each(|count| make(count, 0));
            }
            for (count, words) in (first..).zip(words.chunks_exact(words_a_key.max(1))) {
                let words = words
                    .iter()
                    .fold(0, |above, &word| above << 32 | u64::from(word));
                make(count, cut_random::<S>(words));
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
        let (slot, begin, random) = self.next_slot()?;
        Ok(self.key(slot, begin, random))
    }

    fn generate_at(&self, timestamp: Timestamp) -> Result<Generated<S>, Error> {
        if !S::is_drawn(self.node) {
            return Err(Error::unsupported(alloc::format!(
                "this {} generator makes no key for a given time: little or nothing is drawn that \
                 would tell it from others of that time; pack the parts of a key that is known to \
                 be free",
                S::NAME
            )));
        }
        // The layout's whole time, of which the engine's state may hold less.
        let cut = cut_of::<S>();
        let last = (1 << S::TICK_BITS) - 1;
        let ticks = match S::SCALE.ticks_at(timestamp.as_unix_millis(), 0) {
            Some(ticks) if ticks <= last => ticks,
            Some(_) => {
                return Err(Error::new(ErrorKind::TimestampRange {
                    millis: timestamp.as_unix_millis(),
                    max_millis: S::SCALE.timestamp_at(last).as_unix_millis(),
                }));
            }
            None => return Err(Refusal::BeforeEpoch.of_clock(cut, timestamp)),
        };
        let time = ticks >> S::FRACTION_BITS;
        let index = (ticks & ((1 << S::FRACTION_BITS) - 1)) << cut.counter_bits();
        // Of its own randomness, all of it: the generator may be making keys of the same time.
        let fresh = |wanted: bool| {
            if wanted {
                self.entropy.next_u64()
            } else {
                Ok(0)
            }
        };
        let identity = fresh(S::IDENTITY)?;
        let seed = fresh(S::SEED_BITS > 0)? >> (64 - S::SEED_BITS.max(1));
        Ok(Generated::new(S::encode(Slot {
            time,
            count: seed + index,
            identity,
            random: draw_of::<S>(&self.entropy)?.1,
            node: self.node,
        })))
    }

    fn try_fill_with(&self, count: usize, mut put: impl FnMut(Generated<S>)) -> Result<(), Error> {
        // Claimed piece by piece, so that the keys of a long fill keep to the clock.
        let mut left = count;
        while left > 0 {
            let piece = left.min(PIECE);
            self.keys(self.node, self.claim(piece as u64)?, piece, &mut put)?;
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
pub struct Reserved<'g, S: Slotted, C, E> {
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
impl<S: Slotted, C, E> fmt::Debug for Reserved<'_, S, C, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserved")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}
