//! Items that come out of the user's own macros.

use ordid::{KeyType, OrderedKey, uuid::Uuid};

macro_rules! entity {
    (
        $id:ident($raw:ty) = $prefix:literal, $scheme:ident, $engine:ident = $column:ident;
        $name:ident($table:literal) { $($field:ident: $type:ty = $parent:ty,)* }
    ) => {
        #[derive(KeyType)]
        #[ordid(prefix = $prefix, scheme = $scheme, sqlx($engine = $column))]
        pub struct $id($raw);

        #[derive(OrderedKey)]
        #[ordid(table = $table)]
        pub struct $name {
            pub id: $id,
            $(#[ordid(parent = $parent)] pub $field: $type,)*
        }
    };
}

entity! {
    CustomerId(Uuid) = "cus", uuid_v7, sqlite = blob;
    Customer("customers") {}
}

entity! {
    OrderId(Uuid) = "ord", uuid_v7, sqlite = text;
    Order("orders") { customer: CustomerId = Customer, replaces: Option<OrderId> = Self, }
}

#[test]
fn it_compiles_and_runs() {
    let customer = Customer {
        id: CustomerId::generate(),
    };
    let order = Order {
        id: OrderId::generate(),
        customer: customer.id,
        replaces: None,
    };
    assert!(order.id.to_string().starts_with("ord_"));
    assert_eq!(Order::PARENTS.len(), 2);
    assert_eq!((Order::TABLE, Customer::TABLE), ("orders", "customers"));
    assert_eq!((order.customer, order.replaces), (customer.id, None));
}
