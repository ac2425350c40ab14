//! tokio-postgres.

use ::sqlx::{Pool, Postgres};
use ordid::{Assigned, KeyType as _, Tracked, uuid::Uuid};
use ordid_tests::{
    everyday::{Change, EverydayWork, Filled, Mark, Note, Person, Take},
    faults::Failed,
    servers::Client as _,
};
use ordid_tokio_postgres::{Flushed, OnConflict, UnitOfWork, Upserted};

use crate::{
    NoteId,
    plain::{MarkRow, PersonRow, ReceiptRow, Row, add_rows},
    tokio::{PREFIX, connect},
};

/// The unit of work.
pub struct Work(UnitOfWork);

impl EverydayWork for Work {
    type Database = Postgres;

    const PREFIX: &'static str = PREFIX;

    fn begin() -> Self {
        Self(UnitOfWork::new())
    }

    add_rows!();

    async fn flush(&mut self, pool: &Pool<Postgres>) -> Result<Flushed, Failed> {
        let url = Postgres::client_url(&pool.connect_options());
        let outcome = self.0.flush_with(|| connect(&url)).await;
        outcome.map_err(|error| Failed::from(&error))
    }
}
