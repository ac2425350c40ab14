use ordid::{OrderedKey, uuid::Uuid};

#[derive(OrderedKey)]
#[ordid(table = "", schema = " ")]
struct Order {
    id: Uuid,
    #[ordid(column = "")]
    total: i64,
}

fn main() {}
