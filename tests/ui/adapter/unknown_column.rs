use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(sqlx(postgres = binary16, mysql = uuid, sqlite = blob))]
struct OrderId(Uuid);

fn main() {}
