use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
struct OrderId(Uuid);

#[derive(OrderedKey)]
struct Order {
    id: OrderId,
    #[ordid(parent)]
    customer: Uuid,
    #[ordid(parent)]
    agent: Option<Uuid>,
}

fn main() {}
