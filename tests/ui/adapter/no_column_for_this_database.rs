//! A key type without a column for the database it is flushed to; and an entity without a key.

use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_sqlx::UnitOfWork;

#[derive(KeyType)]
#[ordid(sqlx(postgres = uuid))]
struct OrderId(Uuid);

#[derive(OrderedKey)]
struct Order {
    id: OrderId,
    total: i64,
}

struct Unkeyed {
    total: i64,
}

fn sqlite(work: &mut UnitOfWork<sqlx::Sqlite>) {
    work.add(Order { id: OrderId::generate(), total: 1 });
    work.add(Unkeyed { total: 1 });
}

fn main() {}
