use ordid::{Assigned, KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
struct OrderId(Uuid);

#[derive(OrderedKey)]
struct Order {
    id: OrderId,
    #[ordid(returning, skip)]
    number: Assigned<i64>,
}

fn main() {}
