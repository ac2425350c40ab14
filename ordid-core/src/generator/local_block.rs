//! Keys for one thread, out of blocks of a generator's count.

use core::{cell::Cell, fmt};

use super::{
    Events, Generator, OrderedGenerator, Reserved, Slotted,
    engine::Slots,
    ordered::{Slot, draw_of, identity_of, seed_of, slot_layout_of},
};
use crate::{
    clock::{Clock, Timestamp},
    entropy::Entropy,
    error::Error,
    key::{Generated, Scheme},
};

/// Slots that a local block claims at a time.
const BLOCK: u64 = 1_024;

/// A generator for one thread: keys are unique over all threads that share the generator behind it, and rise strictly
/// on this one.
///
/// [`OrderedGenerator::local_block`] makes one that borrows a shared generator, and [`OrderedGenerator::into_local`]
/// makes one that owns its generator.
///
/// It claims up to 1,024 slots with one atomic operation. It gives up the rest of them after a fork, and as soon as
/// the clock leaves their millisecond, so its keys carry a time as fresh as any others. The policy of the generator
/// behind it applies.
// In this order: what every key looks at is on one cache line, at offsets of one byte.
#[repr(C)]
pub struct LocalBlock<G> {
    /// Cells, so that one thread at a time has it.
    block: Block,
    generator: G,
}

/// What is left of a block of slots.
struct Block {
    /// The next slot. From `until` on there is none.
    next: Cell<u64>,
    /// Where the block ends, or the tick if that is earlier.
    until: Cell<u64>,
    /// The clock's tick that `next` is in; see [`SlotLayout::ticks`].
    tick: Cell<u64>,
    /// Where the block ends.
    end: Cell<u64>,
    /// What a slot of this unit of time lacks to its count, modulo 2^64.
    to_count: Cell<u64>,
    secret: Cell<[u64; 2]>,
    /// Whose the block is: a fork leaves it to the parent.
    epoch: Cell<u32>,
    identity: Cell<u64>,
}

impl Block {
    /// No slot is left.
    const fn none() -> Self {
        Self {
            next: Cell::new(0),
            until: Cell::new(0),
            tick: Cell::new(0),
            end: Cell::new(0),
            to_count: Cell::new(0),
            secret: Cell::new([0; 2]),
            epoch: Cell::new(0),
            identity: Cell::new(0),
        }
    }

    /// Takes a claimed run of slots.
    fn set<S: Slotted>(&self, slots: Slots, count: u64) {
        self.end.set(slots.first + count);
        self.secret.set(slots.secret);
        self.epoch.set(slots.epoch);
        self.identity.set(identity_of::<S>(slots.secret));
        self.enter::<S>(slots.first);
    }

    /// Goes on at a slot, in the unit of time that it is in.
    fn enter<S: Slotted>(&self, slot: u64) {
        let layout = slot_layout_of::<S>();
        let (time, _) = layout.split(slot);
        let tick = slot >> layout.counter_bits();
        self.next.set(slot);
        self.tick.set(tick);
        self.until
            .set(self.end.get().min((tick + 1) << layout.counter_bits()));
        let seed = seed_of::<S>(self.secret.get(), time);
        self.to_count
            .set(seed.wrapping_sub(time << layout.index_bits));
    }

    /// Gives the rest up.
    fn clear(&self) {
        self.until.set(0);
        self.end.set(0);
    }
}

/// A generator that a [`LocalBlock`] can take its slots from: an [`OrderedGenerator`], or a reference to one.
pub trait BlockSource: sealed::Sealed {
    /// The scheme of the generator.
    type Scheme: Slotted;
    /// The clock of the generator.
    type Clock: Clock;
    /// The generator's source of random bits.
    type Entropy: Entropy;

    /// Returns the generator.
    fn generator(&self) -> &OrderedGenerator<Self::Scheme, Self::Clock, Self::Entropy>;
}

mod sealed {
    pub trait Sealed {}
}

impl<S: Slotted, C, E> sealed::Sealed for OrderedGenerator<S, C, E> {}
impl<S: Slotted, C, E> sealed::Sealed for &OrderedGenerator<S, C, E> {}

impl<S: Slotted, C: Clock, E: Entropy> BlockSource for OrderedGenerator<S, C, E> {
    type Scheme = S;
    type Clock = C;
    type Entropy = E;

    #[inline]
    fn generator(&self) -> &Self {
        self
    }
}

impl<S: Slotted, C: Clock, E: Entropy> BlockSource for &OrderedGenerator<S, C, E> {
    type Scheme = S;
    type Clock = C;
    type Entropy = E;

    #[inline]
    fn generator(&self) -> &OrderedGenerator<S, C, E> {
        self
    }
}

impl<G> LocalBlock<G> {
    pub(super) const fn new(generator: G) -> Self {
        Self {
            block: Block::none(),
            generator,
        }
    }
}

impl<G: BlockSource> LocalBlock<G> {
    /// Returns the generator behind it. Its keys differ from those of this block, but are in no order with them. Its
    /// `start_above` does not affect this block; call the block's own [`start_above`](Self::start_above) for that.
    pub fn generator(&self) -> &OrderedGenerator<G::Scheme, G::Clock, G::Entropy> {
        self.generator.generator()
    }

    /// Makes all later keys of this block rise above a key of an earlier run: see [`OrderedGenerator::start_above`].
    /// Other blocks of a shared generator keep their slots, which may be below the key.
    ///
    /// # Errors
    ///
    /// As [`OrderedGenerator::start_above`].
    pub fn start_above(&self, newest: &<G::Scheme as Scheme>::Raw) -> Result<(), Error> {
        self.block.clear();
        self.generator().start_above(newest)
    }

    /// As [`start_above`](Self::start_above), but above all keys of a millisecond.
    ///
    /// # Errors
    ///
    /// As [`start_above`](Self::start_above).
    pub fn start_after(&self, newest: Timestamp) -> Result<(), Error> {
        self.block.clear();
        self.generator().start_after(newest)
    }

    /// Makes the key of a slot of the block, and goes on to the next one.
    #[inline]
    fn take(&self, slot: u64, random: u64) -> Generated<G::Scheme> {
        let (time, _) = slot_layout_of::<G::Scheme>().split(slot);
        self.block.next.set(slot + 1);
        Generated::new(G::Scheme::encode(Slot {
            time,
            count: slot.wrapping_add(self.block.to_count.get()),
            identity: self.block.identity.get(),
            random,
            node: self.generator().node(),
        }))
    }

    /// Returns the slot of the next key, and random bits for it, where the block is at its end, not
    /// of this time, or not of this process.
    ///
    /// Not the key, for the reason that [`OrderedGenerator`] has.
    #[cold]
    #[inline(never)]
    fn claim_slowly(&self, epoch: u32, random: u64) -> Result<(u64, u64), Error> {
        let block = &self.block;
        let slot = block.next.get();
        if slot < block.end.get() && block.epoch.get() == epoch && self.is_held(slot) {
            block.enter::<G::Scheme>(slot);
            return Ok((slot, random));
        }
        block.clear();
        let generator = self.generator();
        let count = BLOCK.min(1 << slot_layout_of::<G::Scheme>().counter_bits());
        let (slots, count) = match generator.claim_in(count, epoch) {
            Ok(slots) => (slots, count),
            // The end of a millisecond may hold a key where it does not hold a block.
            Err(error) if error.is_overflow() => (generator.claim_in(1, epoch)?, 1),
            Err(error) => return Err(error),
        };
        let random = if slots.epoch == epoch {
            random
        } else {
            // The random bits are of the process before.
            draw_of::<G::Scheme>(generator.entropy())?.1
        };
        block.set::<G::Scheme>(slots, count);
        Ok((slots.first, random))
    }

    /// Whether a slot is of the clock's time, or so little ahead that the policy holds it: the
    /// counter ran over, or the clock stepped back.
    fn is_held(&self, slot: u64) -> bool {
        let layout = slot_layout_of::<G::Scheme>();
        let generator = self.generator();
        let Ok(now) = layout.now(generator.clock()) else {
            return false;
        };
        let ahead = layout.split(slot).0.checked_sub(layout.split(now).0);
        slot >> layout.counter_bits() >= now >> layout.counter_bits()
            && ahead.is_some_and(|ahead| layout.holds(ahead, &generator.policy()))
    }
}

impl<G: BlockSource> Generator for LocalBlock<G> {
    type Scheme = G::Scheme;
    type Reserved<'g>
        = Reserved<'g, G::Scheme, G::Clock, G::Entropy>
    where
        Self: 'g;

    #[inline]
    fn try_generate(&self) -> Result<Generated<G::Scheme>, Error> {
        let generator = self.generator();
        // The clock before the draw: less has to be kept over the call into the system.
        let tick = slot_layout_of::<G::Scheme>().ticks(generator.clock());
        let (epoch, random) = draw_of::<G::Scheme>(generator.entropy())?;
        let block = &self.block;
        let slot = block.next.get();
        // Of the clock's tick, neither older nor ahead: then no policy has a say.
        // In one comparison with the epoch's: compilers make more of three that are joined.
        let differs =
            tick.map(|tick| (tick ^ block.tick.get()) | u64::from(epoch ^ block.epoch.get()));
        let at_once = differs == Some(0) && slot < block.until.get();
        let (slot, random) = if at_once {
            (slot, random)
        } else {
            self.claim_slowly(epoch, random)?
        };
        Ok(self.take(slot, random))
    }

    fn generate_at(&self, timestamp: Timestamp) -> Result<Generated<G::Scheme>, Error> {
        self.generator().generate_at(timestamp)
    }

    fn try_fill_with(
        &self,
        count: usize,
        put: impl FnMut(Generated<G::Scheme>),
    ) -> Result<(), Error> {
        // These will be above the block, so nothing of it may follow.
        self.block.clear();
        self.generator().try_fill_with(count, put)
    }

    fn reserve(&self, count: usize) -> Result<Self::Reserved<'_>, Error> {
        self.block.clear();
        self.generator().reserve(count)
    }

    fn events(&self) -> Events {
        self.generator().events()
    }
}

impl<G: fmt::Debug> fmt::Debug for LocalBlock<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalBlock")
            .field("generator", &self.generator)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
