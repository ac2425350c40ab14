use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_rusqlite::UnitOfWork;

// It says nothing of rusqlite.
#[derive(KeyType)]
#[ordid(scheme = uuid_v7)]
struct OrderId(Uuid);

#[derive(OrderedKey)]
struct Order {
    id: OrderId,
}

fn add(work: &mut UnitOfWork, order: Order) {
    work.add(order);
}

fn main() {}
