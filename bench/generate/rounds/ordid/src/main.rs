//! The generators of ordid, by what they promise and the clock they read.

use std::process::ExitCode;

use bench_common::round::{self, Maker};
use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7)]
struct RowId(Uuid);

fn main() -> ExitCode {
    round::run(&[
        // The process-wide generator, as key types use it.
        Maker::filling("strict-system", || RowId::generate, RowId::fill),
    ])
}
