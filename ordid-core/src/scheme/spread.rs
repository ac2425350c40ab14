//! Keys that are spread over buckets, for engines that split tables by ranges of keys.
//!
//! CockroachDB, YugabyteDB with range sharding, TiDB, Spanner and Aurora DSQL split a table into ranges of its key.
//! Rising keys send all inserts to the last range, whatever the number of machines. A spread key begins with a few
//! bits for a bucket, and rises within each bucket, so rows are inserted in as many places as there are buckets.
//!
//! On a single machine (SQLite, PostgreSQL, MySQL, MariaDB, SQL Server, Oracle) use rising keys: buckets only cost
//! there.
//!
//! | scheme | raw key | identity |
//! |---|---|---|
//! | [`uuid_v7_spread`](super::uuid_v7_spread) | 128 bits | time, counter, random bits |
//! | [`snowflake_spread`](super::snowflake_spread) | `i64` | time, node, sequence |
//!
//! # Which bucket
//!
//! The keys that a generator makes in a millisecond take turns: with 16 buckets, 16 consecutive keys are in 16
//! different buckets. Each millisecond begins with another bucket, so keys that are made now and then are spread
//! evenly, too, although they do not take turns.
//!
//! The bucket does not make keys unique. So a key may be moved to another bucket once, before it is used
//! ([`SpreadKey::in_bucket`]): to the bucket of a tenant, whose rows are then stored together
//! ([`SpreadKey::bucket_of`]), or to one for each connection or thread ([`SpreadKey::bucket_of_thread`]).
//! [`InBucket`] makes a generator do so for all of its keys.
//!
//! The number of buckets is part of the data. After a change, keys are still unique, and rows are still found by key,
//! but [`SpreadKey::ranges`] misses rows that were written with the other number. Use a few buckets for each machine
//! that the table may ever have: 16 to 64. A query by time reads every bucket, so more buckets are not better.
//!
//! # The order of time
//!
//! A database returns rows bucket by bucket. [`SpreadKey::ranges`] returns a range of time in each bucket, and
//! [`Slice::buckets`](crate::page::Slice::buckets) a page of a list. [`merge`] puts the rows that were read from the
//! buckets in the order of time.
//!
//! So the highest key of a table is that of its last bucket, and not the newest one. After a restart, pass the newest
//! of the highest keys of all buckets, by [`SpreadKey::cmp_by_time`], to
//! [`start_above`](crate::generator::OrderedGenerator::start_above).
//!
//! # Example
//!
//! ```
//! use ordid_core::{KeyType, clock::Timestamp, key::{Generated, Scheme}, scheme::{SpreadKey, UuidV7Spread, spread}};
//! use uuid::Uuid;
//!
//! // #[derive(KeyType)]
//! // #[ordid(scheme = uuid_v7_spread(buckets = 16))]
//! // struct EventId(Uuid);
//! # #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
//! # struct EventId(Uuid);
//! # impl std::fmt::Display for EventId {
//! #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { self.0.fmt(f) }
//! # }
//! # impl KeyType for EventId {
//! #     type Raw = Uuid;
//! #     type Scheme = UuidV7Spread<16>;
//! #     const NAME: &'static str = "EventId";
//! #     const PREFIX: Option<&'static str> = None;
//! #     fn from_generated(key: Generated<Self::Scheme>) -> Self { Self(key.into_raw()) }
//! #     fn to_raw(self) -> Uuid { self.0 }
//! #     fn from_raw(raw: Uuid) -> Result<Self, ordid_core::Error> {
//! #         Generated::check(raw, "EventId").map(Self::from_generated)
//! #     }
//! # }
//! // Claimed together, they are of one millisecond.
//! let events: Vec<EventId> = EventId::reserve(16)?.collect();
//! let mut buckets: Vec<u16> = events.iter().map(|id| id.bucket()).collect();
//! buckets.sort_unstable();
//! assert_eq!(buckets, (0..16).collect::<Vec<u16>>());
//!
//! // What a database returns, bucket by bucket, in the order of time again.
//! let of_bucket = |bucket| events.iter().copied().filter(move |id| id.bucket() == bucket).collect();
//! let read: Vec<Vec<EventId>> = (0..16).map(of_bucket).collect();
//! assert_eq!(spread::merge(read, false, |id| *id), events);
//!
//! // All rows of a tenant in one bucket.
//! let tenant = uuid::uuid!("5d3a1f0e-52a5-4a6b-9a0c-0d2f6d1c7f11");
//! let id = EventId::generate().in_bucket(EventId::bucket_of(&tenant))?;
//! assert_eq!(id.bucket(), EventId::bucket_of(&tenant));
//! # Ok::<(), ordid_core::Error>(())
//! ```
//!
//! # References
//!
//! CockroachDB, "Hash-sharded indexes"; TiDB, "`AUTO_RANDOM`"; YugabyteDB, "Hash and range sharding"; Google Cloud Spanner,
//! "Schema design best practices".

use alloc::vec::Vec;
use core::{cmp::Ordering, ops::Range};

use crate::{
    clock::Timestamp,
    error::Error,
    generator::{Events, Generator},
    key::{
        Generated, KeyType, Scheme,
        scatter::{Scatter, Scatterable},
    },
    scheme::anatomy::Layout,
};

/// A scheme whose keys begin with a bucket and rise within each bucket.
#[diagnostic::on_unimplemented(
    message = "keys of scheme `{Self}` are not spread over buckets",
    label = "no buckets",
    note = "`uuid_v7_spread(buckets = 16)` and `snowflake_spread(buckets = 16)` are"
)]
pub trait Spread: Layout {
    /// Returns the key with another bucket, and otherwise the same.
    ///
    /// # Errors
    ///
    /// A bucket that is not below [`BUCKETS`](Scheme::BUCKETS), and a value of another scheme, give an error that
    /// [`is_layout`](Error::is_layout).
    fn in_bucket(raw: Self::Raw, bucket: u16) -> Result<Self::Raw, Error>;

    /// Returns the lowest and the highest key of a bucket that the scheme can make in a millisecond, as
    /// [`TimeOrdered::bounds_at`](crate::scheme::TimeOrdered::bounds_at) does for schemes without buckets.
    ///
    /// # Errors
    ///
    /// If the time does not fit the layout; the error [`is_clock`](Error::is_clock). For the bucket as
    /// [`in_bucket`](Self::in_bucket).
    fn bounds_in(bucket: u16, timestamp: Timestamp) -> Result<(Self::Raw, Self::Raw), Error>;

    /// Returns the lowest and the highest key of a bucket.
    ///
    /// # Errors
    ///
    /// As [`in_bucket`](Self::in_bucket).
    fn ends_of(bucket: u16) -> Result<(Self::Raw, Self::Raw), Error>;
}

/// Returns the bits of so many buckets.
///
/// # Panics
///
/// If it is no power of two from 2 to 256: at compile time, once a key is made or read.
pub(super) const fn bucket_bits(buckets: u16) -> u32 {
    assert!(
        buckets.is_power_of_two() && buckets >= 2 && buckets <= 256,
        "the number of buckets is a power of two from 2 to 256"
    );
    buckets.trailing_zeros()
}

/// Returns the bucket of a slot: keys of one unit of time take turns, and where each unit begins follows from its time and
/// the node. So keys of many nodes at one time are spread as well, and so is a key now and then, also by a clock that beats
/// as a power of two.
#[inline]
pub(super) const fn round_robin(time: u64, node: u64, count: u64, bits: u32) -> u64 {
    // Knuth's multiplicative hash: the upper bits of the product with 2^64 divided by the golden ratio. The node has a
    // factor of its own, the golden ratio's counterpart of two dimensions.
    let hash = time
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(node.wrapping_mul(0xc13f_a9a9_02a6_328f));
    (hash >> (64 - bits)).wrapping_add(count) & ((1 << bits) - 1)
}

/// A key type whose keys are spread over buckets. Every key type of such a scheme implements it.
pub trait SpreadKey: KeyType<Scheme: Spread> {
    /// Returns the key's bucket.
    fn bucket(self) -> u16 {
        <Self::Scheme>::bucket(&self.to_raw())
    }

    /// Returns the key in another bucket. Use it at most once for a key, and only before a row has the key. If the
    /// keys of two rows differ only in the bucket, they have the same place in the order of time, and a page that
    /// ends at one leaves the other out.
    ///
    /// # Errors
    ///
    /// A bucket that does not exist gives an error that [`is_layout`](Error::is_layout).
    fn in_bucket(self, bucket: u16) -> Result<Self, Error> {
        let raw = Self::Scheme::in_bucket(self.to_raw(), bucket)?;
        Ok(Self::from_generated(Generated::new(raw)))
    }

    /// Returns the bucket of a value, such as a tenant. It is the same in every program and on every machine:
    /// SipHash-2-4 of the value's bytes, as in [`Scatter::by_hash`].
    fn bucket_of<T: Scatterable>(value: &T) -> u16 {
        Scatter::by_hash(<Self::Scheme>::BUCKETS).bucket(value)
    }

    /// Returns the bucket of this thread. New threads take turns over the buckets.
    #[cfg(all(feature = "std", not(loom)))]
    fn bucket_of_thread() -> u16 {
        thread_number() & (<Self::Scheme>::BUCKETS - 1)
    }

    /// Compares two keys without their buckets. This is the order of time, and for keys of one generator the order in
    /// which it made them.
    fn cmp_by_time(self, other: Self) -> Ordering {
        let [left, right] = [self, other].map(behind_bucket);
        left.cmp(&right)
    }

    /// Returns the range of keys for a range of time in each bucket, as [`KeyType::range`] does for schemes without
    /// buckets.
    ///
    /// # Errors
    ///
    /// If an end does not fit the layout; the error [`is_clock`](Error::is_clock).
    fn ranges(times: Range<Timestamp>) -> Result<Vec<Range<Self>>, Error> {
        let lowest = |bucket, time| {
            let (lowest, _) = Self::Scheme::bounds_in(bucket, time)?;
            Ok(Self::from_generated(Generated::new(lowest)))
        };
        let buckets = 0..<Self::Scheme>::BUCKETS;
        let range = |bucket| Ok(lowest(bucket, times.start)?..lowest(bucket, times.end)?);
        buckets.map(range).collect()
    }

    /// Returns the keys at which to split a table, so that each bucket has its own range: the lowest key of each
    /// bucket but the first.
    fn splits() -> Vec<Self> {
        (1..<Self::Scheme>::BUCKETS)
            .map(|bucket| ends_of::<Self>(bucket).0)
            .collect()
    }
}

impl<K: KeyType<Scheme: Spread>> SpreadKey for K {}

/// The lowest and the highest key of a bucket that there is.
pub(crate) fn ends_of<K: SpreadKey>(bucket: u16) -> (K, K) {
    let (lowest, highest) = K::Scheme::ends_of(bucket).expect("there is such a bucket");
    let [lowest, highest] = [lowest, highest].map(|raw| K::from_generated(Generated::new(raw)));
    (lowest, highest)
}

/// The key in bucket 0, for comparisons.
fn behind_bucket<K: SpreadKey>(key: K) -> K::Raw {
    K::Scheme::in_bucket(key.to_raw(), 0).expect("a key of the scheme, and bucket 0")
}

#[cfg(all(feature = "std", not(loom)))]
fn thread_number() -> u16 {
    use core::sync::atomic::{AtomicU16, Ordering};

    static NEXT: AtomicU16 = AtomicU16::new(0);
    std::thread_local! {
        static NUMBER: u16 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}

/// Merges the rows of all buckets in the order of time. Each list has the rows of one bucket in the order of their
/// keys, or, if `is_descending`, in the reverse order.
///
/// `key` returns a row's key.
pub fn merge<K: SpreadKey, T>(
    buckets: Vec<Vec<T>>,
    is_descending: bool,
    key: impl Fn(&T) -> K,
) -> Vec<T> {
    let mut rows: Vec<T> = buckets.into_iter().flatten().collect();
    // A merge sort that finds the runs which are sorted already: the rows of a bucket are one.
    rows.sort_by(|left, right| {
        let order = key(left).cmp_by_time(key(right));
        if is_descending {
            order.reverse()
        } else {
            order
        }
    });
    rows
}

/// A generator whose keys are all in one bucket, for example for a connection, a writer or a tenant.
///
/// # Example
///
/// ```
/// use ordid_core::{
///     clock::SystemClock, entropy::ThreadEntropy, generator::{Generator, Policy},
///     scheme::{spread::InBucket, uuid_v7_spread::UuidV7SpreadGenerator},
/// };
///
/// let keys: UuidV7SpreadGenerator = UuidV7SpreadGenerator::new(SystemClock, ThreadEntropy, Policy::DEFAULT);
/// let of_writer = InBucket::new(&keys, 3)?;
/// let key = of_writer.try_generate()?.into_raw();
/// assert_eq!(key.as_bytes()[0] >> 4, 3);
/// assert!(InBucket::new(&keys, 16).unwrap_err().is_layout());
/// # Ok::<(), ordid_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct InBucket<G> {
    generator: G,
    bucket: u16,
}

impl<G: Generator<Scheme: Spread>> InBucket<G> {
    /// Makes a generator of keys in this bucket from another generator.
    ///
    /// # Errors
    ///
    /// A bucket that does not exist gives an error that [`is_layout`](Error::is_layout).
    pub fn new(generator: G, bucket: u16) -> Result<Self, Error> {
        G::Scheme::ends_of(bucket)?;
        Ok(Self { generator, bucket })
    }

    fn put(&self, key: Generated<G::Scheme>) -> Generated<G::Scheme> {
        let raw = G::Scheme::in_bucket(key.into_raw(), self.bucket);
        Generated::new(raw.expect("a key of the scheme, and a bucket that was checked"))
    }
}

impl<G: Generator<Scheme: Spread>> Generator for InBucket<G> {
    type Scheme = G::Scheme;
    type Reserved<'g>
        = ReservedInBucket<'g, G>
    where
        Self: 'g;

    fn try_generate(&self) -> Result<Generated<G::Scheme>, Error> {
        self.generator.try_generate().map(|key| self.put(key))
    }

    fn generate_at(&self, timestamp: Timestamp) -> Result<Generated<G::Scheme>, Error> {
        let key = self.generator.generate_at(timestamp)?;
        Ok(self.put(key))
    }

    fn try_fill_with(
        &self,
        count: usize,
        mut put: impl FnMut(Generated<G::Scheme>),
    ) -> Result<(), Error> {
        self.generator
            .try_fill_with(count, |key| put(self.put(key)))
    }

    fn reserve(&self, count: usize) -> Result<ReservedInBucket<'_, G>, Error> {
        Ok(ReservedInBucket {
            keys: self.generator.reserve(count)?,
            of: self,
        })
    }

    fn events(&self) -> Events {
        self.generator.events()
    }
}

/// Keys of one bucket that were claimed together; see [`Generator::reserve`].
pub struct ReservedInBucket<'g, G: Generator> {
    keys: G::Reserved<'g>,
    of: &'g InBucket<G>,
}

impl<G: Generator> core::fmt::Debug for ReservedInBucket<'_, G> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ReservedInBucket")
            .field("bucket", &self.of.bucket)
            .finish_non_exhaustive()
    }
}

impl<G: Generator<Scheme: Spread>> Iterator for ReservedInBucket<'_, G> {
    type Item = Result<Generated<G::Scheme>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.keys.next()?;
        Some(key.map(|key| self.of.put(key)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.keys.size_hint()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
