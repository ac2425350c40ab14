//! The generators of ordid, by what they promise and the clock they read.

use std::{
    process::ExitCode,
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use bench_common::round::{self, Maker};
use ordid::{
    KeyType,
    clock::{Clock, CoarseClock, TscClock},
    entropy::{Entropy, ThreadEntropy},
    generator::{Generator, LocalBlock, Policy},
    scheme::uuid_v7::{UuidV7Generator, UuidV7LocalGenerator},
    uuid::Uuid,
};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7)]
struct RowId(Uuid);

type Strict<C> = UuidV7Generator<C, ThreadEntropy>;
type Local<C> = UuidV7LocalGenerator<C, ThreadEntropy>;

const fn strict<C: Clock>(clock: C) -> Strict<C> {
    UuidV7Generator::new(clock, ThreadEntropy, Policy::DEFAULT)
}

fn next(keys: &impl Generator<Scheme = ordid::scheme::UuidV7>) -> Uuid {
    keys.try_generate().expect("the clock runs").into_raw()
}

static COARSE: Strict<CoarseClock> = strict(CoarseClock);

thread_local! {
    // Users have one for each thread, too.
    static LOCAL_COARSE: Local<CoarseClock> = const { strict(CoarseClock).into_local() };
    // Not `const`, as in users' programs: a constant cannot refer to the one generator of all blocks.
    static BLOCK_COARSE: LocalBlock<&'static Strict<CoarseClock>> = COARSE.local_block();
}

/// Reads the coarse clock and no more.
fn coarse_clock() -> u128 {
    u128::from(CoarseClock.now().as_unix_millis())
}

/// Also draws the 32 random bits of a key.
fn coarse_clock_and_draw() -> u128 {
    let random = ThreadEntropy.next_u32().expect("there is entropy");
    coarse_clock() << 80 | u128::from(random)
}

/// Also takes part in one count, as strict order over all threads must.
fn coarse_clock_draw_and_addition() -> u128 {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let below = u128::from(COUNT.fetch_add(1, Ordering::AcqRel)) << 32;
    coarse_clock_and_draw() | below
}

fn main() -> ExitCode {
    let mut makers = vec![
        Maker::new("floor-coarse", |it| *it, || coarse_clock).unordered(),
        Maker::new("floor-coarse-draw", |it| *it, || coarse_clock_and_draw).unordered(),
        Maker::new(
            "floor-coarse-draw-addition",
            |it| *it,
            || coarse_clock_draw_and_addition,
        )
        .unordered(),
        // The process-wide generator, as key types use it.
        Maker::filling(
            "strict-system",
            |id| id.0.as_u128(),
            || RowId::generate,
            RowId::fill,
        ),
        Maker::new("strict-coarse", Uuid::as_u128, || || next(&COARSE)),
        Maker::new("local-coarse", Uuid::as_u128, || || LOCAL_COARSE.with(next)),
        Maker::new("local-block-static-coarse", Uuid::as_u128, || {
            || BLOCK_COARSE.with(next)
        }),
        Maker::new("local-block-coarse", Uuid::as_u128, || {
            let block = COARSE.local_block();
            move || next(&block)
        }),
    ];
    if let Some(clock) = TscClock::new() {
        static TSC: LazyLock<Strict<TscClock>> =
            LazyLock::new(|| strict(TscClock::new().expect("there is one")));
        let _ = clock;
        makers.push(Maker::new("strict-tsc", Uuid::as_u128, || {
            let keys = &*TSC;
            move || next(keys)
        }));
        makers.push(Maker::new("local-tsc", Uuid::as_u128, move || {
            let keys = strict(clock).into_local();
            move || next(&keys)
        }));
    }
    round::run(&makers)
}
