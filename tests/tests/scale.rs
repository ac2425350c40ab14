//! Keys by the million, and by the thousand million under `cargo xtask soak`: none comes twice, and
//! each thread's rise.

use libtest_mimic::{Arguments, Failed, Trial};
use ordid_tests::{
    merge::{Merged, from_processes, from_threads},
    soak,
};

const MILLION: u64 = 1_000_000;

fn main() {
    let mut arguments = Arguments::from_args();
    // One after the other, on the main thread: a fork should be a copy of this test alone.
    arguments.test_threads = Some(1);
    let trials = vec![
        short("four_processes_of_500000_keys_share_none", || {
            all(2 * MILLION, from_processes(4, MILLION / 2))
        }),
        long(
            "eight_threads_of_125_million_keys_rise_and_share_none",
            || all(1_000 * MILLION, from_threads(8, 125 * MILLION)),
        ),
        long("sixteen_processes_of_6250000_keys_share_none", || {
            all(100 * MILLION, from_processes(16, 6_250_000))
        }),
    ];
    libtest_mimic::run(&arguments, trials).exit();
}

fn all(expected: u64, merged: Result<Merged, String>) -> Result<(), Failed> {
    match merged?.keys {
        keys if keys == expected => Ok(()),
        keys => Err(format!("{keys} keys arrived of {expected}").into()),
    }
}

fn short(name: &str, test: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    Trial::test(name, test)
}

/// A test of minutes: ignored, with the reason in its name, unless it is asked for.
fn long(name: &str, test: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    let trial = Trial::test(name, test);
    if soak() {
        return trial;
    }
    trial
        .with_kind("long: `cargo xtask soak` runs it")
        .with_ignored_flag(true)
}
