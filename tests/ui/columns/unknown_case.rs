use ordid::{OrderedKey, uuid::Uuid};

#[derive(OrderedKey)]
#[ordid(rename_all = "snakecase")]
struct Order {
    id: Uuid,
}

fn main() {}
