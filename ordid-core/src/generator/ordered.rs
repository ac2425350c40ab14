//! The generator of every scheme whose keys are a time, a count and random bits.

mod drawn;
mod reserved;
mod slot;

use super::{
    Events, Generator, LocalBlock, Policy, Rollback,
    engine::{Engine, Refusal, Slots, Snapshot},
    sync::const_unless_loom,
};
use crate::{
    clock::{Clock, Timestamp},
    entropy::{Entropy, Process, process},
    error::{Error, ErrorKind},
    key::Generated,
};

pub(super) use self::{
    drawn::{draw_of, identity_of, seed_of},
    slot::{key_with, slot_layout_of},
};
use self::{
    drawn::{random_bits_of, remember, remembered, seed_and_identity_of, words_a_key},
    slot::needs_of,
};
pub use self::{
    reserved::Reserved,
    slot::{DefaultNode, Slot, Slotted},
};

/// Keys of one batch: the random words of a batch are drawn together.
const BATCH: usize = 256;
/// Keys that [`Generator::try_fill_with`] claims at a time.
const PIECE: usize = 65_536;

/// The one way a key type's infallible functions end without a key.
#[cfg(feature = "std")]
#[cold]
pub(crate) fn no_key(error: &Error) -> ! {
    panic!("cannot make a key: {error}")
}

/// Makes keys of a scheme, strictly rising over all threads that share it.
///
/// It takes no lock. A key costs one atomic addition to a shared number, or a compare-and-swap if it is the first of
/// its unit of time. If threads need not share one order, [`local_block`](Self::local_block) gives each thread a
/// block of the count, and [`into_local`](Self::into_local) turns the generator into one for a single thread.
#[derive(Debug)]
pub struct OrderedGenerator<S: Slotted, C, E> {
    engine: Engine,
    clock: C,
    entropy: E,
    policy: Policy,
    node: S::Node,
    /// The process that the node is of; `None` for schemes that may be used in any.
    process: Option<Process>,
    /// Whether it is the generator of the process, in whose place a test may put another.
    #[cfg(any(test, feature = "testing"))]
    is_of_process: bool,
}

impl<S: Slotted<Node: DefaultNode>, C: Clock, E: Entropy> OrderedGenerator<S, C, E> {
    const_unless_loom! {
        /// Makes a generator. Its keys are in no order with those of other generators that read the same millisecond.
        pub fn new(clock: C, entropy: E, policy: Policy) -> Self {
            const { assert!(S::RENEWS, "a node that tells keys apart has no default") };
            Self {
                engine: Engine::new(),
                clock,
                entropy,
                policy,
                node: DefaultNode::DEFAULT,
                process: None,
                #[cfg(any(test, feature = "testing"))]
                is_of_process: false,
            }
        }
    }

    #[cfg(feature = "std")]
    const_unless_loom! {
        /// As [`new`](Self::new), for the generator of the process.
        #[cfg_attr(not(any(test, feature = "testing")), expect(unused_mut))]
        pub(crate) fn of_process(clock: C, entropy: E, policy: Policy) -> Self {
            let mut generator = Self::new(clock, entropy, policy);
            #[cfg(any(test, feature = "testing"))]
            {
                generator.is_of_process = true;
            }
            generator
        }
    }
}

impl<S: Slotted, C: Clock, E: Entropy> OrderedGenerator<S, C, E> {
    /// Makes a generator with this node. No other generator may have the same node at the same time.
    ///
    /// If the keys of a scheme are told apart by the node alone (the scheme's documentation says so), the generator
    /// never follows a clock back: it treats [`Rollback::HoldThenFollow`] as [`Rollback::HoldThenError`]. In the
    /// child of a fork, every call then fails with an error that [`is_forked`](Error::is_forked), because the node
    /// belongs to the parent.
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
            process: (!S::RENEWS).then(process),
            #[cfg(any(test, feature = "testing"))]
            is_of_process: false,
        }
    }

    /// Returns the generator's node.
    pub fn node(&self) -> S::Node {
        self.node
    }

    /// Returns the generator of a test that stands in the place of this one, in a test's scope.
    #[cfg(any(test, feature = "testing"))]
    #[inline]
    pub(super) fn in_test(&self) -> Option<alloc::sync::Arc<crate::testing::Scripted<S>>> {
        if !self.is_of_process {
            return None;
        }
        crate::testing::ordered(self.node)
    }

    /// Refuses to go on where the node is another process's.
    pub(super) fn check_process(&self) -> Result<(), Error> {
        if self.process.is_some_and(|owner| owner != process()) {
            return Err(Error::new(ErrorKind::Forked { scheme: S::NAME }));
        }
        Ok(())
    }

    /// Makes all later keys rise above a key of an earlier run, even if the clock reads an earlier time. If keys are
    /// [spread](crate::scheme::spread), pass the newest key, which is not the highest one in the table.
    ///
    /// # Errors
    ///
    /// Returns an error that [`is_parse`](Error::is_parse) if the key has no time. Returns an error that
    /// [`is_clock`](Error::is_clock) if the unit of time after the key's is further ahead of the clock than the
    /// policy holds or waits: later keys would not rise above the key, so the caller has to decide. The error also
    /// [`is_clock`](Error::is_clock) if the layout has no time after the key's. Returns an error that
    /// [`is_entropy`](Error::is_entropy) if there is no entropy for the first key, and one that
    /// [`is_forked`](Error::is_forked) in the child of a fork if the node is the parent's.
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

    /// As [`start_above`](Self::start_above), but above all keys of a millisecond.
    ///
    /// # Errors
    ///
    /// As [`start_above`](Self::start_above).
    pub fn start_after(&self, newest: Timestamp) -> Result<(), Error> {
        #[cfg(any(test, feature = "testing"))]
        if let Some(keys) = self.in_test() {
            return keys.start_after(newest);
        }
        // Before the engine begins: from then on it takes the child for the process that has the node.
        self.check_process()?;
        let layout = slot_layout_of::<S>();
        let slot = layout
            .at(newest, 999_999)
            .map_err(|refusal| refusal.of_clock(layout, newest))?;
        let (time, _) = layout.split(slot);
        if time >= layout.max_time() {
            return Err(layout.out_of_time(newest));
        }
        // First, since the first renewal moves on to another unit of time.
        self.engine
            .begin(layout, &self.clock, &self.entropy, &self.policy)?;
        let now = self.clock.now();
        let behind_millis = newest.as_unix_millis().saturating_sub(now.as_unix_millis());
        let now = layout
            .at(now, 0)
            .map_err(|refusal| refusal.of_clock(layout, now))?;
        // The first key is in the unit after.
        let ahead = (time + 1).saturating_sub(layout.split(now).0);
        let max_millis = self.policy.most_millis();
        if behind_millis > 0 && ahead > layout.units_up(max_millis) {
            return Err(Error::new(ErrorKind::Rollback {
                behind_millis,
                max_millis,
            }));
        }
        let is_held = layout.holds(ahead, &self.policy);
        self.engine.start_above(layout, time, is_held);
        Ok(())
    }

    /// Makes keys for one thread at a time, from blocks of the shared count. The keys are unique over all threads,
    /// and rise strictly on this thread. Keys of different threads are in the order of time only if they carry
    /// different times.
    pub fn local_block(&self) -> LocalBlock<&Self> {
        LocalBlock::new(self)
    }

    /// Turns this generator into one for a single thread at a time. It then makes most of its keys without an
    /// atomic operation.
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
    pub const fn into_local(self) -> LocalBlock<Self> {
        LocalBlock::new(self)
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

    /// Returns how many of so many keys a fill claims together: no more than one reservation may.
    pub(super) fn piece(&self, left: usize) -> usize {
        let most = slot_layout_of::<S>().max_reservation(&self.policy);
        left.min(PIECE)
            .min(usize::try_from(most).unwrap_or(usize::MAX))
    }

    #[inline]
    pub(crate) fn claim(&self, count: u64) -> Result<Slots, Error> {
        self.claim_in(count, self.entropy.epoch())
    }

    #[inline]
    pub(super) fn claim_in(&self, count: u64, epoch: u32) -> Result<Slots, Error> {
        let layout = slot_layout_of::<S>();
        if !S::RENEWS && !self.engine.is_of(epoch) {
            self.check_process()?;
        }
        self.engine.reserve(
            layout,
            count,
            epoch,
            &self.clock,
            &self.entropy,
            &self.policy,
        )
    }

    /// Claims slots although the policy's patience is at an end: by following the clock, as
    /// [`Rollback::HoldThenFollow`](crate::generator::Rollback) does. A generator whose keys are told apart by its node alone
    /// would make them again then, so it follows no clock.
    ///
    /// # Panics
    ///
    /// If the operating system has no entropy, the clock reads a time that the layout does not have, or no clock may be followed.
    #[cfg(feature = "std")]
    pub(crate) fn claim_or_follow(&self, count: u64) -> Slots {
        loop {
            let error = match self.claim(count) {
                Ok(slots) => return slots,
                Err(error) if error.is_entropy() || !S::RENEWS => error,
                Err(_) => {
                    match self.engine.follow(
                        slot_layout_of::<S>(),
                        &self.clock,
                        &self.entropy,
                        &self.policy,
                    ) {
                        Ok(()) => continue,
                        Err(error) => error,
                    }
                }
            };
            no_key(&error);
        }
    }

    /// Makes the key of a slot, of what its unit of time begins with.
    #[inline(always)]
    fn key(&self, slot: u64, (seed, identity): (u64, u64), random: u64) -> Generated<S> {
        key_with(self.node, slot, (seed, identity), random)
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
        let layout = slot_layout_of::<S>();
        let snapshot = Snapshot {
            version,
            state,
            tick,
        };
        // A state ahead of the clock may be a clock that was read too early: then another snapshot is due,
        // or a rollback would be told of that was none.
        let at_once = (!layout.is_ahead(state, tick)).then(|| {
            self.engine
                .reserve_from(layout, snapshot, 1, epoch, &self.policy)
        });
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
        let (time, _) = layout.split(slots.first);
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
        let layout = slot_layout_of::<S>();
        let needs = const { needs_of::<S>() };
        let snapshot = self.engine.glance(layout, &self.clock, needs);
        let snapshot = snapshot.unwrap_or(Snapshot::NOTHING);
        // One look at the thread's state gives random bits and the epoch.
        let (epoch, random) = draw_of::<S>(&self.entropy)?;
        let slots = self.engine.take(layout, snapshot, epoch, needs);
        let (slot, begin, random) = match slots {
            Some(Slots { first, secret, .. }) => {
                let (time, _) = layout.split(first);
                match remembered::<S>(secret, time) {
                    Some(begin) => (first, begin, random),
                    None => (first, remember::<S>(secret[0], secret[1], time), random),
                }
            }
            None => {
                let Snapshot {
                    version,
                    state,
                    tick,
                } = snapshot;
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
        let (time, _) = slot_layout_of::<S>().split(slots.first);
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
        let layout = slot_layout_of::<S>();
        let mut words = [0; BATCH];
        let words_a_key = words_a_key::<S>();
        let mut slot = slots.first;
        let mut left = count;
        while left > 0 {
            let (time, index) = layout.split(slot);
            let until_next = usize::try_from(layout.slots() - index).unwrap_or(usize::MAX);
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
                make(count, random_bits_of::<S>(words));
            }
            slot += batch as u64;
            left -= batch;
        }
        Ok(())
    }
}

/// What a [`GrantedGenerator`](super::GrantedGenerator) asks.
#[cfg(feature = "std")]
impl<S: Slotted, C: Clock, E: Entropy> OrderedGenerator<S, C, E> {
    /// Returns the newest time that a slot was claimed of, in the units of the layout; `None` before
    /// the first. Whoever claims after this call sees what was written before it.
    pub(super) fn newest_time(&self) -> Option<u64> {
        self.engine.newest(slot_layout_of::<S>())
    }

    /// Does what the first claim would do before it claims; see [`Engine::begin`].
    pub(super) fn begin(&self) -> Result<(), Error> {
        self.engine.begin(
            slot_layout_of::<S>(),
            &self.clock,
            &self.entropy,
            &self.policy,
        )
    }

    /// Goes on above a unit of time, whatever the policy holds.
    pub(super) fn start_above_time(&self, time: u64) {
        self.engine.start_above(slot_layout_of::<S>(), time, true);
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
        #[cfg(any(test, feature = "testing"))]
        if let Some(keys) = self.in_test() {
            return keys.try_generate();
        }
        let (slot, begin, random) = self.next_slot()?;
        Ok(self.key(slot, begin, random))
    }

    fn generate_at(&self, timestamp: Timestamp) -> Result<Generated<S>, Error> {
        #[cfg(any(test, feature = "testing"))]
        if let Some(keys) = self.in_test() {
            return keys.generate_at(timestamp);
        }
        if !S::is_drawn(self.node) {
            return Err(Error::unsupported(alloc::format!(
                "this {} generator makes no key for a given time: little or nothing is drawn that \
                 would tell it from others of that time; pack the parts of a key that is known to \
                 be free",
                S::NAME
            )));
        }
        // The layout's whole time, of which the engine's state may hold less.
        let layout = slot_layout_of::<S>();
        let last = S::LAST_TICK;
        let ticks = match S::SCALE.ticks_at(timestamp.as_unix_millis(), 0) {
            Some(ticks) if ticks <= last => ticks,
            Some(_) => {
                return Err(Error::new(ErrorKind::TimestampRange {
                    millis: timestamp.as_unix_millis(),
                    max_millis: S::SCALE.timestamp_at(last).as_unix_millis(),
                }));
            }
            None => return Err(Refusal::BeforeEpoch.of_clock(layout, timestamp)),
        };
        let time = ticks >> S::FRACTION_BITS;
        let index = (ticks & ((1 << S::FRACTION_BITS) - 1)) << layout.counter_bits();
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
        #[cfg(any(test, feature = "testing"))]
        if let Some(keys) = self.in_test() {
            return keys.try_fill_with(count, put);
        }
        // Claimed piece by piece, so that the keys of a long fill keep to the clock.
        let mut left = count;
        while left > 0 {
            let piece = self.piece(left);
            self.keys(self.node, self.claim(piece as u64)?, piece, &mut put)?;
            left -= piece;
        }
        Ok(())
    }

    fn reserve(&self, count: usize) -> Result<Reserved<'_, S, C, E>, Error> {
        #[cfg(any(test, feature = "testing"))]
        if let Some(keys) = self.in_test() {
            let keys = keys
                .reserve(count)?
                .collect::<Result<alloc::vec::Vec<_>, _>>()?;
            return Ok(Reserved {
                generator: self,
                slots: None,
                left: count,
                in_test: keys.into_iter(),
            });
        }
        let slots = match count {
            0 => None,
            count => Some(self.claim(count as u64)?),
        };
        Ok(Reserved {
            generator: self,
            slots,
            left: count,
            #[cfg(any(test, feature = "testing"))]
            in_test: alloc::vec::Vec::new().into_iter(),
        })
    }

    fn events(&self) -> Events {
        self.engine.events()
    }
}
