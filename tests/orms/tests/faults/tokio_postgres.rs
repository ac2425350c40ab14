//! tokio-postgres and the crate `postgres`, over connections of their own.

use std::{path::Path, time::Duration};

use ordid_file::FlushJournal;
use ordid_tests::{
    faults::{Failed, Flusher, Graph, HowChanged, Library},
    servers::{Client as _, Options},
    trials::Outcome,
};
use ordid_tokio_postgres::{Flushed, Journaled, Progress, Retry, UnitOfWork};
use postgres::{Client, NoTls};
use sqlx::{MySql, Postgres, Sqlite};

use crate::{
    keys::key,
    plain::{Customer, Item, Order, customer, item, with_rows},
    tokio::{BLOCKING, PREFIX, connect, flush_blocking, on_thread},
};

/// Defines a unit of work, its library with `SQLx` in the place of what it has no databases for, and how it calls the
/// database.
macro_rules! work {
    (
        $(#[$documentation:meta])* $library:ident: $work:ident;
        $prefix:ident, blocks: $blocks:literal, $flush:expr, $create:expr, $remove:expr
    ) => {
        $(#[$documentation])*
        pub struct $library;

        impl Library for $library {
            type Postgres = $work;
            type MySql = ordid_sqlx::UnitOfWork<MySql>;
            type Sqlite = ordid_sqlx::UnitOfWork<Sqlite>;
        }

        /// The unit of work.
        pub struct $work(pub UnitOfWork);

        impl Flusher for $work {
            type Database = Postgres;

            const PREFIX: &'static str = $prefix;
            const BULK: Option<[usize; 3]> = Some([1_100, 2_050, 1_050]);
            const BLOCKS: bool = $blocks;

            with_rows!();

            async fn create_flushes_table(options: &Options<Postgres>) -> Outcome {
                let create = $create;
                create(Postgres::client_url(options)).await
            }

            async fn remove_old_markers(options: &Options<Postgres>) -> Result<u64, Failed> {
                let remove = $remove;
                let outcome = remove(Postgres::client_url(options)).await;
                outcome.map_err(|error| Failed::from(&error))
            }

            async fn flush_to(
                &mut self,
                options: &Options<Postgres>,
                _: Duration,
            ) -> Result<Flushed, Failed> {
                let flush = $flush;
                let outcome = flush(&mut self.0, Postgres::client_url(options)).await;
                outcome.map_err(|error| Failed::from(&error))
            }
        }
    };
}

work! {
    /// tokio-postgres.
    TokioPostgres: Work;
    PREFIX, blocks: false,
    async |work: &mut UnitOfWork, url: String| work.flush_with(|| connect(&url)).await,
    async |url: String| {
        let client = connect(&url).await?;
        Ok(ordid_tokio_postgres::create_flushes_table(&client).await?)
    },
    async |url: String| {
        let mut client = connect(&url).await.expect("the server is there");
        ordid_tokio_postgres::remove_old_markers(&mut client).await
    }
}

work! {
    /// The crate `postgres`.
    PostgresCrate: BlockingWork;
    BLOCKING, blocks: true,
    flush_blocking,
    async |url: String| {
        let create = move |_: &mut ()| {
            let mut client = Client::connect(&url, NoTls)?;
            ordid_tokio_postgres::create_flushes_table_blocking(&mut client)
        };
        Ok(on_thread(&mut (), create).await?)
    },
    async |url: String| {
        let remove = move |_: &mut ()| {
            let mut client = Client::connect(&url, NoTls).expect("the server is there");
            ordid_tokio_postgres::remove_old_markers_blocking(&mut client)
        };
        on_thread(&mut (), remove).await
    }
}
