//! mysql_async, over pools of its own.

use std::{path::Path, time::Duration};

use mysql_async::{Conn, TxOpts, prelude::Queryable as _};
use ordid_file::FlushJournal;
use ordid_mysql_async::{Flushed, Journaled, Progress, Retry, UnitOfWork};
use ordid_tests::{
    faults::{Failed, Flusher, Graph, HowChanged, Library, ended::FlushesWithin},
    servers::{Client as _, Options},
    trials::Outcome,
};
use sqlx::{MySql, Postgres, Sqlite};

use crate::{
    keys::key,
    mysql::{self, PREFIX, flush, pool},
    plain::{Customer, Item, Order, customer, item, with_rows},
};

/// mysql_async, with `SQLx` in the place of what it has no databases for.
pub struct MysqlAsync;

impl Library for MysqlAsync {
    type Postgres = ordid_sqlx::UnitOfWork<Postgres>;
    type MySql = Work;
    type Sqlite = ordid_sqlx::UnitOfWork<Sqlite>;
}

/// The unit of work.
pub struct Work(pub UnitOfWork);

impl Flusher for Work {
    type Database = MySql;

    const PREFIX: &'static str = PREFIX;
    const BULK: Option<[usize; 3]> = None;

    with_rows!();

    async fn create_flushes_table(options: &Options<MySql>) -> Outcome {
        let pool = pool(&MySql::client_url(options));
        ordid_mysql_async::create_flushes_table(&pool).await?;
        Ok(pool.disconnect().await?)
    }

    async fn remove_old_markers(options: &Options<MySql>) -> Result<u64, Failed> {
        let pool = pool(&MySql::client_url(options));
        let outcome = ordid_mysql_async::remove_old_markers(&pool).await;
        let _ = pool.disconnect().await;
        outcome.map_err(|error| Failed::from(&error))
    }

    async fn flush_to(&mut self, options: &Options<MySql>, _: Duration) -> Result<Flushed, Failed> {
        let outcome = flush(&mut self.0, &MySql::client_url(options)).await;
        outcome.map_err(|error| Failed::from(&error))
    }
}

impl FlushesWithin for Work {
    async fn flush_within(
        &mut self,
        options: &Options<MySql>,
        before: &'static [&'static str],
    ) -> Result<Flushed, Failed> {
        let address = mysql::options(&MySql::client_url(options)).expect("an address");
        let connection = Conn::new(address).await;
        let mut connection = connection.expect("the server is there");
        let begun = connection.start_transaction(TxOpts::new()).await;
        let mut transaction = begun.expect("nothing is open");
        for sql in before {
            let sent = transaction.query_drop(*sql).await;
            sent.expect("nobody holds the row");
        }
        let outcome = self.0.flush_in(&mut transaction).await;
        let _ = transaction.rollback().await;
        let _ = connection.disconnect().await;
        outcome.map_err(|error| Failed::from(&error))
    }
}
