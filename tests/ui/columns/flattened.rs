use ordid::{OrderedKey, uuid::Uuid};

#[derive(sqlx::FromRow)]
struct Address {
    street: String,
    city: String,
}

#[derive(OrderedKey, sqlx::FromRow)]
struct Customer {
    id: Uuid,
    #[sqlx(flatten)]
    address: Address,
}

fn main() {}
