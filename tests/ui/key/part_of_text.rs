//! A text is no part of a key, and an integer is not its first part: rows are in the order of the first.

use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
struct OrderId(Uuid);

#[derive(OrderedKey)]
struct Line {
    #[ordid(key)]
    order: OrderId,
    #[ordid(key)]
    product: String,
}

#[derive(OrderedKey)]
struct Day {
    #[ordid(key)]
    number: i32,
    #[ordid(key)]
    order: OrderId,
}

fn main() {}
