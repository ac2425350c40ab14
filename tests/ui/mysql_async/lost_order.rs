use ordid::{KeyType, uuid::Uuid};

// It rises from its end, which the column does not compare first.
#[derive(KeyType)]
#[ordid(scheme = comb_nhibernate, mysql_async(mysql = binary16))]
struct OrderId(Uuid);

fn main() {}
