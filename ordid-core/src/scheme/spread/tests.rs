use std::{collections::HashSet, thread};

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::{
    clock::ManualClock,
    entropy::SeededEntropy,
    generator::{OrderedGenerator, Policy},
    key::Scheme,
    page::{Connection, ListOrder, Page, Slice},
    scheme::{
        Snowflake, SnowflakeSpread, UuidV7, UuidV7Spread, snowflake::SnowflakeNode,
        snowflake_spread, testing::*, uuid_v7_spread,
    },
};

macro_rules! key_type {
    ($name:ident($raw:ty): $scheme:ty) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        struct $name($raw);

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl KeyType for $name {
            type Raw = $raw;
            type Scheme = $scheme;

            const NAME: &'static str = stringify!($name);
            const PREFIX: Option<&'static str> = None;

            fn from_generated(key: Generated<$scheme>) -> Self {
                Self(key.into_raw())
            }

            fn to_raw(self) -> $raw {
                self.0
            }

            fn from_raw(raw: $raw) -> Result<Self, Error> {
                Generated::check(raw, Self::NAME).map(Self::from_generated)
            }
        }
    };
}

key_type!(EventId(Uuid): UuidV7Spread<16>);
key_type!(PairId(Uuid): UuidV7Spread<2>);
key_type!(ByteId(Uuid): UuidV7Spread<256>);
key_type!(NumberId(i64): SnowflakeSpread<8>);

/// Keys that come now and then: a few in some milliseconds, at times that are far from each other.
fn now_and_then(times: impl Iterator<Item = u64>, of_each: usize) -> Vec<EventId> {
    let clock = ManualClock::at_unix_millis(START);
    let keys = OrderedGenerator::<UuidV7Spread<16>, _, _>::new(
        &clock,
        SeededEntropy::new(7),
        Policy::DEFAULT,
    );
    let mut made = Vec::new();
    for millis in times {
        clock.set_unix_millis(START + millis);
        made.extend((0..of_each).map(|_| keys.try_generate_key::<EventId>().unwrap()));
    }
    made
}

fn share_of_fullest(buckets: &[usize]) -> f64 {
    let [sum, most] = [buckets.iter().sum(), *buckets.iter().max().unwrap()]
        .map(|count| f64::from(u32::try_from(count).unwrap()));
    most / sum
}

/// A table that is cut into ranges, as engines do it: a range of more rows than it may have is cut in its middle, and each
/// range takes the inserts of its keys. Returns the largest share of the inserts that a range took in one of the last periods,
/// when the table has grown.
fn busiest_range<K: Ord + Copy>(keys: &[K], splits: Vec<K>) -> f64 {
    const MOST_ROWS: usize = 2_000;
    const PERIOD: usize = 4_000;
    let mut ranges: Vec<Vec<K>> = vec![Vec::new(); splits.len() + 1];
    let mut starts = splits;
    let periods = keys.len() / PERIOD;
    let mut busiest = 0.0_f64;
    for (period, keys) in keys.chunks(PERIOD).enumerate() {
        let mut inserts = vec![0_usize; ranges.len()];
        for key in keys {
            let range = starts.partition_point(|start| start <= key);
            inserts[range] += 1;
            let rows = &mut ranges[range];
            let place = rows.partition_point(|row| row < key);
            rows.insert(place, *key);
        }
        if period + 3 >= periods {
            busiest = busiest.max(share_of_fullest(&inserts));
        }
        let mut range = 0;
        while range < ranges.len() {
            if ranges[range].len() > MOST_ROWS {
                let upper = ranges[range].split_off(MOST_ROWS / 2);
                starts.insert(range, upper[0]);
                ranges.insert(range + 1, upper);
            }
            range += 1;
        }
    }
    busiest
}

#[test]
fn ranges_of_a_table_take_even_loads_of_spread_keys_and_one_takes_all_that_rise() {
    let spread = now_and_then((0..20_000).map(|tick| tick * 3), 2);
    let share = busiest_range(&spread, EventId::splits());
    // A sixteenth is 0.0625.
    assert!(share < 0.08, "{share}");
    // The engine also finds the splits by itself, if there are none at first.
    let share = busiest_range(&spread, Vec::new());
    assert!(share < 0.15, "{share}");

    let generator = scripted_at::<UuidV7>((), START);
    let rising: Vec<Uuid> = (0..40_000)
        .map(|tick| {
            generator.clock().set_unix_millis(START + tick * 3 / 2);
            next(&generator)
        })
        .collect();
    let share = busiest_range(&rising, Vec::new());
    assert!(share > 0.99, "{share}");
}

#[test]
fn ranges_of_a_table_take_even_loads_of_spread_integers_and_one_takes_all_that_rise() {
    let from = 1_704_067_200_000 + 86_400_000;
    let made = |clock: &ManualClock, make: &dyn Fn() -> i64| -> Vec<i64> {
        let key = |tick: u64| {
            clock.set_unix_millis(from + tick * 3 / 2);
            make()
        };
        (0..40_000).map(key).collect()
    };

    let generator = scripted_at::<SnowflakeSpread<8>>(SnowflakeNode::new(5).unwrap(), from);
    let spread = made(generator.clock(), &|| next(&generator));
    let splits = NumberId::splits().into_iter().map(KeyType::to_raw);
    let share = busiest_range(&spread, splits.collect());
    // An eighth is 0.125.
    assert!(share < 0.15, "{share}");
    let share = busiest_range(&spread, Vec::new());
    assert!(share < 0.25, "{share}");

    let generator = scripted_at::<Snowflake>(SnowflakeNode::new(5).unwrap(), from);
    let rising = made(generator.clock(), &|| next(&generator));
    let share = busiest_range(&rising, Vec::new());
    assert!(share > 0.99, "{share}");
}

/// The beat of a timer must not choose the bucket.
#[test]
fn keys_at_every_beat_are_spread() {
    for beat in [
        1, 2, 7, 10, 16, 64, 100, 1_000, 1_024, 4_096, 60_000, 3_600_000,
    ] {
        let mut buckets = [0; 16];
        for key in now_and_then((0..4_000).map(|tick| tick * beat), 1) {
            buckets[usize::from(key.bucket())] += 1;
        }
        let share = share_of_fullest(&buckets);
        assert!(share < 0.09, "every {beat} ms: {buckets:?}");

        // These keys have no random start of the count, so the time alone spreads them.
        let node = SnowflakeNode::new(0).unwrap();
        let from = 1_704_067_200_000 + 86_400_000;
        let generator = scripted_at::<SnowflakeSpread<16>>(node, from);
        let mut buckets = [0; 16];
        for tick in 0..4_000 {
            generator.clock().set_unix_millis(from + tick * beat);
            let bucket = SnowflakeSpread::<16>::bucket(&next(&generator));
            buckets[usize::from(bucket)] += 1;
        }
        let share = share_of_fullest(&buckets);
        assert!(share < 0.09, "every {beat} ms: {buckets:?}");
    }
}

/// A burst over many processes must not meet in one bucket.
#[test]
fn first_keys_of_many_nodes_at_one_time_are_spread() {
    for millis in 0..100 {
        let from = 1_704_067_200_000 + 86_400_000 + millis;
        let mut buckets = [0; 16];
        for node in 0..256 {
            let node = SnowflakeNode::new(node).unwrap();
            let generator = scripted_at::<SnowflakeSpread<16>>(node, from);
            let bucket = SnowflakeSpread::<16>::bucket(&next(&generator));
            buckets[usize::from(bucket)] += 1;
        }
        let share = share_of_fullest(&buckets);
        assert!(share < 0.12, "{buckets:?}");
    }
}

#[test]
fn keys_of_a_millisecond_take_turns() {
    let keys = now_and_then(0..100, 16);
    for sixteen in keys.chunks(16) {
        let buckets: HashSet<u16> = sixteen.iter().map(|key| key.bucket()).collect();
        assert_eq!(buckets.len(), 16);
    }
}

#[test]
fn a_bucket_that_there_is_not_is_refused() {
    let key = now_and_then(0..1, 1)[0];
    assert_eq!(key.in_bucket(15).unwrap().bucket(), 15);
    let error = key.in_bucket(16).unwrap_err();
    assert!(error.is_layout());
    assert_eq!(
        error.to_string(),
        "bucket 16 does not fit: scheme uuid_v7_spread has 4 bits for it"
    );
    assert!(
        UuidV7Spread::<16>::in_bucket(Uuid::nil(), 1)
            .unwrap_err()
            .is_layout()
    );
    assert!(
        SnowflakeSpread::<8>::in_bucket(-1, 1)
            .unwrap_err()
            .is_layout()
    );
    let error = NumberId(0).in_bucket(8).unwrap_err();
    assert_eq!(
        error.to_string(),
        "bucket 8 does not fit: scheme snowflake_spread has 3 bits for it"
    );
}

#[test]
fn parts_that_do_not_fit_are_named() {
    let parts = uuid_v7_spread::Parts {
        bucket: 15,
        unix_ts_ms: (1 << 48) - 1,
        counter: (1 << 42) - 1,
        random: (1 << 27) - 1,
    };
    let raw = UuidV7Spread::<16>::pack(parts).unwrap();
    assert_eq!(raw.to_string(), "ffffffff-ffff-8fff-bfff-ffffffffffff");
    let (bucket, unix_ts_ms) = (16, 1 << 48);
    let (counter, random) = (1 << 42, 1 << 27);
    does_not_fit::<UuidV7Spread<16>, _>([
        (uuid_v7_spread::Parts { bucket, ..parts }, "bucket 16", 4),
        (
            uuid_v7_spread::Parts {
                unix_ts_ms,
                ..parts
            },
            "unix_ts_ms 281474976710656",
            48,
        ),
        (
            uuid_v7_spread::Parts { counter, ..parts },
            "counter 4398046511104",
            42,
        ),
        (
            uuid_v7_spread::Parts { random, ..parts },
            "random 134217728",
            27,
        ),
    ]);
    let parts = snowflake_spread::Parts {
        bucket: 15,
        time: (1 << 41) - 1,
        node: 255,
        sequence: 1_023,
    };
    assert_eq!(SnowflakeSpread::<16>::pack(parts).unwrap(), i64::MAX);
    does_not_fit::<SnowflakeSpread<16>, _>([(
        snowflake_spread::Parts {
            bucket: 16,
            ..parts
        },
        "bucket 16",
        4,
    )]);
}

/// The bucket of a value is written in rows: another hash would put a tenant's new rows elsewhere.
#[test]
fn the_bucket_of_a_value_is_the_same_for_ever() {
    let tenants = [1, 2, 3, 4].map(Uuid::from_u128);
    assert_eq!(
        tenants.map(|tenant| EventId::bucket_of(&tenant)),
        tenants.map(|tenant| Scatter::by_hash(16).bucket(&tenant))
    );
    assert_eq!(tenants.map(|tenant| EventId::bucket_of(&tenant)), PINNED);
}

/// By another program: SipHash-2-4 of the 16 bytes under the key `ordid scatter v1`, modulo 16, in Python.
const PINNED: [u16; 4] = [2, 5, 12, 10];

#[test]
fn threads_take_turns() {
    let of_thread = || thread::spawn(EventId::bucket_of_thread).join().unwrap();
    let buckets: HashSet<u16> = (0..16).map(|_| of_thread()).collect();
    // Threads of other tests may have taken a turn between.
    assert!(buckets.len() > 8, "{buckets:?}");
    assert_eq!(EventId::bucket_of_thread(), EventId::bucket_of_thread());
}

#[test]
fn a_generator_of_one_bucket_makes_all_of_its_keys_there() {
    let clock = ManualClock::at_unix_millis(START);
    let inner = OrderedGenerator::<UuidV7Spread<256>, _, _>::new(
        &clock,
        SeededEntropy::new(3),
        Policy::DEFAULT,
    );
    let keys = InBucket::new(&inner, 200).unwrap();
    let mut made = vec![keys.try_generate_key::<ByteId>().unwrap()];
    keys.try_fill_with(50, |key| made.push(ByteId::from_generated(key)))
        .unwrap();
    let reserved = keys.reserve(5).unwrap();
    assert_eq!(reserved.size_hint(), (5, Some(5)));
    made.extend(reserved.map(|key| ByteId::from_generated(key.unwrap())));
    assert!(made.is_sorted_by(|left, right| left < right));
    let older = Timestamp::from_unix_millis(START - 5_000).unwrap();
    let older = ByteId::from_generated(keys.generate_at(older).unwrap());
    assert!(older < made[0]);
    made.push(older);
    assert!(made.iter().all(|key| key.bucket() == 200));
    assert!(InBucket::new(&inner, 256).unwrap_err().is_layout());
    assert_eq!(keys.events(), inner.events());
}

/// Reads a list page by page, as a program does that asks each bucket.
fn read<K: SpreadKey>(table: &[K], order: ListOrder, page_rows: u32, is_backward: bool) -> Vec<K> {
    let select = |slice: &Slice<K>| -> Vec<K> {
        let mut rows: Vec<K> = table
            .iter()
            .filter(|key| {
                slice.above.is_none_or(|above| **key > above)
                    && slice.below.is_none_or(|below| **key < below)
            })
            .copied()
            .collect();
        rows.sort_unstable();
        if slice.is_descending {
            rows.reverse();
        }
        rows.truncate(usize::try_from(slice.rows()).unwrap());
        rows
    };
    let mut found = Vec::new();
    let mut page = if is_backward {
        Page::last(page_rows)
    } else {
        Page::first(page_rows)
    };
    loop {
        let slice = page.slice(order, 1_000).unwrap();
        let buckets = slice.buckets();
        assert_eq!(buckets.len(), usize::from(K::Scheme::BUCKETS));
        let of_buckets: Vec<Vec<K>> = buckets.iter().map(select).collect();
        for (bucket, rows) in of_buckets.iter().enumerate() {
            assert!(rows.iter().all(|key| usize::from(key.bucket()) == bucket));
        }
        let rows = merge(of_buckets, slice.is_descending, |key| *key);
        let connection = Connection::new(&slice, rows, |key| *key);
        let nodes = connection.nodes().copied();
        let info = connection.page_info;
        if is_backward {
            found.splice(0..0, nodes);
            match info.start_cursor {
                Some(cursor) if info.has_previous_page => {
                    page = Page::last(page_rows).before(cursor);
                }
                _ => return found,
            }
        } else {
            found.extend(nodes);
            match info.end_cursor {
                Some(cursor) if info.has_next_page => page = Page::first(page_rows).after(cursor),
                _ => return found,
            }
        }
    }
}

#[test]
fn pages_are_in_the_order_of_time_over_all_buckets() {
    let made = now_and_then((0..300).map(|tick| tick * 5), 3);
    let mut reverse = made.clone();
    reverse.reverse();
    for rows in [1, 7, 900, 1_000] {
        for is_backward in [false, true] {
            assert_eq!(read(&made, ListOrder::Ascending, rows, is_backward), made);
            assert_eq!(
                read(&made, ListOrder::Descending, rows, is_backward),
                reverse
            );
        }
    }
}

proptest! {
    /// This holds for any keys, also for those that no generator made.
    #[test]
    fn merged_keys_are_in_the_order_of_what_stands_behind_the_bucket(
        bits in prop::collection::vec(any::<i64>(), 0..60),
        is_descending: bool,
    ) {
        let keys: Vec<NumberId> = bits
            .iter()
            .map(|bits| NumberId(SnowflakeSpread::<8>::coerce(*bits)))
            .collect();
        let mut buckets = vec![Vec::new(); 8];
        for key in &keys {
            buckets[usize::from(key.bucket())].push(*key);
        }
        for bucket in &mut buckets {
            bucket.sort_unstable();
            if is_descending {
                bucket.reverse();
            }
        }
        let merged = merge(buckets, is_descending, |key| *key);
        prop_assert_eq!(merged.len(), keys.len());
        let behind: Vec<i64> = merged.iter().map(|key| key.in_bucket(0).unwrap().0).collect();
        if is_descending {
            prop_assert!(behind.is_sorted_by(|left, right| left >= right));
        } else {
            prop_assert!(behind.is_sorted());
        }
    }

    #[test]
    fn a_key_is_the_same_in_each_bucket(bits: u128, bucket in 0_u16..2) {
        let key = PairId(UuidV7Spread::<2>::coerce(Uuid::from_u128(bits)));
        let moved = key.in_bucket(bucket).unwrap();
        prop_assert_eq!(moved.bucket(), bucket);
        prop_assert_eq!(moved.in_bucket(key.bucket()).unwrap(), key);
        prop_assert!(moved.cmp_by_time(key).is_eq());
        let (lowest, highest) = ends_of::<PairId>(bucket);
        prop_assert!(lowest <= moved && moved <= highest);
        let parts = UuidV7Spread::<2>::unpack(&moved.0).unwrap();
        prop_assert_eq!(UuidV7Spread::<2>::pack(parts).unwrap(), moved.0);
    }
}

#[test]
fn each_bucket_begins_at_its_split() {
    let splits = EventId::splits();
    let texts: Vec<String> = splits.iter().map(EventId::to_string).collect();
    assert_eq!(texts.len(), 15);
    assert_eq!(texts[0], "10000000-0000-8000-a000-000000000000");
    assert_eq!(texts[14], "f0000000-0000-8000-a000-000000000000");
    assert_eq!(
        ends_of::<EventId>(14).1.to_string(),
        "efffffff-ffff-8fff-bfff-ffffffffffff"
    );
    for key in now_and_then(0..50, 3) {
        let range = splits.partition_point(|split| *split <= key);
        assert_eq!(range, usize::from(key.bucket()));
    }
    let splits: Vec<i64> = NumberId::splits().iter().map(|key| key.0).collect();
    assert_eq!(splits[0], 1 << 59);
    assert_eq!(splits.len(), 7);
}
