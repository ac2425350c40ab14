use ordid::OrderedKey;

#[derive(OrderedKey)]
struct Order {
    id: i64,
    total: i64,
}

fn main() {}
