use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(scheme = uuid_v9)]
struct OrderId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = snowflakes)]
struct CustomerId(i64);

#[derive(KeyType)]
#[ordid(scheme = ordid::scheme::UuidV7)]
struct ProductId(Uuid);

fn main() {}
