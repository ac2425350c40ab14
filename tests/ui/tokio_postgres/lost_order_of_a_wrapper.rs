use ordid::uuid::Uuid;
use ordid_tokio_postgres::{Stored, column};

// A `Uuid` may be of any version, and no column here changes that; MariaDB's is none of PostgreSQL.
fn no_order(_: Stored<Uuid, column::MariaDbUuid>) {}

fn main() {}
