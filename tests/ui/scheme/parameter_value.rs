//! The value of a parameter is a type.

use ordid::KeyType;

#[derive(KeyType)]
#[ordid(scheme = snowflake(layout = "Sonyflake"))]
struct OrderId(i64);

#[derive(KeyType)]
#[ordid(scheme = snowflake(layout = 41))]
struct CustomerId(i64);

#[derive(KeyType)]
#[ordid(scheme = snowflake(layout))]
struct ProductId(i64);

#[derive(KeyType)]
#[ordid(scheme = snowflake(layout =))]
struct LineId(i64);

#[derive(KeyType)]
#[ordid(scheme = snowflake(layout = of(Sonyflake)))]
struct ItemId(i64);

fn main() {}
