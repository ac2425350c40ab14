use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
enum OrderId {
    V7(Uuid),
}

fn main() {}
