use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
struct OrderId(Uuid);

#[derive(OrderedKey)]
struct Order {
    id: OrderId,
    #[ordid(version, returning)]
    version: i64,
}

fn main() {}
