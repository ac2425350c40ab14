//! `SeaORM`, over a pool for each flush.

use std::{marker::PhantomData, time::Duration};

use ordid_seaorm::{EngineProfile, Flushed, Progress, Retry, UnitOfWork};
use ordid_tests::{
    faults::{
        Engine, Failed, Flusher, Graph, HowChanged, Library, PATIENCE, ended::FlushesWithin, pool,
    },
    servers::Options,
    trials::Outcome,
};
use sea_orm::{ConnectionTrait as _, DatabaseConnection, TransactionTrait as _};
use sqlx::{MySql, Postgres, Sqlite, pool::PoolOptions};

use crate::{connect::Connect, keys::key};

/// `ordid-seaorm`.
pub struct SeaOrm;

impl Library for SeaOrm {
    type Postgres = Work<Postgres>;
    type MySql = Work<MySql>;
    type Sqlite = Work<Sqlite>;
}

mod customer {
    use ordid::OrderedKey;
    use sea_orm::entity::prelude::*;

    use crate::keys::CustomerId;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "customers")]
    #[ordid(columns)]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: CustomerId,
        pub unit: i64,
        pub position: i64,
        pub bucket: i64,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

mod order {
    use ordid::OrderedKey;
    use sea_orm::entity::prelude::*;

    use crate::keys::{CustomerId, OrderId};

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "orders")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: OrderId,
        #[ordid(parent)]
        pub customer: CustomerId,
        pub unit: i64,
        pub position: i64,
        pub bucket: i64,
        pub label: String,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

mod item {
    use ordid::OrderedKey;
    use sea_orm::entity::prelude::*;

    use crate::keys::{ItemId, OrderId};

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "items")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: ItemId,
        #[sea_orm(primary_key, auto_increment = false)]
        #[ordid(parent)]
        pub order_id: OrderId,
        pub unit: i64,
        pub position: i64,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

fn customer(of: &ordid_tests::faults::Customer) -> customer::Model {
    customer::Model {
        id: key(of.id),
        unit: of.unit,
        position: of.position,
        bucket: of.bucket,
    }
}

fn item(of: &ordid_tests::faults::Item) -> item::Model {
    item::Model {
        id: key(of.id),
        order_id: key(of.order_id),
        unit: of.unit,
        position: of.position.into(),
    }
}

pub struct Work<DB> {
    work: UnitOfWork,
    database: PhantomData<fn() -> DB>,
}

impl<DB: Connect + Engine> Flusher for Work<DB> {
    type Database = DB;

    const PREFIX: &'static str = "seaorm::";
    const BULK: Option<[usize; 3]> = None;

    fn begin(retry: Retry) -> Self {
        Self {
            work: UnitOfWork::new().with_retry(retry),
            database: PhantomData,
        }
    }

    fn with_marker(self) -> Self {
        let work = self.work.with_record();
        Self { work, ..self }
    }

    fn with_engine(self, engine: EngineProfile) -> Self {
        let work = self.work.with_engine(engine);
        Self { work, ..self }
    }

    fn without_marker(self) -> Self {
        let work = self.work.without_record();
        Self { work, ..self }
    }

    fn with_new_memory(self) -> Self {
        let work = self.work.with_new_memory();
        Self { work, ..self }
    }

    async fn create_flushes_table(options: &Options<DB>) -> Outcome {
        let pool = pool::<DB>(options.clone(), PATIENCE);
        let outcome = ordid_seaorm::create_flushes_table(&DB::connect(pool.clone())).await;
        pool.close().await;
        Ok(outcome?)
    }

    async fn remove_old_markers(options: &Options<DB>) -> Result<u64, Failed> {
        let pool = pool::<DB>(options.clone(), PATIENCE);
        let outcome = ordid_seaorm::remove_old_markers(&DB::connect(pool.clone())).await;
        pool.close().await;
        outcome.map_err(|error| Failed::from(&error))
    }

    async fn detect_engine(options: &Options<DB>) -> Result<Option<&'static str>, Failed> {
        let pool = pool::<DB>(options.clone(), PATIENCE);
        let outcome = ordid_seaorm::detect_engine(&DB::connect(pool.clone())).await;
        pool.close().await;
        let found = outcome.map(|engine| Some(engine.name));
        found.map_err(|error| Failed::from(&error))
    }

    fn add_graph(&mut self, graph: &Graph) {
        for it in &graph.items {
            self.work.add(item(it));
        }
        for it in &graph.orders {
            self.work.add(order::Model {
                id: key(it.id),
                customer: key(it.customer),
                unit: it.unit,
                position: it.position,
                bucket: it.bucket,
                label: it.label.clone(),
            });
        }
        for it in &graph.customers {
            self.work.add(customer(it));
        }
    }

    fn change_graph(&mut self, graph: &Graph) {
        for it in &graph.items {
            self.work.delete(item(it));
        }
        for it in &graph.customers {
            match it.changed() {
                (it, HowChanged::OnlyBucket) => self
                    .work
                    .update_columns(customer(&it), customer::Model::bucket),
                (it, HowChanged::Whole) => self.work.update(customer(&it)),
                (it, HowChanged::Upserted) => {
                    self.work.upsert(customer(&it));
                }
            }
        }
    }

    fn held(&self) -> usize {
        self.work.len()
    }

    fn tell(&mut self, observer: impl FnMut(Progress) + Send + 'static) {
        self.work.observe(observer);
    }

    fn within(&mut self, deadline: Duration) {
        self.work = std::mem::take(&mut self.work).with_deadline(deadline);
    }

    async fn flush_to(
        &mut self,
        options: &Options<DB>,
        patience: Duration,
    ) -> Result<Flushed, Failed> {
        // SeaORM takes a connection from the pool for each transaction, and the scripts of faults count connections.
        let pool = PoolOptions::<DB>::new()
            .max_connections(1)
            .acquire_timeout(patience)
            .connect_lazy_with(options.clone());
        let connection = DB::connect(pool.clone());
        let outcome = self.flush_over(&connection).await;
        // Where the server is silent, the pool gives its connection up after some seconds.
        if !matches!(&outcome, Err(error) if error.is_timeout) {
            pool.close().await;
        }
        outcome
    }
}

impl FlushesWithin for Work<MySql> {
    async fn flush_within(
        &mut self,
        options: &Options<MySql>,
        before: &'static [&'static str],
    ) -> Result<Flushed, Failed> {
        let pool = PoolOptions::<MySql>::new().max_connections(1);
        let connection = MySql::connect(pool.connect_lazy_with(options.clone()));
        let begun = connection.begin().await;
        let transaction = begun.expect("the server is there");
        for sql in before {
            let sent = transaction.execute_unprepared(sql).await;
            sent.expect("nobody holds the row");
        }
        let outcome = self.work.flush_in(&transaction).await;
        let _ = transaction.rollback().await;
        let _ = connection.close().await;
        outcome.map_err(|error| Failed::from(&error))
    }
}

impl<DB> Work<DB> {
    /// Flushes over connections of the user's pool.
    pub async fn flush_over(&mut self, over: &DatabaseConnection) -> Result<Flushed, Failed> {
        let outcome = self.work.flush(over).await;
        outcome.map_err(|error| Failed::from(&error))
    }
}
