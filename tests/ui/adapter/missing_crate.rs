use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(sqlx(crate = not_a_crate, postgres = uuid))]
struct OrderId(Uuid);

#[derive(KeyType)]
#[ordid(sqlx(crate = "ordid_sqlx"))]
struct CustomerId(Uuid);

fn main() {}
