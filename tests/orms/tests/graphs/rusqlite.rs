//! rusqlite.

use ordid_rusqlite::{FlushPlan, Flushed, UnitOfWork};
use ordid_tests::{
    faults::Failed,
    graphs::{Entities, GraphWork, Row},
    numbered,
    servers::Client as _,
};
use sqlx::{Pool, Sqlite};

use crate::{RowId, lite};

/// The entities.
pub struct OfRusqlite;

impl Entities for OfRusqlite {
    type Key = RowId;
    type Of<const KIND: usize, const TABLE: usize> = Numbered<KIND, TABLE>;
}

numbered! {
    /// A row as an entity of the table's type.
    struct Numbered of OfRusqlite
}

/// The unit of work, flushed over connections of its own.
pub struct Work(UnitOfWork);

impl GraphWork for Work {
    type Database = Sqlite;

    const PREFIX: &'static str = "rusqlite::";

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

    async fn flush(&mut self, pool: &Pool<Sqlite>) -> Result<Flushed, Failed> {
        let path = Sqlite::client_url(&pool.connect_options());
        let outcome = lite::flush(&mut self.0, path).await;
        outcome.map_err(|error| Failed::from(&error))
    }
}
