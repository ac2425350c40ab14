use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
struct CustomerId(Uuid);

#[derive(OrderedKey)]
struct Order {
    id: Uuid,
    #[ordid(skip, column = "total")]
    total: i64,
    #[ordid(parent, skip)]
    customer: CustomerId,
}

fn main() {}
