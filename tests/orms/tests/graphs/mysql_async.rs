//! mysql_async.

use ordid_mysql_async::{FlushPlan, Flushed, UnitOfWork};
use ordid_tests::{
    faults::Failed,
    graphs::{Entities, GraphWork, Row},
    numbered,
    servers::Client as _,
};
use sqlx::{MySql, Pool};

use crate::{
    RowId,
    mysql::{PREFIX, flush},
};

/// The entities.
pub struct OfMysqlAsync;

impl Entities for OfMysqlAsync {
    type Key = RowId;
    type Of<const KIND: usize, const TABLE: usize> = Numbered<KIND, TABLE>;
}

numbered! {
    /// A row as an entity of the table's type.
    struct Numbered of OfMysqlAsync
}

/// The unit of work.
pub struct Work(UnitOfWork);

impl GraphWork for Work {
    type Database = MySql;

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

    async fn flush(&mut self, pool: &Pool<MySql>) -> Result<Flushed, Failed> {
        let url = MySql::client_url(&pool.connect_options());
        let outcome = flush(&mut self.0, &url).await;
        outcome.map_err(|error| Failed::from(&error))
    }
}
