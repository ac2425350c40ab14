//! Snowflake and the schemes with a similar layout: a time, a node and a sequence in at most 63 bits.
//!
//! ```text
//!  63 62                                      22        12         0
//! +-+------------------------------------------+---------+-----------+
//! |0|           time: 41 bits of ms            | node 10 | seq. 12   |  Twitter
//! +-+------------------------------------------+---------+-----------+
//!  63 62                             24        16                   0
//! +-+---------------------------------+---------+--------------------+
//! |0|     time: 39 bits of 10 ms      |  seq. 8 |      node 16       |  Sonyflake
//! +-+---------------------------------+---------+--------------------+
//! ```
//!
//! The [`SnowflakeLayout`] says how many bits each field has, in which unit and from which epoch the time counts, and
//! whether the node is above the sequence or below. It is a type, so all of this is fixed at compile time. Presets:
//!
//! | layout | time | node | sequence | begins | ends | source |
//! |---|---|---|---|---|---|---|
//! | [`Twitter`] | 41, ms | 10: datacentre 5, worker 5 | 12 | 2010-11-04 | 2080-07-10 | `twitter-archive/snowflake`, tag snowflake-2010, `IdWorker.scala` |
//! | [`Discord`] | 41 of its 42, ms | 10: worker 5, process 5 | 12 | 2015-01-01 | 2084-09-06 | Discord's developer manual, "Snowflakes" |
//! | [`Sonyflake`] | 39, 10 ms | 16, last | 8 | 2014-09-01 | 2188-11-16 | `sony/sonyflake@f167a9d`, `sonyflake.go` |
//! | [`SonyflakeV2`] | 39, 10 ms | 16, last | 8 | 2025-01-01 | 2199-03-19 | the same, `v2/sonyflake.go` |
//! | [`BaiduUid`] | 28, s | 22 | 13 | 2016-05-20 | **2024-11-20**: give a newer epoch | `baidu/uid-generator@2fcbc13`, `DefaultUidGenerator.java` |
//! | [`Yitter`] | 51, ms | 6 | 6, from 5 | 2020-02-19 | in 71,000 years | `yitter/IdGenerator@942ba6a`, `snow_worker_m1.rs` |
//! | [`WideSequence`] | 41, ms | 4 | 18 | 2024-01-01 | 2093-09-06 | ours: 262,144 keys a millisecond |
//! | [`Bits`] | as many as you say | | | 1970-01-01 | | `snowflake(epoch = "2026-01-01", time = 41, node = 10, sequence = 12)` |
//! | [`Since`] | those of another layout | | | as you say | | `snowflake(layout = Sonyflake, epoch = "2026-01-01")` |
//! | [`instagram`](super::instagram) | 40 of its 41, ms | 13 | 10 | 2011-08-24 | 2046-06-27 | its own page |
//! | [`compact`](super::compact) | as few bits as your need allows | | | | | its own page |
//!
//! Keys are positive `i64`s and compare as numbers. Their bytes, most significant first, compare in the same order.
//! Keys of one generator rise strictly, over all threads. Keys of several generators are in order as far as their
//! clocks agree.
//!
//! # What keeps keys apart
//!
//! Only the node: **no two generators may have the same node at the same time**, and after a restart a generator has
//! to begin above the last key of the run before ([`start_above`](crate::generator::OrderedGenerator::start_above),
//! [`WithHighWaterMark`](crate::generator::WithHighWaterMark)). Nothing in a key is random: whoever knows one key can
//! predict the next one in the same unit of time. In the child of a fork a generator refuses to work, because its
//! node belongs to the parent.
//!
//! # What the originals get wrong, and ours does not
//!
//! - A time that the layout has no bits for is an error. Baidu's cached generator shifts such a time into the sign
//!   bit, and Java's `%` and `<<` report nothing.
//! - When the clock steps back, the [`Policy`](crate::generator::Policy) decides whether keys go on rising, wait, or
//!   are refused. A refusal uses up and resets nothing (Twitter's first version reset the sequence, issue 6), no call
//!   sleeps for hours (Sonyflake, issue 39), and no key is below the one before (yitter, issue 42).
//! - When the sequence is used up, the generator uses the next unit of time or waits for it, by the policy. The
//!   sequence never starts again in the same unit.

use core::{convert::Infallible, fmt, marker::PhantomData};

#[cfg(feature = "std")]
use crate::{clock::SystemClock, entropy::ThreadEntropy};
use crate::{
    clock::{TimeScale, Timestamp},
    error::Error,
    generator::{OrderedGenerator, Slot, Slotted},
    key::{RisesAsBytes, Scheme},
    layout::Orders,
    scheme::anatomy::{Certainty, Inspection, Layout, TimeOrdered, check, fits, tick_at},
};

mod bits;
mod presets;

pub use bits::{Bits, Since};
pub use presets::{BaiduUid, Discord, Sonyflake, SonyflakeV2, Twitter, WideSequence, Yitter};

/// The bits of a [`Snowflake`] key: its time, its node and its sequence.
///
/// If a layout has more than 63 bits, or no time, code that makes or reads one of its keys does not compile.
///
/// # Example: a layout of your own
///
/// ```
/// use ordid_core::scheme::{Layout, Snowflake, snowflake::{Parts, SnowflakeLayout}};
///
/// /// Seconds since 2026, two nodes: 45 bits, which JavaScript reads without loss.
/// enum Invoices {}
///
/// impl SnowflakeLayout for Invoices {
///     const NAME: &'static str = "invoices";
///     const EPOCH_UNIX_MILLIS: i64 = 1_767_225_600_000;
///     const UNIT_MILLIS: u32 = 1_000;
///     const TIME_BITS: u32 = 32;
///     const NODE_BITS: u32 = 1;
///     const SEQUENCE_BITS: u32 = 12;
/// }
///
/// let key = Snowflake::<Invoices>::pack(Parts { time: 86_400, node: 1, sequence: 3 })?;
/// assert_eq!(key, 86_400 << 13 | 1 << 12 | 3);
/// # Ok::<(), ordid_core::Error>(())
/// ```
///
/// # Example: too many bits
///
/// ```compile_fail
/// use ordid_core::scheme::{Layout, Snowflake, snowflake::{Parts, SnowflakeLayout}};
///
/// enum Wrong {}
///
/// impl SnowflakeLayout for Wrong {
///     const NAME: &'static str = "wrong";
///     const EPOCH_UNIX_MILLIS: i64 = 0;
///     const TIME_BITS: u32 = 42;
///     const NODE_BITS: u32 = 10;
///     const SEQUENCE_BITS: u32 = 12;
/// }
///
/// let _ = Snowflake::<Wrong>::pack(Parts { time: 0, node: 0, sequence: 0 });
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a layout of `snowflake` keys",
    label = "not a layout",
    note = "take one of `ordid::scheme::snowflake`, such as `Twitter` or `Sonyflake`, a \
            `Compact<...>` of your need, or implement `SnowflakeLayout` for `{Self}`"
)]
pub trait SnowflakeLayout: 'static {
    /// The scheme's name.
    const NAME: &'static str;
    /// The time at which the first tick begins, in milliseconds since 1970-01-01T00:00:00Z.
    const EPOCH_UNIX_MILLIS: i64;
    /// The length of a tick, in milliseconds.
    const UNIT_MILLIS: u32 = 1;
    /// The number of bits of the time, in ticks; at least one.
    const TIME_BITS: u32;
    /// The number of bits of the node.
    const NODE_BITS: u32;
    /// The number of bits of the sequence. If there are more than 24, generators use the lower 24.
    const SEQUENCE_BITS: u32;
    /// Whether the sequence is above the node, as in Sonyflake. Keys of one unit of time are then ordered by sequence
    /// first, over all nodes.
    const SEQUENCE_ABOVE_NODE: bool = false;
    /// The value at which generated sequences begin in each unit of time. Lower values are left for other uses.
    ///
    /// A generator makes as many keys in a unit as the largest power of two that fits from this value on.
    const FIRST_SEQUENCE: u64 = 0;
}

/// The scheme `snowflake`, and a scheme for each other layout.
pub enum Snowflake<L = Twitter> {
    /// There are no values: a scheme is a type.
    #[doc(hidden)]
    Never(Infallible, PhantomData<fn() -> L>),
}

impl<L: SnowflakeLayout> Snowflake<L> {
    /// The layout's epoch and the length of its ticks.
    pub const SCALE: TimeScale =
        TimeScale::ticks_per_millis(1, L::UNIT_MILLIS, L::EPOCH_UNIX_MILLIS);

    /// The number of bits of a key, at most 63.
    pub const BITS: u32 = {
        assert!(L::TIME_BITS >= 1, "a snowflake layout has a time");
        assert!(
            L::TIME_BITS <= 63 && L::NODE_BITS <= 63 && L::SEQUENCE_BITS <= 63,
            "a snowflake layout has at most 63 bits: time, node and sequence together"
        );
        let bits = L::TIME_BITS + L::NODE_BITS + L::SEQUENCE_BITS;
        assert!(
            bits <= 63,
            "a snowflake layout has at most 63 bits: time, node and sequence together"
        );
        assert!(
            L::FIRST_SEQUENCE >> L::SEQUENCE_BITS == 0,
            "the first sequence fits its bits"
        );
        bits
    };

    /// The end of the last tick, in milliseconds since 1970-01-01T00:00:00Z. From then on no key can be made. At most
    /// `i64::MAX`.
    ///
    /// # Example: 2080-07-10
    ///
    /// ```
    /// use ordid_core::scheme::Snowflake;
    ///
    /// assert_eq!(<Snowflake>::ENDS_AT_UNIX_MILLIS, 3_487_858_230_209);
    /// ```
    pub const ENDS_AT_UNIX_MILLIS: i64 = {
        let ticks = if L::TIME_BITS < 63 {
            1 << L::TIME_BITS
        } else {
            i64::MAX
        };
        L::EPOCH_UNIX_MILLIS.saturating_add(ticks.saturating_mul(L::UNIT_MILLIS as i64))
    };

    const TIME_SHIFT: u32 = Self::BITS - L::TIME_BITS;
    const NODE_SHIFT: u32 = if L::SEQUENCE_ABOVE_NODE {
        0
    } else {
        L::SEQUENCE_BITS
    };
    const SEQUENCE_SHIFT: u32 = if L::SEQUENCE_ABOVE_NODE {
        L::NODE_BITS
    } else {
        0
    };

    #[inline]
    const fn place(time: u64, node: u64, sequence: u64) -> i64 {
        let bits =
            time << Self::TIME_SHIFT | node << Self::NODE_SHIFT | sequence << Self::SEQUENCE_SHIFT;
        bits.cast_signed()
    }
}

const fn low(bits: u32) -> u64 {
    (1 << bits) - 1
}

impl<L: SnowflakeLayout> Scheme for Snowflake<L> {
    type Raw = i64;

    const NAME: &'static str = L::NAME;
    /// Integers compare as their bytes do, most significant byte first.
    const ORDERS: Orders = Orders::BYTES;
    const EXPECTED: &'static str = "no sign, and no bits above those of the layout";
    const INTEGER_BITS: u32 = Self::BITS;

    fn check(raw: &i64) -> bool {
        raw.cast_unsigned() >> Self::BITS == 0
    }

    fn coerce(raw: i64) -> i64 {
        // At most 63 bits, so the sign bit is not among them.
        raw & (i64::MAX >> (63 - Self::BITS))
    }

    fn timestamp(raw: &i64) -> Option<Timestamp> {
        let parts = Self::unpack(raw).ok()?;
        Self::SCALE.moment_at(parts.time).timestamp()
    }
}

impl<L: SnowflakeLayout> RisesAsBytes for Snowflake<L> {}

impl<L: SnowflakeLayout> Slotted for Snowflake<L> {
    type Node = SnowflakeNode<L>;

    const SCALE: TimeScale = Self::SCALE;
    const TICK_BITS: u32 = L::TIME_BITS;
    const INDEX_BITS: u32 = {
        let bits = ((1 << L::SEQUENCE_BITS) - L::FIRST_SEQUENCE).ilog2();
        if bits < 24 { bits } else { 24 }
    };
    const SEED_BITS: u32 = 0;
    const RANDOM_BITS: u32 = 0;
    const RENEWS: bool = false;

    #[inline]
    fn encode(slot: Slot<SnowflakeNode<L>>) -> i64 {
        Self::place(slot.time, slot.node.number, L::FIRST_SEQUENCE + slot.count)
    }
}

/// The fields of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// The ticks since the layout's epoch, of [`SnowflakeLayout::TIME_BITS`].
    pub time: u64,
    /// [`SnowflakeLayout::NODE_BITS`]; see [`SnowflakeNode`] for nodes that consist of two numbers.
    pub node: u64,
    /// [`SnowflakeLayout::SEQUENCE_BITS`].
    pub sequence: u64,
}

/// # Example: the tweet 759517997340696579 would be
///
/// ```
/// use ordid_core::scheme::{Layout, Snowflake, snowflake::{Parts, SnowflakeNode}};
///
/// let parts = <Snowflake>::unpack(&759_517_997_340_696_579)?;
/// assert_eq!(parts, Parts { time: 181_083_201_728, node: 34, sequence: 3 });
/// let node: SnowflakeNode = parts.node.try_into()?;
/// assert_eq!((node.datacentre(), node.worker()), (1, 2));
/// let inspection = <Snowflake>::inspect(&759_517_997_340_696_579)?;
/// assert_eq!(inspection.moment.unwrap().unix_nanos, 1_469_918_176_385_000_000);
/// # Ok::<(), ordid_core::Error>(())
/// ```
impl<L: SnowflakeLayout> Layout for Snowflake<L> {
    type Parts = Parts;

    fn pack(parts: Parts) -> Result<i64, Error> {
        fits::<Self>("time", parts.time, L::TIME_BITS)?;
        fits::<Self>("node", parts.node, L::NODE_BITS)?;
        fits::<Self>("sequence", parts.sequence, L::SEQUENCE_BITS)?;
        Ok(Self::place(parts.time, parts.node, parts.sequence))
    }

    fn unpack(raw: &i64) -> Result<Parts, Error> {
        check::<Self>(raw)?;
        let bits = raw.cast_unsigned();
        Ok(Parts {
            time: bits >> Self::TIME_SHIFT,
            node: bits >> Self::NODE_SHIFT & low(L::NODE_BITS),
            sequence: bits >> Self::SEQUENCE_SHIFT & low(L::SEQUENCE_BITS),
        })
    }

    fn inspect(raw: &i64) -> Result<Inspection, Error> {
        let parts = Self::unpack(raw)?;
        Ok(Inspection {
            moment: Some(Self::SCALE.moment_at(parts.time)),
            node: Some(parts.node),
            counter: Some(parts.sequence),
            ..Inspection::of::<Self>(Certainty::Possible)
        })
    }
}

/// The bounds include all nodes and all sequences, even those that generators leave out.
impl<L: SnowflakeLayout> TimeOrdered for Snowflake<L> {
    fn bounds_at(timestamp: Timestamp) -> Result<(i64, i64), Error> {
        let time = tick_at(Self::SCALE, L::TIME_BITS, timestamp)?;
        let highest = Self::place(time, low(L::NODE_BITS), low(L::SEQUENCE_BITS));
        Ok((Self::place(time, 0, 0), highest))
    }
}

/// The number of a node, checked to fit the layout.
///
/// # Example
///
/// ```
/// use ordid_core::scheme::snowflake::{SnowflakeNode, Sonyflake};
///
/// assert!(SnowflakeNode::<Sonyflake>::new(65_535).is_ok());
/// let error = SnowflakeNode::<Sonyflake>::new(65_536).unwrap_err();
/// assert_eq!(error.to_string(), "node 65536 does not fit: scheme sonyflake has 16 bits for it");
/// ```
#[doc(alias("worker id", "machine id"))]
pub struct SnowflakeNode<L = Twitter> {
    number: u64,
    layout: PhantomData<fn() -> L>,
}

impl<L: SnowflakeLayout> SnowflakeNode<L> {
    /// The number of nodes that the layout has.
    pub const COUNT: u64 = 1 << L::NODE_BITS;

    /// Takes a number below [`COUNT`](Self::COUNT).
    ///
    /// # Errors
    ///
    /// A larger one gives an error that [`is_layout`](Error::is_layout); nothing is cut off.
    pub fn new(number: u64) -> Result<Self, Error> {
        fits::<Snowflake<L>>("node", number, L::NODE_BITS)?;
        Ok(Self::unchecked(number))
    }

    const fn unchecked(number: u64) -> Self {
        Self {
            number,
            layout: PhantomData,
        }
    }
}

impl<L> SnowflakeNode<L> {
    /// Returns the number.
    pub const fn get(self) -> u64 {
        self.number
    }
}

impl<L: SnowflakeLayout> TryFrom<u64> for SnowflakeNode<L> {
    type Error = Error;

    fn try_from(number: u64) -> Result<Self, Error> {
        Self::new(number)
    }
}

impl<L> Clone for SnowflakeNode<L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L> Copy for SnowflakeNode<L> {}

impl<L> PartialEq for SnowflakeNode<L> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<L> Eq for SnowflakeNode<L> {}

impl<L> fmt::Debug for SnowflakeNode<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SnowflakeNode").field(&self.number).finish()
    }
}

/// Makes keys of a snowflake layout for one node ([`with_node`](OrderedGenerator::with_node)), strictly rising over
/// all threads that share it.
///
/// # Example: no step back, whatever the clock does
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// use ordid_core::{
///     clock::ManualClock, entropy::SeededEntropy, generator::{Generator, Policy},
///     scheme::snowflake::{SnowflakeGenerator, SnowflakeNode, Twitter},
/// };
///
/// let clock = ManualClock::at_unix_millis(1_469_918_176_385);
/// let node = SnowflakeNode::of_datacentre(1, 2)?;
/// let keys: SnowflakeGenerator<Twitter, _, _> =
///     SnowflakeGenerator::with_node(node, &clock, SeededEntropy::new(1), Policy::DEFAULT);
/// let first = keys.try_generate()?.into_raw();
/// assert_eq!(first, 759_517_997_340_696_576);
/// clock.set_unix_millis(1_469_918_176_000); // less than ten seconds: held
/// assert_eq!(keys.try_generate()?.into_raw(), first + 1);
/// clock.set_unix_millis(1_469_889_376_385); // eight hours: refused
/// assert!(keys.try_generate().unwrap_err().is_clock());
/// # }
/// # Ok::<(), ordid_core::Error>(())
/// ```
#[cfg(feature = "std")]
pub type SnowflakeGenerator<L = Twitter, C = SystemClock, E = ThreadEntropy> =
    OrderedGenerator<Snowflake<L>, C, E>;

/// The same type as with `std`, but without defaults.
#[cfg(not(feature = "std"))]
pub type SnowflakeGenerator<L, C, E> = OrderedGenerator<Snowflake<L>, C, E>;

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
