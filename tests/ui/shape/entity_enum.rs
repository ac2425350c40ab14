use ordid::{OrderedKey, uuid::Uuid};

#[derive(OrderedKey)]
enum Order {
    Open { id: Uuid },
}

fn main() {}
