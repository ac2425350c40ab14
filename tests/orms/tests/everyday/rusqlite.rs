//! rusqlite.

use ::sqlx::{Pool, Sqlite};
use ordid::{Assigned, KeyType as _, Tracked, uuid::Uuid};
use ordid_rusqlite::{ChunkLimits, Flushed, OnConflict, UnitOfWork, Upserted};
use ordid_tests::{
    everyday::{Change, EverydayWork, Filled, Mark, Note, Person, Take},
    faults::Failed,
    servers::Client as _,
};

use crate::{
    NoteId, lite,
    plain::{MarkRow, PersonRow, ReceiptRow, Row, add_rows},
};

/// The unit of work, flushed over connections of its own.
pub struct Work(UnitOfWork);

impl EverydayWork for Work {
    type Database = Sqlite;

    const PREFIX: &'static str = "rusqlite::";

    fn begin() -> Self {
        Self(UnitOfWork::new())
    }

    fn in_chunks(mut self, limits: ChunkLimits) -> Self {
        self.0 = self.0.in_chunks(limits);
        self
    }

    add_rows!();

    async fn flush(&mut self, pool: &Pool<Sqlite>) -> Result<Flushed, Failed> {
        let path = Sqlite::client_url(&pool.connect_options());
        let outcome = lite::flush(&mut self.0, path).await;
        outcome.map_err(|error| Failed::from(&error))
    }
}
