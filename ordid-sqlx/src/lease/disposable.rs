//! Nodes that are used once: a number for each start, as in Baidu's UidGenerator.

use std::fmt;

use ordid_core::{
    Error,
    clock::Timestamp,
    coordination::{AsyncNodeAllocator, Grant, LeaseTerms},
};
use ordid_sql::leases::nodes::DisposableNodes;
use sqlx::{AssertSqlSafe, SqlSafeStr as _};

use crate::{backend::Backend, numbers::Store};

/// Gives each start a node that nobody had and nobody will have: the next number of a table.
///
/// The database counts from 1, so the range of the terms begins with 0 or 1.
///
/// Nothing waits for a lease to end, and a process that died leaves nothing behind; for that the numbers
/// are used up, one with each start. A layout with 22 bits for the node has 4,194,304, enough for a
/// thousand starts a day over 11 years. When they are used up there is an error
/// ([`NoFreeNode`](ordid_core::coordination::CoordinationFailure::NoFreeNode)), no second round.
///
/// A grant ends and is renewed as one of [`SqlLease`](crate::SqlLease): so a copy of a running process is
/// found out when it renews. The row stays for ever: it is what tells that the number is used.
///
/// # Example
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ordid_core::{clock::{Clock, SystemClock}, coordination::{AsyncNodeAllocator, LeaseTerms}};
/// use ordid_sqlx::SqlDisposableNode;
/// use sqlx::{Sqlite, sqlite::SqliteConnectOptions};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("shop.sqlite");
/// let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
/// let nodes = SqlDisposableNode::<Sqlite>::new(options, LeaseTerms::new(0..1 << 22)?);
/// nodes.create().await?; // once, as a migration
///
/// let grant = nodes.acquire(SystemClock.now(), None).await?;
/// let next = nodes.acquire(SystemClock.now(), None).await?;
/// assert_eq!((grant.node(), next.node()), (1, 2));
/// # Ok(())
/// # }
/// ```
pub struct SqlDisposableNode<DB: Backend> {
    store: Store<DB>,
    nodes: DisposableNodes<DB::Dialect>,
}

in_a_table!(SqlDisposableNode, DisposableNodes);

impl<DB: Backend> SqlDisposableNode<DB> {
    /// Returns the statement that makes the table. Run it once, as a migration; never delete rows.
    pub fn create_sql(&self) -> String {
        self.nodes.create_sql()
    }

    /// Makes the table: as [`create_sql`](Self::create_sql).
    ///
    /// # Errors
    ///
    /// What the database says.
    pub async fn create(&self) -> Result<(), Error> {
        self.run(self.create_sql()).await
    }
}

impl<DB: Backend> AsyncNodeAllocator for SqlDisposableNode<DB> {
    async fn acquire(&self, now: Timestamp, last: Option<Timestamp>) -> Result<Grant, Error> {
        self.nodes.acquire(&self.store, now, last).await
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
