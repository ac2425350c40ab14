//! Diesel, over connections of its own and a thread that may block.

use std::time::Duration;

use diesel::{Connection as _, ConnectionResult, connection::SimpleConnection as _};
use ordid::OrderedKey;
use ordid_diesel::{Flushed, Progress, Retry, UnitOfWork};
use ordid_tests::{
    faults::{Failed, Flusher, Graph, Library},
    servers::{Client as _, Options},
};

use crate::keys::{CustomerId, ItemId, OrderId, key};

/// `ordid-diesel`.
pub struct Diesel;

impl Library for Diesel {
    type Postgres = postgres::Work;
    type MySql = mysql::Work;
    type Sqlite = sqlite::Work;
}

/// Defines the entities and the unit of work for a database, whose key columns have this type in `table!`.
macro_rules! database {
    ($module:ident: $database:ident, $connection:ident, $backend:ty, $key:ident $(, $setup:literal)?) => {
        mod $module {
            use super::*;

            type Key = diesel::sql_types::$key;

            diesel::table! {
                use diesel::sql_types::BigInt;
                use super::Key;

                customers (id) {
                    id -> Key,
                    unit -> BigInt,
                    position -> BigInt,
                    bucket -> BigInt,
                }
            }

            diesel::table! {
                use diesel::sql_types::{BigInt, Text};
                use super::Key;

                orders (id) {
                    id -> Key,
                    customer -> Key,
                    unit -> BigInt,
                    position -> BigInt,
                    bucket -> BigInt,
                    label -> Text,
                }
            }

            diesel::table! {
                use diesel::sql_types::BigInt;
                use super::Key;

                items (id) {
                    id -> Key,
                    order_id -> Key,
                    unit -> BigInt,
                    position -> BigInt,
                }
            }

            #[derive(OrderedKey)]
            #[diesel(table_name = customers)]
            #[ordid(diesel)]
            struct Customer {
                id: CustomerId,
                unit: i64,
                position: i64,
                bucket: i64,
            }

            #[derive(OrderedKey)]
            #[diesel(table_name = orders)]
            #[ordid(diesel)]
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
            #[diesel(table_name = items)]
            #[ordid(diesel)]
            struct Item {
                id: ItemId,
                #[ordid(parent)]
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

            #[allow(unused_mut, reason = "SQLite alone is told what it has to do")]
            fn connect(url: &str) -> ConnectionResult<diesel::$connection> {
                let mut connection = diesel::$connection::establish(url)?;
                $(connection
                    .batch_execute($setup)
                    .map_err(diesel::ConnectionError::CouldntSetupConfiguration)?;)?
                Ok(connection)
            }

            pub struct Work(UnitOfWork<$backend>);

            impl Flusher for Work {
                type Database = sqlx::$database;

                const PREFIX: &'static str = "diesel::";
                const BULK: Option<[usize; 3]> = None;

                fn begin(retry: Retry) -> Self {
                    Self(UnitOfWork::new().with_retry(retry))
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
                        self.0.update(customer(&it.changed()));
                    }
                }

                fn held(&self) -> usize {
                    self.0.len()
                }

                fn tell(&mut self, observer: impl FnMut(Progress) + Send + 'static) {
                    self.0.observe(observer);
                }

                async fn flush_to(
                    &mut self,
                    options: &Options<sqlx::$database>,
                    _: Duration,
                ) -> Result<Flushed, Failed> {
                    let url = sqlx::$database::client_url(options);
                    let mut work = std::mem::take(&mut self.0);
                    let flush = tokio::task::spawn_blocking(move || {
                        let outcome = work.flush_with(|| connect(&url));
                        (work, outcome)
                    });
                    let (work, outcome) = flush.await.expect("a flush does not panic");
                    self.0 = work;
                    outcome.map_err(|error| Failed::from(&error))
                }
            }
        }
    };
}

database!(postgres: Postgres, PgConnection, diesel::pg::Pg, Uuid);
database!(mysql: MySql, MysqlConnection, diesel::mysql::Mysql, Binary);
database!(
    sqlite: Sqlite, SqliteConnection, diesel::sqlite::Sqlite, Binary, "PRAGMA foreign_keys = ON"
);
