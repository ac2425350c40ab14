use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
struct CustomerId(Uuid);

#[derive(KeyType)]
struct OrderId(Uuid);

#[derive(OrderedKey)]
struct Order {
    id: OrderId,
    #[ordid(parent, returning)]
    customer: CustomerId,
}

fn main() {}
