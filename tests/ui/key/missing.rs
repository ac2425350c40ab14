use ordid::{OrderedKey, uuid::Uuid};

#[derive(OrderedKey)]
struct Order {
    order_id: Uuid,
    total: i64,
}

#[derive(OrderedKey)]
struct Empty {}

fn main() {}
