//! Nodes leased from a table. The statements and their order are core's
//! ([`nodes`](ordid_sql::leases::nodes)).

use std::fmt;

use ordid_core::{
    Error,
    clock::Timestamp,
    coordination::{AsyncNodeAllocator, Grant, LeaseTerms},
    entropy::ThreadEntropy,
};
use ordid_sql::leases::nodes::LeasedNodes;
use sqlx::{AssertSqlSafe, SqlSafeStr as _};

use crate::{backend::Backend, numbers::Store};

/// What the kinds of nodes in a table have in common: where that is.
macro_rules! in_a_table {
    ($nodes:ident, $table:ident) => {
        impl<DB: $crate::backend::Backend> $nodes<DB> {
            /// The name of the table unless said otherwise.
            pub const TABLE: &'static str = $table::<DB::Dialect>::TABLE;

            /// Takes the database and the terms. It connects when it is first asked for something.
            pub fn new(options: $crate::numbers::ConnectOptions<DB>, terms: LeaseTerms) -> Self {
                Self {
                    store: Store::new(options),
                    nodes: $table::new(terms),
                }
            }

            /// Takes a table of another name: each group of processes that share nodes has one.
            ///
            /// # Errors
            ///
            /// If it has other characters than letters, digits and underscores, or more than 63. The error
            /// is a [`Mismatch`](ordid_core::coordination::CoordinationFailure::Mismatch).
            pub fn with_table(self, table: &str) -> Result<Self, Error> {
                Ok(Self {
                    nodes: self.nodes.with_table(table)?,
                    ..self
                })
            }

            /// Says how long the database may take for an answer, connecting included: 5 s otherwise.
            #[must_use]
            pub fn with_timeout(mut self, timeout: std::time::Duration) -> Self {
                self.store.set_timeout(timeout);
                self
            }

            async fn run(&self, script: String) -> Result<(), Error> {
                // Of checked names and numbers.
                let script = AssertSqlSafe(script).into_sql_str();
                self.store.run(&script).await
            }
        }

        impl<DB: $crate::backend::Backend> fmt::Debug for $nodes<DB> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($nodes))
                    .field("store", &self.store)
                    .field("table", &self.nodes.table())
                    .field("terms", self.nodes.terms())
                    .finish_non_exhaustive()
            }
        }
    };
}

mod disposable;

pub use disposable::SqlDisposableNode;

/// Leases nodes from a table of PostgreSQL, MySQL, MariaDB or SQLite: a
/// [`NodeAllocator`](ordid_core::coordination::NodeAllocator) where the program has a database anyway.
///
/// The database's clock decides when a silent holder's node is free, and whether a process's clock is too
/// far ahead; no duplicate depends on it. Statements run on a connection of its own, each for itself,
/// outside of the program's transactions.
///
/// The ceiling is as durable as a COMMIT is: PostgreSQL's `synchronous_commit`, InnoDB's
/// `innodb_flush_log_at_trx_commit` and SQLite's `PRAGMA synchronous` have to be at their defaults or above
/// (SQLite in WAL mode: `FULL`, SQLx's default). A database that falls over to a copy that lags, or is restored from
/// one, can grant time a second time, up to the lag and at most the terms'
/// [`max_ahead`](LeaseTerms::max_ahead) ahead of the clock: a holder that renews finds out
/// ([`CeilingRegressed`](ordid_core::coordination::CoordinationFailure::CeilingRegressed)), and writes back what it was
/// granted.
///
/// The child of a fork may acquire a node of its own of it, over connections of its own; its parent's grant is
/// refused there. Not on SQLite, which cannot be used on both sides of a fork: there all is refused.
///
/// # Example
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ordid_core::{clock::{Clock, SystemClock}, coordination::{AsyncNodeAllocator, LeaseTerms}};
/// use ordid_sqlx::SqlLease;
/// use sqlx::{Sqlite, sqlite::SqliteConnectOptions};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("shop.sqlite");
/// let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
/// let leases = SqlLease::<Sqlite>::new(options, LeaseTerms::new(0..1_024)?);
/// leases.create().await?; // once, as a migration
///
/// let grant = leases.acquire(SystemClock.now(), None).await?;
/// let grant = leases.renew(&grant, SystemClock.now()).await?;
/// leases.release(&grant, None).await?;
/// # Ok(())
/// # }
/// ```
pub struct SqlLease<DB: Backend> {
    store: Store<DB>,
    nodes: LeasedNodes<DB::Dialect>,
}

in_a_table!(SqlLease, LeasedNodes);

impl<DB: Backend> SqlLease<DB> {
    /// Returns the statements that make the table, and a row for each node of the terms that has none.
    ///
    /// Run them once, as a migration. A table that was lost must not be made anew in silence: then
    /// nobody knows any more which time is used. Never delete rows.
    ///
    /// # Errors
    ///
    /// If the terms name more than 65,536 nodes, for which there is [`SqlDisposableNode`]. The error is a
    /// [`Mismatch`](ordid_core::coordination::CoordinationFailure::Mismatch).
    pub fn create_sql(&self) -> Result<String, Error> {
        self.nodes.create_sql()
    }

    /// Makes the table, and a row for each node of the terms that has none: as
    /// [`create_sql`](Self::create_sql).
    ///
    /// # Errors
    ///
    /// As [`create_sql`](Self::create_sql), and what the database says.
    pub async fn create(&self) -> Result<(), Error> {
        self.run(self.create_sql()?).await
    }
}

impl<DB: Backend> AsyncNodeAllocator for SqlLease<DB> {
    async fn acquire(&self, now: Timestamp, last: Option<Timestamp>) -> Result<Grant, Error> {
        let nodes = &self.nodes;
        nodes.acquire(&self.store, &ThreadEntropy, now, last).await
    }

    async fn renew(&self, grant: &Grant, now: Timestamp) -> Result<Grant, Error> {
        self.nodes.renew(&self.store, grant, now).await
    }

    async fn release(&self, grant: &Grant, last: Option<Timestamp>) -> Result<(), Error> {
        self.nodes.release(&self.store, grant, last).await
    }

    fn terms(&self) -> &LeaseTerms {
        self.nodes.terms()
    }
}
