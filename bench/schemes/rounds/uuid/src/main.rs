//! The versions that `uuid` makes, with `fast-rng`.

use std::{hint::black_box, process::ExitCode};

use bench_common::round::{self, Maker};
use uuid::Uuid;
use uuid47::{Uuid128, UuidV47Key};

const MASK: [u64; 2] = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210];
const NODE: [u8; 6] = [2, 0x42, 0xac, 0x11, 0, 2];

fn main() -> ExitCode {
    round::run(&[
        Maker::new("now-v1", Uuid::as_u128, || || Uuid::now_v1(&NODE)).unordered(),
        Maker::new("new-v4", Uuid::as_u128, || Uuid::new_v4).unordered(),
        // Its order within 100 ns ends where the 14 bits of its count do.
        Maker::new("now-v6", Uuid::as_u128, || || Uuid::now_v6(&NODE)).unordered(),
        Maker::new("now-v7", Uuid::as_u128, || Uuid::now_v7),
        Maker::new("now-v7-uuid47", Uuid::as_u128, || masked),
    ])
}

/// Makes a key and its form for outside, whose bytes `uuid47` keeps to itself.
fn masked() -> Uuid {
    let key = Uuid::now_v7();
    let inside = Uuid128::from_bytes(key.into_bytes()).expect("it is of version 7");
    black_box(&inside.encode_as_v4facade(&UuidV47Key::new(MASK[0], MASK[1])));
    key
}
