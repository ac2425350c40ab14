use ordid::{OrderedKey, uuid::Uuid};

struct OrderId(Uuid);

#[derive(OrderedKey)]
struct Order {
    #[ordid(key)]
    order_id: OrderId,
}

fn main() {}
