//! Numbers of 54 bits and more, which the compiler counts: of bits, of a preset, of a need, of an own layout.

use ordid::{KeyType, scheme::snowflake::SnowflakeLayout};

enum Wide {}

impl SnowflakeLayout for Wide {
    const NAME: &'static str = "wide";
    const EPOCH_UNIX_MILLIS: i64 = 0;
    const TIME_BITS: u32 = 42;
    const NODE_BITS: u32 = 0;
    const SEQUENCE_BITS: u32 = 12;
}

#[derive(KeyType)]
#[ordid(scheme = snowflake(epoch = "2026-01-01", time = 41, node = 1, sequence = 12), json = number)]
struct OfBits(i64);

#[derive(KeyType)]
#[ordid(scheme = snowflake(layout = Sonyflake), json = number)]
struct OfPreset(i64);

#[derive(KeyType)]
#[ordid(scheme = snowflake(epoch = "2026-01-01", years = 100, ids_per_second = 1_000_000, nodes = 64), json = number)]
struct OfNeed(i64);

#[derive(KeyType)]
#[ordid(scheme = snowflake(layout = Wide), json = number)]
struct OfOwn(i64);

fn main() {}
