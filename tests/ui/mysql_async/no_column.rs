use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_mysql_async::UnitOfWork;

// It says nothing of mysql_async.
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
