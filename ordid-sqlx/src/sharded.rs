//! One unit of work over several databases.

use ordid_sql::{Flushed, Sharded};
use sqlx::Pool;

use crate::{
    Error,
    backend::{Backend, Entity},
    connection::Source,
    unit_of_work::UnitOfWork,
};

#[doc = ordid_sql::documentation!(sharded)]
/// # Example: orders live where their customer lives
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// use ordid_sqlx::{ShardedUnitOfWork, Sharding};
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7, sqlx)]
/// struct CustomerId(Uuid);
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7, sqlx)]
/// struct OrderId(Uuid);
///
/// #[derive(OrderedKey)]
/// #[ordid(table = "customers")]
/// struct Customer { #[ordid(key)] id: CustomerId, name: String }
///
/// #[derive(OrderedKey)]
/// #[ordid(table = "orders")]
/// struct Order { #[ordid(key)] id: OrderId, #[ordid(parent)] customer: CustomerId, total: i64 }
///
/// let pools = [
///     sqlx::SqlitePool::connect("sqlite::memory:").await?,
///     sqlx::SqlitePool::connect("sqlite::memory:").await?,
/// ];
/// # for pool in &pools {
/// #     sqlx::raw_sql(
/// #         "CREATE TABLE customers (id BLOB NOT NULL PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID;
/// #          CREATE TABLE orders (id BLOB NOT NULL PRIMARY KEY,
/// #             customer BLOB NOT NULL REFERENCES customers (id), total INTEGER NOT NULL) WITHOUT ROWID",
/// #     )
/// #     .execute(pool)
/// #     .await?;
/// # }
/// // A customer is found by its own key, an order by its customer's.
/// let sharding = Sharding::by_hash(2)?.route(|order: &Order| order.customer);
///
/// let mut work = ShardedUnitOfWork::new(sharding.clone());
/// let customer = work.add(Customer { id: CustomerId::generate(), name: "Ada".into() })?;
/// work.add(Order { id: OrderId::generate(), customer, total: 1250 })?;
/// let flushed = work.flush(&pools).await?;
/// assert_eq!(flushed.iter().map(|shard| shard.rows()).sum::<usize>(), 2);
///
/// let pool = &pools[sharding.shard(customer)?];
/// let total: i64 = sqlx::query_scalar("SELECT total FROM orders WHERE customer = ?")
///     .bind(customer)
///     .fetch_one(pool)
///     .await?;
/// assert_eq!(total, 1250);
/// # Ok(())
/// # }
/// ```
pub struct ShardedUnitOfWork<DB: Backend>(Sharded<UnitOfWork<DB>>);

ordid_sql::sharded_unit_of_work! {
    impl[DB: Backend] ShardedUnitOfWork<DB>, UnitOfWork<DB>, Entity<DB>, DB::PROFILE, Error
}

impl<DB: Backend> ShardedUnitOfWork<DB> {
    /// Flushes each shard into its own database, as [`UnitOfWork::flush`] does: the first shard into the first
    /// pool, and each shard in a transaction of its own. Returns what each shard wrote. To a shard without
    /// entities nothing is sent.
    ///
    /// The shards are flushed at the same time: they share neither rows nor connections, and each database works by itself
    /// while the others do. None of them waits for another, except in a [`two_phase_commit`](Self::two_phase_commit). No
    /// task is spawned; values are bound by the thread that polls.
    ///
    /// Dropping the future rolls back what is not committed yet. What is committed stays, and is taken
    /// out of the unit of work. With [`two_phase_commit`](Self::two_phase_commit), what is prepared stays so until the
    /// next flush of this unit of work or [`recover_prepared`](crate::recover_prepared) ends it.
    ///
    #[doc = ordid_sql::documentation!(sharded_errors)]
    pub async fn flush(&mut self, pools: &[Pool<DB>]) -> Result<Vec<Flushed>, Error> {
        self.0.flush(pools.iter().map(Source::of)).await
    }
}
