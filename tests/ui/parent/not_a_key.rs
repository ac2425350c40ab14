//! Fields that hold no key.

use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
struct CustomerId(Uuid);

#[derive(OrderedKey)]
struct Customer {
    id: CustomerId,
}

#[derive(OrderedKey)]
struct Order {
    id: Uuid,
    #[ordid(parent)]
    by_text: String,
    #[ordid(parent)]
    by_number: Option<i64>,
    #[ordid(parent = Customer)]
    named_by_text: String,
    #[ordid(parent = Customer)]
    named_by_number: Option<i64>,
}

fn main() {}
