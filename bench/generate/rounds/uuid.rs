//! `Uuid::now_v7`, the peer that ratios refer to. Two packages build this file, with and without
//! `fast-rng`; in one invocation of Cargo both would get the feature.

use std::process::ExitCode;

use bench_common::round::{self, Maker};
use uuid::Uuid;

fn main() -> ExitCode {
    round::run(&[Maker::new("now-v7", Uuid::as_u128, || Uuid::now_v7)])
}
