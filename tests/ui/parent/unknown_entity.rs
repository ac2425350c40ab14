use ordid::{OrderedKey, uuid::Uuid};

#[derive(OrderedKey)]
struct Order {
    id: Uuid,
    #[ordid(parent = Custumer)]
    customer: Uuid,
}

fn main() {}
