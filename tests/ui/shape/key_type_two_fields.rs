use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
struct OrderId(Uuid, u16);

fn main() {}
