//! Units of work of the libraries that ask nothing of an entity beside its derive, over connections of their own. A
//! suite writes the rows for all of them once.

use ordid_rusqlite::Flushed;
use ordid_tests::{faults::Failed, servers::Client};
use sqlx::{MySql, Postgres, Sqlite};

use crate::{lite, mysql, tokio};

/// A unit of work that a suite adds its rows to, and how it is flushed.
pub trait Plain: Default {
    type Database: Client;

    /// What the names of its tests begin with.
    const PREFIX: &'static str;

    /// Flushes over connections of its own, which are closed then.
    async fn flush_to(&mut self, url: String) -> Result<Flushed, Failed>;
}

macro_rules! plain {
    ($($(#[$documentation:meta])* $work:ident($library:ident): $database:ty, $prefix:path, $flush:path;)+) => {$(
        $(#[$documentation])*
        #[derive(Default)]
        pub struct $work(pub $library::UnitOfWork);

        impl Plain for $work {
            type Database = $database;

            const PREFIX: &'static str = $prefix;

            async fn flush_to(&mut self, url: String) -> Result<Flushed, Failed> {
                let outcome = $flush(&mut self.0, url).await;
                outcome.map_err(|error| Failed::from(&error))
            }
        }
    )+};
}

plain! {
    /// rusqlite.
    Rusqlite(ordid_rusqlite): Sqlite, lite::PREFIX, lite::flush;
    /// mysql_async.
    MysqlAsync(ordid_mysql_async): MySql, mysql::PREFIX, mysql::flush;
    /// tokio-postgres.
    TokioPostgres(ordid_tokio_postgres): Postgres, tokio::PREFIX, tokio::flush;
    /// The crate `postgres`.
    PostgresCrate(ordid_tokio_postgres): Postgres, tokio::BLOCKING, tokio::flush_blocking;
}
