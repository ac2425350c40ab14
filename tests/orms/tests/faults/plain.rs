//! Entities of the libraries that ask nothing of an entity beside its derive: rusqlite, tokio-postgres and mysql_async.

use ordid::OrderedKey;
use serde::{Deserialize, Serialize};

use crate::keys::{CustomerId, ItemId, OrderId, key};

#[derive(OrderedKey, Serialize, Deserialize)]
#[ordid(table = "customers", columns)]
pub struct Customer {
    pub id: CustomerId,
    pub unit: i64,
    pub position: i64,
    pub bucket: i64,
}

#[derive(OrderedKey, Serialize, Deserialize)]
#[ordid(table = "orders")]
pub struct Order {
    pub id: OrderId,
    #[ordid(parent)]
    pub customer: CustomerId,
    pub unit: i64,
    pub position: i64,
    pub bucket: i64,
    pub label: String,
}

#[derive(OrderedKey, Serialize, Deserialize)]
#[ordid(table = "items")]
pub struct Item {
    #[ordid(key)]
    pub id: ItemId,
    #[ordid(key, parent)]
    pub order_id: OrderId,
    pub unit: i64,
    pub position: i64,
}

pub fn customer(of: &ordid_tests::faults::Customer) -> Customer {
    Customer {
        id: key(of.id),
        unit: of.unit,
        position: of.position,
        bucket: of.bucket,
    }
}

pub fn item(of: &ordid_tests::faults::Item) -> Item {
    Item {
        id: key(of.id),
        order_id: key(of.order_id),
        unit: of.unit,
        position: of.position.into(),
    }
}

/// Writes the functions of `Flusher` that are about the unit of work in the field `0`, and not about its connections.
macro_rules! with_rows {
    () => {
        fn begin(retry: Retry) -> Self {
            Self(UnitOfWork::new().with_retry(retry))
        }

        fn with_marker(self) -> Self {
            Self(self.0.with_record())
        }

        fn without_marker(self) -> Self {
            Self(self.0.without_record())
        }

        fn with_new_memory(self) -> Self {
            Self(self.0.with_new_memory())
        }

        fn with_journal_in(self, path: &Path) -> Outcome<Self> {
            let journal = Journaled::new(FlushJournal::open(path)?);
            let rows = journal.row::<Customer>().row::<Order>().row::<Item>();
            Ok(Self(self.0.with_journal(rows)))
        }

        fn resume(&mut self) -> Outcome<usize> {
            Ok(self.0.resume()?)
        }

        fn add_graph(&mut self, graph: &Graph) {
            for it in &graph.items {
                self.0.add(item(it));
            }
            for it in &graph.orders {
                self.0.add(Order {
                    id: key(it.id),
                    customer: key(it.customer),
                    unit: it.unit,
                    position: it.position,
                    bucket: it.bucket,
                    label: it.label.clone(),
                });
            }
            for it in &graph.customers {
                self.0.add(customer(it));
            }
        }

        fn change_graph(&mut self, graph: &Graph) {
            for it in &graph.items {
                self.0.delete(&item(it));
            }
            for it in &graph.customers {
                match it.changed() {
                    (it, HowChanged::OnlyBucket) => {
                        self.0.update_columns(customer(&it), Customer::bucket);
                    }
                    (it, HowChanged::Whole) => self.0.update(customer(&it)),
                    (it, HowChanged::Upserted) => {
                        self.0.upsert(customer(&it));
                    }
                }
            }
        }

        fn held(&self) -> usize {
            self.0.len()
        }

        fn tell(&mut self, observer: impl FnMut(Progress) + Send + 'static) {
            self.0.observe(observer);
        }

        fn within(&mut self, deadline: Duration) {
            self.0 = std::mem::take(&mut self.0).with_deadline(deadline);
        }
    };
}

pub(crate) use with_rows;
