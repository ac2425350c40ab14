use ordid::{OrderedKey, uuid::Uuid};

#[derive(OrderedKey)]
struct Order {
    id: Uuid,
    #[ordid(column = "id")]
    number: i64,
}

#[derive(OrderedKey)]
#[ordid(rename_all = "lowercase")]
struct Customer {
    id: Uuid,
    name: String,
    #[allow(non_snake_case)]
    Name: String,
}

fn main() {}
