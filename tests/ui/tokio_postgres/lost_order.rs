use ordid::{KeyType, uuid::Uuid};

// It rises from its end, which a `uuid` does not compare first.
#[derive(KeyType)]
#[ordid(scheme = comb_nhibernate, tokio_postgres(postgres = uuid))]
struct OrderId(Uuid);

fn main() {}
