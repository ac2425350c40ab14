//! `Uuid::now_v7`, the peer. Two packages build this file, with and without `fast-rng`; in one
//! invocation of Cargo both would get the feature.

use std::process::ExitCode;

use bench_common::round::{self, Maker};
use uuid::Uuid;

enum NowV7 {}

impl Maker for NowV7 {
    type Key = Uuid;

    fn make() -> Uuid {
        Uuid::now_v7()
    }

    /// It has no call for many keys: this is what its users write.
    fn fill(keys: &mut [Uuid]) {
        for key in keys {
            *key = Uuid::now_v7();
        }
    }
}

fn main() -> ExitCode {
    round::run::<NowV7>()
}
