use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(prefx = "ord", engine = postgres)]
struct OrderId(Uuid);

fn main() {}
