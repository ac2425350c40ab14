//! The unit of work: entities of many types, inserted, updated and deleted together.

use std::time::Duration;

use mysql_async::{Conn, Pool, Transaction, prelude::Queryable as _};
use ordid_core::storage::dialect::MySql;
use ordid_sql::{
    EngineProfile, FlushDialect as _, Flushed, PreparedOrphan, Recovered, Sharded, Work,
    spi::TransactionScope,
};

use crate::{
    Error,
    binder::{Binder, Entity},
    connection::{PoolSource, on},
};

#[doc = ordid_sql::documentation!(unit_of_work)]
///
/// An entity is any struct with `#[derive(OrderedKey)]` whose key type names a column; each type's rows are kept in one
/// `Vec`.
///
#[doc = ordid_sql::documentation!(circles)]
///
#[doc = ordid_sql::documentation!(updates)]
/// Two rows cannot exchange unique values, since MySQL and MariaDB check these row by row.
///
/// # Example: what would be sent
///
/// ```
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// use ordid_mysql_async::UnitOfWork;
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7, mysql_async)]
/// struct OrderId(Uuid);
///
/// #[derive(OrderedKey)]
/// #[ordid(table = "orders")]
/// struct Order { #[ordid(key)] id: OrderId, total: i64 }
///
/// let mut work = UnitOfWork::new();
/// for total in [1250, 990] {
///     work.add(Order { id: OrderId::generate(), total });
/// }
/// let plan = work.plan()?;
/// assert_eq!(
///     &*plan.tables[0].statements[0].sql,
///     "INSERT INTO `orders` (`id`, `total`) VALUES (?, ?), (?, ?)"
/// );
/// # Ok::<(), ordid_mysql_async::Error>(())
/// ```
///
/// # Example: something without a key does not get in
///
/// ```compile_fail
/// struct Loose { name: String }
///
/// fn flush(work: &mut ordid_mysql_async::UnitOfWork) {
///     work.add(Loose { name: String::new() });
/// }
/// ```
#[doc(alias("bulk insert", "batch insert", "upsert", "insert many"))]
pub struct UnitOfWork(Work<Binder>);

ordid_sql::work_settings! { impl[] UnitOfWork, Binder }
ordid_sql::work_entities! { impl[] UnitOfWork, Entity }
ordid_sql::work_plan! { impl[] UnitOfWork, EngineProfile::MYSQL, Error }

impl UnitOfWork {
    #[doc = ordid_sql::documentation!(flush)]
    ///
    /// # Retries
    ///
    /// A flush that may succeed another time ([`is_transient`](crate::FlushError::is_transient),
    /// [`is_connection_lost`](crate::FlushError::is_connection_lost)) is rolled back and tried again, with the same
    /// keys, as often as [`with_retry`](Self::with_retry) says. The connection goes back to the pool meanwhile; one
    /// that was lost is closed. A pool without a free connection waits without an end, unless
    /// [`with_deadline`](Self::with_deadline) bounds all attempts and waits together.
    ///
    #[doc = ordid_sql::documentation!(unknown_commits)]
    ///
    /// # Dropping the future
    ///
    /// If the future is dropped, nothing is written: the connection is closed, so the server rolls back, and the
    /// entities stay in the unit of work. If it is dropped while it waits for the answer to COMMIT, all rows are
    /// written or none, as after a lost answer. The next `flush` then begins by asking the database, unless entities
    /// were added.
    ///
    #[doc = ordid_sql::documentation!(flush_errors)]
    ///
    /// If the pool resets no connections and lends one with a transaction open, it is not touched
    /// ([`is_connection_state`](crate::FlushError::is_connection_state)).
    pub async fn flush(&mut self, pool: &Pool) -> Result<Flushed, Error> {
        let source = PoolSource::of(pool);
        self.0.flush(source, TransactionScope::Transaction).await
    }

    /// As [`flush`](Self::flush), over one connection: in a transaction of its own there, and empty afterwards.
    ///
    /// # Retries
    ///
    /// After a failure that may pass and leaves the connection usable
    /// ([`is_transient`](crate::FlushError::is_transient)), the flush is tried again over the same connection. A lost
    /// connection is an error: [`is_connection_lost`](crate::FlushError::is_connection_lost), or
    /// [`is_commit_unknown`](crate::FlushError::is_commit_unknown) where COMMIT had been sent. The entities stay either
    /// way, with their keys. Flush them over another connection or a pool: where COMMIT is unknown, that flush begins
    /// by asking whether they are there.
    ///
    /// # A transaction that is open already
    ///
    /// It is not touched: [`is_connection_state`](crate::FlushError::is_connection_state). The BEGIN of the flush would commit
    /// it, so the server is asked before, by one round trip more. To write inside a transaction, there is
    /// [`flush_in`](Self::flush_in).
    ///
    /// # A query of yours that was dropped
    ///
    /// If the future of one of your queries was dropped before its end, its answer is still due on the connection. The same
    /// question to the server shows it, before anything is written: the flush fails with
    /// [`is_connection_lost`](crate::FlushError::is_connection_lost), and the connection is closed, but for the first flush of
    /// a process (see the [crate's documentation](crate)).
    ///
    /// # Dropping the future
    ///
    /// If the future is dropped, the connection is closed. Otherwise mysql_async would take the answer that is under
    /// way for the answer to the next statement.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush), and that a transaction is open.
    pub async fn flush_on(&mut self, conn: &mut Conn) -> Result<Flushed, Error> {
        self.0.flush(on(conn), TransactionScope::Transaction).await
    }

    #[doc = ordid_sql::documentation!(flush_in)]
    /// The savepoint is called `ordid_flush`. Dropped before its end, it closes the connection, so that the server rolls all
    /// of the transaction back.
    ///
    /// As [`flush_on`](Self::flush_on), it first asks the server, by one round trip more, whether the answer to a query of
    /// yours that was dropped is still due. If so, the connection is lost and closed, and the transaction with it.
    ///
    #[doc = ordid_sql::documentation!(flush_in_errors)]
    pub async fn flush_in(&mut self, transaction: &mut Transaction<'_>) -> Result<Flushed, Error> {
        let source = on(transaction);
        self.0.flush(source, TransactionScope::Savepoint).await
    }
}

#[doc = ordid_sql::documentation!(journaled)]
#[cfg(feature = "journal")]
pub struct Journaled(ordid_sql::Journaled<Binder>);

#[cfg(feature = "journal")]
ordid_sql::work_journal! { impl[] UnitOfWork, Journaled, Entity, Error }

#[doc = ordid_sql::documentation!(sharded_parts)]
///
/// What must be written together belongs to one shard. Where that cannot be, there is
/// [`two_phase_commit`](Self::two_phase_commit), which has its price.
///
#[doc = ordid_sql::documentation!(sharded_parents)]
/// # Example: orders live where their customer lives
///
/// ```no_run
/// use mysql_async::Pool;
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// use ordid_mysql_async::{ShardedUnitOfWork, Sharding};
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7, mysql_async)]
/// struct CustomerId(Uuid);
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7, mysql_async)]
/// struct OrderId(Uuid);
///
/// #[derive(OrderedKey)]
/// struct Order { #[ordid(key)] id: OrderId, customer: CustomerId, total: i64 }
///
/// async fn flush(pools: &[Pool; 2]) -> Result<(), Box<dyn std::error::Error>> {
///     let sharding = Sharding::by_hash(2)?.route(|order: &Order| order.customer);
///     let mut work = ShardedUnitOfWork::new(sharding);
///     work.add(Order { id: OrderId::generate(), customer: CustomerId::generate(), total: 1250 })?;
///     work.flush(pools).await?;
///     Ok(())
/// }
/// ```
pub struct ShardedUnitOfWork(Sharded<UnitOfWork>);

ordid_sql::sharded_unit_of_work! {
    impl[] ShardedUnitOfWork, UnitOfWork, Entity, EngineProfile::MYSQL, Error
}

impl ShardedUnitOfWork {
    /// Flushes each shard into its own database as [`UnitOfWork::flush`] does, the first shard into the first pool. All
    /// shards are flushed at the same time, each in its own transaction. Returns what was written for each shard. A
    /// shard without entities sends nothing.
    ///
    /// Dropping the future rolls back what is not committed yet. What is committed stays, and is taken out of the unit of
    /// work. With [`two_phase_commit`](Self::two_phase_commit), what is prepared stays so until the next flush of this unit of
    /// work or [`recover_prepared`](crate::recover_prepared) ends it.
    ///
    #[doc = ordid_sql::documentation!(sharded_errors)]
    pub async fn flush(&mut self, pools: &[Pool]) -> Result<Vec<Flushed>, Error> {
        self.0.flush(pools.iter().map(PoolSource::of)).await
    }
}

#[doc = ordid_sql::documentation!(flushes_table)]
/// It does nothing if the table exists.
///
/// # Example
///
/// ```
/// let sql = ordid_mysql_async::flushes_table();
/// assert!(sql.starts_with("CREATE TABLE IF NOT EXISTS ordid_flushes"));
/// ```
pub const fn flushes_table() -> &'static str {
    MySql::FLUSHES_TABLE
}

#[doc = ordid_sql::documentation!(create_flushes_table)]
/// # Errors
///
/// mysql_async's, such as a privilege that is missing.
pub async fn create_flushes_table(pool: &Pool) -> Result<(), mysql_async::Error> {
    pool.get_conn().await?.query_drop(flushes_table()).await
}

#[doc = ordid_sql::documentation!(remove_old_markers)]
/// # Errors
///
/// mysql_async's, and a table that [is missing](crate::FlushError::is_flushes_table_missing).
pub async fn remove_old_markers(pool: &Pool) -> Result<u64, Error> {
    ordid_sql::remove_old_markers(PoolSource::of(pool)).await
}

#[doc = ordid_sql::documentation!(detect_engine)]
/// # Errors
///
/// mysql_async's.
pub async fn detect_engine(pool: &Pool) -> Result<EngineProfile, Error> {
    ordid_sql::detect_engine(PoolSource::of(pool)).await
}

#[doc = ordid_sql::documentation!(prepared_orphans)]
/// # Errors
///
/// mysql_async's; a name that is none; and databases in another order than that of the flush.
pub async fn prepared_orphans(name: &str, pools: &[Pool]) -> Result<Vec<PreparedOrphan>, Error> {
    ordid_sql::prepared_orphans(pools.iter().map(PoolSource::of).collect(), name).await
}

#[doc = ordid_sql::documentation!(recover_prepared)]
/// # Errors
///
/// As [`prepared_orphans`], and what the databases refuse, as a privilege: MySQL needs `XA_RECOVER_ADMIN`. What was
/// recovered before stays so; do it again.
pub async fn recover_prepared(
    name: &str,
    pools: &[Pool],
    older_than: Duration,
) -> Result<Recovered, Error> {
    let sources = pools.iter().map(PoolSource::of).collect();
    ordid_sql::recover_prepared(sources, name, older_than).await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compiles: a handler of a web framework flushes inside a future that moves between threads.
    #[test]
    fn flushes_can_move_between_threads() {
        fn is_send<T: Send>(_: T) {}

        async fn flushes(
            work: &mut UnitOfWork,
            pool: &Pool,
            conn: &mut Conn,
            transaction: &mut Transaction<'_>,
        ) {
            is_send(work.flush(pool));
            is_send(work.flush_on(conn));
            is_send(work.flush_in(transaction));
            is_send(work);
        }

        let _ = flushes;
    }
}
