use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
struct OrderId(Uuid);

#[derive(OrderedKey)]
struct Line {
    #[ordid(key)]
    order: OrderId,
    #[ordid(key)]
    year: i16,
    #[ordid(key)]
    month: i16,
    #[ordid(key)]
    day: i16,
    #[ordid(key)]
    number: i32,
}

fn main() {}
