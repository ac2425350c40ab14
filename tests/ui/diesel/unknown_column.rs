use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(diesel(postgres = binary16, sqlite = blob, oracle = raw16))]
struct OrderId(Uuid);

fn main() {}
