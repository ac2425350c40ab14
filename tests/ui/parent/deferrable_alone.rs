use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
struct CustomerId(Uuid);

#[derive(OrderedKey)]
struct Order {
    id: Uuid,
    #[ordid(deferrable)]
    customer: CustomerId,
    #[ordid(parent, deferrable = true)]
    payer: CustomerId,
    #[ordid(parent, deferrable, deferrable)]
    courier: CustomerId,
}

fn main() {}
