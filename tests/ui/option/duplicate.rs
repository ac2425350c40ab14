use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
#[ordid(prefix = "ord", scheme = uuid_v7)]
#[ordid(scheme = uuid_v7, prefix = "order")]
struct OrderId(Uuid);

#[derive(OrderedKey)]
#[ordid(table = "orders", table = "orders")]
struct Order {
    #[ordid(key, key)]
    id: OrderId,
    #[ordid(column = "a")]
    #[ordid(column = "b")]
    total: i64,
    #[ordid(parent, parent)]
    replaces: Option<OrderId>,
}

fn main() {}
