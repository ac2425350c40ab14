use proptest::prelude::*;

use super::*;
use crate::{
    generator::{Generator, Overflow, Policy, Rollback},
    scheme::testing::{STRICT, Scripted, does_not_fit, next, scripted_with, vectors},
};

const TWITTER: u64 = 1_288_834_974_657;

/// A generator whose clock stands `millis` after the layout's epoch.
fn scripted<L: SnowflakeLayout>(millis: u64, policy: Policy) -> Scripted<Snowflake<L>> {
    let node = SnowflakeNode::new(1).unwrap();
    scripted_with(node, epoch::<L>() + millis, 1, policy)
}

fn epoch<L: SnowflakeLayout>() -> u64 {
    u64::try_from(L::EPOCH_UNIX_MILLIS).unwrap()
}

fn parts<L: SnowflakeLayout>(key: i64) -> Parts {
    Snowflake::<L>::unpack(&key).unwrap()
}

#[test]
fn twitter_meets_its_vectors() {
    let vectors = vectors("snowflake");
    assert_eq!(vectors["snowflake"]["epoch_ms"], Twitter::EPOCH_UNIX_MILLIS);
    for case in vectors["snowflake"]["derived"].as_array().unwrap() {
        let small = |name: &str| u8::try_from(case[name].as_u64().unwrap()).unwrap();
        let node = SnowflakeNode::of_datacentre(small("dc"), small("worker")).unwrap();
        assert_eq!(
            (node.datacentre(), node.worker()),
            (small("dc"), small("worker"))
        );
        let ms = case["ms"].as_u64().unwrap();
        let expected = Parts {
            time: ms - TWITTER,
            node: node.get(),
            sequence: case["seq"].as_u64().unwrap(),
        };
        let id = case["id"].as_i64().unwrap();
        assert_eq!(<Snowflake>::pack(expected).unwrap(), id);
        assert_eq!(parts::<Twitter>(id), expected);
        let at = <Snowflake>::timestamp(&id).unwrap();
        assert_eq!(at.as_unix_millis(), ms);
    }
}

#[test]
fn sonyflake_yitter_and_baidu_meet_their_vectors() {
    let vectors = vectors("snowflake");
    let sony = &vectors["sonyflake"];
    assert_eq!(
        sony["epoch_10ms_v1"].as_i64().unwrap() * 10,
        Sonyflake::EPOCH_UNIX_MILLIS
    );
    assert_eq!(
        sony["epoch_10ms_v2"].as_i64().unwrap() * 10,
        SonyflakeV2::EPOCH_UNIX_MILLIS
    );
    let case = |system: &str, name: &str| vectors[system]["derived"][0][name].as_u64().unwrap();
    let key = Snowflake::<SonyflakeV2>::pack(Parts {
        time: case("sonyflake", "elapsed"),
        node: case("sonyflake", "machine"),
        sequence: case("sonyflake", "seq"),
    });
    assert_eq!(key.unwrap().cast_unsigned(), case("sonyflake", "id"));
    let key = Snowflake::<Yitter>::pack(Parts {
        time: case("yitter", "ms") - epoch::<Yitter>(),
        node: case("yitter", "worker"),
        sequence: case("yitter", "seq"),
    });
    assert_eq!(key.unwrap().cast_unsigned(), case("yitter", "id"));
    let baidu = &vectors["baidu_uid"];
    assert_eq!(
        baidu["epoch_s"].as_i64().unwrap() * 1_000,
        <BaiduUid>::EPOCH_UNIX_MILLIS
    );
}

/// An article of Discord's manual takes this key apart.
#[test]
fn discord_meets_the_example_of_its_manual() {
    let key = 175_928_847_299_117_063;
    let node = SnowflakeNode::<Discord>::of_worker(1, 0).unwrap();
    let expected = Parts {
        time: 41_944_705_796,
        node: node.get(),
        sequence: 7,
    };
    assert_eq!(parts::<Discord>(key), expected);
    let at = Snowflake::<Discord>::timestamp(&key).unwrap();
    assert_eq!(at.as_unix_millis(), 1_462_015_105_796);
}

#[test]
fn parts_and_nodes_that_do_not_fit_are_named() {
    let most = Parts {
        time: (1 << 41) - 1,
        node: 1_023,
        sequence: 4_095,
    };
    assert_eq!(<Snowflake>::pack(most).unwrap(), i64::MAX);
    let time = 1 << 41;
    let node = 1_024;
    let sequence = 4_096;
    does_not_fit::<Snowflake, _>([
        (Parts { time, ..most }, "time 2199023255552", 41),
        (Parts { node, ..most }, "node 1024", 10),
        (Parts { sequence, ..most }, "sequence 4096", 12),
    ]);
    assert!(SnowflakeNode::<Twitter>::new(1_024).is_err());
    assert!(SnowflakeNode::<Yitter>::try_from(64).is_err());
    assert_eq!(
        SnowflakeNode::of_datacentre(32, 0).unwrap_err().to_string(),
        "datacentre 32 does not fit: scheme snowflake has 5 bits for it"
    );
    assert_eq!(
        SnowflakeNode::of_datacentre(0, 32).unwrap_err().to_string(),
        "worker 32 does not fit: scheme snowflake has 5 bits for it"
    );
    assert_eq!(
        SnowflakeNode::of_worker(0, 32).unwrap_err().to_string(),
        "process 32 does not fit: scheme discord has 5 bits for it"
    );
}

#[test]
fn negative_numbers_are_not_of_the_scheme() {
    for key in [-1, i64::MIN] {
        assert!(!<Snowflake>::check(&key));
        assert_eq!(<Snowflake>::timestamp(&key), None);
        assert!(<Snowflake>::inspect(&key).is_err());
    }
    assert_eq!(
        <Snowflake>::unpack(&-7).unwrap_err().to_string(),
        "not a `snowflake`: scheme snowflake expects no sign, and no bits above those of the \
         layout, found the number -7"
    );
}

/// Makes keys up to the last one of a layout, and none after it.
fn ends_with_an_error<L: SnowflakeLayout>() {
    let unit = u64::from(L::UNIT_MILLIS);
    let end = unit << L::TIME_BITS;
    for policy in [Policy::DEFAULT, STRICT] {
        let generator = scripted::<L>(end - 1, policy);
        let last_time = (1 << L::TIME_BITS) - 1;
        for _ in 0..1_u64 << Snowflake::<L>::INDEX_BITS.min(13) {
            let key = next(&generator);
            assert!(key > 0 && parts::<L>(key).time == last_time);
        }
        if Snowflake::<L>::INDEX_BITS <= 13 {
            let error = generator.try_generate().unwrap_err();
            assert!(error.is_clock() || error.is_overflow(), "{error}");
        }
        for millis in [end, end + 1, 2 * end] {
            generator.clock().set_unix_millis(epoch::<L>() + millis);
            let error = generator.try_generate().unwrap_err();
            assert!(error.is_clock(), "{error}");
            assert!(generator.reserve(1).is_err());
            let block = generator.local_block();
            assert!(block.try_generate().is_err());
        }
        let after = Timestamp::from_unix_millis(epoch::<L>() + end).unwrap();
        assert!(Snowflake::<L>::bounds_at(after).unwrap_err().is_clock());
    }
}

#[test]
fn the_last_tick_of_every_layout_is_followed_by_an_error() {
    ends_with_an_error::<Twitter>();
    ends_with_an_error::<Discord>();
    ends_with_an_error::<Sonyflake>();
    ends_with_an_error::<SonyflakeV2>();
    ends_with_an_error::<BaiduUid>();
    ends_with_an_error::<BaiduUid<1_767_225_600>>();
    ends_with_an_error::<WideSequence>();
}

/// 51 bits of milliseconds are more than a timestamp's 48.
#[test]
fn yitter_outlives_the_clock() {
    let node = SnowflakeNode::<Yitter>::new(63).unwrap();
    let generator = scripted_with(node, (1 << 48) - 1, 1, Policy::DEFAULT);
    assert!(next::<Snowflake<Yitter>>(&generator) > 0);
    // No key is that late, but a number may be: it has a moment, and no timestamp.
    let latest = Snowflake::<Yitter>::inspect(&i64::MAX).unwrap();
    assert!(latest.moment.is_some());
    assert_eq!(Snowflake::<Yitter>::timestamp(&i64::MAX), None);
}

#[test]
fn baidu_keys_of_the_default_epoch_are_read_but_not_made() {
    let baidu = &vectors("snowflake")["baidu_uid"];
    let last = baidu["last_valid_s"].as_u64().unwrap() * 1_000;
    let at = |millis| {
        let node = SnowflakeNode::<BaiduUid>::new(7).unwrap();
        scripted_with::<Snowflake<BaiduUid>>(node, millis, 1, Policy::DEFAULT).try_generate()
    };
    let key = at(last + 999).unwrap().into_raw();
    assert_eq!(key, ((1 << 28) - 1) << 35 | 7 << 13);
    let read = Snowflake::<BaiduUid>::timestamp(&key).unwrap();
    assert_eq!(read.as_unix_millis(), last);
    for now in [last + 1_000, 1_767_225_600_000] {
        let error = at(now).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "timestamp {now} ms does not fit: the layout ends at {last} ms since 1970-01-01"
            )
        );
    }
    let newer = scripted::<BaiduUid<1_767_225_600>>(1_000, Policy::DEFAULT);
    assert_eq!(next(&newer), 1 << 35 | 1 << 13);
}

#[test]
fn a_clock_before_the_epoch_is_an_error() {
    let generator = scripted::<Twitter>(0, Policy::DEFAULT);
    generator.clock().set_unix_millis(TWITTER - 1);
    let error = generator.try_generate().unwrap_err();
    assert!(error.is_clock());
    let before = Timestamp::from_unix_millis(TWITTER - 1).unwrap();
    assert_eq!(<Snowflake>::bounds_at(before).unwrap_err(), error);
}

/// Sonyflake sleeps such a step with its lock held.
#[test]
fn eight_hours_back_are_an_error_at_once() {
    const HOURS: u64 = 8 * 3_600_000;
    let generator = scripted::<Sonyflake>(HOURS, Policy::DEFAULT);
    let first = next(&generator);
    generator.clock().set_unix_millis(epoch::<Sonyflake>());
    for _ in 0..3 {
        let error = generator.try_generate().unwrap_err();
        assert!(error.is_clock(), "{error}");
    }
    // A pause moves a clock that is not frozen: there was none.
    assert_eq!(
        crate::clock::Clock::now(generator.clock()).as_unix_millis(),
        epoch::<Sonyflake>()
    );
    assert_eq!(generator.events().clock_followed, 0);
    generator
        .clock()
        .set_unix_millis(epoch::<Sonyflake>() + HOURS);
    assert!(next(&generator) > first);
}

/// Twitter's first version reset its sequence before it refused, and so repeated on return.
#[test]
fn a_refused_step_back_does_not_touch_the_sequence() {
    let generator = scripted::<Twitter>(100, STRICT);
    let keys = [(); 3].map(|()| next(&generator));
    generator.clock().set_unix_millis(TWITTER + 99);
    for _ in 0..10 {
        assert!(generator.try_generate().unwrap_err().is_clock());
    }
    generator.clock().set_unix_millis(TWITTER + 100);
    let next = next(&generator);
    assert_eq!(parts::<Twitter>(keys[2]).sequence, 2);
    assert_eq!(
        next,
        keys[2] + 1,
        "the same millisecond, the sequence after it"
    );
}

#[test]
fn a_full_sequence_follows_the_policy_and_never_repeats() {
    let policy = |overflow| Policy {
        overflow,
        ..Policy::DEFAULT
    };
    let generator = scripted::<Twitter>(100, STRICT);
    let first = next(&generator);
    generator.try_fill_with(4_095, |_| ()).unwrap();
    assert!(generator.try_generate().unwrap_err().is_overflow());
    assert!(generator.try_generate().unwrap_err().is_overflow());
    generator.clock().set_unix_millis(TWITTER + 101);
    assert_eq!(next(&generator), first + (1 << 22));

    let generator = scripted::<Twitter>(100, policy(Overflow::Wait));
    for _ in 0..4_097 {
        next(&generator);
    }
    assert_eq!(generator.events().counter_waits, 1);

    let generator = scripted::<Twitter>(100, Policy::DEFAULT);
    generator.clock().freeze();
    let mut last = -1;
    for number in 0..10_000 {
        let key = next(&generator);
        assert!(key > last);
        let Parts { time, sequence, .. } = parts::<Twitter>(key);
        assert_eq!((time, sequence), (100 + number / 4_096, number % 4_096));
        last = key;
    }
}

/// So many single keys would wait; one reservation of them is refused.
#[test]
fn a_fill_of_more_keys_than_a_reservation_has_waits_in_between() {
    let max = core::time::Duration::from_millis(1);
    for overflow in [Overflow::Wait, Overflow::Advance { max }] {
        let policy = Policy {
            overflow,
            ..Policy::DEFAULT
        };
        let generator = scripted::<Twitter>(100, policy);
        assert!(generator.reserve(10_000).is_err());
        let mut keys = Vec::new();
        let filled = generator.try_fill_with(10_000, |key| keys.push(key.into_raw()));
        filled.unwrap();
        assert_eq!(keys.len(), 10_000);
        assert!(keys.is_sorted_by(|one, next| one < next), "{overflow:?}");
    }
}

#[test]
fn a_million_keys_rise_strictly() {
    let generator = scripted::<Twitter>(100, Policy::DEFAULT);
    let mut last = -1;
    for number in 0..1_000_000_u64 {
        if number % 1_000 == 0 {
            generator
                .clock()
                .set_unix_millis(TWITTER + 100 + number / 3_000);
        }
        let key = next(&generator);
        assert!(key > last);
        last = key;
    }
}

#[test]
fn yitter_begins_at_5_and_leaves_the_rest_to_others() {
    let generator = scripted::<Yitter>(1_000, Policy::DEFAULT);
    generator.clock().freeze();
    for number in 0..1_000 {
        let Parts { time, sequence, .. } = parts::<Yitter>(next(&generator));
        assert_eq!((time, sequence), (1_000 + number / 32, 5 + number % 32));
    }
    let at = Timestamp::from_unix_millis(epoch::<Yitter>() + 1_000).unwrap();
    let (lowest, highest) = Snowflake::<Yitter>::bounds_at(at).unwrap();
    assert_eq!(
        (lowest, highest),
        (1_000 << 12, 1_000 << 12 | 0xfff),
        "also what others make"
    );
}

#[test]
fn sonyflake_puts_the_sequence_above_the_machine() {
    let generator = scripted::<Sonyflake>(1_234, Policy::DEFAULT);
    let [first, second] = [(); 2].map(|()| next(&generator));
    assert_eq!(first, 123 << 24 | 1);
    assert_eq!(second, first + (1 << 16));
}

#[test]
fn an_epoch_that_is_no_fork_changes_nothing() {
    // The process is the one that the node was given to. That another one is refused takes a fork,
    // which a unit test cannot do: the tests of processes do it.
    let generator = scripted::<Twitter>(100, Policy::DEFAULT);
    let before = next(&generator);
    generator.entropy().fork();
    assert!(next(&generator) > before);
}

#[test]
fn bits_and_indices_are_those_of_the_layouts() {
    assert_eq!(<Snowflake>::BITS, 63);
    assert_eq!(Snowflake::<Discord>::BITS, 63);
    assert_eq!(Snowflake::<Sonyflake>::BITS, 63);
    assert_eq!(Snowflake::<BaiduUid>::BITS, 63);
    assert_eq!(Snowflake::<WideSequence>::INDEX_BITS, 18);
    assert_eq!(Snowflake::<Yitter>::INDEX_BITS, 5);
    assert_eq!(SnowflakeNode::<WideSequence>::COUNT, 16);
    assert_eq!(size_of::<SnowflakeNode>(), 8);
    let node = SnowflakeNode::<Twitter>::new(7).unwrap();
    assert_eq!(format!("{node:?}"), "SnowflakeNode(7)");
}

proptest! {
    /// yitter's keys decrease when the clock steps back.
    #[test]
    fn every_key_is_above_the_last_or_an_error(
        steps in proptest::collection::vec(-30_000_i64..20_000, 1..200),
        rollback in 0..3,
        overflow in 0..3,
    ) {
        let max = core::time::Duration::from_secs(5);
        let policy = Policy {
            rollback: [
                Rollback::ERROR,
                Rollback::HoldThenFollow { max },
                Rollback::WaitThenError { max },
            ][usize::try_from(rollback).unwrap()],
            overflow: [Overflow::Error, Overflow::Wait, Overflow::Advance { max }]
                [usize::try_from(overflow).unwrap()],
        };
        let generator = scripted::<Yitter>(1 << 32, policy);
        let mut now = i64::try_from(epoch::<Yitter>()).unwrap() + (1 << 32);
        let mut last = -1;
        for step in steps {
            now += step;
            generator.clock().set_unix_millis(now.cast_unsigned());
            for _ in 0..step.rem_euclid(40) {
                if let Ok(key) = generator.try_generate() {
                    let key = key.into_raw();
                    prop_assert!(key > last);
                    prop_assert!((5..=63).contains(&parts::<Yitter>(key).sequence));
                    last = key;
                }
            }
        }
    }
}
