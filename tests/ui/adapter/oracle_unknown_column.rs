//! Columns that Oracle does not have.

use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(oracle(oracle = binary16))]
struct OrderId(Uuid);

#[derive(KeyType)]
#[ordid(oracle(oracle = unordered(uuid)))]
struct RandomId(Uuid);

fn main() {}
