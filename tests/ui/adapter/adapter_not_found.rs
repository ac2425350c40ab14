//! Paths that lead to no adapter, and an adapter without that engine or column.

use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(adapter = ordid_sqlxx)]
struct NoCrate(Uuid);

#[derive(KeyType)]
#[ordid(adapter = crate::storage::memory(vec = uuid))]
struct NoModule(Uuid);

#[derive(KeyType)]
#[ordid(adapter = ordid(vec = uuid))]
struct NoAdapter(Uuid);

#[derive(KeyType)]
#[ordid(adapter = ordid_sqlx(vec = uuid))]
struct NoEngine(Uuid);

#[derive(KeyType)]
#[ordid(adapter = ordid_sqlx(blob))]
struct AllEngines(Uuid);

fn main() {}
