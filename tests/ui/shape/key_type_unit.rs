use ordid::KeyType;

#[derive(KeyType)]
struct OrderId;

fn main() {}
