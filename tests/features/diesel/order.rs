// This is an entity of Diesel.

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
