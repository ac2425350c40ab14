use ordid::{Assigned, KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
struct OrderId(Uuid);

#[derive(OrderedKey)]
struct Order {
    #[ordid(key, returning)]
    id: OrderId,
    number: Assigned<i64>,
}

fn main() {}
