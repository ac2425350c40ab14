//! A text does not tell which version comes next.

use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
struct OrderId(Uuid);

#[derive(OrderedKey)]
struct Order {
    id: OrderId,
    #[ordid(version)]
    version: String,
}

fn main() {}
