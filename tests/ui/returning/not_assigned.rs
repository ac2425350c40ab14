use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
struct OrderId(Uuid);

#[derive(OrderedKey)]
struct Order {
    id: OrderId,
    #[ordid(returning)]
    number: i64,
}

fn main() {}
