use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
#[ordid(diesel)]
struct OrderId(Uuid);

diesel::table! {
    orders (id) { id -> Binary, total -> BigInt, note -> Text, }
}

#[derive(OrderedKey)]
#[diesel(table_name = orders)]
#[ordid(diesel, schema = "shop")]
struct Order {
    id: OrderId,
    #[ordid(column = "total_cents")]
    total: i64,
    #[diesel(skip_insertion)]
    note: String,
}

fn main() {}
