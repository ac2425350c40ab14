//! Layouts that no key has, or that are said in two ways.

use ordid::KeyType;

#[derive(KeyType)]
#[ordid(scheme = snowflake(epoch = "2026-01-01", time = 41, node = 10, sequence = 13))]
struct TooLong(i64);

#[derive(KeyType)]
#[ordid(scheme = snowflake(time = 41, node = 10))]
struct TooFew(i64);

#[derive(KeyType)]
#[ordid(scheme = snowflake(layout = Sonyflake, sequence = 8, years = 20))]
struct TwoWays(i64);

#[derive(KeyType)]
#[ordid(scheme = snowflake(epoch = "01.01.2026", time = 0, node = "ten", sequence = 64, unit = 0))]
struct NoNumbers(i64);

#[derive(KeyType)]
#[ordid(scheme = snowflake(epoc = "2026-01-01", worker = 5))]
struct Unknown(i64);

#[derive(KeyType)]
#[ordid(scheme = snowflake(epoch = "2026-01-01", years = 1_000, ids_per_second = 4_000_000_000, nodes = 4_000))]
struct NeedsTooMuch(i64);

fn main() {
    let _ = TooLong::from_raw(1);
    let _ = TwoWays::from_raw(1);
}
