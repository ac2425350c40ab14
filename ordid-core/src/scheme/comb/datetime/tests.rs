use proptest::prelude::*;

use super::*;
use crate::{generator::Generator, scheme::testing::*};

/// 2079-06-06T23:59:59.990Z: the milliseconds after it have no unit of their own.
const LAST: u64 = 3_453_321_599_990;

fn millis(at: u64) -> Timestamp {
    Timestamp::from_unix_millis(at).unwrap()
}

fn ticks_at(unix_millis: u64) -> u64 {
    DOTNET_TICKS_AT_1970 + unix_millis * 10_000
}

fn meets_vectors<S: Layout<Raw = Uuid, Parts = DateTimeParts>>(
    kind: &str,
    at: fn(u64, [u8; 10]) -> Result<DateTimeParts, Error>,
) {
    for vector in vectors_of_kind(kind, 14) {
        let Vector { dotnet_ticks, .. } = vector;
        match at(dotnet_ticks, vector.random(0)) {
            Ok(parts) => meets::<S>(&vector, parts),
            Err(error) => {
                // The original begins anew with day 0.
                assert_eq!(vector.utc, "2079-06-07T00:00:00.0000000Z");
                assert!(error.is_clock());
                let parts = DateTimeParts {
                    guid: vector.random(0),
                    days: 0,
                    units: 0,
                };
                meets::<S>(&vector, parts);
            }
        }
    }
}

#[test]
fn nhibernate_keys_are_those_of_the_original() {
    meets_vectors::<CombNHibernate>("nhibernate_guid_comb", DateTimeParts::nhibernate_at);
}

#[test]
fn rt_comb_legacy_keys_are_those_of_the_original() {
    meets_vectors::<CombRtLegacy>("rtcomb_legacy", DateTimeParts::rt_legacy_at);
}

#[test]
fn nhibernate_2869_keys_of_one_unit_rise() {
    let keys = many(&scripted::<CombNHibernate>(), 100_000);
    let unit = |key| {
        let DateTimeParts { days, units, .. } = CombNHibernate::unpack(key).unwrap();
        (days, units)
    };
    assert!(keys.iter().all(|key| unit(key) == unit(&keys[0])));
    assert_eq!(descents(Comparison::SqlServer, &keys), 0);
    assert_eq!(descents(Comparison::MariaDbUuid, &keys), 0);
}

#[test]
fn a_full_unit_rises_into_the_next() {
    let generator = scripted::<CombRtLegacy>();
    let mut keys = many(&generator, 5);
    generator.reserve((1 << INDEX_BITS) - 10).unwrap();
    keys.extend(many(&generator, 10));
    assert_eq!(descents(Comparison::SqlServer, &keys), 0);
    assert_eq!(descents(Comparison::MariaDbUuid, &keys), 0);
    let units = |key| CombRtLegacy::unpack(key).unwrap().units;
    assert_eq!(units(&keys[9]), units(&keys[0]));
    assert_eq!(units(&keys[10]), units(&keys[0]) + 1);
}

#[test]
fn keys_end_before_the_days_wrap() {
    let generator = scripted_at::<CombNHibernate>((), LAST - 1);
    let before = next(&generator);
    generator.clock().set_unix_millis(LAST);
    let last = next(&generator);
    assert!(CombNHibernate::cmp(&before, &last).is_lt());
    let parts = CombNHibernate::unpack(&last).unwrap();
    assert_eq!((parts.days, parts.units), (u16::MAX, 25_919_997));
    // The last two units, and every time after them.
    for at in [LAST + 4, LAST + 10, LAST + 86_400_000] {
        generator.clock().set_unix_millis(at);
        let error = generator.try_generate().unwrap_err();
        assert!(error.is_clock(), "{error}");
        assert!(generator.generate_at(millis(at)).unwrap_err().is_clock());
    }
    let error = generator.try_generate().unwrap_err();
    assert_eq!(
        error.to_string(),
        "timestamp 3453407999990 ms does not fit: the layout ends at 3453321599990 ms since \
         1970-01-01"
    );
}

#[test]
fn a_full_last_unit_does_not_wrap() {
    let generator = scripted_at::<CombNHibernate>((), LAST);
    generator.reserve((1 << INDEX_BITS) - 2).unwrap();
    let [last_but_one, last] = [(); 2].map(|()| next(&generator));
    assert!(CombNHibernate::cmp(&last_but_one, &last).is_lt());
    assert_eq!(CombNHibernate::unpack(&last).unwrap().units, 25_919_997);
    assert!(generator.try_generate().unwrap_err().is_clock());
}

#[test]
fn bounds_reach_to_the_last_unit_of_the_days() {
    let (_, highest) = CombNHibernate::bounds_at(millis(LAST + 9)).unwrap();
    let parts = CombNHibernate::unpack(&highest).unwrap();
    assert_eq!((parts.days, parts.units), (u16::MAX, 25_919_999));
    let error = CombNHibernate::bounds_at(millis(LAST + 10)).unwrap_err();
    assert!(error.is_clock());
}

#[test]
fn days_of_the_original_end_too() {
    let guid = [0; 10];
    for at in [DateTimeParts::nhibernate_at, DateTimeParts::rt_legacy_at] {
        let last = at(ticks_at(LAST), guid).unwrap();
        assert_eq!(last.days, u16::MAX);
        assert!(at(ticks_at(LAST + 10), guid).unwrap_err().is_clock());
        assert!(at(u64::MAX, guid).unwrap_err().is_clock());
        assert!(at(DOTNET_TICKS_AT_1900 - 1, guid).unwrap_err().is_clock());
        assert_eq!(at(DOTNET_TICKS_AT_1900, guid).unwrap().days, 0);
    }
}

#[test]
fn the_last_ticks_of_a_day_stay_in_it() {
    // 2026-01-01T00:00:00Z. RT.Comb falls back by a day here.
    let midnight = 1_767_225_600_000;
    let original = |ticks| DateTimeParts::rt_legacy_at(ticks, [0; 10]).unwrap();
    let before = original(ticks_at(midnight) - 1);
    let after = original(ticks_at(midnight));
    assert_eq!(before.days, after.days);
    assert!(before.units > after.units, "the original's fault");
    assert_eq!(original(ticks_at(midnight) - 4).days, after.days);
    assert_eq!(original(ticks_at(midnight) - 5).days, after.days - 1);

    let generator = scripted_at::<CombRtLegacy>((), midnight - 1);
    generator.clock().set_nanos(999_900);
    let before = next(&generator);
    generator.clock().set_nanos(0);
    generator.clock().set_unix_millis(midnight);
    let after = next(&generator);
    assert!(CombRtLegacy::cmp(&before, &after).is_lt());
    let [before, after] = [before, after].map(|key| CombRtLegacy::unpack(&key).unwrap());
    assert_eq!((before.days + 1, before.units), (after.days, 25_919_999));
    assert_eq!(after.units, 0);
}

#[test]
fn ordid_goes_on_above_nhibernates_keys_of_the_same_time() {
    // Two units above ordid's own, at the end of a day.
    let at = 1_767_225_599_999;
    let parts = DateTimeParts::nhibernate_at(ticks_at(at), [0xff; 10]).unwrap();
    assert_eq!(parts.units, 25_920_002);
    let mut guid = parts.guid;
    (guid[7], guid[8]) = (0x4f, 0xbf);
    let newest = CombNHibernate::pack(DateTimeParts { guid, ..parts }).unwrap();
    let generator = scripted_at::<CombNHibernate>((), at);
    generator.start_above(&newest).unwrap();
    assert!(CombNHibernate::cmp(&newest, &next(&generator)).is_lt());
}

#[test]
fn the_bits_of_no_field_are_the_version_the_variant_and_four_zeros() {
    let generator = scripted::<CombNHibernate>();
    let keys = many(&generator, 5_000);
    // Version, four zeros, variant, and of one unit also the time.
    let fixed = 0xff << 72 | 0b11 << 62 | ((1 << 48) - 1);
    let first = keys[0].as_u128();
    let varying = keys
        .iter()
        .fold(0, |bits, key| bits | key.as_u128() ^ first);
    assert_eq!(varying & fixed, 0);
    assert_eq!(varying >> 80, u128::MAX >> 80);
    assert_eq!(keys[0].as_u128() >> 72 & 0xff, 0x40);
}

#[test]
fn random_times_of_day_are_only_possibly_of_the_scheme() {
    let certainty = |text: &str| {
        let key = text.parse().unwrap();
        CombNHibernate::inspect(&key).unwrap().certainty
    };
    assert_eq!(
        certainty("01570b7d-fc70-4f65-aec0-b3c4018b8202"),
        Certainty::Likely
    );
    assert_eq!(
        certainty("01570b7d-fc70-4f65-aec0-b3c4018b8203"),
        Certainty::Possible
    );
    assert_eq!(
        certainty("01570b7d-fc70-4f65-aec0-000000000000"),
        Certainty::Possible
    );
    let key = "01570b7d-fc70-4f65-aec0-b3c4018b8202".parse().unwrap();
    let inspection = CombRtLegacy::inspect(&key).unwrap();
    assert_eq!(inspection.certainty, Certainty::Possible);
    assert_eq!(inspection.version, Some(4));
}

#[test]
fn another_version_is_not_of_the_scheme() {
    let v7: Uuid = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f".parse().unwrap();
    assert!(!CombNHibernate::check(&v7));
    assert_eq!(CombNHibernate::timestamp(&v7), None);
    let error = CombNHibernate::unpack(&v7).unwrap_err();
    assert_eq!(
        error.to_string(),
        "not a `comb_nhibernate`: scheme comb_nhibernate expects version 4 and variant RFC 9562, \
         found version 7 and variant RFC 9562 in 017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
    );
}

proptest! {
    #[test]
    fn a_time_of_the_original_is_at_most_9_ms_off(millis in 0..LAST) {
        let parts = DateTimeParts::nhibernate_at(ticks_at(millis), [0; 10]).unwrap();
        let off = parts.moment().unix_nanos - i128::from(millis) * 1_000_000;
        prop_assert!((-3_333_334..9_000_000).contains(&off), "{}", off);
        let parts = DateTimeParts::rt_legacy_at(ticks_at(millis), [0; 10]).unwrap();
        let off = parts.moment().unix_nanos - i128::from(millis) * 1_000_000;
        prop_assert!((-3_333_334..=0).contains(&off), "{}", off);
    }

    #[test]
    fn generated_times_are_the_clocks(millis in 0..LAST) {
        let generator = scripted_at::<CombNHibernate>((), millis);
        let key = next(&generator);
        let moment = CombNHibernate::inspect(&key).unwrap().moment.unwrap();
        let off = i128::from(millis) * 1_000_000 - moment.unix_nanos;
        prop_assert!((0..3_333_334).contains(&off), "{}", off);
        let (lowest, highest) = CombNHibernate::bounds_at(
            Timestamp::from_unix_millis(millis).unwrap()).unwrap();
        prop_assert!(CombNHibernate::cmp(&lowest, &key).is_le());
        prop_assert!(CombNHibernate::cmp(&key, &highest).is_le());
    }
}
