//! The fastest of other generators. None of them has a feature that another one asks for, so one
//! program holds them all. Which of their promises differ from ordid's is in `bench-generate`.

use std::{
    process::ExitCode,
    sync::{LazyLock, Mutex, PoisonError},
    thread,
};

use bench_common::round::{self, Maker};
use fast_uuid_v7::SequentialGenerator;
use ferroid::{
    generator::{BasicMonoUlidGenerator, LockMonoUlidGenerator},
    id::ULID,
    rand::ThreadRandom,
    time::MonotonicClock,
};
use ulid::Ulid;

fn main() -> ExitCode {
    round::run(&[
        Maker::new("uuid7", |key: &uuid7::Uuid| (*key).into(), || uuid7::uuid7),
        Maker::new(
            "scru128",
            |key: &scru128::Id| key.to_u128(),
            || scru128::new,
        ),
        Maker::new(
            "ulid-generator",
            |key: &Ulid| key.0,
            || {
                let mut generator = ulid::Generator::new();
                move || next_ulid(&mut generator)
            },
        ),
        Maker::new("ulid-generator-in-mutex", |key: &Ulid| key.0, ulid_in_mutex),
        Maker::new("ferroid-basic-mono", ULID::to_raw, || {
            let generator = BasicMonoUlidGenerator::new(MonotonicClock::default(), ThreadRandom);
            move || -> ULID { generator.next_id(|_| thread::yield_now()) }
        }),
        Maker::new("ferroid-lock-mono", ULID::to_raw, || {
            // Made on first use: its clock is a thread that the other makers do not have.
            static GENERATOR: LazyLock<LockMonoUlidGenerator<ULID, MonotonicClock, ThreadRandom>> =
                LazyLock::new(|| {
                    LockMonoUlidGenerator::new(MonotonicClock::default(), ThreadRandom)
                });
            let generator = &*GENERATOR;
            move || {
                let key = generator.try_next_id(|_| thread::yield_now());
                key.expect("no thread panics with the lock")
            }
        }),
        Maker::new(
            "fast-uuid-v7-with-count",
            |key: &u128| *key,
            || fast_uuid_v7::gen_id_with_count,
        ),
        Maker::new(
            "fast-uuid-v7-sequential",
            |key: &u128| *key,
            || {
                let mut generator = SequentialGenerator::new();
                move || generator.next_id()
            },
        ),
    ])
}

/// As its documentation handles the overflow of a millisecond.
fn next_ulid(generator: &mut ulid::Generator) -> Ulid {
    generator
        .generate()
        .unwrap_or_else(|overflow| overflow.commit_overflow_increment())
}

/// It has no generator for several threads: this is what its users write.
fn ulid_in_mutex() -> impl FnMut() -> Ulid {
    static GENERATOR: Mutex<ulid::Generator> = Mutex::new(ulid::Generator::new());
    || next_ulid(&mut GENERATOR.lock().unwrap_or_else(PoisonError::into_inner))
}
