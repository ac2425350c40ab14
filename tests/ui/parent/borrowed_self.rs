use ordid::{OrderedKey, uuid::Uuid};

#[derive(OrderedKey)]
struct Tree<T> {
    id: Uuid,
    #[ordid(parent = Tree<T>)]
    up: Option<Uuid>,
    value: T,
}

fn main() {}
