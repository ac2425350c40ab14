//! tokio-postgres.

use ordid_tests::{
    faults::Failed,
    graphs::{Entities, GraphWork, Row},
    numbered,
    servers::Client as _,
};
use ordid_tokio_postgres::{FlushPlan, Flushed, UnitOfWork};
use sqlx::{Pool, Postgres};

use crate::{
    RowId,
    tokio::{PREFIX, connect},
};

/// The entities.
pub struct OfTokioPostgres;

impl Entities for OfTokioPostgres {
    type Key = RowId;
    type Of<const KIND: usize, const TABLE: usize> = Numbered<KIND, TABLE>;
}

numbered! {
    /// A row as an entity of the table's type.
    struct Numbered of OfTokioPostgres
}

/// The unit of work.
pub struct Work(UnitOfWork);

impl GraphWork for Work {
    type Database = Postgres;

    const PREFIX: &'static str = PREFIX;

    fn begin() -> Self {
        Self(UnitOfWork::new())
    }

    fn add<const KIND: usize, const TABLE: usize>(&mut self, row: Row) {
        self.0.add(Numbered::<KIND, TABLE>(row));
    }

    fn delete<const KIND: usize, const TABLE: usize>(&mut self, row: Row) {
        self.0.delete(&Numbered::<KIND, TABLE>(row));
    }

    fn plan(&mut self) -> Result<FlushPlan, Failed> {
        let plan = self.0.plan();
        plan.map_err(|error| Failed::from(&error))
    }

    async fn flush(&mut self, pool: &Pool<Postgres>) -> Result<Flushed, Failed> {
        let url = Postgres::client_url(&pool.connect_options());
        let outcome = self.0.flush_with(|| connect(&url)).await;
        outcome.map_err(|error| Failed::from(&error))
    }
}
