//! Keys that are no JSON numbers, or that many readers of JSON would round.

use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(scheme = snowflake, json = text)]
struct Text(i64);

#[derive(KeyType)]
#[ordid(json = number)]
struct OfUuids(Uuid);

#[derive(KeyType)]
#[ordid(scheme = sequence, json = number)]
struct Counted(i64);

#[derive(KeyType)]
#[ordid(scheme = snowflake(epoch = "2026-01-01", time = 41, node = 0, sequence = 12), prefix = "ord", json = number)]
struct Prefixed(i64);

fn main() {}
