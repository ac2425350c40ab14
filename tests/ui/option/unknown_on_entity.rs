use ordid::{OrderedKey, uuid::Uuid};

#[derive(OrderedKey)]
#[ordid(tabel = "orders", renameAll = "camelCase", index)]
struct Order {
    id: Uuid,
}

fn main() {}
