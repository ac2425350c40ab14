//! A field of a type of `chrono`, and `sqlx` does not have its feature.

use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_sqlx::UnitOfWork;

#[derive(KeyType)]
#[ordid(sqlx)]
pub struct OrderId(Uuid);

#[derive(OrderedKey)]
#[ordid(table = "orders")]
pub struct Order {
    id: OrderId,
    paid: chrono::DateTime<chrono::Utc>,
}

pub fn add(work: &mut UnitOfWork<sqlx::Sqlite>, order: Order) {
    work.add(order);
}
