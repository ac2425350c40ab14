use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(sqlx(postgress = uuid, mysql = binary16, oracle = raw16))]
struct OrderId(Uuid);

fn main() {}
