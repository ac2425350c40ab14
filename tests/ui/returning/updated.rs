use ordid::{Assigned, KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
struct OrderId(Uuid);

#[derive(OrderedKey)]
#[ordid(columns)]
struct Order {
    id: OrderId,
    #[ordid(returning)]
    number: Assigned<i64>,
}

fn main() {
    let _ = Order::id;
    let _ = Order::number;
}
