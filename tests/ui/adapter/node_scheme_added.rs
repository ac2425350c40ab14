//! A unit of work makes keys that are missing; of schemes with nodes it cannot.

use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_sqlx::UnitOfWork;

#[derive(KeyType)]
#[ordid(scheme = newid)]
struct OrderId(Uuid);

#[derive(OrderedKey)]
struct Order {
    id: OrderId,
    total: i64,
}

fn add(work: &mut UnitOfWork<sqlx::Sqlite>, order: Order) {
    work.add(order);
}

fn main() {}
