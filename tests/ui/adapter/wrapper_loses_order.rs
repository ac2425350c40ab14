//! A `Uuid` may be of version 4, which MariaDB's UUID compares by other rules.

use ordid::uuid::Uuid;
use ordid_sqlx::{Stored, column};

fn id(_: Stored<Uuid, column::MariaDbUuid>) {}

fn main() {}
