//! Sorting keys as bytes and as text.

use std::{hint::black_box, time::Instant};

use bench_common::spread::Spread;
use uuid::Uuid;

use super::{Finding, Outcome};

/// How often each form is sorted, in turn.
const ROUNDS: usize = 11;

pub(super) fn run(keys: usize) -> Option<Finding> {
    let keys: Vec<Uuid> = (0..keys).map(|_| Uuid::new_v4()).collect();
    let texts: Vec<String> = keys.iter().map(Uuid::to_string).collect();
    let (mut bytes, mut text) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bytes.push(millis_to_sort(keys.clone()));
        text.push(millis_to_sort(texts.clone()));
    }
    let ratios = bytes.iter().zip(&text).map(|(bytes, text)| text / bytes);
    let ratio = Spread::of(ratios);
    Some(Finding {
        claim: "random UUIDs sort faster as 16 bytes than as 36 characters",
        source: "352 ms, 679 ms (Java): 1.93 x",
        ours: format!(
            "{:.0} ms, {:.0} ms: {ratio:.1} x",
            Spread::of(bytes).median,
            Spread::of(text).median
        ),
        outcome: Outcome::of(ratio.median >= 1.5),
    })
}

fn millis_to_sort<T: Ord>(mut values: Vec<T>) -> f64 {
    let started = Instant::now();
    values.sort();
    let time = started.elapsed();
    black_box(&values);
    time.as_secs_f64() * 1000.0
}
