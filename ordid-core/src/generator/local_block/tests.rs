use std::{collections::HashSet, time::Duration};

use super::*;
use crate::{
    clock::ManualClock,
    entropy::{SeededEntropy, ThreadEntropy},
    generator::{Overflow, Policy, Rollback},
    scheme::{UuidV7, UuidV7SubMillis, UuidV7Unguessable, uuid_v7::UuidV7Generator},
};

const START: u64 = 1_645_557_742_000;

fn scripted(policy: Policy) -> UuidV7Generator<ManualClock, SeededEntropy> {
    UuidV7Generator::new(
        ManualClock::at_unix_millis(START),
        SeededEntropy::new(5),
        policy,
    )
}

fn millis(raw: uuid::Uuid) -> u64 {
    raw.as_u64_pair().0 >> 16
}

fn next(keys: &impl Generator<Scheme = UuidV7>) -> uuid::Uuid {
    let key = keys.try_generate();
    key.expect("the script lets keys be made").into_raw()
}

#[test]
fn blocks_share_no_key_and_each_rises() {
    let generator = scripted(Policy::DEFAULT);
    let blocks = [
        generator.local_block(),
        generator.local_block(),
        generator.local_block(),
    ];
    let mut seen = HashSet::new();
    let mut last = [uuid::Uuid::nil(); 3];
    for turn in 0..10_000 {
        if turn % 3_000 == 2_999 {
            let clock = generator.clock();
            clock.set_unix_millis(clock.now().as_unix_millis() + 1);
        }
        for (block, last) in blocks.iter().zip(&mut last) {
            let key = next(block);
            assert!(key > *last);
            *last = key;
            assert!(seen.insert(key.as_u128() >> 32), "without the random bits");
        }
    }
    // The generator's own keys are unique with them.
    assert!((0..5_000).all(|_| seen.insert(next(&generator).as_u128() >> 32)));
}

#[test]
fn a_block_is_dropped_when_its_millisecond_ends() {
    let generator = scripted(Policy::DEFAULT);
    let block = generator.local_block();
    assert_eq!(millis(next(&block)), START);
    generator.clock().set_unix_millis(START + 1);
    assert_eq!(millis(next(&block)), START + 1);
}

#[test]
fn a_block_holds_a_small_step_back_and_follows_a_large_one() {
    let generator = scripted(Policy::DEFAULT);
    let block = generator.local_block();
    let first = next(&block);
    generator.clock().set_unix_millis(START - 10_000);
    let held = next(&block);
    assert_eq!(
        held.as_u128() >> 32,
        (first.as_u128() >> 32) + 1,
        "of the same block"
    );
    generator.clock().set_unix_millis(START - 10_001);
    assert_eq!(millis(next(&block)), START - 10_001);
    assert_eq!(generator.events().clock_followed, 1);
}

#[test]
fn a_policy_of_errors_acts_inside_a_block() {
    let policy = Policy {
        rollback: Rollback::ERROR,
        overflow: Overflow::Error,
    };
    let local = scripted(policy).into_local();
    let first = next(&local);
    local.generator().clock().set_unix_millis(START - 1);
    assert!(local.try_generate().unwrap_err().is_clock());
    local.generator().clock().set_unix_millis(START);
    assert!(next(&local) > first);
}

#[test]
fn all_keys_of_a_millisecond_are_given_out_before_it_overflows() {
    let policy = Policy {
        rollback: Rollback::ERROR,
        overflow: Overflow::Error,
    };
    let local = scripted(policy).into_local();
    // One key that is not of a block, so that blocks do not end with the millisecond.
    next(local.generator());
    for _ in 1..1 << 20 {
        local.try_generate().unwrap();
    }
    assert!(local.try_generate().unwrap_err().is_overflow());
}

#[test]
fn a_fork_leaves_the_block_to_the_parent() {
    let generator = scripted(Policy::DEFAULT);
    let block = generator.local_block();
    let before = next(&block);
    generator.entropy().fork();
    let child = next(&block);
    assert!(millis(child) > millis(before), "a millisecond of its own");
}

#[test]
fn batches_are_above_the_block_and_the_next_key_above_them() {
    let generator = scripted(Policy::DEFAULT);
    let block = generator.local_block();
    let mut keys = vec![next(&block)];
    block
        .try_fill_with(3_000, |key| keys.push(key.into_raw()))
        .unwrap();
    keys.push(next(&block));
    keys.extend(
        block
            .reserve(10)
            .unwrap()
            .map(|key| key.unwrap().into_raw()),
    );
    keys.push(next(&block));
    assert!(keys.is_sorted_by(|a, b| a < b));
}

#[test]
fn every_scheme_has_local_blocks() {
    fn rises<S: Slotted<Raw = uuid::Uuid, Node = ()>>() {
        let clock = ManualClock::at_unix_millis(START);
        let generator = OrderedGenerator::<S, _, _>::new(clock, ThreadEntropy, Policy::DEFAULT);
        let local = generator.into_local();
        let mut last = uuid::Uuid::nil();
        for turn in 0..200_000 {
            local.generator().clock().set_nanos(turn * 4);
            let key = local.try_generate().unwrap().into_raw();
            assert!(key > last);
            last = key;
        }
    }
    rises::<UuidV7>();
    rises::<UuidV7Unguessable>();
    rises::<UuidV7SubMillis>();
}

#[test]
fn a_frozen_clock_wastes_no_slots_ahead_of_it() {
    let policy = Policy {
        rollback: Rollback::ERROR,
        overflow: Overflow::Advance {
            max: Duration::from_millis(1),
        },
    };
    let local = scripted(policy).into_local();
    local.generator().clock().freeze();
    // Two milliseconds' worth, the second one ahead of the clock, and not one less.
    for _ in 0..2 << 20 {
        local.try_generate().unwrap();
    }
    assert!(local.try_generate().unwrap_err().is_overflow());
}

/// What a log may show of a generator must not tell its next keys.
#[test]
fn debug_texts_keep_the_secret() {
    let generator = scripted(Policy::DEFAULT);
    let block = generator.local_block();
    next(&block);
    let secret = generator.claim(1).unwrap().secret;
    let reserved = generator.reserve(3).unwrap();
    // Without the entropy, which is a test's.
    for text in [format!("{block:?}"), format!("{reserved:?}")] {
        let text = text.split("entropy").next().unwrap();
        assert!(
            !secret.iter().any(|word| text.contains(&word.to_string())),
            "{text}"
        );
    }
    assert_eq!(format!("{reserved:?}"), "Reserved { left: 3, .. }");
}

/// A restart with the clock behind, and several tables to start above.
#[test]
fn a_block_starts_above_a_key_though_it_has_slots_left() {
    let keys = scripted(Policy::DEFAULT).into_local();
    let at = |ahead| Timestamp::from_unix_millis(START + ahead).unwrap();
    keys.start_after(at(5_000)).unwrap();
    assert_eq!(millis(next(&keys)), START + 5_001);
    let newest = keys.generate_at(at(8_000)).unwrap().into_raw();
    keys.start_above(&newest).unwrap();
    let first = next(&keys);
    assert!(first > newest, "{first} {newest}");
    assert!(next(&keys) > first);
}
