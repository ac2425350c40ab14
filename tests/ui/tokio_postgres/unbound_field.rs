use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_tokio_postgres::UnitOfWork;

#[derive(KeyType)]
#[ordid(tokio_postgres)]
struct OrderId(Uuid);

struct Money(i64);

#[derive(OrderedKey)]
struct Order {
    id: OrderId,
    price: Money,
}

fn main() {
    let mut work = UnitOfWork::new();
    work.add(Order {
        id: OrderId::generate(),
        price: Money(1),
    });
}
