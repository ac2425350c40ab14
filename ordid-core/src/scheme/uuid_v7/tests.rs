use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::{
    clock::{Clock as _, SystemClock},
    generator::{Generator, Policy, Rollback},
    key::{Generated, KeyType as _, StaticScheme as _},
    scheme::testing::*,
};

fn scripted() -> Scripted<UuidV7> {
    scripted_at((), START)
}

/// Time, 42-bit counter, random bits.
fn parts(raw: Uuid) -> (u64, u64, u64) {
    let (high, low) = raw.as_u64_pair();
    let counter = (high & 0xfff) << 30 | (low >> 32) & 0x3fff_ffff;
    (high >> 16, counter, low & 0xffff_ffff)
}

#[test]
fn parts_match_the_vector_of_the_rfc() {
    let json = vectors("rfc9562");
    let vector = &json["v7"][0];
    let hex = |name: &str| hex(&vector[name]);
    let expected = uuid(&vector["uuid"]);
    let time = Timestamp::from_unix_millis(hex("unix_ts_ms")).unwrap();
    let parts = Parts {
        unix_ts_ms: hex("unix_ts_ms"),
        rand_a: u16::try_from(hex("rand_a")).unwrap(),
        rand_b: hex("rand_b"),
    };
    assert_eq!(UuidV7::pack(parts).unwrap(), expected);
    assert_eq!(UuidV7::unpack(&expected).unwrap(), parts);
    assert_eq!(UuidV7::timestamp(&expected), Some(time));
    assert_eq!(time.as_unix_millis(), json["unix_ms"].as_u64().unwrap());
}

#[test]
fn the_uuid_crate_reads_the_same_time() {
    let raw = scripted().try_generate().unwrap().into_raw();
    let (seconds, nanos) = raw.get_timestamp().unwrap().to_unix();
    assert_eq!(seconds * 1000 + u64::from(nanos) / 1_000_000, START);
    assert!(UuidV7::check(&raw));
}

#[test]
fn the_counter_starts_below_a_zero_bit_and_rises_by_one() {
    let generator = scripted();
    let first = parts(generator.try_generate().unwrap().into_raw());
    let second = parts(generator.try_generate().unwrap().into_raw());
    assert_eq!((first.0, second.0), (START, START));
    assert_eq!(second.1, first.1 + 1);
    assert!(first.1 < 1 << 41);
    generator.clock().set_unix_millis(START + 1);
    let third = parts(generator.try_generate().unwrap().into_raw());
    assert_eq!(third.0, START + 1);
    assert_ne!(third.1, second.1 + 1, "a new start each millisecond");
}

#[test]
fn a_fill_makes_the_keys_that_single_calls_make() {
    let [singly, filled] = [scripted(), scripted()];
    let keys = [(); 2].map(|()| next(&singly));
    assert_eq!(next(&filled), keys[0]);
    assert_eq!(many(&filled, 1), keys[1..]);
}

#[test]
fn keys_of_one_fill_rise_across_milliseconds_and_batches() {
    let generator = scripted();
    generator.clock().freeze();
    let count = 2_200_000;
    let mut last = Uuid::nil();
    let mut made = 0;
    generator
        .try_fill_with(count, |key| {
            let raw = key.into_raw();
            assert!(raw > last);
            last = raw;
            made += 1;
        })
        .unwrap();
    assert_eq!(made, count);
    assert_eq!(parts(last).0, START + 2);
}

#[test]
fn a_reservation_is_consecutive_and_ends() {
    let generator = scripted();
    let mut reserved = generator.reserve(3).unwrap();
    let outside = generator.try_generate().unwrap().into_raw();
    assert_eq!(reserved.len(), 3);
    let keys: Vec<_> = reserved
        .by_ref()
        .map(|key| key.unwrap().into_raw())
        .collect();
    assert!(keys.is_sorted() && keys.len() == 3 && keys[2] < outside);
    assert_eq!(parts(keys[2]).1, parts(keys[0]).1 + 2);
    assert!(reserved.next().is_none());
    assert_eq!(generator.reserve(0).unwrap().count(), 0);
}

#[test]
fn a_reservation_that_is_forked_claims_anew_in_the_child() {
    let generator = scripted();
    let mut reserved = generator.reserve(4).unwrap();
    let before = reserved.next().unwrap().unwrap().into_raw();
    // What the parent will give out:
    let parent: HashSet<_> = {
        let twin = scripted();
        twin.reserve(4)
            .unwrap()
            .map(|key| parts(key.unwrap().into_raw()).1)
            .collect()
    };
    assert!(parent.contains(&parts(before).1));
    generator.entropy().fork();
    let child: Vec<_> = reserved.map(|key| key.unwrap().into_raw()).collect();
    assert_eq!(child.len(), 3);
    assert!(child[0] > before && child.is_sorted());
    assert!(child.iter().all(|key| !parent.contains(&parts(*key).1)));
}

#[test]
fn a_given_time_is_embedded_and_leaves_the_order_alone() {
    let generator = scripted();
    let first = generator.try_generate().unwrap().into_raw();
    let past = Timestamp::from_unix_millis(1).unwrap();
    let old: HashSet<_> = (0..1000)
        .map(|_| generator.generate_at(past).unwrap().into_raw())
        .collect();
    assert_eq!(old.len(), 1000);
    assert!(old.iter().all(|key| UuidV7::timestamp(key) == Some(past)));
    generator.generate_at(Timestamp::MAX).unwrap();
    let second = generator.try_generate().unwrap().into_raw();
    assert_eq!(parts(second).1, parts(first).1 + 1);
}

#[test]
fn only_version_7_of_the_rfc_variant_is_accepted() {
    for other in [
        "00000000-0000-0000-0000-000000000000",
        "919108f7-52d1-4320-9bac-f847db4148a8",
        "017f22e2-79b0-7cc3-c8c4-dc0c0c07398f",
        "1ec9414c-232a-6b00-b3c8-9f6bdeced846",
    ] {
        let raw: Uuid = other.parse().unwrap();
        assert!(!UuidV7::check(&raw));
        assert_eq!(UuidV7::timestamp(&raw), None);
        assert!(
            Generated::<UuidV7>::check(raw, "OrderId")
                .unwrap_err()
                .is_layout()
        );
        assert_eq!(
            Uuid::from_raw(raw).unwrap(),
            raw,
            "a raw key may hold any version"
        );
    }
    let v4: Uuid = "919108f7-52d1-4320-9bac-f847db4148a8".parse().unwrap();
    assert_eq!(
        Generated::<UuidV7>::check(v4, "OrderId")
            .unwrap_err()
            .to_string(),
        "not a `OrderId`: scheme uuid_v7 expects version 7 and variant RFC 9562, found version 4 \
         and variant RFC 9562 in 919108f7-52d1-4320-9bac-f847db4148a8"
    );
}

#[test]
fn the_random_bits_are_balanced() {
    // 100,000 keys: each of the 32 fresh bits is one in half of them, give or take six standard
    // deviations (158 each).
    let mut keys = Vec::new();
    UuidV7::fill_with(100_000, |key| keys.push(key.into_raw()));
    let ones = ones::<32>(keys.iter().map(|key| parts(*key).2.into()));
    assert!(
        ones.iter().all(|count| count.abs_diff(50_000) < 950),
        "{ones:?}"
    );
}

#[test]
fn process_wide_keys_rise_over_all_ways_to_make_them() {
    let mut keys = vec![Uuid::generate(), Uuid::generate()];
    let mut batch = [Uuid::nil(); 1000];
    Uuid::fill(&mut batch);
    keys.extend(batch);
    keys.extend(Uuid::reserve(10).unwrap());
    keys.push(Uuid::generate());
    assert!(keys.is_sorted_by(|a, b| a < b));
    let now = SystemClock.now().as_unix_millis();
    assert!(keys.iter().all(|key| parts(*key).0.abs_diff(now) < 60_000));
}

#[test]
fn a_policy_of_errors_is_an_error_not_a_panic() {
    let rollback = Rollback::HoldThenError {
        max: std::time::Duration::from_secs(1),
    };
    let policy = Policy { rollback, ..STRICT };
    let generator = scripted_with::<UuidV7>((), START, 1, policy);
    generator.clock().freeze();
    let mut made = 0;
    let error = generator
        .try_fill_with(3_000_000, |_| made += 1)
        .unwrap_err();
    assert!(error.is_overflow());
    assert_eq!(made, 1_048_576, "what was made before stays good");
}

/// The state of a generator ends in 2527, the layout in 10889.
#[test]
fn given_times_are_embedded_to_the_layouts_end() {
    let keys = UuidV7Generator::new(SystemClock, crate::entropy::ThreadEntropy, Policy::DEFAULT);
    for millis in [(1 << 44) - 1, 1 << 44, (1 << 48) - 1] {
        let time = Timestamp::from_unix_millis(millis).unwrap();
        let raw = keys.generate_at(time).unwrap().into_raw();
        assert_eq!(UuidV7::timestamp(&raw), Some(time));
    }
}

proptest! {
    #[test]
    fn any_parts_give_a_key_and_come_back(
        unix_ts_ms in 0..1_u64 << 48,
        rand_a in 0..1_u16 << 12,
        rand_b in 0..1_u64 << 62,
    ) {
        let parts = Parts { unix_ts_ms, rand_a, rand_b };
        let raw = UuidV7::pack(parts).unwrap();
        prop_assert!(UuidV7::check(&raw));
        prop_assert_eq!(UuidV7::unpack(&raw).unwrap(), parts);
        let time = Timestamp::from_unix_millis(unix_ts_ms).unwrap();
        prop_assert_eq!(UuidV7::timestamp(&raw), Some(time));
        let (lowest, highest) = UuidV7::bounds_at(time).unwrap();
        prop_assert!(lowest <= raw && raw <= highest);
        if let Ok(later) = Timestamp::from_unix_millis(unix_ts_ms + 1) {
            prop_assert!(UuidV7::bounds_at(later).unwrap().0 > highest);
        }
    }
}

#[test]
fn parts_that_do_not_fit_are_named() {
    let parts = Parts {
        unix_ts_ms: 0,
        rand_a: 0x1000,
        rand_b: 0,
    };
    does_not_fit::<UuidV7, _>([(parts, "rand_a 4096", 12)]);
}
