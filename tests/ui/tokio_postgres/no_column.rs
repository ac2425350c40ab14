use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_tokio_postgres::UnitOfWork;

#[derive(KeyType)]
struct OrderId(Uuid);

#[derive(OrderedKey)]
struct Order {
    id: OrderId,
}

fn main() {
    let mut work = UnitOfWork::new();
    work.add(Order { id: OrderId::generate() });
}
