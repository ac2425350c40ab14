use ordid::{KeyType, uuid::Uuid};

// An integer has no room for it, and the other column is Oracle's.
#[derive(KeyType)]
#[ordid(scheme = uuid_v7, rusqlite(sqlite = integer))]
struct OrderId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, rusqlite(sqlite = raw16))]
struct ItemId(Uuid);

fn main() {}
