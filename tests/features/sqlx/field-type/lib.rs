//! Has a field with a type of `chrono` without the feature of `sqlx`.

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
