use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, rusqlite(postgres = uuid))]
struct OrderId(Uuid);

// SQLite has no integer without a sign.
#[derive(KeyType)]
#[ordid(scheme = uuid_short, rusqlite)]
struct ItemId(u64);

fn main() {}
