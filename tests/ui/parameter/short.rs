//! Short ids of keys that are no integers, and a `short` that is no `Sqids`.

use std::sync::LazyLock;

use ordid::{KeyType, key::short::{ShortKey, Sqids}, uuid::Uuid};

static SHORT: LazyLock<Sqids> = LazyLock::new(Sqids::default);

#[derive(KeyType)]
#[ordid(short = SHORT)]
struct OfUuids(Uuid);

#[derive(KeyType)]
#[ordid(scheme = sequence, short = "abc")]
struct Text(i64);

#[derive(KeyType)]
#[ordid(scheme = sequence, short = SHROT)]
struct Misspelt(i64);

static NUMBER: u8 = 1;

#[derive(KeyType)]
#[ordid(scheme = sequence, short = NUMBER)]
struct OfNumber(i64);

#[derive(KeyType)]
#[ordid(scheme = sequence)]
struct Long(i64);

fn main() {
    let _ = Misspelt::from_raw(1).unwrap().to_short();
    let _ = Long::from_raw(1).unwrap().to_short();
}
