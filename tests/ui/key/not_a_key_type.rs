use ordid::OrderedKey;

#[derive(OrderedKey)]
struct Order {
    id: i64,
    total: i64,
}

#[derive(OrderedKey)]
struct Line<'note, T> {
    id: i64,
    note: &'note T,
}

fn main() {}
