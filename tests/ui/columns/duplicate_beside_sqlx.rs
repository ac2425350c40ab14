use ordid::{OrderedKey, uuid::Uuid};

#[derive(OrderedKey, sqlx::FromRow)]
#[sqlx(rename_all = "camelCase")]
struct Order {
    id: Uuid,
    unit_price: i64,
    #[sqlx(rename = "unitPrice")]
    price: i64,
}

#[derive(OrderedKey, sqlx::FromRow)]
struct Customer {
    #[sqlx(skip)]
    id: Uuid,
}

fn main() {}
