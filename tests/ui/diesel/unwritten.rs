use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
#[ordid(diesel)]
struct OrderId(Uuid);

diesel::table! {
    orders (id) { id -> Binary, total -> BigInt, note -> Text, }
}

#[derive(OrderedKey)]
#[diesel(table_name = orders)]
#[ordid(diesel)]
struct Order {
    id: OrderId,
    #[diesel(skip_update)]
    total: i64,
    #[diesel(skip_insertion)]
    note: String,
}

fn main() {}
