use ordid::{OrderedKey, uuid::Uuid};

#[derive(OrderedKey)]
struct Order {
    // No second message that the key is missing.
    #[ordid(ky)]
    order_id: Uuid,
    #[ordid(colum = "total_cents", unique)]
    total: i64,
}

fn main() {}
