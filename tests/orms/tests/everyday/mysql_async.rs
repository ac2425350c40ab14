//! mysql_async.

use ::sqlx::{MySql, Pool};
use ordid::{Assigned, KeyType as _, Tracked, uuid::Uuid};
use ordid_mysql_async::{ChunkLimits, Flushed, OnConflict, UnitOfWork, Upserted};
use ordid_tests::{
    everyday::{Change, EverydayWork, Filled, Mark, Note, Person, Take},
    faults::Failed,
    servers::Client as _,
};

use crate::{
    NoteId,
    mysql::{PREFIX, flush},
    plain::{MarkRow, PersonRow, ReceiptRow, Row, add_rows},
};

/// The unit of work.
pub struct Work(UnitOfWork);

impl EverydayWork for Work {
    type Database = MySql;

    const PREFIX: &'static str = PREFIX;

    fn begin() -> Self {
        Self(UnitOfWork::new())
    }

    fn in_chunks(mut self, limits: ChunkLimits) -> Self {
        self.0 = self.0.in_chunks(limits);
        self
    }

    add_rows!();

    async fn flush(&mut self, pool: &Pool<MySql>) -> Result<Flushed, Failed> {
        let url = MySql::client_url(&pool.connect_options());
        let outcome = flush(&mut self.0, &url).await;
        outcome.map_err(|error| Failed::from(&error))
    }
}
