use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
struct OrderId(Uuid);

#[derive(KeyType)]
struct CustomerId(Uuid);

fn main() {
    let id: OrderId = CustomerId::generate();
}
