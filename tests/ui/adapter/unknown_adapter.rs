use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(sqlite = blob, sqlxx(postgres = uuid))]
struct OrderId(Uuid);

fn main() {}
