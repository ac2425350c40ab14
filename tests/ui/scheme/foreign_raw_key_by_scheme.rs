//! Types that only the compiler can tell from the raw key.

use ordid::KeyType;

mod bson {
    #[derive(Clone, Copy)]
    pub struct ObjectId;
}

type Number = u64;

#[derive(KeyType)]
#[ordid(scheme = object_id)]
struct OrderId(bson::ObjectId);

#[derive(KeyType)]
#[ordid(scheme = snowflake)]
struct CustomerId(Number);

fn main() {}
