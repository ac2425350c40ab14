use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
#[ordid(prefix, scheme =)]
struct OrderId(Uuid);

#[derive(OrderedKey)]
#[ordid(table = , schema, rename_all, crate)]
struct Order {
    id: OrderId,
    #[ordid(column)]
    total: i64,
    #[ordid(parent =)]
    replaces: Option<OrderId>,
}

fn main() {}
