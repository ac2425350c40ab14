//! UUID version 7 after a bucket, for engines that split tables by their keys.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------+-------------------------------------------------------+
//! |bucket |            unix_ts_ms (upper 28 bits)                 |
//! +-------+-----------------------+-------+-------+---------------+
//! |  unix_ts_ms (next 16 bits)    | ver 8 |ms (4) |  counter (8)  |
//! +---+-+-------------------------+-------+-------+---------------+
//! |var|1|                 counter (next 29)                       |
//! +---+-+---+-----------------------------------------------------+
//! | cnt (5) |                27 random bits                        |
//! +---------+-----------------------------------------------------+
//! ```
//!
//! This is the layout of 16 buckets, which take 4 bits. For each further bit of the bucket there is one random bit
//! less at the end, and all fields in between move by one bit: 2 buckets leave 30 random bits, 256 leave 23. Time and
//! counter are those of [`uuid_v7`](super::uuid_v7). The version is 8, because a reader of version 7 would take the
//! bucket for the first bits of the time. The bit after the variant is one in all keys; without it, MariaDB's `UUID`
//! refuses some values of version 8.
//!
//! Bytes are in network order, and keys compare byte by byte. So the bucket comes first, and keys rise in each
//! bucket. [`spread`](super::spread) says which bucket a key gets, and how to read rows in the order of time. Whoever
//! knows one key has the random bits of the next one to guess.
//!
//! # References
//!
//! RFC 9562 sections 5.7 (the fields), 5.8 (version 8). The layout is ours.

use uuid::Uuid;

#[cfg(all(feature = "std", not(loom)))]
use crate::generator::{Policy, ProcessWide, per_type::per_type};
#[cfg(feature = "std")]
use crate::{clock::SystemClock, entropy::ThreadEntropy};
use crate::{
    clock::{TimeScale, Timestamp},
    error::Error,
    generator::{OrderedGenerator, Slot, Slotted},
    key::{RisesAsBytes, RisesInMariaDbUuid, Scheme},
    layout::{Comparison, Orders},
    scheme::{
        anatomy::{
            Certainty, Inspection, Layout, check, fits, has_version, narrowed, split, with_version,
        },
        spread::{Spread, bucket_bits, round_robin},
    },
};

const COUNTER_BITS: u32 = 42;
const TIME_BITS: u32 = 48;
/// All but version, variant and the bit behind it.
const FIELD_BITS: u32 = 121;
/// The fields behind the variant and the bit behind it.
const LAST_BITS: u32 = 61;
/// The bit behind the variant.
const ONE: u128 = 1 << LAST_BITS;

const fn low(bits: u32) -> u128 {
    (1 << bits) - 1
}

/// The scheme `uuid_v7_spread`, of 2 to 256 buckets, a power of two.
#[derive(Debug)]
pub enum UuidV7Spread<const BUCKETS: u16 = 16> {}

impl<const BUCKETS: u16> UuidV7Spread<BUCKETS> {
    const BUCKET_BITS: u32 = bucket_bits(BUCKETS);
    const RANDOM_BITS: u32 = FIELD_BITS - TIME_BITS - COUNTER_BITS - Self::BUCKET_BITS;

    /// Puts the fields around version and variant.
    const fn around_version(fields: u128) -> Uuid {
        let last = fields & low(LAST_BITS);
        let middle = fields >> LAST_BITS & 0xfff;
        let first = fields >> (LAST_BITS + 12);
        Uuid::from_u128(first << 80 | 8 << 76 | middle << 64 | 0b10 << 62 | ONE | last)
    }

    /// The inverse of [`around_version`](Self::around_version).
    const fn fields(raw: &Uuid) -> u128 {
        let bits = raw.as_u128();
        (bits >> 80) << (LAST_BITS + 12) | (bits >> 64 & 0xfff) << LAST_BITS | bits & low(LAST_BITS)
    }

    const fn place(bucket: u64, unix_ts_ms: u64, counter: u64, random: u64) -> Uuid {
        Self::around_version(
            (bucket as u128) << (FIELD_BITS - Self::BUCKET_BITS)
                | (unix_ts_ms as u128) << (COUNTER_BITS + Self::RANDOM_BITS)
                | (counter as u128) << Self::RANDOM_BITS
                | random as u128,
        )
    }
}

impl<const BUCKETS: u16> Scheme for UuidV7Spread<BUCKETS> {
    type Raw = Uuid;

    const NAME: &'static str = "uuid_v7_spread";
    const ORDERS: Orders = Orders::BYTES.and(Comparison::MariaDbUuid);
    const EXPECTED: &'static str = "version 8, variant RFC 9562 and a one behind it";
    const TEXT_IS_RAW: bool = true;
    const BUCKETS: u16 = BUCKETS;

    fn check(raw: &Uuid) -> bool {
        has_version(raw, 8) && raw.as_u128() & ONE != 0
    }

    fn coerce(raw: Uuid) -> Uuid {
        Uuid::from_u128(with_version(raw, 8).as_u128() | ONE)
    }

    fn bucket(raw: &Uuid) -> u16 {
        u16::from(raw.as_bytes()[0]) >> (8 - Self::BUCKET_BITS)
    }

    fn timestamp(raw: &Uuid) -> Option<Timestamp> {
        let parts = Self::unpack(raw).ok()?;
        Some(Timestamp::saturating_from_unix_millis(parts.unix_ts_ms))
    }
}

impl<const BUCKETS: u16> RisesAsBytes for UuidV7Spread<BUCKETS> {}
impl<const BUCKETS: u16> RisesInMariaDbUuid for UuidV7Spread<BUCKETS> {}

impl<const BUCKETS: u16> Slotted for UuidV7Spread<BUCKETS> {
    counter_bits!(index: 20, seed: 41, random: Self::RANDOM_BITS);

    #[inline]
    fn encode(slot: Slot<()>) -> Uuid {
        let bucket = round_robin(slot.time, 0, slot.count, Self::BUCKET_BITS);
        Self::place(bucket, slot.time, slot.count, slot.random)
    }
}

/// The fields of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// The bucket, below the number of buckets.
    pub bucket: u16,
    /// Milliseconds since 1970: 48 bits.
    pub unix_ts_ms: u64,
    /// 42 bits.
    pub counter: u64,
    /// 31 bits minus those of the bucket.
    pub random: u32,
}

/// # Example: the hex digits of 16 buckets are readable
///
/// ```
/// use ordid_core::scheme::{Layout, UuidV7Spread, uuid_v7_spread::Parts};
///
/// let parts = Parts { bucket: 0xb, unix_ts_ms: 0x017f_22e2_79b0, counter: 0x123, random: 0x4567 };
/// let key = UuidV7Spread::<16>::pack(parts)?;
/// assert_eq!(key.to_string(), "b017f22e-279b-8000-a000-000918004567");
/// assert_eq!(UuidV7Spread::<16>::unpack(&key)?, parts);
/// # Ok::<(), ordid_core::Error>(())
/// ```
impl<const BUCKETS: u16> Layout for UuidV7Spread<BUCKETS> {
    type Parts = Parts;

    fn pack(parts: Parts) -> Result<Uuid, Error> {
        fits::<Self>("bucket", parts.bucket, Self::BUCKET_BITS)?;
        fits::<Self>("unix_ts_ms", parts.unix_ts_ms, TIME_BITS)?;
        fits::<Self>("counter", parts.counter, COUNTER_BITS)?;
        fits::<Self>("random", parts.random, Self::RANDOM_BITS)?;
        Ok(Self::place(
            parts.bucket.into(),
            parts.unix_ts_ms,
            parts.counter,
            parts.random.into(),
        ))
    }

    fn unpack(raw: &Uuid) -> Result<Parts, Error> {
        check::<Self>(raw)?;
        let bits = [
            Self::BUCKET_BITS,
            TIME_BITS,
            COUNTER_BITS,
            Self::RANDOM_BITS,
        ];
        let [bucket, unix_ts_ms, counter, random] = split(Self::fields(raw), bits);
        Ok(Parts {
            bucket: narrowed(bucket),
            unix_ts_ms: narrowed(unix_ts_ms),
            counter: narrowed(counter),
            random: narrowed(random),
        })
    }

    /// Accepts any UUID of version 8 with a one after the variant, because a key does not say over how many buckets
    /// its maker spreads keys.
    fn inspect(raw: &Uuid) -> Result<Inspection, Error> {
        let parts = Self::unpack(raw)?;
        Ok(Inspection {
            moment: Some(TimeScale::UNIX_MILLIS.moment_at(parts.unix_ts_ms)),
            bucket: Some(parts.bucket),
            counter: Some(parts.counter),
            version: Some(8),
            ..Inspection::of::<Self>(Certainty::Possible)
        })
    }
}

impl<const BUCKETS: u16> Spread for UuidV7Spread<BUCKETS> {
    fn in_bucket(raw: Uuid, bucket: u16) -> Result<Uuid, Error> {
        let parts = Self::unpack(&raw)?;
        Self::pack(Parts { bucket, ..parts })
    }

    fn bounds_in(bucket: u16, timestamp: Timestamp) -> Result<(Uuid, Uuid), Error> {
        let parts = |counter, random| Parts {
            bucket,
            unix_ts_ms: timestamp.as_unix_millis(),
            counter,
            random,
        };
        let highest = parts(
            (1 << COUNTER_BITS) - 1,
            u32::MAX >> (32 - Self::RANDOM_BITS),
        );
        Ok((Self::pack(parts(0, 0))?, Self::pack(highest)?))
    }

    fn ends_of(bucket: u16) -> Result<(Uuid, Uuid), Error> {
        fits::<Self>("bucket", bucket, Self::BUCKET_BITS)?;
        let first = u128::from(bucket) << (FIELD_BITS - Self::BUCKET_BITS);
        let behind = low(FIELD_BITS - Self::BUCKET_BITS);
        Ok((
            Self::around_version(first),
            Self::around_version(first | behind),
        ))
    }
}

#[cfg(all(feature = "std", not(loom)))]
impl<const BUCKETS: u16> ProcessWide for UuidV7Spread<BUCKETS> {
    fn process_wide() -> &'static OrderedGenerator<Self, SystemClock, ThreadEntropy> {
        per_type(|| OrderedGenerator::of_process(SystemClock, ThreadEntropy, Policy::DEFAULT))
    }
}

/// Makes UUIDs of version 7 after buckets that take turns. They rise in each bucket, over all threads that share the
/// generator.
#[cfg(feature = "std")]
pub type UuidV7SpreadGenerator<const BUCKETS: u16 = 16, C = SystemClock, E = ThreadEntropy> =
    OrderedGenerator<UuidV7Spread<BUCKETS>, C, E>;

/// The same type as with `std`, but without defaults.
#[cfg(not(feature = "std"))]
pub type UuidV7SpreadGenerator<const BUCKETS: u16, C, E> =
    OrderedGenerator<UuidV7Spread<BUCKETS>, C, E>;
