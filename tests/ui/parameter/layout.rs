//! Types that are no layout.

use ordid::KeyType;

struct Wide;

#[derive(KeyType)]
#[ordid(scheme = snowflake(layout = Wide))]
struct OrderId(i64);

#[derive(KeyType)]
#[ordid(scheme = snowflake(layout = Wide, epoch = "2026-01-01"))]
struct SinceId(i64);

fn main() {}
