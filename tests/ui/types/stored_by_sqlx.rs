use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType, sqlx::FromRow)]
#[ordid(sqlx)]
struct OrderId(#[sqlx(json)] Uuid);

#[derive(KeyType, sqlx::FromRow)]
#[ordid(sqlx)]
struct CustomerId(#[sqlx(try_from = "String")] Uuid);

fn main() {}
