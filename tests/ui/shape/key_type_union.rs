use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
union OrderId {
    raw: Uuid,
}

fn main() {}
