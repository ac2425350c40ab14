//! The fastest of other generators of these schemes. None of them has a feature that another one
//! asks for, so one program holds them all. What they give up is in `bench-schemes`.

use std::{
    process::ExitCode,
    sync::{LazyLock, Mutex, Once, PoisonError},
    thread,
};

use bench_common::round::{self, Maker};
use bson::oid::ObjectId;
use ferroid::{
    generator::{AtomicSnowflakeGenerator, LockMonoUlidGenerator},
    id::{SnowflakeInstagramId, SnowflakeTwitterId, ULID},
    rand::ThreadRandom,
    time::MonotonicClock,
};
use idgenerator::{IdGeneratorOptions, IdInstance};
use sonyflake::Sonyflake;
use ulid::Ulid;

use layout::Wide;

/// As ordid's `snowflake_wide`. The macro writes `pub` and no documentation.
mod layout {
    #![allow(missing_docs, unreachable_pub)]

    ferroid::define_snowflake_id!(
        Wide, u64,
        reserved: 1,
        timestamp: 41,
        machine_id: 4,
        sequence: 18
    );
}

/// A maker of this type's own: a static cannot be generic.
macro_rules! ferroid_atomic {
    ($name:literal, $id:ty) => {
        Maker::new(
            $name,
            |key: &$id| key.to_raw().into(),
            || {
                static KEYS: LazyLock<AtomicSnowflakeGenerator<$id, MonotonicClock>> =
                    LazyLock::new(|| AtomicSnowflakeGenerator::new(5, MonotonicClock::default()));
                let keys = &*KEYS;
                move || keys.next_id(|_| thread::yield_now())
            },
        )
    };
}

fn main() -> ExitCode {
    round::run(&[
        // Its counter wraps, so its keys may fall.
        Maker::new("bson", object_id, || ObjectId::new).unordered(),
        Maker::new("ulid-in-mutex", |key: &Ulid| key.0, ulid_in_mutex),
        Maker::new("ferroid-lock-mono-ulid", ULID::to_raw, || {
            // Made on first use: its clock is a thread that the other makers do not have.
            static KEYS: LazyLock<LockMonoUlidGenerator<ULID, MonotonicClock, ThreadRandom>> =
                LazyLock::new(|| {
                    LockMonoUlidGenerator::new(MonotonicClock::default(), ThreadRandom)
                });
            let keys = &*KEYS;
            move || {
                let key = keys.try_next_id(|_| thread::yield_now());
                key.expect("no thread panics with the lock")
            }
        }),
        ferroid_atomic!("ferroid-atomic-wide", Wide),
        ferroid_atomic!("ferroid-atomic", SnowflakeTwitterId),
        ferroid_atomic!("ferroid-atomic-instagram", SnowflakeInstagramId),
        Maker::new(
            "idgenerator",
            |key: &i64| u128::from(key.cast_unsigned()),
            || {
                static INIT: Once = Once::new();
                INIT.call_once(|| {
                    let options = IdGeneratorOptions::new().worker_id(5);
                    IdInstance::init(options).expect("six bits hold it");
                });
                IdInstance::next_id
            },
        ),
        Maker::new(
            "sonyflake",
            |key: &u64| (*key).into(),
            || {
                static KEYS: LazyLock<Sonyflake> = LazyLock::new(|| {
                    let keys = Sonyflake::builder().machine_id(&|| Ok(5)).finalize();
                    keys.expect("the clock is past 2014")
                });
                let keys = &*KEYS;
                || keys.next_id().expect("the clock runs").to_u64()
            },
        ),
        Maker::new(
            "snowflaked-sync",
            |key: &u64| (*key).into(),
            || {
                static KEYS: snowflaked::sync::Generator = snowflaked::sync::Generator::new(5);
                || KEYS.generate()
            },
        ),
    ])
}

fn object_id(key: &ObjectId) -> u128 {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = key.bytes();
    u128::from_be_bytes([0, 0, 0, 0, a, b, c, d, e, f, g, h, i, j, k, l])
}

/// It has no generator for several threads: this is what its users write.
fn ulid_in_mutex() -> impl FnMut() -> Ulid {
    static GENERATOR: Mutex<ulid::Generator> = Mutex::new(ulid::Generator::new());
    || {
        let mut generator = GENERATOR.lock().unwrap_or_else(PoisonError::into_inner);
        generator
            .generate()
            .unwrap_or_else(|overflow| overflow.commit_overflow_increment())
    }
}
