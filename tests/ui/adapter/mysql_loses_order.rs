//! Columns of MySQL and MariaDB that would refuse keys or put them out of order: MariaDB's `UUID` for
//! version 8, for SequentialGuid and for version 1; bytes and characters for version 1. The way out
//! that the errors name is the last key type.

use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(scheme = uuid_v8_sql_server, sqlx(mysql = mariadb_uuid))]
struct Version8(Uuid);

#[derive(KeyType)]
#[ordid(scheme = sequential_guid_as_string, sqlx(mysql = mariadb_uuid))]
struct AsString(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v1, sqlx(mysql = mariadb_uuid))]
struct Version1(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v1, sqlx(mysql = binary16))]
struct Bytes(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v1, sqlx(mysql = char36))]
struct Characters(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v1, sqlx(mysql = binary16_swapped))]
struct Swapped(Uuid);

fn main() {}
