//! Columns in which schemes keep their order.

use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(scheme = comb_nhibernate, sqlx(mysql = mariadb_uuid))]
struct CustomerId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = ulid, sqlx)]
struct OrderId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v6, sqlx(postgres = text, mysql = mariadb_uuid))]
struct LineId(Uuid);

fn main() {
    assert!(CustomerId::generate() < CustomerId::generate());
    assert!(OrderId::generate() < OrderId::generate());
    assert!(LineId::generate() < LineId::generate());
}
