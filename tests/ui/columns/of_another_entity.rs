//! Columns of another entity are updated by nothing.

use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_sqlx::UnitOfWork;
use sqlx::Sqlite;

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
struct RowId(Uuid);

#[derive(OrderedKey)]
#[ordid(columns)]
struct Order {
    id: RowId,
    total: i64,
}

#[derive(OrderedKey)]
#[ordid(columns)]
struct Customer {
    id: RowId,
    name: String,
}

fn main() {
    let mut work = UnitOfWork::<Sqlite>::new();
    let order = Order {
        id: RowId::generate(),
        total: 1,
    };
    work.update_columns(order, (Order::total, Customer::name));
}
