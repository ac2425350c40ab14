use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
struct OrderId(Uuid);

fn main() {
    // Any version may be in it: `OrderId::try_from` checks.
    let id: OrderId = Uuid::nil().into();
}
