use std::collections::HashSet;

use jiff::{Timestamp as Instant, civil::date, tz};

use super::*;
use crate::{
    clock::ManualClock,
    entropy::SeededEntropy,
    key::StaticScheme,
    layout::Comparison,
    scheme::testing::{declared, does_not_fit, rules_that_hold},
};

fn at(text: &str) -> Timestamp {
    let millis = text.parse::<Instant>().unwrap().as_millisecond();
    Timestamp::from_unix_millis(u64::try_from(millis).unwrap()).unwrap()
}

fn scripted<S: Clustered>(
    time: &str,
    clusters: Clusters,
) -> ClusteredGenerator<S, ManualClock, SeededEntropy> {
    let clock = ManualClock::at_unix_millis(at(time).as_unix_millis());
    ClusteredGenerator::new(clock, SeededEntropy::new(5), clusters)
}

fn md5_prefix(text: &str) -> u16 {
    let digest = md5::compute(text);
    u16::from_be_bytes([digest[0], digest[1]])
}

const fn every(seconds: u32) -> Period {
    Period::Seconds(NonZeroU32::new(seconds).unwrap())
}

#[test]
fn years_and_weeks_are_those_of_a_calendar_from_1969_to_2101() {
    // `%U`: weeks from Sunday, those before the first are week 0, as MySQL's mode 0.
    let first = date(1970, 1, 1);
    let mut day = date(1969, 12, 1);
    while day < date(2101, 2, 1) {
        let days = i64::from(first.until(day).unwrap().get_days());
        let (year, week) = year_and_week(days);
        assert_eq!(
            format!("{year} {week:02}"),
            day.strftime("%Y %U").to_string()
        );
        day = day.tomorrow().unwrap();
    }
}

#[test]
fn weeks_are_those_of_the_manual() {
    // MySQL manual: WEEK('2008-02-20') and WEEK('2008-02-20', 0) are 7, WEEK('2000-01-01', 0) is 0;
    // a year that begins on Saturday and is a leap year has a week 53.
    let week = |year, month, day| {
        let days = date(1970, 1, 1).until(date(year, month, day)).unwrap();
        year_and_week(i64::from(days.get_days()))
    };
    assert_eq!(week(2008, 2, 20), (2008, 7));
    assert_eq!(week(2000, 1, 1), (2000, 0));
    assert_eq!(week(2000, 1, 2), (2000, 1));
    assert_eq!(week(2000, 12, 31), (2000, 53));
    assert_eq!(week(2017, 1, 1), (2017, 1));
}

#[test]
fn prefixes_are_md5_of_year_and_week_unpadded() {
    let clusters = Clusters::DEFAULT;
    for (time, text) in [
        ("1970-01-01T00:00:00Z", "19700"),
        ("2000-01-01T23:59:59.999Z", "20000"),
        ("2000-01-02T00:00:00Z", "20001"),
        ("2024-03-01T12:00:00Z", "20248"),
        ("2000-12-31T00:00:00Z", "200053"),
        ("9999-12-30T00:00:00Z", "999952"),
    ] {
        assert_eq!(clusters.prefix_at(at(time)), md5_prefix(text), "{time}");
    }
    // Digest of "20248" by another program: md5sum.
    assert_eq!(md5_prefix("20248"), 0xc791);
}

#[test]
fn the_offset_moves_the_turn_of_the_week() {
    // Saturday evening in UTC is Sunday in Berlin, and the turn of 1970 was 1969 in New York.
    let local = |utc_offset_minutes| Clusters {
        utc_offset_minutes,
        ..Clusters::DEFAULT
    };
    let evening = at("2024-03-02T23:30:00Z");
    assert_eq!(local(0).prefix_at(evening), md5_prefix("20248"));
    assert_eq!(local(60).prefix_at(evening), md5_prefix("20249"));
    assert_eq!(
        local(-300).prefix_at(at("1970-01-01T00:00:00Z")),
        md5_prefix("196952")
    );
}

#[test]
fn minutes_and_intervals_count_from_1970() {
    let by = |period| Clusters {
        period,
        utc_offset_minutes: 0,
    };
    let time = at("1970-01-01T01:00:59.999Z");
    assert_eq!(by(Period::MINUTE).prefix_at(time), md5_prefix("60"));
    assert_eq!(by(every(1)).prefix_at(time), md5_prefix("3659"));
    assert_eq!(by(every(86_400)).prefix_at(time), md5_prefix("0"));
    let west = Clusters {
        period: every(3_600),
        utc_offset_minutes: -120,
    };
    assert_eq!(west.prefix_at(time), md5_prefix("-1"));
}

#[test]
fn keys_of_a_period_share_the_prefix_and_change_at_its_end() {
    let generator = scripted::<UuidV4Clustered>("2024-03-02T23:59:59.999Z", Clusters::DEFAULT);
    let prefix = |key: Generated<_>| UuidV4Clustered::unpack(&key.into_raw()).unwrap().prefix;
    let this = md5_prefix("20248");
    assert_eq!(prefix(generator.try_generate().unwrap()), this);
    assert_eq!(prefix(generator.try_generate().unwrap()), this);
    let next = at("2024-03-03T00:00:00Z");
    generator.clock.set_unix_millis(next.as_unix_millis());
    let mut reserved = generator.reserve(2).unwrap();
    assert_eq!(
        prefix(reserved.next().unwrap().unwrap()),
        md5_prefix("20249")
    );
    // A clock that steps back has the prefix that it had.
    generator.clock.set_unix_millis(next.as_unix_millis() - 1);
    assert_eq!(prefix(reserved.next().unwrap().unwrap()), this);
    assert!(reserved.next().is_none());
    generator
        .try_fill_with(100, |key| assert_eq!(prefix(key), this))
        .unwrap();
    assert_eq!(
        prefix(generator.generate_at(next).unwrap()),
        md5_prefix("20249")
    );
    assert_eq!(generator.events(), Events::default());
}

#[test]
fn an_offset_before_1970_does_not_meet_the_empty_memory() {
    let clusters = Clusters {
        period: every(1),
        utc_offset_minutes: i16::MIN,
    };
    let generator = scripted::<UuidV4Clustered>("1970-01-01T00:00:00Z", clusters);
    let raw = generator.try_generate().unwrap().into_raw();
    let expected = md5_prefix(&format!("{}", i64::from(i16::MIN) * 60));
    assert_eq!(UuidV4Clustered::unpack(&raw).unwrap().prefix, expected);
}

#[test]
fn the_forms_differ_in_the_variant() {
    let time = "2024-03-01T12:00:00Z";
    let rfc = scripted::<UuidV4Clustered>(time, Clusters::DEFAULT);
    let compat = scripted::<UuidV4ClusteredCompat>(time, Clusters::DEFAULT);
    let mut variants = HashSet::new();
    for _ in 0..1_000 {
        let raw = rfc.try_generate().unwrap().into_raw();
        assert!(UuidV4Clustered::check(&raw) && UuidV4::check(&raw));
        let twin = compat.try_generate().unwrap().into_raw();
        assert!(UuidV4ClusteredCompat::check(&twin));
        variants.insert(twin.as_bytes()[8] >> 6);
        // The same random bits under the fixed ones.
        assert_eq!(raw.as_u128() | 0b11 << 62, twin.as_u128() | 0b11 << 62);
    }
    assert_eq!(variants.len(), 4);
}

#[test]
fn no_rule_orders_keys() {
    let clusters = Clusters {
        period: Period::MINUTE,
        utc_offset_minutes: 0,
    };
    let generator = scripted::<UuidV4Clustered>("2024-03-01T12:00:00Z", clusters);
    let start = generator.clock.now().as_unix_millis();
    let keys: Vec<_> = (0..100)
        .map(|minute| {
            generator.clock.set_unix_millis(start + minute * 60_000);
            generator.try_generate().unwrap().into_raw()
        })
        .collect();
    assert_eq!(declared::<UuidV4Clustered>(), []);
    assert_eq!(declared::<UuidV4ClusteredCompat>(), []);
    assert_eq!(rules_that_hold(&keys), []);
}

#[test]
fn mariadbs_uuid_takes_the_clusters_apart() {
    // Two weeks: by bytes one lies below the other, by MariaDB's rule they are mixed.
    let generator = scripted::<UuidV4Clustered>("2024-03-01T12:00:00Z", Clusters::DEFAULT);
    let [this, next] = ["2024-03-01T12:00:00Z", "2024-03-05T12:00:00Z"]
        .map(|time| [(); 50].map(|()| generator.generate_at(at(time)).unwrap().into_raw()));
    let is_apart = |rule: Comparison| {
        let ends = [&this, &next].map(|keys| {
            let keys = keys.iter().map(|key| rule.sort_key(key.as_bytes()));
            (keys.clone().min(), keys.max())
        });
        ends[0].1 < ends[1].0 || ends[1].1 < ends[0].0
    };
    assert!(is_apart(Comparison::Bytes));
    assert!(!is_apart(Comparison::MariaDbUuid));
}

#[test]
fn process_wide_keys_have_the_week_of_now() {
    let week = || {
        let now = Instant::now().to_zoned(tz::TimeZone::UTC);
        let week: u32 = now.strftime("%U").to_string().parse().unwrap();
        md5_prefix(&format!("{}{week}", now.year()))
    };
    let before = week();
    let keys = [(); 3].map(|()| UuidV4Clustered::generate().into_raw());
    let compat = UuidV4ClusteredCompat::generate().into_raw();
    let after = week();
    assert!(UuidV4ClusteredCompat::check(&compat));
    for raw in keys {
        let prefix = UuidV4Clustered::unpack(&raw).unwrap().prefix;
        assert!(prefix == before || prefix == after);
    }
}

#[test]
fn parts_that_do_not_fit_are_named() {
    let parts = Parts {
        prefix: 0xffff,
        random_a: u32::MAX,
        random_b: 0xfff,
        random_c: u64::MAX >> 2,
    };
    let raw = UuidV4Clustered::pack(parts).unwrap();
    assert_eq!(raw.to_string(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    let random_c = 1 << 62;
    let too_large = Parts { random_c, ..parts };
    does_not_fit::<UuidV4Clustered, _>([(too_large, "random_c 4611686018427387904", 62)]);
    assert!(UuidV4ClusteredCompat::pack(too_large).is_ok());
    let random_b = 0x1000;
    does_not_fit::<UuidV4ClusteredCompat, _>([(Parts { random_b, ..parts }, "random_b 4096", 12)]);
    let error = UuidV4ClusteredCompat::unpack(&Uuid::nil()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "not a `uuid_v4_clustered_compat`: scheme uuid_v4_clustered_compat expects version 4 and \
         any variant, found version 0 and variant NCS in 00000000-0000-0000-0000-000000000000"
    );
}
