use ordid::{OrderedKey, uuid::Uuid};

#[derive(OrderedKey)]
struct Order {
    #[ordid(key, skip)]
    id: Uuid,
}

#[derive(OrderedKey)]
struct Customer {
    #[ordid(skip)]
    id: Uuid,
}

fn main() {}
