//! Columns that cannot hold the raw key.

use ordid::{KeyType, key::ObjectId};

#[derive(KeyType)]
#[ordid(scheme = snowflake, sqlx(postgres = uuid))]
struct OrderId(i64);

#[derive(KeyType)]
#[ordid(scheme = uuid_short, sqlx(mysql = bigint))]
struct CustomerId(u64);

#[derive(KeyType)]
#[ordid(scheme = object_id, sqlx(mysql = binary16))]
struct ProductId(ObjectId);

fn main() {}
