//! The versions that `uuid` makes, with `fast-rng`.

use std::process::ExitCode;

use bench_common::round::{self, Maker};
use uuid::Uuid;

const NODE: [u8; 6] = [2, 0x42, 0xac, 0x11, 0, 2];

fn main() -> ExitCode {
    round::run(&[
        Maker::unordered("now-v1", Uuid::as_u128, || || Uuid::now_v1(&NODE)),
        Maker::unordered("new-v4", Uuid::as_u128, || Uuid::new_v4),
        // Its order within 100 ns ends where the 14 bits of its count do.
        Maker::unordered("now-v6", Uuid::as_u128, || || Uuid::now_v6(&NODE)),
        Maker::new("now-v7", Uuid::as_u128, || Uuid::now_v7),
    ])
}
