//! Runs that do not come to their end, and the next one, which has their journal: see [`ordid_tests::next_run`].

use ::tokio_postgres::Client;
use ordid::{KeyType as _, OrderedKey};
use ordid_file::FlushJournal;
use ordid_tests::{
    next_run::{self, NextRun},
    trials::Outcome,
};
use ordid_tokio_postgres::{Journaled, UnitOfWork};
use serde::{Deserialize, Serialize};
use sqlx::Postgres;

use crate::{keys::Native, tokio::connect};

#[derive(OrderedKey, Serialize, Deserialize)]
#[ordid(table = "orders")]
pub struct Order {
    id: Native,
    total: i64,
    note: Option<String>,
    weight: f64,
}

/// A client.
pub struct Run(Client);

impl NextRun for Run {
    type Database = Postgres;
    type Work = UnitOfWork;

    const CREATE: &'static str = "CREATE TABLE orders (id uuid PRIMARY KEY, total bigint NOT NULL, note text, \
         weight double precision NOT NULL)";

    async fn connect(url: &str) -> Outcome<Self> {
        Ok(Self(connect(url).await?))
    }

    fn begin(journal: FlushJournal) -> UnitOfWork {
        UnitOfWork::new().with_journal(Journaled::new(journal).row::<Order>())
    }

    fn add(work: &mut UnitOfWork, order: next_run::Order) {
        work.add(Order {
            id: Native::generate(),
            total: order.total,
            note: order.note,
            weight: order.weight,
        });
    }

    fn resume(work: &mut UnitOfWork) -> Outcome<usize> {
        Ok(work.resume()?)
    }

    async fn flush(&mut self, work: &mut UnitOfWork) -> Outcome<usize> {
        Ok(work.flush(&mut self.0).await?.rows())
    }

    async fn execute(&mut self, sql: &str) -> Outcome {
        Ok(self.0.batch_execute(sql).await?)
    }

    async fn number(&mut self, sql: &str) -> Outcome<i64> {
        let sql = format!("SELECT CAST(number AS bigint) FROM (SELECT {sql}) AS it (number)");
        Ok(self.0.query_one(&sql, &[]).await?.try_get(0)?)
    }
}
