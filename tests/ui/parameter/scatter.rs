//! Rules that spread no keys.

use ordid::{KeyType, uuid::Uuid, key::scatter::ScatteredKey};

#[derive(KeyType)]
#[ordid(scatter)]
struct NoBuckets(Uuid);

#[derive(KeyType)]
#[ordid(scatter(buckets = 0))]
struct Zero(Uuid);

#[derive(KeyType)]
#[ordid(scatter(buckets = 100_000, lowest_bit = -1))]
struct TooMany(Uuid);

#[derive(KeyType)]
#[ordid(scatter(buckets = 20, lowest_bit = 80))]
struct NoPowerOfTwo(Uuid);

#[derive(KeyType)]
#[ordid(scheme = snowflake, scatter(buckets = 16, lowest_bit = 80))]
struct NoSuchBits(i64);

#[derive(KeyType)]
#[ordid(scatter(bucket = 16))]
struct Misspelt(Uuid);

fn main() {
    let _ = Zero::generate().scattered();
    let _ = TooMany::generate().scattered();
    let _ = NoSuchBits::SCATTER;
    let _ = Misspelt::generate().scattered();
}
