use ordid::{OrderedKey, uuid::Uuid};

#[derive(OrderedKey)]
struct Order(Uuid, i64);

fn main() {}
