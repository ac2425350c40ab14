use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
#[ordid(table = "orders")]
struct OrderId(Uuid);

#[derive(OrderedKey)]
#[ordid(key = "id", prefix = "ord", sqlx)]
struct Order {
    #[ordid(table = "orders")]
    id: OrderId,
}

fn main() {}
