use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(prefix = "ord_")]
struct OrderId(Uuid);

fn main() {}
