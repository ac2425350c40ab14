use ordid::{OrderedKey, uuid::Uuid};

struct Order {
    id: Uuid,
}

fn add<E: OrderedKey>(_: E) {}

fn main() {
    add(Order { id: Uuid::nil() });
}
