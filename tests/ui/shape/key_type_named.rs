use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
struct OrderId {
    raw: Uuid,
}

fn main() {}
