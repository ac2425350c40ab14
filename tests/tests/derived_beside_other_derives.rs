//! The derives sit beside others, above and below, and leave their attributes alone.

use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
#[ordid(prefix = "ord", sqlx)]
#[repr(transparent)]
#[must_use]
pub struct OrderId(pub Uuid);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, sqlx::FromRow, OrderedKey)]
#[sqlx(rename_all = "camelCase")]
#[ordid(table = "orders")]
struct Order {
    #[ordid(key)]
    order_id: OrderId,
    #[sqlx(rename = "n")]
    number: i64,
    #[sqlx(try_from = "i64")]
    big_number: i128,
    #[sqlx(default)]
    note: Option<String>,
    #[sqlx(skip)]
    cache: Vec<u8>,
}

#[derive(OrderedKey, Default, sqlx::FromRow)]
struct Customer {
    #[ordid(column = "customer_id")]
    #[sqlx(rename = "customer_id")]
    id: Option<OrderId>,
    #[cfg(any())]
    gone: NoSuchType,
    #[sqlx(flatten)]
    #[ordid(skip)]
    extra: Extra,
}

#[derive(Default, sqlx::FromRow)]
struct Extra {
    name: String,
}

#[test]
fn it_compiles_and_runs() {
    assert_eq!(Order::COLUMNS, ["orderId", "n", "bigNumber", "note"]);
    assert_eq!(Order::KEY_COLUMN, "orderId");
    let order = Order {
        order_id: OrderId(Uuid::generate()),
        number: 1,
        big_number: 2,
        note: None,
        cache: Vec::new(),
    };
    assert_eq!(order.clone().key(), Some(order.order_id));
    let mut customer = Customer::default();
    assert_eq!(Some(customer.ensure_key()), customer.id);
    assert_eq!(Customer::COLUMNS, ["customer_id"]);
    assert_eq!(customer.extra.name, "");
}
