//! tokio-postgres and the crate `postgres`.

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
    tokio::{BLOCKING, PREFIX, connect, flush_blocking},
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

/// Defines a unit of work, and how it is flushed.
macro_rules! work {
    ($(#[$documentation:meta])* $work:ident, $prefix:ident, $flush:expr) => {
        $(#[$documentation])*
        pub struct $work(UnitOfWork);

        impl GraphWork for $work {
            type Database = Postgres;

            const PREFIX: &'static str = $prefix;

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
                let flush = $flush;
                let outcome = flush(&mut self.0, url).await;
                outcome.map_err(|error| Failed::from(&error))
            }
        }
    };
}

work! {
    /// The unit of work.
    Work, PREFIX, async |work: &mut UnitOfWork, url: String| work.flush_with(|| connect(&url)).await
}
work! {
    /// The same, over clients of the crate `postgres`.
    BlockingWork, BLOCKING, flush_blocking
}
