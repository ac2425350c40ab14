use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
#[ordid(sqlx)]
struct CustomerId(Uuid);

#[derive(OrderedKey)]
#[ordid(table = "customers")]
struct Customer {
    id: CustomerId,
}

#[derive(KeyType)]
#[ordid(sqlx)]
struct OrderId(Uuid);

#[derive(OrderedKey, sqlx::FromRow)]
struct Order {
    id: OrderId,
    #[ordid(parent)]
    #[sqlx(json(nullable))]
    customer: Option<CustomerId>,
    #[ordid(parent = Customer)]
    #[sqlx(try_from = "Uuid")]
    payer: CustomerId,
}

fn main() {}
