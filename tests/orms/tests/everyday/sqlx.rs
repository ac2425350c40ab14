//! `SQLx`.

use ::sqlx::Pool;
use ordid::{Assigned, KeyType as _, Tracked, uuid::Uuid};
use ordid_sqlx::{ChunkLimits, Entity, Flushed, OnConflict, UnitOfWork, Upserted};
use ordid_tests::{
    everyday::{Change, Engine, EverydayWork, Filled, Mark, Note, Person, Take},
    faults::Failed,
};

use crate::{
    NoteId,
    plain::{MarkRow, PersonRow, ReceiptRow, Row, add_rows},
};

/// The unit of work.
pub struct Work<DB: Engine>(UnitOfWork<DB>);

impl<DB: Engine> EverydayWork for Work<DB>
where
    Row: Entity<DB>,
    MarkRow: Entity<DB>,
    PersonRow: Entity<DB>,
    ReceiptRow: Entity<DB>,
{
    type Database = DB;

    const PREFIX: &'static str = "";

    fn begin() -> Self {
        Self(UnitOfWork::new())
    }

    fn in_chunks(mut self, limits: ChunkLimits) -> Self {
        self.0 = self.0.in_chunks(limits);
        self
    }

    add_rows!();

    async fn flush(&mut self, pool: &Pool<DB>) -> Result<Flushed, Failed> {
        let outcome = self.0.flush(pool).await;
        outcome.map_err(|error| Failed::from(&error))
    }
}
