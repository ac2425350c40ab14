use ordid::{KeyType, uuid::Uuid};

// It rises from its end, which none of these columns compares first.
#[derive(KeyType)]
#[ordid(scheme = comb_nhibernate, diesel(postgres = uuid, mysql = binary16, sqlite = blob))]
struct OrderId(Uuid);

fn main() {}
