//! One unit of work over several databases.

use diesel::connection::LoadConnection;
use ordid_sql::{Flushed, Sharded, spi::blocking};

use crate::{
    Error, backend::Backend, connection::engine, entity::Entity, unit_of_work::UnitOfWork,
};

/// New entities of which each goes to one of several databases, split by key: a [`UnitOfWork`] for each shard
/// of a [`Sharding`](crate::Sharding).
///
/// # What is atomic
///
/// - **One shard's part is**: its rows are one transaction of that database, all of them or none.
/// - **The whole is not.** Each part is committed by itself. If one fails, the others are committed all the
///   same; whoever reads meanwhile may find the rows of one shard and not yet those of another.
/// - **What failed stays**, with the same keys, and what was committed is taken out. So flushing again sends
///   what is left, and when that succeeds, every row is there exactly once. A part whose COMMIT had no answer,
///   and of which the database could not be asked, stays, too, and is asked for then:
///   [`Error::is_commit_unknown`] of its error says so.
///
/// There is no two-phase commit: a program that dies between the two phases leaves locks that nobody takes
/// away. What must be written together belongs to one shard: route it by one key.
///
/// # What the databases cannot check
///
/// A foreign key ends at its database, so a row's parents have to be on its shard; the database refuses a row
/// whose parent is elsewhere.
///
/// Rows to which those of all shards refer, such as airlines or countries, are on each of them: of a type that
/// the sharding has [everywhere](crate::Sharding::everywhere), each shard gets a copy of what is added, updated
/// or deleted, under the same key. As the whole is not atomic, the copies differ where a part failed, until
/// flushing again succeeds.
///
/// # Example: orders live where their customer lives
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
/// # use libsqlite3_sys as _;
/// use diesel::{connection::SimpleConnection, prelude::*};
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// use ordid_diesel::{ShardedUnitOfWork, Sharding};
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7, diesel)]
/// struct CustomerId(Uuid);
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7, diesel)]
/// struct OrderId(Uuid);
///
/// diesel::table! {
///     customers (id) { id -> Binary, name -> Text, }
/// }
/// diesel::table! {
///     orders (id) { id -> Binary, customer -> Binary, total -> BigInt, }
/// }
///
/// #[derive(OrderedKey)]
/// #[diesel(table_name = customers)]
/// #[ordid(diesel)]
/// struct Customer { id: CustomerId, name: String }
///
/// #[derive(OrderedKey)]
/// #[diesel(table_name = orders)]
/// #[ordid(diesel)]
/// struct Order { id: OrderId, #[ordid(parent)] customer: CustomerId, total: i64 }
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
    /// # Errors
    ///
    /// What [`plan`](Self::plan) finds, and another number of connections than of shards: then nothing was
    /// sent to any of them. Otherwise [`Error::shards`] says what became of each: the parts of the shards
    /// that succeeded are committed, and those of the others are there to be flushed again.
    pub fn flush<C>(&mut self, connections: &mut [C]) -> Result<Vec<Flushed>, Error>
    where
        C: LoadConnection<Backend = DB> + 'static,
    {
        let databases = connections.len();
        let mut connections: Vec<_> = connections.iter_mut().map(Some).collect();
        blocking(self.0.flush(engine::<DB>(), databases, |work, shard| {
            let connection = connections[shard].take();
            Box::pin(async move { work.flush(connection.expect("a shard is flushed once")) })
        }))
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
        let databases = self.sharding().shards();
        let connect = &connect;
        blocking(self.0.flush(engine::<DB>(), databases, |work, shard| {
            Box::pin(async move { work.flush_with(|| connect(shard)) })
        }))
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
        let databases = connections.len();
        let mut connections: Vec<_> = connections.iter_mut().map(Some).collect();
        self.0.flush(engine::<DB>(), databases, move |work, shard| {
            let connection = connections[shard].take();
            Box::pin(work.flush_async(connection.expect("a shard is flushed once")))
        })
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
        let databases = self.sharding().shards();
        self.0.flush(engine::<DB>(), databases, move |work, shard| {
            let connect = connect.clone();
            Box::pin(work.flush_with_async(move || connect(shard)))
        })
    }
}
