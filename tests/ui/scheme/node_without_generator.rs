//! What a key type of the process has, of a scheme whose generators have nodes.

use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
#[ordid(scheme = snowflake)]
struct OrderId(i64);

#[derive(KeyType)]
#[ordid(scheme = newid)]
struct CustomerId(Uuid);

#[derive(OrderedKey)]
struct Order {
    id: Option<OrderId>,
}

fn main() {
    let _ = OrderId::generate();
    let _ = CustomerId::generate();
    let _ = OrderId::reserve(2);
    OrderId::fill(&mut []);
    Order { id: None }.ensure_key();
}
