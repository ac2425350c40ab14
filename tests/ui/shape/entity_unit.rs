use ordid::OrderedKey;

#[derive(OrderedKey)]
struct Order;

fn main() {}
