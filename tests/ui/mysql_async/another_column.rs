use ordid::{KeyType, uuid::Uuid};

// An integer has no room for it, and the other engine is another library's.
#[derive(KeyType)]
#[ordid(scheme = uuid_v7, mysql_async(mysql = bigint))]
struct OrderId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, mysql_async(postgres = uuid))]
struct ItemId(Uuid);

fn main() {}
