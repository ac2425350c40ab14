//! One message per mistake, and no other: the rest of the program may use the types.

use std::collections::BTreeMap;

use ordid::{Fields, KeyOf, KeyType, OrderedKey, Sink, uuid::Uuid};

#[derive(KeyType)]
#[ordid(schema = uuid_v7)]
struct OrderId(Uuid);

#[derive(KeyType)]
struct CustomerId {
    id: Uuid,
}

#[derive(OrderedKey)]
#[ordid(tabel = "orders")]
struct Order {
    id: OrderId,
    #[ordid(parent)]
    customer: CustomerId,
    total: i64,
}

#[derive(OrderedKey)]
struct Customer(CustomerId);

struct Binder;

impl Sink<OrderId> for Binder {
    fn put(&mut self, _: &OrderId) {}
}

fn add<E: OrderedKey + Fields<Binder>>(row: &mut E) -> Option<KeyOf<E>> {
    row.key()
}

fn main() -> Result<(), ordid::Error> {
    let customer = CustomerId::generate();
    let id = OrderId::try_from(Uuid::generate())?;
    let mut order = Order { id, customer, total: 1 };
    add(&mut order);
    add(&mut Customer(customer));
    let orders: BTreeMap<OrderId, String> = [(id, id.to_string())].into();
    let _: Uuid = "a".parse::<OrderId>()?.into();
    assert_eq!(orders[&order.ensure_key()].len(), Order::TABLE.len());
    Ok(())
}
