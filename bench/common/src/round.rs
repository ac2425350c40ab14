//! One program's part of a round of `bench-generate`: it times one case and prints the
//! nanoseconds a key took.
//!
//! Each program of a round is this code around another generator. Keys go through
//! [`black_box`] and are compared with the one before, which costs every program the same.

use std::{
    hint::black_box,
    process::ExitCode,
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

use crate::spread::Spread;

/// A generator under test.
pub trait Maker {
    /// Its keys.
    type Key: Copy + Ord + Send;

    /// Makes a key above all that the process has made before.
    fn make() -> Self::Key;

    /// Overwrites all keys with new ones, in rising order.
    fn fill(keys: &mut [Self::Key]);
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Case {
    /// One key at a time.
    Single,
    /// One key at a time on each of two threads, which share the order: wall time over all keys.
    TwoThreads,
    /// A million keys into a `Vec` that is there already.
    Fill,
}

impl Case {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Single, Self::TwoThreads, Self::Fill];

    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::TwoThreads => "single-2-threads",
            Self::Fill => "fill-1m",
        }
    }
}

/// Keys of a sample of one thread that makes them one at a time.
const SINGLE: u32 = 100_000;
/// Keys of a sample of a fill.
const FILL: u32 = 1_000_000;

/// Times the case that the command line names.
pub fn run<M: Maker>() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some(case) = Case::ALL.into_iter().find(|case| case.name() == name) else {
        eprintln!("usage: one of {}", Case::ALL.map(Case::name).join(", "));
        return ExitCode::from(2);
    };
    let nanos = match case {
        Case::Single => median(11, SINGLE, one_by_one::<M>),
        Case::TwoThreads => median(11, 2 * SINGLE, on_two_threads::<M>),
        Case::Fill => {
            let mut keys = vec![M::make(); FILL as usize];
            median(5, FILL, || filled::<M>(&mut keys))
        }
    };
    println!("{nanos}");
    ExitCode::SUCCESS
}

/// Returns the median nanoseconds a key over some samples, after one that warms up.
fn median(samples: usize, keys: u32, mut sample: impl FnMut() -> Duration) -> f64 {
    sample();
    let times = (0..samples).map(|_| sample().as_secs_f64());
    Spread::of(times).median * 1e9 / f64::from(keys)
}

fn one_by_one<M: Maker>() -> Duration {
    let mut last = M::make();
    let mut rising = true;
    let started = Instant::now();
    for _ in 0..SINGLE {
        let key = black_box(M::make());
        rising &= last < key;
        last = key;
    }
    let elapsed = started.elapsed();
    assert!(rising, "keys of one thread do not rise");
    elapsed
}

fn on_two_threads<M: Maker>() -> Duration {
    let barrier = Barrier::new(2);
    let thread = || {
        barrier.wait();
        let started = Instant::now();
        one_by_one::<M>();
        (started, Instant::now())
    };
    let (one, other) = thread::scope(|scope| {
        let other = scope.spawn(thread);
        (thread(), other.join().expect("the thread does not panic"))
    });
    one.1.max(other.1) - one.0.min(other.0)
}

fn filled<M: Maker>(keys: &mut [M::Key]) -> Duration {
    let before = keys.last().copied();
    let started = Instant::now();
    M::fill(black_box(keys));
    let elapsed = started.elapsed();
    assert!(
        keys.is_sorted_by(|a, b| a < b),
        "keys of a fill do not rise"
    );
    assert!(
        before < keys.first().copied(),
        "a fill does not rise above the last"
    );
    elapsed
}
