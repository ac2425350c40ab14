//! A layout that is neither a preset nor a type in scope.

use ordid::KeyType;

#[derive(KeyType)]
#[ordid(scheme = snowflake(layout = Sonyflak))]
struct OrderId(i64);

#[derive(KeyType)]
#[ordid(scheme = snowflake(layout = ordid::scheme::snowflake::Sonyflak))]
struct CustomerId(i64);

fn main() {}
