use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(tokio_postgres(postgres = binary16, mysql = binary16))]
struct OrderId(Uuid);

#[derive(KeyType)]
#[ordid(tokio_postgres(uuid))]
struct CustomerId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_short, tokio_postgres)]
struct Short(u64);

fn main() {}
