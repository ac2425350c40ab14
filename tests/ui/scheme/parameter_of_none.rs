//! A parameter on schemes without any.

use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(scheme = ulid(layout = Sonyflake))]
struct OrderId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = instagram(shard = Five))]
struct CustomerId(i64);

fn main() {
    let _ = OrderId::generate();
}
