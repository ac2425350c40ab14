//! Snowflake after a bucket: 64 bits for engines that split tables by their keys.
//!
//! ```text
//!  63 62  59                                       18        10       0
//! +-+------+----------------------------------------+--------+---------+
//! |0|bucket|          time: 41 bits of ms           | node 8 | seq. 10 |
//! +-+------+----------------------------------------+--------+---------+
//! ```
//!
//! This is the layout of 16 buckets with [`Rest`]: from 2024 to 2093, 256 nodes, 1,024 keys a millisecond for each.
//! After the bucket there can be any [`SnowflakeLayout`] that leaves room for it: `snowflake_spread(buckets = 64,
//! epoch = "2026-01-01", time = 41, node = 6, sequence = 10)`. All bits together are at most 63; more do not compile.
//!
//! Keys are positive `i64`s and compare as numbers. So the bucket comes first, and keys rise in each bucket.
//! [`spread`](super::spread) says which bucket a key gets, and how to read rows in the order of time.
//!
//! **The node** keeps keys apart, as in [`snowflake`](super::snowflake). The bucket does not: no generator makes two
//! keys that differ only in the bucket. Whoever knows one key can predict the next one.
//!
//! # References
//!
//! The layout is ours; TiDB's `AUTO_RANDOM(4)` has as many bits of bucket before a count.

use core::{convert::Infallible, marker::PhantomData};

use crate::{
    clock::Timestamp,
    error::Error,
    generator::{OrderedGenerator, Slot, Slotted},
    key::{RisesAsBytes, Scheme},
    layout::Orders,
    scheme::{
        Snowflake,
        anatomy::{Certainty, Inspection, Layout, TimeOrdered as _, check, fits},
        snowflake::{Bits, Parts as Behind, Since, SnowflakeLayout, SnowflakeNode},
        spread::{Spread, bucket_bits, round_robin},
    },
};

/// The layout after a bucket of 4 bits: 41 bits of milliseconds since 2024-01-01, 8 of node and 10 of sequence.
pub type Rest = Since<Bits<41, 8, 10>, 1_704_067_200_000>;

/// The scheme `snowflake_spread`, of 2 to 256 buckets, a power of two.
pub enum SnowflakeSpread<const BUCKETS: u16 = 16, L = Rest> {
    /// There are no values: a scheme is a type.
    #[doc(hidden)]
    Never(Infallible, PhantomData<fn() -> L>),
}

impl<const BUCKETS: u16, L: SnowflakeLayout> SnowflakeSpread<BUCKETS, L> {
    const BUCKET_BITS: u32 = bucket_bits(BUCKETS);

    /// The number of bits of a key, at most 63.
    pub const BITS: u32 = {
        let bits = Self::BUCKET_BITS + Snowflake::<L>::BITS;
        assert!(
            bits <= 63,
            "a key of `snowflake_spread` has at most 63 bits, those of the bucket and of the layout together: take a \
             layout with fewer, such as `time = 41, node = 8, sequence = 10` for 16 buckets"
        );
        bits
    };

    /// Returns the key of the layout behind the bucket.
    const fn behind(raw: i64) -> i64 {
        raw & ((1 << Snowflake::<L>::BITS) - 1)
    }

    fn place(bucket: u16, behind: i64) -> Result<i64, Error> {
        fits::<Self>("bucket", bucket, Self::BUCKET_BITS)?;
        Ok(i64::from(bucket) << Snowflake::<L>::BITS | behind)
    }
}

impl<const BUCKETS: u16, L: SnowflakeLayout> Scheme for SnowflakeSpread<BUCKETS, L> {
    type Raw = i64;

    const NAME: &'static str = "snowflake_spread";
    /// Integers compare as their bytes do, most significant byte first.
    const ORDERS: Orders = Orders::BYTES;
    const EXPECTED: &'static str = "no sign, and no bits above those of bucket and layout";
    const INTEGER_BITS: u32 = Self::BITS;
    const BUCKETS: u16 = BUCKETS;

    fn bucket(raw: &i64) -> u16 {
        // A value of the scheme has no higher bits, and of any other value the bucket is as good as another.
        let bucket = raw >> Snowflake::<L>::BITS & i64::from(BUCKETS - 1);
        u16::try_from(bucket).expect("less than `BUCKETS`, a u16")
    }

    fn check(raw: &i64) -> bool {
        raw.cast_unsigned() >> Self::BITS == 0
    }

    fn coerce(raw: i64) -> i64 {
        raw & (i64::MAX >> (63 - Self::BITS))
    }

    fn timestamp(raw: &i64) -> Option<Timestamp> {
        check::<Self>(raw).ok()?;
        Snowflake::<L>::timestamp(&Self::behind(*raw))
    }
}

impl<const BUCKETS: u16, L: SnowflakeLayout> RisesAsBytes for SnowflakeSpread<BUCKETS, L> {}

impl<const BUCKETS: u16, L: SnowflakeLayout> Slotted for SnowflakeSpread<BUCKETS, L> {
    type Node = SnowflakeNode<L>;

    slot_bits_of!(Snowflake<L>);

    #[inline]
    fn encode(slot: Slot<SnowflakeNode<L>>) -> i64 {
        let node = slot.node.get();
        let bucket = round_robin(slot.time, node, slot.count, Self::BUCKET_BITS).cast_signed();
        bucket << (Self::BITS - Self::BUCKET_BITS) | Snowflake::<L>::encode(slot)
    }
}

/// The fields of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// The bucket, below the number of buckets.
    pub bucket: u16,
    /// Ticks since the layout's epoch: [`SnowflakeLayout::TIME_BITS`].
    pub time: u64,
    /// [`SnowflakeLayout::NODE_BITS`].
    pub node: u64,
    /// [`SnowflakeLayout::SEQUENCE_BITS`].
    pub sequence: u64,
}

/// # Example
///
/// ```
/// use ordid_core::scheme::{Layout, SnowflakeSpread, snowflake_spread::Parts};
///
/// let parts = Parts { bucket: 5, time: 86_400_000, node: 7, sequence: 3 }; // 2024-01-02
/// let key = SnowflakeSpread::<16>::pack(parts)?;
/// assert_eq!(key, 5 << 59 | 86_400_000 << 18 | 7 << 10 | 3);
/// assert_eq!(SnowflakeSpread::<16>::unpack(&key)?, parts);
/// # Ok::<(), ordid_core::Error>(())
/// ```
impl<const BUCKETS: u16, L: SnowflakeLayout> Layout for SnowflakeSpread<BUCKETS, L> {
    type Parts = Parts;

    fn pack(parts: Parts) -> Result<i64, Error> {
        let Parts {
            bucket,
            time,
            node,
            sequence,
        } = parts;
        let behind = Snowflake::<L>::pack(Behind {
            time,
            node,
            sequence,
        })?;
        Self::place(bucket, behind)
    }

    fn unpack(raw: &i64) -> Result<Parts, Error> {
        check::<Self>(raw)?;
        let Behind {
            time,
            node,
            sequence,
        } = Snowflake::<L>::unpack(&Self::behind(*raw))?;
        Ok(Parts {
            bucket: Self::bucket(raw),
            time,
            node,
            sequence,
        })
    }

    fn inspect(raw: &i64) -> Result<Inspection, Error> {
        check::<Self>(raw)?;
        let behind = Snowflake::<L>::inspect(&Self::behind(*raw))?;
        Ok(Inspection {
            scheme: Self::NAME,
            bucket: Some(Self::unpack(raw)?.bucket),
            certainty: Certainty::Possible,
            ..behind
        })
    }
}

impl<const BUCKETS: u16, L: SnowflakeLayout> Spread for SnowflakeSpread<BUCKETS, L> {
    fn in_bucket(raw: i64, bucket: u16) -> Result<i64, Error> {
        check::<Self>(&raw)?;
        Self::place(bucket, Self::behind(raw))
    }

    fn bounds_in(bucket: u16, timestamp: Timestamp) -> Result<(i64, i64), Error> {
        let (lowest, highest) = Snowflake::<L>::bounds_at(timestamp)?;
        Ok((Self::place(bucket, lowest)?, Self::place(bucket, highest)?))
    }

    fn ends_of(bucket: u16) -> Result<(i64, i64), Error> {
        let behind = (1 << Snowflake::<L>::BITS) - 1;
        Ok((Self::place(bucket, 0)?, Self::place(bucket, behind)?))
    }
}

/// Makes keys for one node ([`with_node`](OrderedGenerator::with_node)) after buckets that take turns. They rise in
/// each bucket, over all threads that share the generator.
#[cfg(feature = "std")]
pub type SnowflakeSpreadGenerator<
    const BUCKETS: u16 = 16,
    L = Rest,
    C = crate::clock::SystemClock,
    E = crate::entropy::ThreadEntropy,
> = OrderedGenerator<SnowflakeSpread<BUCKETS, L>, C, E>;

/// The same type as with `std`, but without defaults.
#[cfg(not(feature = "std"))]
pub type SnowflakeSpreadGenerator<const BUCKETS: u16, L, C, E> =
    OrderedGenerator<SnowflakeSpread<BUCKETS, L>, C, E>;
