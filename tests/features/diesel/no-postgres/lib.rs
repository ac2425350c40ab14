//! Writes rows to PostgreSQL, but `ordid-diesel` has only the feature of SQLite.

use diesel::pg::Pg;
use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_diesel::UnitOfWork;

#[derive(KeyType)]
#[ordid(diesel)]
pub struct OrderId(Uuid);

diesel::table! {
    orders (id) { id -> Uuid, total -> BigInt, }
}

#[derive(OrderedKey)]
#[diesel(table_name = orders)]
#[ordid(diesel)]
pub struct Order {
    id: OrderId,
    total: i64,
}

pub fn add(order: Order) -> UnitOfWork<Pg> {
    let mut work = UnitOfWork::new();
    work.add(order);
    work
}
