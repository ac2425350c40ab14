//! One unit of work over several databases.

use diesel::connection::LoadConnection;
use ordid_sql::{Flushed, Sharded, spi::blocking};

#[cfg(feature = "async")]
use crate::connection::Awaited;
use crate::{
    Error,
    backend::Backend,
    connection::{Blocking, Source, engine},
    entity::Entity,
    unit_of_work::UnitOfWork,
};

#[doc = ordid_sql::documentation!(sharded)]
/// # Example: orders live where their customer lives
///
/// The entities are those of the [crate's example](crate#example-a-graph-of-rows-in-one-transaction).
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
#[doc = include_str!("example_entities.md")]
/// use ordid_diesel::{ShardedUnitOfWork, Sharding};
///
/// let mut shards = [
///     SqliteConnection::establish(":memory:")?,
///     SqliteConnection::establish(":memory:")?,
/// ];
/// # for shard in &mut shards {
/// #     shard.batch_execute(
/// #         "CREATE TABLE customers (id BLOB NOT NULL PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID;
/// #          CREATE TABLE orders (id BLOB NOT NULL PRIMARY KEY,
/// #             customer BLOB NOT NULL REFERENCES customers (id), total INTEGER NOT NULL) WITHOUT ROWID",
/// #     )?;
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
/// let shard = &mut shards[sharding.shard(customer)?];
/// let total: i64 = orders::table
///     .filter(orders::customer.eq(customer))
///     .select(orders::total)
///     .first(shard)?;
/// assert_eq!(total, 1250);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ShardedUnitOfWork<DB: Backend>(Sharded<UnitOfWork<DB>>);

ordid_sql::sharded_unit_of_work! {
    impl[DB: Backend] ShardedUnitOfWork<DB>, UnitOfWork<DB>, Entity<DB>, engine::<DB>(), Error
}

impl<DB: Backend> ShardedUnitOfWork<DB> {
    /// Flushes each shard into its own database, the first over the first connection, each in a transaction
    /// of its own: as [`UnitOfWork::flush`], one after the other. Returns what each of them wrote. A shard
    /// without entities sends nothing.
    ///
    #[doc = ordid_sql::documentation!(sharded_errors)]
    pub fn flush<C>(&mut self, connections: &mut [C]) -> Result<Vec<Flushed>, Error>
    where
        C: LoadConnection<Backend = DB> + 'static,
    {
        let sources = connections.iter_mut().map(Source::<Blocking, C>::one);
        blocking(self.0.flush(sources))
    }

    /// As [`flush`](Self::flush), over connections that a function makes, or takes from a pool, for the shard
    /// with a number: as [`UnitOfWork::flush_with`].
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush) and [`UnitOfWork::flush_with`].
    pub fn flush_with<C, E, F>(&mut self, connect: F) -> Result<Vec<Flushed>, Error>
    where
        C: LoadConnection<Backend = DB> + 'static,
        E: std::error::Error + Send + Sync + 'static,
        F: Fn(usize) -> Result<C, E> + Send + Sync,
    {
        let (shards, connect) = (0..self.sharding().shards(), &connect);
        let sources = shards.map(|shard| Source::blocking(move || connect(shard)));
        blocking(self.0.flush(sources))
    }

    /// As [`flush`](Self::flush), over connections of diesel-async: all shards at the same time. As to dropping
    /// the future, see [`UnitOfWork::flush_async`]; what is committed stays, and is taken out of the unit of
    /// work.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush).
    #[cfg(feature = "async")]
    pub fn flush_async<'a, C>(
        &'a mut self,
        connections: &'a mut [C],
    ) -> impl Future<Output = Result<Vec<Flushed>, Error>> + Send + 'a
    where
        C: diesel_async::AsyncConnection<Backend = DB> + 'static,
    {
        let sources = connections.iter_mut().map(Source::<Awaited, C>::one);
        self.0.flush(sources)
    }

    /// As [`flush_async`](Self::flush_async), over connections that a function makes, or takes from a pool, for
    /// the shard with a number: as [`UnitOfWork::flush_with_async`].
    ///
    /// # Errors
    ///
    /// As [`flush_with`](Self::flush_with).
    #[cfg(feature = "async")]
    pub fn flush_with_async<'a, C, E, F, W>(
        &'a mut self,
        connect: F,
    ) -> impl Future<Output = Result<Vec<Flushed>, Error>> + Send + 'a
    where
        C: diesel_async::AsyncConnection<Backend = DB> + 'static,
        E: std::error::Error + Send + Sync + 'static,
        F: Fn(usize) -> W + Clone + Send + 'a,
        W: Future<Output = Result<C, E>> + Send + 'a,
    {
        let shards = 0..self.sharding().shards();
        self.0.flush(shards.map(move |shard| {
            let connect = connect.clone();
            Source::awaited(move || connect(shard))
        }))
    }
}
