use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(sqlx(postgres, mysql = "binary16", sqlite(blob)))]
struct OrderId(Uuid);

#[derive(KeyType)]
#[ordid(sqlx = uuid)]
struct CustomerId(Uuid);

#[derive(KeyType)]
#[ordid(sqlx())]
struct ProductId(Uuid);

fn main() {}
