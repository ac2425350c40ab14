use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
struct OrderId<'a>(&'a Uuid);

fn main() {}
