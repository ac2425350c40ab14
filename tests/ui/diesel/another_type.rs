use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_diesel::UnitOfWork;

#[derive(KeyType)]
#[ordid(diesel)]
struct OrderId(Uuid);

diesel::table! {
    orders (id) { id -> Binary, total -> BigInt, }
}

#[derive(OrderedKey)]
#[diesel(table_name = orders)]
#[ordid(diesel)]
struct Order {
    id: OrderId,
    total: i32,
}

fn main() {
    let mut work = UnitOfWork::<diesel::sqlite::Sqlite>::new();
    let id = OrderId::generate();
    work.add(Order { id, total: 1250 });
}
