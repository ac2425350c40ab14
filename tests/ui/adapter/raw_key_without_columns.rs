//! SQLx columns for raw keys that are no UUIDs: there are none yet.

use ordid::{
    KeyType,
    key::{Key192, ObjectId},
};

#[derive(KeyType)]
#[ordid(scheme = snowflake, sqlx(postgres = uuid))]
struct OrderId(i64);

#[derive(KeyType)]
#[ordid(scheme = uuid_short, sqlx)]
struct CustomerId(u64);

#[derive(KeyType)]
#[ordid(scheme = object_id, sqlx(sqlite = blob, mysql = binary16))]
struct ProductId(ObjectId);

#[derive(KeyType)]
#[ordid(scheme = ordered_text_32, sqlx(sqlite = text))]
struct LineId(Key192);

fn main() {
    let _: i64 = "1".parse::<OrderId>().unwrap().into();
}
