use ordid::{Assigned, KeyType, OrderedKey, uuid::Uuid};
use ordid_rusqlite::UnitOfWork;

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, rusqlite)]
struct OrderId(Uuid);

// rusqlite does not read it.
struct Money(i64);

#[derive(OrderedKey)]
struct Order {
    id: OrderId,
    #[ordid(returning)]
    total: Assigned<Money>,
}

fn add(work: &mut UnitOfWork, order: Order) {
    work.add(order);
}

fn main() {}
