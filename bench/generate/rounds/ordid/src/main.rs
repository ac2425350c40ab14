//! Keys of a key type over the process-wide generator: UUID version 7, strictly rising over all
//! threads, the operating system's clock.

use std::process::ExitCode;

use bench_common::round::{self, Maker};
use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7)]
struct RowId(Uuid);

enum Ordid {}

impl Maker for Ordid {
    type Key = RowId;

    fn make() -> RowId {
        RowId::generate()
    }

    fn fill(keys: &mut [RowId]) {
        RowId::fill(keys);
    }
}

fn main() -> ExitCode {
    round::run::<Ordid>()
}
