//! rusqlite, which has files alone.

use std::{path::Path, time::Duration};

use ordid_file::FlushJournal;
use ordid_rusqlite::{Flushed, Journaled, Progress, Retry, UnitOfWork};
use ordid_tests::{
    faults::{Failed, Flusher, Graph, HowChanged},
    servers::{Client as _, Options},
    trials::Outcome,
};
use sqlx::Sqlite;

use crate::{
    keys::key,
    lite::{flush, open},
    plain::{Customer, Item, Order, customer, item, with_rows},
};

/// The unit of work, flushed over connections of its own.
pub struct Work(UnitOfWork);

impl Flusher for Work {
    type Database = Sqlite;

    const PREFIX: &'static str = "rusqlite::";
    const BULK: Option<[usize; 3]> = None;
    const BLOCKS: bool = true;
    const CHUNK: usize = 100;

    with_rows!();

    async fn create_flushes_table(options: &Options<Sqlite>) -> Outcome {
        let connection = open(&Sqlite::client_url(options))?;
        Ok(ordid_rusqlite::create_flushes_table(&connection)?)
    }

    async fn remove_old_markers(options: &Options<Sqlite>) -> Result<u64, Failed> {
        let mut connection = open(&Sqlite::client_url(options)).expect("it is a file");
        let outcome = ordid_rusqlite::remove_old_markers(&mut connection);
        outcome.map_err(|error| Failed::from(&error))
    }

    async fn flush_to(
        &mut self,
        options: &Options<Sqlite>,
        _: Duration,
    ) -> Result<Flushed, Failed> {
        let outcome = flush(&mut self.0, Sqlite::client_url(options)).await;
        outcome.map_err(|error| Failed::from(&error))
    }
}
