use ordid::{OrderedKey, uuid::Uuid};

#[derive(OrderedKey)]
#[ordid(table = "shop.orders")]
struct Order {
    id: Uuid,
}

fn main() {}
