use ordid::{OrderedKey, uuid::Uuid};

#[derive(OrderedKey)]
struct Order<'name, T> {
    id: Uuid,
    #[ordid(parent)]
    customer: Uuid,
    name: &'name str,
    value: T,
}

fn main() {}
