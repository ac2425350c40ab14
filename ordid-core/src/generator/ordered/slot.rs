//! What a scheme says of its keys: the fields of a slot, and how wide each is.

use core::fmt;

use crate::{
    clock::TimeScale,
    generator::engine::{Needs, SlotLayout},
    key::{Generated, Scheme},
};

/// A scheme whose keys consist of a time, a count within it and random bits.
/// [`OrderedGenerator`](super::OrderedGenerator) makes them.
///
/// The generator numbers its keys: a *slot* is a unit of time and an index in it. If
/// [`FRACTION_BITS`](Self::FRACTION_BITS) is not zero, the upper bits of the index are ticks of the clock, too. The
/// scheme puts the slot into a key, with random bits below.
pub trait Slotted: Scheme {
    /// The type of the node, which tells this generator's keys from another's where random bits do not: the number of
    /// a worker or a shard, for example. `()` for schemes that need none.
    type Node: Copy + fmt::Debug + Send + Sync + 'static;

    /// The epoch from which the layout counts time, and the length of its ticks.
    const SCALE: TimeScale = TimeScale::UNIX_MILLIS;
    /// The number of bits that the layout has for these ticks.
    const TICK_BITS: u32 = 48;
    /// The last of these ticks that the layout has room for.
    const LAST_TICK: u64 = (1 << Self::TICK_BITS) - 1;
    /// The number of bits of the index, at most 24: one unit of time has two to the power of them keys.
    const INDEX_BITS: u32;
    /// How many of the upper bits of the index are ticks of the clock. The unit of time is then two to the power of
    /// them ticks long.
    const FRACTION_BITS: u32 = 0;
    /// The number of random bits of the value at which the count starts in each unit of time; at most 63. They are
    /// the same for all keys of the unit.
    const SEED_BITS: u32;
    /// The number of random bits that are drawn for each key; at most 64.
    const RANDOM_BITS: u32;
    /// Whether keys carry the generator's [`identity`](Slot::identity).
    const IDENTITY: bool = false;
    /// Whether a new secret makes other keys, by seed, identity or random bits. A scheme whose keys are told apart by
    /// time, count and node alone says `false`. Its generators never follow a clock back, since they would repeat
    /// keys, and refuse to work in the child of a fork.
    const RENEWS: bool = true;

    /// Returns whether the bits that are drawn for one key (seed, identity and random bits) tell it from all others
    /// of the same time, without the generator's count. [`generate_at`](crate::generator::Generator::generate_at)
    /// needs this.
    fn is_drawn(node: Self::Node) -> bool {
        let _ = node;
        Self::RENEWS
    }

    /// Makes the key of a slot.
    fn encode(slot: Slot<Self::Node>) -> Self::Raw;
}

/// A node for generators that are not given one.
pub trait DefaultNode {
    /// The node of such a generator.
    const DEFAULT: Self;
}

/// For schemes that need no node.
impl DefaultNode for () {
    const DEFAULT: Self = ();
}

/// The fields of a key that a generator is about to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Slot<N> {
    /// The unit of time, counted from the epoch of [`Slotted::SCALE`]: a tick, or two to the power of
    /// [`Slotted::FRACTION_BITS`] ticks.
    pub time: u64,
    /// The seed, which is the random start of the count in this unit of time, plus the slot's index.
    pub count: u64,
    /// 64 random bits that the generator keeps until a fork, or until it follows a clock back. Zero unless
    /// [`Slotted::IDENTITY`].
    pub identity: u64,
    /// [`Slotted::RANDOM_BITS`] fresh random bits.
    pub random: u64,
    /// The generator's node.
    pub node: N,
}

/// A constant in memory, so that the slow ways can be told where it is: a copy for them would be
/// written by every key.
pub(in crate::generator) const fn slot_layout_of<S: Slotted>() -> &'static SlotLayout {
    const { assert!(S::INDEX_BITS <= 24 && S::FRACTION_BITS <= S::INDEX_BITS) };
    const { assert!(S::FRACTION_BITS < S::TICK_BITS && S::TICK_BITS < 64) };
    const { assert!(S::SEED_BITS < 64 && S::RANDOM_BITS <= 64) };
    const {
        &SlotLayout {
            scale: S::SCALE,
            tick_bits: S::TICK_BITS,
            index_bits: S::INDEX_BITS,
            fraction_bits: S::FRACTION_BITS,
        }
    }
}

/// What keys depend on beside their slots.
pub(super) const fn needs_of<S: Slotted>() -> Needs {
    if S::SEED_BITS > 0 || S::IDENTITY {
        Needs::Secret
    } else if S::RENEWS {
        Needs::Version
    } else {
        Needs::Nothing
    }
}

/// Makes the key of a slot with a node that may not be its generator's.
#[inline(always)]
pub(in crate::generator) fn key_with<S: Slotted>(
    node: S::Node,
    slot: u64,
    (seed, identity): (u64, u64),
    random: u64,
) -> Generated<S> {
    let (time, index) = slot_layout_of::<S>().split(slot);
    Generated::new(S::encode(Slot {
        time,
        count: seed + index,
        identity,
        random,
        node,
    }))
}
