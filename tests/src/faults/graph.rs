//! Rows with real foreign keys, known from the number of their unit of work: another process can
//! make the same ones.

use ordid::{
    KeyType, OrderedKey,
    uuid::{Builder, Uuid},
};
use serde::{Deserialize, Serialize};

/// The bucket of a customer that was updated.
pub(super) const CHANGED: i64 = 1;

/// 2025-11-13, in Unix milliseconds.
const BEGIN: u64 = 1_763_000_000_000;

/// The key of a customer.
#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
pub struct CustomerId(Uuid);

/// The key of an order.
#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
pub struct OrderId(Uuid);

/// The key of an item.
#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
pub struct ItemId(Uuid);

/// A row without a parent.
#[derive(OrderedKey, Serialize, Deserialize, Clone, Debug)]
#[ordid(table = "customers", columns)]
pub struct Customer {
    #[ordid(key)]
    pub id: CustomerId,
    pub unit: i64,
    pub position: i64,
    /// What deadlocks are made of.
    pub bucket: i64,
}

impl Customer {
    /// Returns the same customer in the bucket of those that were changed, and how it is changed. Where only the bucket is
    /// updated, its other columns are those of nobody.
    pub fn changed(&self) -> (Self, HowChanged) {
        let how = match self.position % 3 {
            0 => HowChanged::Whole,
            1 => HowChanged::OnlyBucket,
            _ => HowChanged::Upserted,
        };
        let unit = if how == HowChanged::OnlyBucket {
            -1
        } else {
            self.unit
        };
        let changed = Self {
            bucket: CHANGED,
            unit,
            ..self.clone()
        };
        (changed, how)
    }
}

/// How a customer is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HowChanged {
    /// All columns are updated.
    Whole,
    /// One column is updated.
    OnlyBucket,
    /// It is upserted.
    Upserted,
}

/// A child.
#[derive(OrderedKey, Serialize, Deserialize, Clone, Debug)]
#[ordid(table = "orders")]
pub struct Order {
    #[ordid(key)]
    pub id: OrderId,
    #[ordid(parent)]
    pub customer: CustomerId,
    pub unit: i64,
    pub position: i64,
    /// What deadlocks are made of.
    pub bucket: i64,
    /// No two orders have the same.
    pub label: String,
}

/// A grandchild, whose key has two columns. The position is shorter than its column, so PostgreSQL's `COPY` does not take it:
/// these rows go by statements everywhere.
#[derive(OrderedKey, Serialize, Deserialize, Clone, Debug)]
#[ordid(table = "items")]
pub struct Item {
    #[ordid(key)]
    pub id: ItemId,
    #[ordid(key, parent)]
    pub order_id: OrderId,
    pub unit: i64,
    pub position: i32,
}

/// How many rows of each table.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Without a parent.
    pub customers: u32,
    /// Their children.
    pub orders: u32,
    /// And theirs.
    pub items: u32,
}

impl Shape {
    /// More than one chunk a table, and where there is `COPY`, both that and statements.
    pub const CHUNKS: Self = Self {
        customers: 1_100,
        orders: 2_050,
        items: 1_050,
    };

    /// Rows to be changed: some hundred round trips where each is updated by itself.
    pub const OLD: Self = Self {
        customers: 300,
        orders: 300,
        items: 300,
    };

    /// A chunk a table.
    pub const SMALL: Self = Self {
        customers: 20,
        orders: 60,
        items: 40,
    };
}

/// The rows of a unit of work.
#[derive(Debug, Clone)]
pub struct Graph {
    /// The number in every row.
    pub unit: i64,
    /// In the order of their keys.
    pub customers: Vec<Customer>,
    /// In the order of their keys.
    pub orders: Vec<Order>,
    /// In the order of their keys.
    pub items: Vec<Item>,
}

impl Graph {
    /// Makes the rows of the unit of work of this number, the same ones every time.
    ///
    /// # Panics
    ///
    /// If there are children but no parents.
    pub fn new(unit: u32, shape: Shape) -> Self {
        let customers: Vec<Customer> = (0..shape.customers)
            .map(|position| Customer {
                id: key(unit, 1, position),
                unit: unit.into(),
                position: position.into(),
                bucket: 0,
            })
            .collect();
        let orders: Vec<Order> = (0..shape.orders)
            .map(|position| Order {
                id: key(unit, 2, position),
                customer: customers[position as usize * 7 % customers.len()].id,
                unit: unit.into(),
                position: position.into(),
                bucket: 0,
                label: format!("{unit:010}-{position:06}"),
            })
            .collect();
        let items = (0..shape.items)
            .map(|position| Item {
                id: key(unit, 3, position),
                order_id: orders[position as usize * 11 % orders.len()].id,
                unit: unit.into(),
                position: position.cast_signed(),
            })
            .collect();
        Self {
            unit: unit.into(),
            customers,
            orders,
            items,
        }
    }

    /// Returns the number of rows of each table.
    pub fn rows(&self) -> [(&'static str, i64); 3] {
        [
            ("customers", self.customers.len()),
            ("orders", self.orders.len()),
            ("items", self.items.len()),
        ]
        .map(|(table, rows)| (table, rows.try_into().expect("few")))
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.customers.len() + self.orders.len() + self.items.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A key that no other table, position or unit has, and that rises with the position.
fn key<K: KeyType<Raw = Uuid>>(unit: u32, table: u8, position: u32) -> K {
    let mut random = [0; 10];
    random[1] = table;
    random[3..7].copy_from_slice(&position.to_be_bytes());
    let raw = Builder::from_unix_timestamp_millis(BEGIN + u64::from(unit), &random).into_uuid();
    K::from_raw(raw).expect("a UUID of version 7")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_rise_with_the_position_and_differ_between_units() {
        let [first, again, other] = [5, 5, 6].map(|unit| Graph::new(unit, Shape::SMALL));
        assert!(first.orders.is_sorted_by(|left, right| left.id < right.id));
        let ids = |graph: &Graph| graph.orders.iter().map(|it| it.id).collect::<Vec<_>>();
        assert_eq!(ids(&first), ids(&again));
        assert!(first.orders.iter().all(|it| !ids(&other).contains(&it.id)));
        assert_eq!(first.len(), 120);
    }
}
