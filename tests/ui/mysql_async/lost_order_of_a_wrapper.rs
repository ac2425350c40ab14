use ordid::uuid::Uuid;
use ordid_mysql_async::{Stored, column};

// A `Uuid` may be of version 4, which MariaDB's UUID sorts by other rules.
fn no_order(_: Stored<Uuid, column::MariaDbUuid>) {}

fn main() {}
