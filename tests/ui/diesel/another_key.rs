use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
#[ordid(diesel)]
struct OrderId(Uuid);

diesel::table! {
    orders (number) { id -> Binary, number -> Integer, }
}

#[derive(OrderedKey)]
#[diesel(table_name = orders, primary_key(number))]
#[ordid(diesel)]
struct Order {
    #[ordid(key)]
    id: OrderId,
    number: i32,
}

fn main() {}
