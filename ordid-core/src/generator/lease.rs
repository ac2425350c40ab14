//! Keys for one thread, out of blocks of a generator's count.

use core::{cell::Cell, fmt};

use super::{
    Events, Generator, OrderedGenerator, Reserved, Slotted,
    engine::Slots,
    ordered::{cut_of, draw_of},
};
use crate::{
    clock::{Clock, Timestamp},
    entropy::Entropy,
    error::Error,
    key::Generated,
};

/// Slots that a lease claims at a time.
const BLOCK: u64 = 1_024;

/// Keys for one thread: unique over all that share the generator, strictly rising on this one.
///
/// Made by [`OrderedGenerator::lease`], of a shared generator, and by
/// [`OrderedGenerator::into_local`], which owns one.
///
/// A lease claims 1,024 slots with one atomic operation. It gives the rest of a block up as soon as
/// the clock has left the block's millisecond, so its keys are as fresh as any; and after a fork.
/// Policies act on the generator behind it.
pub struct Lease<G> {
    generator: G,
    /// A cell, so that one thread at a time has the lease.
    block: Cell<Option<Block>>,
}

/// What is left of a block.
#[derive(Debug, Clone, Copy)]
struct Block {
    next: Slots,
    end: u64,
}

/// A generator that a lease can stand on: an [`OrderedGenerator`], or a reference to one.
pub trait Leasable: sealed::Sealed {
    /// Its scheme.
    type Scheme: Slotted;
    /// Its clock.
    type Clock: Clock;
    /// Its source of random bits.
    type Entropy: Entropy;

    /// Returns the generator.
    fn generator(&self) -> &OrderedGenerator<Self::Scheme, Self::Clock, Self::Entropy>;
}

mod sealed {
    pub trait Sealed {}
}

impl<S, C, E> sealed::Sealed for OrderedGenerator<S, C, E> {}
impl<S, C, E> sealed::Sealed for &OrderedGenerator<S, C, E> {}

impl<S: Slotted, C: Clock, E: Entropy> Leasable for OrderedGenerator<S, C, E> {
    type Scheme = S;
    type Clock = C;
    type Entropy = E;

    #[inline]
    fn generator(&self) -> &Self {
        self
    }
}

impl<S: Slotted, C: Clock, E: Entropy> Leasable for &OrderedGenerator<S, C, E> {
    type Scheme = S;
    type Clock = C;
    type Entropy = E;

    #[inline]
    fn generator(&self) -> &OrderedGenerator<S, C, E> {
        self
    }
}

impl<G> Lease<G> {
    pub(super) const fn new(generator: G) -> Self {
        Self {
            generator,
            block: Cell::new(None),
        }
    }
}

impl<G: Leasable> Lease<G> {
    /// Returns the generator behind it. Keys taken there are unique with those of this lease, but
    /// not in order with them.
    pub fn generator(&self) -> &OrderedGenerator<G::Scheme, G::Clock, G::Entropy> {
        self.generator.generator()
    }

    /// Whether a slot's time is the clock's. A slot ahead of the clock is one that the policy holds:
    /// the counter ran over, or the clock stepped back.
    #[inline]
    fn is_fresh(&self, slot: u64) -> bool {
        let cut = cut_of::<G::Scheme>();
        let generator = self.generator();
        let now = cut.now(generator.clock());
        if (slot ^ now) >> cut.counter_bits() == 0 {
            return true;
        }
        let ahead = cut.split(slot).0.checked_sub(cut.split(now).0);
        slot > now && ahead.is_some_and(|ahead| ahead <= generator.policy().hold_millis())
    }

    #[cold]
    #[inline(never)]
    fn claim_block(&self) -> Result<Generated<G::Scheme>, Error> {
        self.block.set(None);
        let generator = self.generator();
        let count = BLOCK.min(1 << cut_of::<G::Scheme>().counter_bits());
        let (mut slots, count) = match generator.claim(count) {
            Ok(slots) => (slots, count),
            // The end of a millisecond may hold a key where it does not hold a block.
            Err(error) if error.is_overflow() => (generator.claim(1)?, 1),
            Err(error) => return Err(error),
        };
        let key = generator.key_of(slots)?;
        let end = slots.first + count;
        slots.first += 1;
        self.block
            .set((slots.first < end).then_some(Block { next: slots, end }));
        Ok(key)
    }
}

impl<G: Leasable> Generator for Lease<G> {
    type Scheme = G::Scheme;
    type Reserved<'g>
        = Reserved<'g, G::Scheme, G::Clock, G::Entropy>
    where
        Self: 'g;

    #[inline]
    fn try_generate(&self) -> Result<Generated<G::Scheme>, Error> {
        let generator = self.generator();
        let (epoch, random) = draw_of::<G::Scheme>(generator.entropy())?;
        if let Some(Block { mut next, end }) = self.block.get()
            && next.epoch == epoch
            && self.is_fresh(next.first)
        {
            let key = OrderedGenerator::<G::Scheme, G::Clock, G::Entropy>::key(next, random);
            next.first += 1;
            self.block
                .set((next.first < end).then_some(Block { next, end }));
            return Ok(key);
        }
        self.claim_block()
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
        self.block.set(None);
        self.generator().try_fill_with(count, put)
    }

    fn reserve(&self, count: usize) -> Result<Self::Reserved<'_>, Error> {
        self.block.set(None);
        self.generator().reserve(count)
    }

    fn events(&self) -> Events {
        self.generator().events()
    }
}

impl<G: fmt::Debug> fmt::Debug for Lease<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("generator", &self.generator)
            .field("block", &self.block.get())
            .finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
