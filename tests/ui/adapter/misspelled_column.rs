//! The compiler finds the column of a name that is nearly right.

use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(sqlx(mysql = binray16, sqlite = unordered(blobb)))]
struct OrderId(Uuid);

fn main() {}
