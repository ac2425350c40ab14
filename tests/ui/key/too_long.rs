//! Three UUIDs have 48 bytes, and no key has more.

use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
struct OrderId(Uuid);

#[derive(OrderedKey)]
struct Fits {
    #[ordid(key)]
    first: OrderId,
    #[ordid(key)]
    second: Uuid,
    #[ordid(key)]
    third: Option<OrderId>,
}

#[derive(OrderedKey)]
struct TooLong {
    #[ordid(key)]
    first: OrderId,
    #[ordid(key)]
    second: Uuid,
    #[ordid(key)]
    third: Option<OrderId>,
    #[ordid(key)]
    number: i16,
}

fn main() {}
