use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
struct CustomerId(Uuid);

#[derive(OrderedKey)]
struct Order {
    id: Uuid,
    #[ordid(parent = CustomerId)]
    customer: CustomerId,
}

fn main() {}
