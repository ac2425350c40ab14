//! Rows for MySQL, and `ordid-diesel` has the feature of SQLite.

use diesel::mysql::Mysql;
use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_diesel::UnitOfWork;

#[derive(KeyType)]
#[ordid(diesel)]
pub struct OrderId(Uuid);

diesel::table! {
    orders (id) { id -> Binary, total -> BigInt, }
}

#[derive(OrderedKey)]
#[diesel(table_name = orders)]
#[ordid(diesel)]
pub struct Order {
    id: OrderId,
    total: i64,
}

pub fn add(order: Order) -> UnitOfWork<Mysql> {
    let mut work = UnitOfWork::new();
    work.add(order);
    work
}
