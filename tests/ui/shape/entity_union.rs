use ordid::{OrderedKey, uuid::Uuid};

#[derive(OrderedKey)]
union Order {
    id: Uuid,
}

fn main() {}
