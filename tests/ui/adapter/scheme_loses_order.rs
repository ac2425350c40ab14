//! Schemes that do not rise where the column compares.

use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(scheme = uuid_v4, sqlx(postgres = uuid))]
struct OrderId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = comb_nhibernate, sqlx(postgres = uuid, mysql = mariadb_uuid))]
struct CustomerId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v8_sha256, sqlx(sqlite = blob))]
struct ImportId(Uuid);

fn main() {}
