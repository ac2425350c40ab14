//! Runs that do not come to their end, and the next one, which has their journal: see [`ordid_tests::next_run`].

use ::mysql_async::Conn;
use ordid::{KeyType as _, OrderedKey};
use ordid_file::FlushJournal;
use ordid_mysql_async::{Journaled, UnitOfWork};
use ordid_tests::{
    next_run::{self, NextRun},
    trials::Outcome,
};
use serde::{Deserialize, Serialize};
use sqlx::MySql;

use crate::keys::Native;

#[derive(OrderedKey, Serialize, Deserialize)]
#[ordid(table = "orders")]
pub struct Order {
    id: Native,
    total: i64,
    note: Option<String>,
    weight: f64,
}

/// A connection.
pub struct Run(Conn);

impl NextRun for Run {
    type Database = MySql;
    type Work = UnitOfWork;

    const CREATE: &'static str = "CREATE TABLE orders (id BINARY(16) NOT NULL PRIMARY KEY, total BIGINT NOT NULL, note TEXT, \
         weight DOUBLE NOT NULL)";

    async fn connect(url: &str) -> Outcome<Self> {
        Ok(Self(crate::connect(url).await?))
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
        Ok(work.flush_on(&mut self.0).await?.rows())
    }

    async fn execute(&mut self, sql: &str) -> Outcome {
        crate::execute(&mut self.0, &[sql]).await
    }

    async fn number(&mut self, sql: &str) -> Outcome<i64> {
        crate::number(&mut self.0, sql).await
    }
}
