use proptest::prelude::*;

use super::*;
use crate::{
    clock::ManualClock,
    entropy::SeededEntropy,
    generator::{Generator, Policy},
    key::Generated,
    scheme::{Ulid, uuid_v7::UuidV7Generator},
};

fn keys(count: usize) -> Vec<Uuid> {
    let clock = ManualClock::at_unix_millis(1_645_557_742_000);
    let generator = UuidV7Generator::new(&clock, SeededEntropy::new(3), Policy::DEFAULT);
    (0..count as u64)
        .map(|step| {
            clock.set_unix_millis(1_645_557_742_000 + step / 4);
            generator.try_generate().unwrap().into_raw()
        })
        .collect()
}

/// Keys per bucket.
fn counts<K: Scatterable>(scatter: Scatter, keys: &[K]) -> Vec<usize> {
    let mut counts = vec![0; usize::from(scatter.buckets())];
    for key in keys {
        counts[usize::from(scatter.bucket(key))] += 1;
    }
    counts
}

/// The sum of squared deviations over the expected count: about as many as there are buckets if
/// keys are spread by chance, with a standard deviation of the root of twice that.
fn chi_squared(counts: &[usize]) -> f64 {
    let whole: usize = counts.iter().sum();
    let expected = whole as f64 / counts.len() as f64;
    let deviations = counts.iter().map(|&count| count as f64 - expected);
    deviations.map(|by| by * by / expected).sum()
}

#[test]
fn a_hash_spreads_evenly() {
    let uuids = keys(64_000);
    let texts: Vec<String> = uuids
        .iter()
        .map(|raw| Generated::<Ulid>::new(*raw).to_string())
        .collect();
    let integers: Vec<i64> = (0..64_000).collect();
    for buckets in [2, 7, 16, 100, 256, 1_000] {
        let scatter = Scatter::by_hash(buckets);
        let freedom = f64::from(buckets) - 1.0;
        // Five standard deviations: the seed is fixed.
        let bound = freedom + 5.0 * (2.0 * freedom).sqrt();
        for counts in [
            counts(scatter, &uuids),
            counts(scatter, &texts),
            counts(scatter, &integers),
        ] {
            assert!(chi_squared(&counts) < bound, "{buckets}: {counts:?}");
        }
    }
}

#[test]
fn reversed_bits_visit_all_buckets_in_turn() {
    let integers: Vec<u64> = (1_000..1_000 + 4_096).collect();
    let counts = counts(Scatter::by_reversed_bits(64, 0), &integers);
    assert!(counts.iter().all(|&count| count == 64), "{counts:?}");
    // Neighbours are a quarter of all buckets apart at least.
    for pair in integers.windows(2) {
        let [left, right] = [0, 1].map(|i| Scatter::by_reversed_bits(64, 0).bucket(&pair[i]));
        assert!(left.abs_diff(right) >= 16, "{pair:?}");
    }
    // By milliseconds: the keys of one are together, and those of 16 take all turns.
    let scatter = Scatter::by_reversed_bits(16, 80);
    let uuids = keys(64);
    for (four, step) in uuids.chunks(4).zip(0_u16..) {
        let bucket = scatter.bucket(&four[0]);
        assert!(four.iter().all(|key| scatter.bucket(key) == bucket));
        // 1,645,557,742,000 ends in the bits 0000.
        assert_eq!(bucket, (step << 12).reverse_bits() & 0xf);
    }
}

#[test]
fn order_is_kept_inside_a_bucket() {
    let uuids = keys(5_000);
    for scatter in [
        Scatter::by_hash(16),
        Scatter::by_hash(300),
        Scatter::by_reversed_bits(8, 80),
    ] {
        let mut last = vec![None; 300];
        let mut all = Vec::new();
        for key in &uuids {
            let scattered = scatter.scatter(*key);
            let last = &mut last[usize::from(scattered.bucket())];
            let now = Some((scattered, scattered.to_bytes(), scattered.to_string()));
            assert!(*last < now);
            *last = now;
            all.push(scattered);
        }
        all.sort();
        assert!(all.is_sorted_by_key(|key| key.to_bytes()));
        assert!(all.is_sorted_by_key(|key| key.to_string()));
    }
}

#[test]
fn buckets_do_not_depend_on_the_machine() {
    // SipHash-2-4 by an implementation of its own in Python: a change would lose stored keys.
    let nil = Uuid::nil();
    let max = Uuid::max();
    let buckets = |count| {
        let scatter = Scatter::by_hash(count);
        [
            scatter.bucket(&nil),
            scatter.bucket(&max),
            scatter.bucket(&1_i64),
            scatter.bucket(&1_u64),
            scatter.bucket(&String::from("01ARYZ6S41TSV4RRFFQ69G5FAV")),
        ]
    };
    assert_eq!(buckets(16), [9, 11, 8, 11, 10]);
    assert_eq!(buckets(1_000), [649, 459, 888, 139, 18]);
}

#[test]
fn forms_are_as_documented() {
    let key: Uuid = "01900000-0000-7000-8000-000000000000".parse().unwrap();
    let scattered = Scattered {
        bucket: 7,
        wide: false,
        key,
    };
    let text = "07-01900000-0000-7000-8000-000000000000";
    assert_eq!(scattered.to_string(), text);
    assert_eq!(format!("{scattered:>41}"), format!("  {text}"));
    assert_eq!(scattered.to_bytes(), [&[7], &key.as_bytes()[..]].concat());
    let wide = Scattered {
        bucket: 0x1ff,
        wide: true,
        key: 42_i64,
    };
    assert_eq!(wide.to_string(), "01ff-0000000000000000042");
    assert_eq!(wide.to_bytes(), [1, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 42]);
    let text = Scatter::by_hash(1).scatter(-1_i64).to_string();
    assert_eq!(text, "00--7fffffffffffffff");
    assert_eq!(Scatter::by_hash(1).parse::<i64>(&text).unwrap().key(), &-1);
    let most = Scatter::by_hash(1).scatter(u64::MAX).to_string();
    assert_eq!(most, "00-18446744073709551615");
}

#[test]
fn a_wrong_bucket_is_an_error_that_names_both() {
    let scatter = Scatter::by_reversed_bits(8, 0);
    let right = scatter.scatter(3_u64);
    assert_eq!(right.to_string(), "06-00000000000000000003");
    let error = scatter.parse::<u64>("05-00000000000000000003").unwrap_err();
    assert!(error.is_parse());
    assert_eq!(
        error.to_string(),
        "expected bucket 6 of 8 for this key, found bucket 5 in \"05-00000000000000000003\": it was \
         spread by another rule, or altered"
    );
    let mut bytes = right.to_bytes();
    assert_eq!(scatter.read::<u64>(&bytes).unwrap(), right);
    bytes[0] = 0xff;
    assert!(scatter.read::<u64>(&bytes).unwrap_err().is_parse());
}

#[test]
fn other_texts_and_bytes_are_refused() {
    let scatter = Scatter::by_hash(1);
    for text in [
        "",
        "-",
        "00",
        "0-00000000000000000003",
        "000-00000000000000000003",
        "0A-00000000000000000003",
        "+0-00000000000000000003",
        "00-3",
        "00-0000000000000000000３",
        "00-99999999999999999999",
        "00-+0000000000000000003",
    ] {
        assert!(scatter.parse::<u64>(text).unwrap_err().is_parse(), "{text}");
    }
    for text in [
        "00-9223372036854775808",
        "00--8000000000000000",
        "00--7FFFFFFFFFFFFFFF",
        "00--000000000000001",
    ] {
        assert!(scatter.parse::<i64>(text).unwrap_err().is_parse(), "{text}");
    }
    for bytes in [&[][..], &[0], &[0; 8], &[0; 10]] {
        assert!(scatter.read::<u64>(bytes).unwrap_err().is_parse());
        assert!(Scatter::by_hash(999).read::<u64>(bytes).is_err());
    }
    assert!(scatter.read::<String>(b"\0\xff").unwrap_err().is_parse());
    let hostile = "0".repeat(1 << 20);
    for error in [
        scatter.parse::<String>(&hostile).unwrap_err(),
        scatter.read::<String>(hostile.as_bytes()).unwrap_err(),
        scatter.read::<Uuid>(hostile.as_bytes()).unwrap_err(),
    ] {
        let message = error.to_string();
        assert!(error.is_parse() && message.len() < 250, "{message}");
    }
}

#[test]
fn a_range_of_keys_is_one_range_in_each_bucket() {
    let scatter = Scatter::by_hash(5);
    let uuids = keys(400);
    let (lowest, highest) = (uuids[100], uuids[199]);
    let ranges: Vec<_> = scatter.ranges(lowest, highest).collect();
    assert_eq!(ranges.len(), 5);
    assert!(ranges.is_sorted());
    let found = uuids.iter().filter(|key| {
        let scattered = scatter.scatter(**key);
        ranges
            .iter()
            .any(|(low, high)| *low <= scattered && scattered <= *high)
    });
    assert!(found.eq(&uuids[100..200]));
}

fn comes_back<K: Scatterable + Clone + fmt::Debug>(a: K, b: K, buckets: u16) {
    for scatter in [
        Scatter::by_hash(buckets),
        Scatter::by_reversed_bits(1 << (buckets % 16), u32::from(buckets)),
    ] {
        let [a, b] = [&a, &b].map(|key| scatter.scatter(key.clone()));
        assert!(a.bucket() < scatter.buckets());
        assert_eq!(scatter.read::<K>(&a.to_bytes()).unwrap(), a);
        assert_eq!(scatter.parse::<K>(&a.to_string()).unwrap(), a);
        assert_eq!(a.to_bytes().cmp(&b.to_bytes()), a.cmp(&b));
        assert_eq!(a.to_string().cmp(&b.to_string()), a.cmp(&b));
        assert_eq!(a.clone().into_key(), *a.key());
    }
}

proptest! {
    #[test]
    fn all_kinds_come_back_and_sort(
        a: [u8; 24], b: [u8; 24], i: i64, j: i64, s in "\\PC{0,40}", t in "\\PC{0,40}",
        buckets in 1_u16..,
    ) {
        let sixteen = |bytes: &[u8; 24]| Uuid::from_slice(&bytes[..16]).unwrap();
        comes_back(sixteen(&a), sixteen(&b), buckets);
        let fifteen = |bytes: &[u8; 24]| PushId::from_bytes(bytes[..15].try_into().unwrap());
        comes_back(fifteen(&a), fifteen(&b), buckets);
        let twelve = |bytes: &[u8; 24]| ObjectId::from_bytes(bytes[..12].try_into().unwrap());
        comes_back(twelve(&a), twelve(&b), buckets);
        comes_back(Key192::from_bytes(a), Key192::from_bytes(b), buckets);
        comes_back(i, j, buckets);
        comes_back(i.cast_unsigned(), j.cast_unsigned(), buckets);
        comes_back(s, t, buckets);
    }

    #[test]
    fn parsing_is_total(text in "\\PC{0,30}|[0-9a-f]{2}-[-0-9a-f]{0,36}", bytes: Vec<u8>) {
        for scatter in [Scatter::by_hash(3), Scatter::by_hash(3_000)] {
            if let Ok(key) = scatter.parse::<Uuid>(&text) {
                prop_assert_eq!(key.to_string(), &text[..]);
            }
            if let Ok(key) = scatter.parse::<i64>(&text) {
                prop_assert_eq!(key.to_string(), &text[..]);
            }
            if let Ok(key) = scatter.read::<String>(&bytes) {
                prop_assert_eq!(key.to_bytes(), &bytes[..]);
            }
        }
    }
}
