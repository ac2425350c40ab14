use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(sqlx(postgres = uuid, postgres = text))]
struct OrderId(Uuid);

#[derive(KeyType)]
#[ordid(sqlx(sqlite = blob), sqlx(mysql = binary16))]
struct CustomerId(Uuid);

fn main() {}
