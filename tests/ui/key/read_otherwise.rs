use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
#[ordid(sqlx)]
struct CustomerId(Uuid);

#[derive(OrderedKey, sqlx::FromRow)]
struct AsJson {
    #[sqlx(json)]
    id: CustomerId,
}

#[derive(OrderedKey, sqlx::FromRow)]
struct FromAnother {
    #[ordid(key)]
    #[sqlx(rename = "number", try_from = "Uuid")]
    id: CustomerId,
}

#[derive(OrderedKey, sqlx::FromRow)]
struct Flattened {
    #[sqlx(flatten)]
    id: CustomerId,
    name: String,
}

fn main() {}
