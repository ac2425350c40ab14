use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_diesel::UnitOfWork;

#[derive(KeyType)]
#[ordid(diesel)]
struct OrderId(Uuid);

#[derive(OrderedKey)]
struct Order {
    id: OrderId,
}

fn main() {
    let mut work = UnitOfWork::<diesel::sqlite::Sqlite>::new();
    let id = OrderId::generate();
    work.add(Order { id });
}
