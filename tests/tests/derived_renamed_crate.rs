//! The derives find the traits where the user says that they are.

use ordid as keys;
use ordid_sqlx as storage;

mod reexported {
    pub use ordid as inner;
}

#[derive(keys::KeyType)]
#[ordid(crate = keys, prefix = "ord", sqlx(crate = storage, sqlite = blob))]
struct OrderId(keys::uuid::Uuid);

#[derive(keys::KeyType)]
#[ordid(crate = crate::reexported::inner, sqlx(crate = storage))]
struct CustomerId(keys::uuid::Uuid);

#[derive(keys::OrderedKey)]
#[ordid(crate = ordid_core)]
struct Order {
    id: OrderId,
    #[ordid(parent)]
    customer: CustomerId,
}

#[test]
fn it_compiles_and_runs() {
    use keys::{KeyType, OrderedKey};
    let order = Order {
        id: OrderId::generate(),
        customer: CustomerId::generate(),
    };
    assert_eq!(order.key(), Some(order.id));
    assert!(order.customer.timestamp().is_some());
}
