//! A `Uuid` may be of version 4, which MariaDB's UUID compares by other rules; and a key type's
//! scheme may rise elsewhere.

use ordid::{KeyType, uuid::Uuid};
use ordid_sqlx::{Stored, column};

#[derive(KeyType)]
#[ordid(scheme = comb_rt_sql)]
struct OrderId(Uuid);

fn id(_: Stored<Uuid, column::MariaDbUuid>) {}

fn order_id(_: Stored<OrderId, column::Binary16>) {}

fn main() {}
