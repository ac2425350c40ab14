//! The libraries that ask nothing of an entity beside its derive.

use ordid_rusqlite::{FlushPlan, Flushed};
use ordid_tests::{
    faults::Failed,
    graphs::{Entities, GraphWork, Row},
    numbered,
    servers::Client as _,
};
use sqlx::Pool;

use crate::{
    RowId,
    works::{MysqlAsync, Plain, PostgresCrate, Rusqlite, TokioPostgres},
};

/// The entities.
pub struct OfPlain;

impl Entities for OfPlain {
    type Key = RowId;
    type Of<const KIND: usize, const TABLE: usize> = Numbered<KIND, TABLE>;
}

numbered! {
    /// A row as an entity of the table's type.
    struct Numbered of OfPlain
}

macro_rules! graph_work {
    ($($work:ident)+) => {$(
        impl GraphWork for $work {
            type Database = <Self as Plain>::Database;

            const PREFIX: &'static str = <Self as Plain>::PREFIX;

            fn begin() -> Self {
                Self::default()
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

            async fn flush(&mut self, pool: &Pool<Self::Database>) -> Result<Flushed, Failed> {
                let url = Self::Database::client_url(&pool.connect_options());
                self.flush_to(url).await
            }
        }
    )+};
}

graph_work! { Rusqlite MysqlAsync TokioPostgres PostgresCrate }
