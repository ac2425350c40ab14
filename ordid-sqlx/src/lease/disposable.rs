//! Nodes that are used once: a number for each start, as in Baidu's UidGenerator.

use ordid_core::{
    Error,
    clock::Timestamp,
    coordination::{AsyncNodeAllocator, CoordinationFailure, Grant, LeaseTerms},
    storage::Dialect as _,
};
use sqlx::SqlStr;

use super::{Rows, time};
use crate::{
    backend::Backend,
    numbers::{Value, signed, statement, unsigned},
};

/// Gives each start a node that nobody had and nobody will have: the next number of a table.
///
/// The database counts from 1, so the range of the terms begins with 0 or 1.
///
/// Nothing waits for a lease to end, and a process that died leaves nothing behind; for that the numbers
/// are used up, one with each start. A layout with 22 bits for the node has 4,194,304, enough for a
/// thousand starts a day over 11 years. When they are used up there is an error
/// ([`NoFreeNode`](CoordinationFailure::NoFreeNode)), no second round.
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
    rows: Rows<DB>,
    now: SqlStr,
    insert: SqlStr,
}

in_a_table!(SqlDisposableNode, "ordid_disposable_nodes");

impl<DB: Backend> SqlDisposableNode<DB> {
    fn of(rows: Rows<DB>) -> Self {
        let insert = "INSERT INTO {t} (epoch, ceiling, expires) VALUES (1, ?, {now} + ?)";
        Self {
            now: statement::<DB>(&rows.table, "SELECT {now}"),
            insert: statement::<DB>(
                &rows.table,
                &format!("{insert}{}", (DB::TEXTS.returning)("node")),
            ),
            rows,
        }
    }

    /// Returns the statement that makes the table. Run it once, as a migration; never delete rows.
    pub fn create_sql(&self) -> String {
        format!(
            "CREATE TABLE IF NOT EXISTS {} (node {}, epoch BIGINT NOT NULL, ceiling BIGINT NOT NULL, \
             expires BIGINT NOT NULL){};",
            DB::Dialect::quote(&self.rows.table),
            DB::TEXTS.counted_key,
            DB::TEXTS.table_options,
        )
    }

    /// Makes the table: as [`create_sql`](Self::create_sql).
    ///
    /// # Errors
    ///
    /// What the database says.
    pub async fn create(&self) -> Result<(), Error> {
        self.rows.run(self.create_sql()).await
    }
}

impl<DB: Backend> AsyncNodeAllocator for SqlDisposableNode<DB> {
    async fn acquire(&self, now: Timestamp, last: Option<Timestamp>) -> Result<Grant, Error> {
        let nodes = self.rows.terms.nodes();
        let answer = self.rows.store.ask(&self.now, &[]).await?;
        let store_now = answer.row().map(|[now]| time(now));
        let (floor, ceiling) = self.rows.terms.range(None, now, last, store_now)?;
        let values = [signed(ceiling.as_unix_millis()), self.rows.ttl()];
        let inserted = self
            .rows
            .store
            .ask_once(&self.insert, &values.map(Value::Number))
            .await?;
        let node = inserted.returned().map(unsigned).ok_or_else(|| {
            let problem = "has not said which number it gave";
            self.rows.error(CoordinationFailure::Unavailable, problem)
        })?;
        if node >= nodes.end {
            return Err(self.rows.error(
                CoordinationFailure::NoFreeNode,
                &format!(
                    "is at number {node}, and the layout ends below {}: all are used up",
                    nodes.end
                ),
            ));
        }
        if node < nodes.start {
            return Err(self.rows.error(
                CoordinationFailure::Mismatch,
                &format!(
                    "gave number {node}, below the first of {nodes:?}: begin the range with 0"
                ),
            ));
        }
        Grant::new(node, 1, floor, ceiling)
    }

    async fn renew(&self, grant: &Grant, now: Timestamp) -> Result<Grant, Error> {
        self.rows.renew(grant, now).await
    }

    async fn release(&self, grant: &Grant, last: Option<Timestamp>) -> Result<(), Error> {
        self.rows.release(grant, last).await
    }

    fn terms(&self) -> &LeaseTerms {
        &self.rows.terms
    }
}
