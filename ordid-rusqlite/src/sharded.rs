//! One unit of work over several databases.

use std::{error::Error as StdError, ops::Deref};

use ordid_sql::{Flushed, Sharded, spi::blocking};
use rusqlite::Connection;

use crate::{
    Error,
    binder::Entity,
    connection::{ENGINE, made_by, on_connection},
    unit_of_work::UnitOfWork,
};

#[doc = ordid_sql::documentation!(sharded_parts)]
///
/// [`two_phase_commit`](Self::two_phase_commit) is refused, as SQLite has none: what must be written together belongs to
/// one shard.
///
#[doc = ordid_sql::documentation!(sharded_parents)]
/// # Example: orders live where their customer lives
///
/// The entities are those of the [crate's example](crate#example-a-graph-of-rows-in-one-transaction).
///
/// ```
#[doc = include_str!("example_entities.md")]
/// use ordid_rusqlite::{ShardedUnitOfWork, Sharding};
/// use rusqlite::Connection;
///
/// let mut shards = [Connection::open_in_memory()?, Connection::open_in_memory()?];
/// # for shard in &shards {
/// #     shard.execute_batch(TABLES)?;
/// # }
/// // A customer is found by its own key, an order by its customer's.
/// let sharding = Sharding::by_hash(2)?.route(|order: &Order| order.customer);
///
/// let mut work = ShardedUnitOfWork::new(sharding.clone());
/// let customer = work.add(Customer { id: CustomerId::generate(), name: "Ada".into() })?;
/// work.add(Order { id: OrderId::generate(), customer, total: 1250 })?;
/// let flushed = work.flush(&mut shards)?;
/// assert_eq!(flushed.iter().map(|shard| shard.rows()).sum::<usize>(), 2);
///
/// let shard = &shards[sharding.shard(customer)?];
/// let of_customer = "SELECT total FROM orders WHERE customer = ?";
/// let total: i64 = shard.query_row(of_customer, [customer], |row| row.get(0))?;
/// assert_eq!(total, 1250);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ShardedUnitOfWork(Sharded<UnitOfWork>);

ordid_sql::sharded_unit_of_work! {
    impl[] ShardedUnitOfWork, UnitOfWork, Entity, ENGINE, Error
}

impl ShardedUnitOfWork {
    /// Flushes each shard into its own database, the first over the first connection, one after the other: as
    /// [`UnitOfWork::flush`]. Returns what each of them wrote. A shard without entities sends nothing.
    ///
    #[doc = ordid_sql::documentation!(sharded_errors)]
    pub fn flush(&mut self, connections: &mut [Connection]) -> Result<Vec<Flushed>, Error> {
        blocking(self.0.flush(connections.iter_mut().map(on_connection)))
    }

    /// As [`flush`](Self::flush), over connections that this function opens, or takes from a pool, for the shard with a
    /// number: as [`UnitOfWork::flush_with`].
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush) and [`UnitOfWork::flush_with`].
    pub fn flush_with<C, E>(
        &mut self,
        connect: impl Fn(usize) -> Result<C, E> + Send + Sync,
    ) -> Result<Vec<Flushed>, Error>
    where
        C: Deref<Target = Connection> + Send,
        E: StdError + Send + Sync + 'static,
    {
        let (shards, connect) = (0..self.sharding().shards(), &connect);
        blocking(
            self.0
                .flush(shards.map(|shard| made_by(move || connect(shard)))),
        )
    }
}
