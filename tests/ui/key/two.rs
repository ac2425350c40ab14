use ordid::{OrderedKey, uuid::Uuid};

#[derive(OrderedKey)]
struct OrderLine {
    #[ordid(key)]
    order: Uuid,
    #[ordid(key)]
    product: Uuid,
}

fn main() {}
