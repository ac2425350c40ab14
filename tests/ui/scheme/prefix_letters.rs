use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, prefix = "Order")]
struct OrderId(Uuid);

fn main() {}
