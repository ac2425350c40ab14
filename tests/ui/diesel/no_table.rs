use ordid::{OrderedKey, uuid::Uuid};

#[derive(OrderedKey)]
#[ordid(diesel)]
struct Order {
    id: Uuid,
}

fn main() {}
