use ordid::{OrderedKey, uuid::Uuid};

#[derive(OrderedKey)]
struct Order {
    id: Uuid,
    #[ordid(parent = Order, references = Order)]
    replaces: Option<Uuid>,
}

fn main() {}
