//! Entities of the libraries that ask nothing of an entity beside its derive: rusqlite, tokio-postgres and mysql_async.

use std::{path::Path, time::Duration};

use ::mysql_async::{Conn, TxOpts, prelude::Queryable as _};
use ::postgres::{Client, NoTls};
use ordid::OrderedKey;
use ordid_file::FlushJournal;
use ordid_rusqlite::{EngineProfile, Flushed, Progress, Retry};
use ordid_tests::{
    faults::{Failed, Flusher, Graph, HowChanged, Library, ended::FlushesWithin},
    servers::{Client as _, Options},
    trials::Outcome,
};
use ordid_tokio_postgres as pg;
use serde::{Deserialize, Serialize};
use sqlx::{MySql, Postgres, Sqlite};

use crate::{
    keys::{CustomerId, ItemId, OrderId, key},
    lite, mysql, tokio,
    works::{MysqlAsync, Plain, PostgresCrate, Rusqlite, TokioPostgres},
};

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

/// Implements [`Flusher`]. The functions get an address, and make or empty the table of marker rows there.
macro_rules! flusher {
    (
        $work:ident of $library:ident, bulk: $bulk:expr, blocks: $blocks:literal, chunk: $chunk:literal,
        $create:expr, $remove:expr, $detect:expr
    ) => {
        impl Flusher for $work {
            type Database = <Self as Plain>::Database;

            const PREFIX: &'static str = <Self as Plain>::PREFIX;
            const BULK: Option<[usize; 3]> = $bulk;
            const BLOCKS: bool = $blocks;
            const CHUNK: usize = $chunk;

            fn begin(retry: Retry) -> Self {
                Self(Self::default().0.with_retry(retry))
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

            fn with_journal_in(self, path: &Path) -> Outcome<Self> {
                let journal = $library::Journaled::new(FlushJournal::open(path)?);
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

            async fn create_flushes_table(options: &Options<Self::Database>) -> Outcome {
                let create = $create;
                create(Self::Database::client_url(options)).await
            }

            async fn remove_old_markers(options: &Options<Self::Database>) -> Result<u64, Failed> {
                let remove = $remove;
                let outcome = remove(Self::Database::client_url(options)).await;
                outcome.map_err(|error| Failed::from(&error))
            }

            async fn detect_engine(
                options: &Options<Self::Database>,
            ) -> Result<Option<&'static str>, Failed> {
                let detect = $detect;
                let outcome = detect(Self::Database::client_url(options)).await;
                let found = outcome.map(|engine| engine.map(|it: EngineProfile| it.name));
                found.map_err(|error: $library::Error| Failed::from(&error))
            }

            async fn flush_to(
                &mut self,
                options: &Options<Self::Database>,
                _: Duration,
            ) -> Result<Flushed, Failed> {
                Plain::flush_to(self, Self::Database::client_url(options)).await
            }
        }
    };
}

flusher! {
    Rusqlite of ordid_rusqlite, bulk: None, blocks: true, chunk: 50,
    async |path: String| {
        let connection = lite::open(&path)?;
        Ok(ordid_rusqlite::create_flushes_table(&connection)?)
    },
    async |path: String| {
        let mut connection = lite::open(&path).expect("it is a file");
        ordid_rusqlite::remove_old_markers(&mut connection)
    },
    async |_: String| Ok(None)
}

flusher! {
    MysqlAsync of ordid_mysql_async, bulk: None, blocks: false, chunk: 1_000,
    async |url: String| {
        let pool = mysql::pool(&url);
        ordid_mysql_async::create_flushes_table(&pool).await?;
        Ok(pool.disconnect().await?)
    },
    async |url: String| {
        let pool = mysql::pool(&url);
        let outcome = ordid_mysql_async::remove_old_markers(&pool).await;
        let _ = pool.disconnect().await;
        outcome
    },
    async |url: String| {
        let pool = mysql::pool(&url);
        let outcome = ordid_mysql_async::detect_engine(&pool).await;
        let _ = pool.disconnect().await;
        outcome.map(Some)
    }
}

flusher! {
    TokioPostgres of ordid_tokio_postgres, bulk: Some([1_100, 2_050, 1_050]), blocks: false, chunk: 1_000,
    async |url: String| {
        let client = tokio::connect(&url).await?;
        Ok(pg::create_flushes_table(&client).await?)
    },
    async |url: String| {
        let mut client = tokio::connect(&url).await.expect("the server is there");
        pg::remove_old_markers(&mut client).await
    },
    async |url: String| {
        let mut client = tokio::connect(&url).await.expect("the server is there");
        pg::detect_engine(&mut client).await.map(Some)
    }
}

flusher! {
    PostgresCrate of ordid_tokio_postgres, bulk: Some([1_100, 2_050, 1_050]), blocks: true, chunk: 1_000,
    async |url: String| {
        let create = move |_: &mut ()| {
            let mut client = Client::connect(&url, NoTls)?;
            pg::create_flushes_table_blocking(&mut client)
        };
        Ok(tokio::on_thread(&mut (), create).await?)
    },
    async |url: String| {
        let remove = move |_: &mut ()| {
            let mut client = Client::connect(&url, NoTls).expect("the server is there");
            pg::remove_old_markers_blocking(&mut client)
        };
        tokio::on_thread(&mut (), remove).await
    },
    async |url: String| {
        let detect = move |_: &mut ()| {
            let mut client = Client::connect(&url, NoTls).expect("the server is there");
            pg::detect_engine_blocking(&mut client).map(Some)
        };
        tokio::on_thread(&mut (), detect).await
    }
}

// Each with `SQLx` in the place of what it has no databases for.

impl Library for TokioPostgres {
    type Postgres = Self;
    type MySql = ordid_sqlx::UnitOfWork<MySql>;
    type Sqlite = ordid_sqlx::UnitOfWork<Sqlite>;
}

impl Library for PostgresCrate {
    type Postgres = Self;
    type MySql = ordid_sqlx::UnitOfWork<MySql>;
    type Sqlite = ordid_sqlx::UnitOfWork<Sqlite>;
}

impl Library for MysqlAsync {
    type Postgres = ordid_sqlx::UnitOfWork<Postgres>;
    type MySql = Self;
    type Sqlite = ordid_sqlx::UnitOfWork<Sqlite>;
}

impl FlushesWithin for MysqlAsync {
    async fn flush_within(
        &mut self,
        options: &Options<MySql>,
        before: &'static [&'static str],
    ) -> Result<Flushed, Failed> {
        let address = mysql::options(&MySql::client_url(options)).expect("an address");
        let connection = Conn::new(address).await;
        let mut connection = connection.expect("the server is there");
        let begun = connection.start_transaction(TxOpts::new()).await;
        let mut transaction = begun.expect("nothing is open");
        for sql in before {
            let sent = transaction.query_drop(*sql).await;
            sent.expect("nobody holds the row");
        }
        let outcome = self.0.flush_in(&mut transaction).await;
        let _ = transaction.rollback().await;
        let _ = connection.disconnect().await;
        outcome.map_err(|error| Failed::from(&error))
    }
}
