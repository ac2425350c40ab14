use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_rusqlite::UnitOfWork;

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, rusqlite)]
struct OrderId(Uuid);

// rusqlite does not know how to store it.
#[derive(Clone)]
struct Money(i64);

#[derive(OrderedKey)]
struct Order {
    id: OrderId,
    total: Money,
}

fn add(work: &mut UnitOfWork, order: Order) {
    work.add(order);
}

fn main() {}
