use ordid::{Fields, OrderedKey, Sink, uuid::Uuid};

struct Binder;

impl Sink<Uuid> for Binder {
    fn put(&mut self, _: &Uuid) {}
}

impl Sink<i64> for Binder {
    fn put(&mut self, _: &i64) {}
}

struct Money(i64);

#[derive(OrderedKey)]
struct Order {
    id: Uuid,
    count: i64,
    total: Option<Money>,
}

fn add<E: OrderedKey + Fields<Binder>>(_: E) {}

fn main() {
    add(Order { id: Uuid::nil(), count: 1, total: Some(Money(1)) });
}
