use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
struct CustomerId(Uuid);

#[derive(KeyType)]
struct ProductId(Uuid);

#[derive(OrderedKey)]
struct Customer {
    id: CustomerId,
}

#[derive(OrderedKey)]
struct Order {
    id: Uuid,
    #[ordid(parent = Customer)]
    product: ProductId,
    #[ordid(parent = Customer)]
    other: Option<Uuid>,
}

fn main() {}
