use ordid::{OrderedKey, uuid::Uuid};

struct OrderId(Uuid);

#[derive(OrderedKey)]
struct Order {
    id: Option<OrderId>,
}

fn main() {}
