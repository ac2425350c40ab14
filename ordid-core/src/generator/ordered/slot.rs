//! What a scheme says of its keys: the fields of a slot, and how wide each is.

use core::fmt;

use crate::{
    clock::TimeScale,
    generator::engine::{Needs, SlotLayout},
    key::{Generated, Scheme},
};

/// A scheme whose keys are the slots of one count, in order: what [`OrderedGenerator`](super::OrderedGenerator) makes.
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
    /// The last of these ticks that the layout has room for.
    const LAST_TICK: u64 = (1 << Self::TICK_BITS) - 1;
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
    /// does not: what [`generate_at`](crate::generator::Generator::generate_at) needs.
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
