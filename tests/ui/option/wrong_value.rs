use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
#[ordid(prefix = ord, scheme = "uuid_v7", crate = "ordid")]
struct OrderId(Uuid);

#[derive(OrderedKey)]
#[ordid(table = orders, schema(shop), rename_all = 1)]
struct Order {
    #[ordid(key = true)]
    id: OrderId,
    #[ordid(column = b"total")]
    total: i64,
    #[ordid(parent = "Order")]
    replaces: Option<OrderId>,
    #[ordid(parent = &Order)]
    follows: Option<OrderId>,
    #[ordid(skip(all))]
    cache: Vec<u8>,
}

fn main() {}
