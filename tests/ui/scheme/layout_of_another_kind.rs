//! Types that are no layout.

use ordid::{KeyType, scheme::Compact};

struct Need;

#[derive(KeyType)]
#[ordid(scheme = snowflake(layout = String))]
struct OrderId(i64);

#[derive(KeyType)]
#[ordid(scheme = snowflake(layout = Compact<Need>))]
struct CustomerId(i64);

fn main() {}
