use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
struct OrderId(#[ordid(prefix = "ord")] Uuid);

fn main() {}
