//! 100,000 orders of a thousand customers: six columns, one of them a foreign key.

use ordid::{KeyType, OrderedKey, uuid::Uuid};

use super::{Form, Random, Summary, Types, count, on_engines};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx, tiberius(sql_server = unique_identifier_permuted))]
pub(crate) struct CustomerId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx, tiberius(sql_server = unique_identifier_permuted))]
pub(crate) struct OrderId(Uuid);

#[derive(Clone, OrderedKey)]
#[ordid(table = "customers")]
pub(crate) struct Customer {
    #[ordid(key)]
    id: CustomerId,
    name: String,
}

#[derive(Clone, OrderedKey)]
#[ordid(table = "orders", columns)]
pub(crate) struct Order {
    #[ordid(key)]
    pub(crate) id: OrderId,
    #[ordid(parent)]
    pub(crate) customer_id: CustomerId,
    pub(crate) product: String,
    pub(crate) quantity: i32,
    pub(crate) total: i64,
    pub(crate) note: Option<String>,
}

pub(crate) struct Orders {
    customers: Vec<Customer>,
    orders: Vec<Order>,
}

impl Form for Order {
    const PARENT_TABLES: &'static [&'static str] = &["customers"];
    const SUMMARY: &'static str = "SELECT COUNT(*), COUNT(note), \
        COUNT(CASE WHEN quantity > 5 THEN 1 END), COUNT(CASE WHEN total > 50000 THEN 1 END) \
        FROM orders";
    type Data = Orders;

    fn data(count: usize) -> Orders {
        let mut random = Random(1);
        let customers: Vec<_> = (0..1_000)
            .map(|number| Customer {
                id: CustomerId::generate(),
                name: format!("customer {number}"),
            })
            .collect();
        let orders = (0..count).map(|_| Order {
            id: OrderId::generate(),
            customer_id: customers[usize::from(random.below(1_000))].id,
            product: format!("P{:05}", random.below(50_000)),
            quantity: i32::from(1 + random.below(10)),
            total: 100 * i64::from(1 + random.below(1_000)),
            note: (random.below(10) == 0).then(|| "leave at the door".to_owned()),
        });
        Orders {
            orders: orders.collect(),
            customers,
        }
    }

    fn rows(data: &Orders) -> &[Self] {
        &data.orders
    }

    fn summary(data: &Orders) -> Summary {
        (
            count(&data.orders, |_| true),
            count(&data.orders, |order| order.note.is_some()),
            count(&data.orders, |order| order.quantity > 5),
            count(&data.orders, |order| order.total > 50_000),
        )
    }

    fn create_tables(Types { key, code, text }: &Types, foreign_keys: bool) -> String {
        let references = if foreign_keys {
            ", FOREIGN KEY (customer_id) REFERENCES customers (id)"
        } else {
            ""
        };
        format!(
            "CREATE TABLE customers (id {key} NOT NULL PRIMARY KEY, name {text} NOT NULL);
             CREATE TABLE orders (
                id {key} NOT NULL PRIMARY KEY,
                customer_id {key} NOT NULL,
                product {code} NOT NULL,
                quantity INTEGER NOT NULL,
                total BIGINT NOT NULL,
                note {text}
                {references}
             );"
        )
    }
}

on_engines!(
    Order,
    parents: |data, work| for customer in &data.customers {
        work.add(customer.clone());
    },
    values: |order| [
        order.id.to_raw(),
        order.customer_id.to_raw(),
        order.product.as_str(),
        order.quantity,
        order.total,
        order.note.as_deref(),
    ],
    on PostgreSQL: {}
);
