//! tokio-postgres, over connections of its own.

use std::time::Duration;

use ordid_tests::{
    faults::{Failed, Flusher, Graph, HowChanged, Library},
    servers::{Client as _, Options},
    trials::Outcome,
};
use ordid_tokio_postgres::{Flushed, Progress, Retry, UnitOfWork};
use sqlx::{MySql, Postgres, Sqlite};

use crate::{
    keys::key,
    plain::{Customer, Order, customer, item, with_rows},
    tokio::{PREFIX, connect},
};

/// `ordid-tokio-postgres`, and `SQLx` in the place of what it has no databases for.
pub struct TokioPostgres;

impl Library for TokioPostgres {
    type Postgres = Work;
    type MySql = ordid_sqlx::UnitOfWork<MySql>;
    type Sqlite = ordid_sqlx::UnitOfWork<Sqlite>;
}

/// The unit of work.
pub struct Work(pub UnitOfWork);

impl Flusher for Work {
    type Database = Postgres;

    const PREFIX: &'static str = PREFIX;
    const BULK: Option<[usize; 3]> = Some([1_100, 2_050, 1_050]);

    with_rows!();

    async fn create_flushes_table(options: &Options<Postgres>) -> Outcome {
        let client = connect(&Postgres::client_url(options)).await?;
        Ok(ordid_tokio_postgres::create_flushes_table(&client).await?)
    }

    async fn remove_old_markers(options: &Options<Postgres>) -> Result<u64, Failed> {
        let client = connect(&Postgres::client_url(options)).await;
        let mut client = client.expect("the server is there");
        let outcome = ordid_tokio_postgres::remove_old_markers(&mut client).await;
        outcome.map_err(|error| Failed::from(&error))
    }

    async fn flush_to(
        &mut self,
        options: &Options<Postgres>,
        _: Duration,
    ) -> Result<Flushed, Failed> {
        let url = Postgres::client_url(options);
        let outcome = self.0.flush_with(|| connect(&url)).await;
        outcome.map_err(|error| Failed::from(&error))
    }
}
