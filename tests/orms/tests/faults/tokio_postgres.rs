//! tokio-postgres, over connections of its own.

use std::time::Duration;

use ordid::OrderedKey;
use ordid_tests::{
    faults::{Failed, Flusher, Graph, HowChanged, Library},
    servers::{Client as _, Options},
    trials::Outcome,
};
use ordid_tokio_postgres::{Flushed, Progress, Retry, UnitOfWork};
use sqlx::{MySql, Postgres, Sqlite};

use crate::{
    keys::{CustomerId, ItemId, OrderId, key},
    tokio::{PREFIX, connect},
};

/// `ordid-tokio-postgres`, and `SQLx` in the place of what it has no databases for.
pub struct TokioPostgres;

impl Library for TokioPostgres {
    type Postgres = Work;
    type MySql = ordid_sqlx::UnitOfWork<MySql>;
    type Sqlite = ordid_sqlx::UnitOfWork<Sqlite>;
}

#[derive(OrderedKey)]
#[ordid(table = "customers", columns)]
struct Customer {
    id: CustomerId,
    unit: i64,
    position: i64,
    bucket: i64,
}

#[derive(OrderedKey)]
#[ordid(table = "orders")]
struct Order {
    id: OrderId,
    #[ordid(parent)]
    customer: CustomerId,
    unit: i64,
    position: i64,
    bucket: i64,
    label: String,
}

#[derive(OrderedKey)]
#[ordid(table = "items")]
struct Item {
    #[ordid(key)]
    id: ItemId,
    #[ordid(key, parent)]
    order_id: OrderId,
    unit: i64,
    position: i64,
}

fn customer(of: &ordid_tests::faults::Customer) -> Customer {
    Customer {
        id: key(of.id),
        unit: of.unit,
        position: of.position,
        bucket: of.bucket,
    }
}

fn item(of: &ordid_tests::faults::Item) -> Item {
    Item {
        id: key(of.id),
        order_id: key(of.order_id),
        unit: of.unit,
        position: of.position.into(),
    }
}

/// The unit of work.
pub struct Work(pub UnitOfWork);

impl Flusher for Work {
    type Database = Postgres;

    const PREFIX: &'static str = PREFIX;
    const BULK: Option<[usize; 3]> = Some([1_100, 2_050, 1_050]);

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

    async fn create_flushes_table(options: &Options<Postgres>) -> Outcome {
        let client = connect(&Postgres::client_url(options)).await?;
        Ok(ordid_tokio_postgres::create_flushes_table(&client).await?)
    }

    async fn remove_old_markers(options: &Options<Postgres>) -> Result<u64, Failed> {
        let client = connect(&Postgres::client_url(options)).await;
        let mut client = client.expect("the server is there");
        let outcome = ordid_tokio_postgres::remove_old_markers(&mut client).await;
        outcome.map_err(|error| Failed::from(&error))
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

    async fn flush_to(
        &mut self,
        options: &Options<Postgres>,
        _: Duration,
    ) -> Result<Flushed, Failed> {
        let url = Postgres::client_url(options);
        let outcome = self.0.flush_with(|| connect(&url)).await;
        outcome.map_err(|error| Failed::from(&error))
    }
}
