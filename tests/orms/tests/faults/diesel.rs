//! Diesel and diesel-async, over connections of their own.

use std::{path::Path, time::Duration};

use diesel::{MysqlConnection, PgConnection, SqliteConnection};
use diesel_async::{
    AsyncMysqlConnection, AsyncPgConnection, sync_connection_wrapper::SyncConnectionWrapper,
};
use ordid::OrderedKey;
use ordid_diesel::{EngineProfile, Flushed, Journaled, Progress, Retry, UnitOfWork};
use ordid_file::FlushJournal;
use ordid_tests::{
    faults::{Engine, Failed, Flusher, Graph, HowChanged, Library, ended::FlushesWithin},
    servers::{Client as _, Options},
    trials::Outcome,
};

use serde::{Deserialize, Serialize};

use crate::{
    establish::Known,
    keys::{CustomerId, ItemId, OrderId, key},
    over::{Awaited, Blocking, Over},
};

/// `ordid-diesel`, over Diesel's own connections.
pub struct Diesel;

impl Library for Diesel {
    type Postgres = Work<Blocking<PgConnection>>;
    type MySql = Work<Blocking<MysqlConnection>>;
    type Sqlite = Work<Blocking<SqliteConnection>>;
}

/// `ordid-diesel`, over those of diesel-async.
pub struct DieselAsync;

impl Library for DieselAsync {
    type Postgres = Work<Awaited<AsyncPgConnection>>;
    type MySql = Work<Awaited<AsyncMysqlConnection>>;
    type Sqlite = Work<Awaited<SyncConnectionWrapper<SqliteConnection>>>;
}

/// A database that has the entities.
pub trait Rows: Known<Database: Engine> {
    /// What a connection is told first.
    const SETUP: &'static str;

    /// Adds the rows, children first.
    fn add(work: &mut UnitOfWork<Self>, graph: &Graph);

    /// Adds updates of the customers, and deletes the items.
    fn change(work: &mut UnitOfWork<Self>, graph: &Graph);

    /// A journal for these rows.
    fn journaled(journal: FlushJournal) -> Journaled<Self>;
}

/// Defines the entities for a database, whose key columns have this type in `table!`.
macro_rules! database {
    ($module:ident: $backend:ty, $key:ident, $setup:literal) => {
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

                items (id, order_id) {
                    id -> Key,
                    order_id -> Key,
                    unit -> BigInt,
                    position -> BigInt,
                }
            }

            #[derive(OrderedKey, Serialize, Deserialize)]
            #[diesel(table_name = customers)]
            #[ordid(diesel, columns)]
            struct Customer {
                id: CustomerId,
                unit: i64,
                position: i64,
                bucket: i64,
            }

            #[derive(OrderedKey, Serialize, Deserialize)]
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

            #[derive(OrderedKey, Serialize, Deserialize)]
            #[diesel(table_name = items)]
            #[ordid(diesel)]
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

            impl Rows for $backend {
                const SETUP: &'static str = $setup;

                fn add(work: &mut UnitOfWork<Self>, graph: &Graph) {
                    for it in &graph.items {
                        work.add(item(it));
                    }
                    for it in &graph.orders {
                        work.add(Order {
                            id: key(it.id),
                            customer: key(it.customer),
                            unit: it.unit,
                            position: it.position,
                            bucket: it.bucket,
                            label: it.label.clone(),
                        });
                    }
                    for it in &graph.customers {
                        work.add(customer(it));
                    }
                }

                fn journaled(journal: FlushJournal) -> Journaled<Self> {
                    let journal = Journaled::new(journal);
                    journal.row::<Customer>().row::<Order>().row::<Item>()
                }

                fn change(work: &mut UnitOfWork<Self>, graph: &Graph) {
                    for it in &graph.items {
                        work.delete(&item(it));
                    }
                    for it in &graph.customers {
                        match it.changed() {
                            (it, HowChanged::OnlyBucket) => {
                                work.update_columns(customer(&it), Customer::bucket);
                            }
                            (it, HowChanged::Whole) => work.update(customer(&it)),
                            (it, HowChanged::Upserted) => {
                                work.upsert(customer(&it));
                            }
                        }
                    }
                }
            }
        }
    };
}

database!(postgres: diesel::pg::Pg, Uuid, "");
database!(mysql: diesel::mysql::Mysql, Binary, "");
database!(sqlite: diesel::sqlite::Sqlite, Binary, "PRAGMA foreign_keys = ON");

/// The unit of work, flushed over connections of a kind.
pub struct Work<O: Over>(pub UnitOfWork<O::Backend>);

impl<O> Flusher for Work<O>
where
    O: Over<Backend: Rows>,
{
    type Database = <O::Backend as Known>::Database;

    const PREFIX: &'static str = O::PREFIX;
    const BULK: Option<[usize; 3]> = None;
    const BLOCKS: bool = O::BLOCKS;

    fn begin(retry: Retry) -> Self {
        Self(UnitOfWork::new().with_retry(retry))
    }

    fn with_marker(self) -> Self {
        Self(self.0.with_record())
    }

    fn with_engine(self, engine: EngineProfile) -> Self {
        Self(self.0.with_engine(engine))
    }

    fn without_marker(self) -> Self {
        Self(self.0.without_record())
    }

    fn with_new_memory(self) -> Self {
        Self(self.0.with_new_memory())
    }

    async fn create_flushes_table(options: &Options<Self::Database>) -> Outcome {
        let url = Self::Database::client_url(options);
        O::create_flushes_table(url, O::Backend::SETUP).await
    }

    async fn remove_old_markers(options: &Options<Self::Database>) -> Result<u64, Failed> {
        let url = Self::Database::client_url(options);
        let outcome = O::remove_old_markers(url, O::Backend::SETUP).await;
        outcome.map_err(|error| Failed::from(&error))
    }

    async fn detect_engine(
        options: &Options<Self::Database>,
    ) -> Result<Option<&'static str>, Failed> {
        let url = Self::Database::client_url(options);
        let outcome = O::detect_engine(url, O::Backend::SETUP).await;
        let found = outcome.map(|engine| Some(engine.name));
        found.map_err(|error| Failed::from(&error))
    }

    fn with_journal_in(self, path: &Path) -> Outcome<Self> {
        let journal = FlushJournal::open(path)?;
        Ok(Self(self.0.with_journal(O::Backend::journaled(journal))))
    }

    fn resume(&mut self) -> Outcome<usize> {
        Ok(self.0.resume()?)
    }

    fn add_graph(&mut self, graph: &Graph) {
        O::Backend::add(&mut self.0, graph);
    }

    fn change_graph(&mut self, graph: &Graph) {
        O::Backend::change(&mut self.0, graph);
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
        options: &Options<Self::Database>,
        _: Duration,
    ) -> Result<Flushed, Failed> {
        let url = Self::Database::client_url(options);
        let outcome = O::flush(&mut self.0, url, O::Backend::SETUP).await;
        outcome.map_err(|error| Failed::from(&error))
    }
}

impl<O> FlushesWithin for Work<O>
where
    O: Over<Backend: Rows>,
{
    async fn flush_within(
        &mut self,
        options: &Options<Self::Database>,
        before: &'static [&'static str],
    ) -> Result<Flushed, Failed> {
        let url = Self::Database::client_url(options);
        let outcome = O::flush_within(&mut self.0, url, O::Backend::SETUP, before).await;
        outcome.map_err(|error| Failed::from(&error))
    }
}
