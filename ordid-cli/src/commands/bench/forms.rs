//! Sorting and comparing the forms of a key in memory, as indexes and joins do.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use ordid_core::scheme::catalogue;
use serde::Serialize;

use super::{sample::Random, spread::Spread};
use crate::{failure::Failure, interrupt::Interrupt};

/// How often each form is measured, in turn.
const ROUNDS: usize = 5;
/// How often the neighbours of the sorted keys are compared.
const PASSES: usize = 5;

/// The cost of a form.
#[derive(Debug, Serialize)]
pub(super) struct Form {
    /// The form, and which keys.
    form: &'static str,
    /// Nanoseconds a key to sort the keys.
    sort_ns: Spread,
    /// Nanoseconds to compare two neighbours of the sorted keys.
    compare_ns: Spread,
}

impl Form {
    pub(super) fn cells(&self) -> [String; 3] {
        let digits = |spread: &Spread| {
            format!(
                "{:.1} [{:.1}..{:.1}]",
                spread.median, spread.min, spread.max
            )
        };
        [
            self.form.to_owned(),
            digits(&self.sort_ns),
            digits(&self.compare_ns),
        ]
    }

    pub(super) fn name(&self) -> &'static str {
        self.form
    }

    pub(super) fn sort(&self) -> f64 {
        self.sort_ns.median
    }

    pub(super) fn compare(&self) -> f64 {
        self.compare_ns.median
    }
}

/// Measures the forms of so many keys.
///
/// # Errors
///
/// The user has interrupted it.
pub(super) fn measure(keys: usize, interrupt: &Interrupt) -> Result<Vec<Form>, Failure> {
    let mut random = Random::new();
    let mut drawn: Vec<[u8; 16]> = Vec::with_capacity(keys);
    drawn.resize_with(keys, || {
        let halves = [random.next(), random.next()];
        uuid::Builder::from_random_bytes(
            ((u128::from(halves[0]) << 64) | u128::from(halves[1])).to_be_bytes(),
        )
        .into_uuid()
        .into_bytes()
    });
    let integers: Vec<i64> = drawn
        .iter()
        .map(|key| i64::from_be_bytes(<[u8; 8]>::try_from(&key[..8]).expect("8 of 16 bytes")) >> 1)
        .collect();
    let texts = |keys: &[[u8; 16]]| -> Vec<String> {
        keys.iter()
            .map(|key| uuid::Uuid::from_bytes(*key).to_string())
            .collect()
    };
    let drawn_texts = texts(&drawn);
    // Keys of a few milliseconds, which differ late. They are shuffled, as an index finds them that
    // is built later.
    let scheme = catalogue::find("uuid_v7").expect("it is in the catalogue");
    let clock = std::sync::Arc::new(ordid_core::clock::SystemClock);
    let generator = scheme.generator(None, clock).map_err(Failure::could_not)?;
    let mut rising = Vec::with_capacity(keys);
    for _ in 0..keys {
        let key = generator.generate().map_err(Failure::could_not)?;
        rising.push(<[u8; 16]>::try_from(key.as_bytes()).expect("version 7 has 16 bytes"));
    }
    for place in (1..rising.len()).rev() {
        let other = random.next() % (u64::try_from(place).unwrap_or(0) + 1);
        rising.swap(place, usize::try_from(other).unwrap_or(0));
    }
    let rising_texts = texts(&rising);

    let mut times = [const { (Vec::new(), Vec::new()) }; 5];
    for _ in 0..ROUNDS {
        for (form, (sort, compare)) in times.iter_mut().enumerate() {
            if interrupt.is_set() {
                return Err(Failure::could_not("interrupted"));
            }
            let (sorted, compared) = match form {
                0 => timed(&integers),
                1 => timed(&drawn),
                2 => timed(&drawn_texts),
                3 => timed(&rising),
                _ => timed(&rising_texts),
            };
            sort.push(sorted);
            compare.push(compared);
        }
    }
    let names = [
        "integers, random",
        "16 bytes, random (v4)",
        "36 characters, random (v4)",
        "16 bytes, of one moment (v7)",
        "36 characters, of one moment (v7)",
    ];
    let forms = names.into_iter().zip(times);
    Ok(forms
        .map(|(form, (sort, compare))| Form {
            form,
            sort_ns: Spread::of(sort),
            compare_ns: Spread::of(compare),
        })
        .collect())
}

/// Returns the nanoseconds of a key to sort, and of a comparison of two neighbours.
fn timed<T: Ord + Clone>(keys: &[T]) -> (f64, f64) {
    let mut sorted = keys.to_vec();
    let started = Instant::now();
    sorted.sort_unstable();
    let sorting = started.elapsed();
    let mut above = 0_u32;
    let started = Instant::now();
    for _ in 0..PASSES {
        for pair in sorted.windows(2) {
            above += u32::from(black_box(&pair[0]) < black_box(&pair[1]));
        }
    }
    let comparing = started.elapsed();
    black_box(above);
    (
        nanos(sorting, keys.len()),
        nanos(comparing, PASSES * sorted.len().saturating_sub(1)),
    )
}

fn nanos(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e9 / f64::from(u32::try_from(count.max(1)).unwrap_or(u32::MAX))
}
