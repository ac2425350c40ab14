//! Key types as users write them: one per column form.

use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
pub struct Native(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx(postgres = text, mysql = char36, sqlite = text))]
pub struct Long(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, prefix = "short", sqlx(postgres = char22, mysql = char22, sqlite = char22))]
pub struct Short(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx(mysql = mariadb_uuid))]
pub struct Maria(Uuid);

/// The stored text of 2,000 generated keys, in order.
pub fn short_texts() -> Vec<String> {
    use ordid::storage::{Stores, column::Char22};
    (0..2_000)
        .map(|_| String::from_utf8(Char22::encode(Uuid::generate()).to_vec()).unwrap())
        .collect()
}
