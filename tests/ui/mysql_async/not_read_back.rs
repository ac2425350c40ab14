use ordid::{Assigned, KeyType, OrderedKey, uuid::Uuid};
use ordid_mysql_async::UnitOfWork;

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, mysql_async)]
struct OrderId(Uuid);

// mysql_async does not read it.
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
