use super::*;
use crate::{generator::Generator, scheme::testing::*};

fn counter(key: &Uuid) -> u64 {
    CombEfCore::unpack(key).unwrap().counter
}

#[test]
fn keys_are_those_of_the_original() {
    for vector in vectors_of_kind("efcore_sequential", 14) {
        let Vector { dotnet_ticks, .. } = vector;
        let parts = EfCoreParts {
            counter: dotnet_ticks,
            guid: vector.random(0),
        };
        meets::<CombEfCore>(&vector, parts);
    }
}

#[test]
fn the_counter_is_the_clocks_tick_and_rises_by_one() {
    let generator = scripted::<CombEfCore>();
    generator.clock().set_nanos(123_456);
    let ticks = DOTNET_TICKS_AT_1970 + START * 10_000 + 1_234;
    for key in 0..20_000 {
        assert_eq!(counter(&next(&generator)), ticks + key);
    }
    // Not the counter of the start for ever.
    generator.clock().set_unix_millis(START + 60_000);
    assert_eq!(counter(&next(&generator)), ticks + 600_000_000);
}

#[test]
fn two_generators_interleave_by_time() {
    // The original's second generator stays at an offset from the first for as long as both live.
    let first = scripted::<CombEfCore>();
    let second = scripted_at::<CombEfCore>((), START + 1);
    let mut keys = Vec::new();
    for minute in 0..100 {
        for (generator, after) in [(&first, 0), (&second, 10)] {
            generator
                .clock()
                .set_unix_millis(START + minute * 60_000 + after);
            keys.extend(many(generator, 50));
        }
    }
    assert_eq!(descents(Comparison::SqlServer, &keys), 0);
}

#[test]
fn keys_after_a_restart_are_above_those_before() {
    // More keys than the clock has ticks, then a new process.
    let before = scripted::<CombEfCore>();
    let first = next(&before);
    before.reserve(999_998).unwrap();
    let newest = next(&before);
    assert_eq!(counter(&newest), counter(&first) + 999_999);
    let after = scripted_at::<CombEfCore>((), START + 1);
    assert!(
        CombEfCore::cmp(&next(&after), &newest).is_lt(),
        "the original's fault"
    );
    after.start_above(&newest).unwrap();
    assert!(CombEfCore::cmp(&next(&after), &newest).is_gt());
}

#[test]
fn keys_do_not_run_ahead_of_the_clock_without_end() {
    let generator = scripted::<CombEfCore>();
    // Ten seconds of ticks are the policy's end.
    let Err(error) = generator.reserve(200_000_000) else {
        panic!("twenty seconds of ticks");
    };
    assert!(error.is_overflow());
}

#[test]
fn the_variant_is_the_counters() {
    let generator = scripted::<CombEfCore>();
    let mut seen = [false; 4];
    for step in 0..100 {
        generator.clock().set_unix_millis(START + step);
        let key = next(&generator);
        assert!(CombEfCore::check(&key));
        seen[usize::from(key.as_bytes()[8] >> 6)] = true;
    }
    assert_eq!(seen, [true; 4]);
}

#[test]
fn counters_of_any_time_are_packed_and_read() {
    for counter in [0, 1, u64::MAX >> 1, u64::MAX] {
        let parts = EfCoreParts {
            counter,
            guid: [1, 2, 3, 4, 5, 6, 7, 0x48],
        };
        let key = CombEfCore::pack(parts).unwrap();
        assert_eq!(CombEfCore::unpack(&key).unwrap(), parts);
        assert!(CombEfCore::inspect(&key).is_ok());
    }
    let (lowest, highest) = CombEfCore::bounds_at(Timestamp::MAX).unwrap();
    assert!(CombEfCore::cmp(&lowest, &highest).is_lt());
    assert_eq!(counter(&highest) - counter(&lowest), 9_999);
}

/// A random version 4 is a key by its version, but of no time.
#[test]
fn nothing_goes_on_above_a_key_of_no_time() {
    let random: Uuid = "0b9b3d55-5a1c-4e5e-bfff-ffffffffffff".parse().unwrap();
    assert!(CombEfCore::check(&random));
    let error = scripted::<CombEfCore>().start_above(&random).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("another scheme may have made it"),
        "{error}"
    );

    let version_7 = Uuid::from_u128(7 << 76);
    let error = scripted::<CombEfCore>()
        .start_above(&version_7)
        .unwrap_err();
    assert!(error.to_string().contains("expects version 4"), "{error}");
}
