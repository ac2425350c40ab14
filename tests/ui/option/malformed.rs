use ordid::{OrderedKey, uuid::Uuid};

#[derive(OrderedKey)]
#[ordid]
#[ordid = "orders"]
#[ordid(table = "orders" schema = "shop")]
#[ordid("orders")]
struct Order {
    #[ordid(key,, column = "order_id")]
    id: Uuid,
    #[ordid(column = -1, skip)]
    total: i64,
}

fn main() {}
