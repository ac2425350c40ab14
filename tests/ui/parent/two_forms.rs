use ordid::{OrderedKey, uuid::Uuid};

#[derive(OrderedKey)]
struct Order {
    id: Uuid,
    #[ordid(parent, parent = Order)]
    replaces: Option<Uuid>,
}

fn main() {}
