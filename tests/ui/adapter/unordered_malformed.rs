use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(sqlx(mysql = unordered(), sqlite = unordered(blob, text)))]
struct OrderId(Uuid);

#[derive(KeyType)]
#[ordid(sqlx(postgres = without_order(uuid)))]
struct CustomerId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v4, sqlx(mysql = unordered(uuid)))]
struct ProductId(Uuid);

fn main() {}
