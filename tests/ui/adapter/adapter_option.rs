//! Adapters of other crates: what is no path, what is said twice, and a crate that is none.

use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(adapter)]
struct Nothing(Uuid);

#[derive(KeyType)]
#[ordid(adapter = "ordid_sqlx")]
struct Text(Uuid);

#[derive(KeyType)]
#[ordid(adapter(ordid_sqlx))]
struct List(Uuid);

#[derive(KeyType)]
#[ordid(adapter = ordid_sqlx())]
struct NoColumns(Uuid);

#[derive(KeyType)]
#[ordid(adapter = ordid_sqlx, adapter = ordid_sqlx(sqlite = blob))]
struct Twice(Uuid);

#[derive(KeyType)]
#[ordid(adapter = sqlx(crate = ordid_sqlx))]
struct Elsewhere(Uuid);

#[derive(KeyType)]
#[ordid(adapter = ordid_sqlx(sqlite = blob, sqlite = text, mysql))]
struct Columns(Uuid);

fn main() {}
