//! One unit of work over several databases.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::future::join_all;
use ordid_core::{
    EnsuredKey, KeyOf, KeyType,
    entity::SchemeOf,
    generator::Generator,
    unit_of_work::{FlushPlan, Flushed, Generators, Plan, Progress, Retry, Sharding},
};
use sqlx::Pool;

use crate::{
    Error,
    backend::{Backend, BoxFuture, Entity},
    unit_of_work::UnitOfWork,
};

/// New entities of which each goes to one of several databases, split by key: a [`UnitOfWork`] for
/// each shard of a [`Sharding`].
///
/// # What is atomic
///
/// - **One shard's part is**: its rows are one transaction of that database, all of them or none.
/// - **The whole is not.** Parts are committed each for itself, in no order. If one fails, the others
///   are committed all the same; whoever reads meanwhile may find the rows of one shard and not yet
///   those of another.
/// - **What failed stays**, with the same keys, and what was committed is taken out. So flushing again
///   sends what is left, and when that succeeds, every row is there exactly once. A part whose COMMIT
///   had no answer, and of which the database could not be asked, stays too, and is asked for then:
///   [`Error::is_commit_unknown`] of its error tells.
///
/// There is no two-phase commit. PostgreSQL has it switched off
/// (`max_prepared_transactions` is 0) and SQLite not at all; where it is on, a program that dies between
/// the two phases leaves locks that nobody takes away. What must be written together belongs to one
/// shard: route it by one key.
///
/// # What the databases cannot check
///
/// A foreign key ends at its database, so a row's parents have to be on its shard; the database refuses
/// a row whose parent is elsewhere.
///
/// Rows to which those of all shards refer, such as airlines or countries, are on each of them: of a type
/// that the sharding has [everywhere](Sharding::everywhere), each shard gets a copy of what is added, updated
/// or deleted, under the same key. As the whole is not atomic, the copies differ where a part failed, until
/// flushing again succeeds.
///
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
pub struct ShardedUnitOfWork<DB: Backend> {
    sharding: Sharding,
    generators: Generators,
    shards: Vec<UnitOfWork<DB>>,
    watch: Option<Arc<Mutex<Watch>>>,
}

/// How far the flushes of all shards are.
struct Watch {
    observer: Box<dyn FnMut(usize, Progress) + Send>,
    /// The rows sent and to send, of each shard.
    rows: Vec<(usize, usize)>,
}

impl Watch {
    fn of(watch: &Mutex<Self>) -> MutexGuard<'_, Self> {
        // An observer that panicked is called again all the same.
        watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A chunk of a shard was sent.
    fn report(&mut self, shard: usize, mut progress: Progress) {
        self.rows[shard] = (progress.done, progress.total);
        progress.done = self.rows.iter().map(|(done, _)| done).sum();
        progress.total = self.rows.iter().map(|(_, total)| total).sum();
        (self.observer)(shard, progress);
    }
}

impl<DB: Backend> ShardedUnitOfWork<DB> {
    /// Makes an empty unit of work for as many databases as the sharding has.
    pub fn new(sharding: Sharding) -> Self {
        Self {
            shards: (0..sharding.shards()).map(|_| UnitOfWork::new()).collect(),
            generators: Generators::new(),
            watch: None,
            sharding,
        }
    }

    /// Gives a generator for the keys of a type: as [`UnitOfWork::with_generator`].
    #[must_use]
    pub fn with_generator<K: KeyType>(
        mut self,
        generator: impl Generator<Scheme = K::Scheme> + Send + Sync + 'static,
    ) -> Self {
        self.generators.insert::<K>(generator);
        self
    }

    /// Says how often and after how long each shard is tried again: as [`UnitOfWork::with_retry`].
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        let shards = self.shards.into_iter();
        self.shards = shards.map(|work| work.with_retry(retry)).collect();
        self
    }

    /// Has each shard's flush write a row of its own, also where it only inserts: as
    /// [`UnitOfWork::with_record`].
    #[must_use]
    pub fn with_record(mut self) -> Self {
        let shards = self.shards.into_iter();
        self.shards = shards.map(UnitOfWork::with_record).collect();
        self
    }

    /// Calls a function after each chunk of a flush, as for a progress bar: with the shard's number, the
    /// chunk's table and rows, and the rows sent so far and to send over all shards. A shard that is
    /// tried again tells of its rows anew.
    pub fn observe(&mut self, observer: impl FnMut(usize, Progress) + Send + 'static) {
        let watch = Arc::new(Mutex::new(Watch {
            observer: Box::new(observer),
            rows: vec![(0, 0); self.shards.len()],
        }));
        for (shard, work) in self.shards.iter_mut().enumerate() {
            let watch = Arc::clone(&watch);
            work.observe(move |progress| Watch::of(&watch).report(shard, progress));
        }
        self.watch = Some(watch);
    }

    /// Adds a new entity to its shard, after assigning its key if it has none, and returns the key: as
    /// [`UnitOfWork::add`]. One that belongs [everywhere](Sharding::everywhere) is added to each shard.
    ///
    /// # Errors
    ///
    /// As [`Sharding::shard_of`], where it is not known which shard is the entity's; it is not added.
    ///
    /// # Panics
    ///
    /// As [`KeyType::generate`], for a key that is not assigned yet.
    pub fn add<E>(&mut self, mut entity: E) -> Result<KeyOf<E>, ordid_core::Error>
    where
        E: Entity<DB>,
        E::Field: EnsuredKey,
    {
        entity.ensure_key();
        self.try_add(entity)
    }

    /// As [`add`](Self::add); a missing key is made by this generator.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add) and [`Generator::try_generate`].
    pub fn add_with<E, G>(
        &mut self,
        generator: &G,
        mut entity: E,
    ) -> Result<KeyOf<E>, ordid_core::Error>
    where
        E: Entity<DB>,
        G: Generator<Scheme = SchemeOf<E>>,
    {
        entity.ensure_key_with(generator)?;
        self.try_add(entity)
    }

    /// As [`add`](Self::add); a missing key is made by the generator that
    /// [`with_generator`](Self::with_generator) gave for its type.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add) and [`UnitOfWork::try_add`].
    pub fn try_add<E: Entity<DB>>(&mut self, mut entity: E) -> Result<KeyOf<E>, ordid_core::Error> {
        let key = self.generators.ensure_key(&mut entity)?;
        self.place(entity, |work, entity| work.try_add(entity).map(drop))?;
        Ok(key)
    }

    /// Does the same on the entity's shard or, with a copy for each, on all.
    fn place<E: Entity<DB>>(
        &mut self,
        entity: E,
        mut place: impl FnMut(&mut UnitOfWork<DB>, E) -> Result<(), ordid_core::Error>,
    ) -> Result<(), ordid_core::Error> {
        let Some(copy) = self.sharding.copy_of::<E>() else {
            let shard = self.sharding.shard_of(&entity)?;
            return place(&mut self.shards[shard], entity);
        };
        self.shards
            .iter_mut()
            .try_for_each(|work| place(work, copy(&entity)))
    }

    /// Adds an entity whose row will be updated: as [`UnitOfWork::update`], on the shard that the
    /// entity belongs to now, or on [all](Sharding::everywhere). A row does not move: one that belongs to another shard than before is a
    /// missing row there. Delete it here and add it there, which is not atomic.
    ///
    /// # Errors
    ///
    /// As [`Sharding::shard_of`].
    pub fn update<E: Entity<DB>>(&mut self, entity: E) -> Result<(), ordid_core::Error> {
        self.place(entity, |work, entity| {
            work.update(entity);
            Ok(())
        })
    }

    /// Adds an entity whose row will be deleted: as [`UnitOfWork::delete`], on the shard that the
    /// entity belongs to, or on [all](Sharding::everywhere).
    ///
    /// # Errors
    ///
    /// As [`Sharding::shard_of`].
    pub fn delete<E: Entity<DB>>(&mut self, entity: &E) -> Result<(), ordid_core::Error> {
        if self.sharding.copy_of::<E>().is_some() {
            self.shards.iter_mut().for_each(|work| work.delete(entity));
            return Ok(());
        }
        let shard = self.sharding.shard_of(entity)?;
        self.shards[shard].delete(entity);
        Ok(())
    }

    /// Returns by what rows are spread.
    pub const fn sharding(&self) -> &Sharding {
        &self.sharding
    }

    /// Returns the units of work of the shards: what each of them has still to be flushed.
    pub fn shards(&self) -> &[UnitOfWork<DB>] {
        &self.shards
    }

    /// Returns the number of entities, of all types and shards; one that is everywhere counts on each.
    pub fn len(&self) -> usize {
        self.shards.iter().map(UnitOfWork::len).sum()
    }

    /// Returns whether there is nothing to flush.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all entities of all shards.
    pub fn clear(&mut self) {
        self.shards.iter_mut().for_each(UnitOfWork::clear);
    }

    /// Returns what a flush would send to each shard: as [`UnitOfWork::plan`].
    ///
    /// # Errors
    ///
    /// As [`UnitOfWork::plan`], of the first shard that cannot be planned.
    pub fn plan(&mut self) -> Result<Vec<FlushPlan>, Error> {
        self.shards.iter_mut().map(UnitOfWork::plan).collect()
    }

    /// Flushes each shard into its own database, the first into the first pool, each in a transaction of
    /// its own: as [`UnitOfWork::flush`]. Says what each of them wrote. A shard without entities is not
    /// asked for anything.
    ///
    /// The shards are flushed at the same time: none of them waits for another, since they share neither
    /// rows nor connections, and each database works by itself while the others do. No task is
    /// spawned; values are bound by the thread that polls.
    ///
    /// Dropping the future rolls back what is not committed yet. What is committed stays, and is taken
    /// out of the unit of work.
    ///
    /// # Errors
    ///
    /// What [`plan`](Self::plan) finds, and another number of pools than of shards: then nothing was
    /// sent to any of them. Otherwise [`Error::shards`] says what became of each: the parts of the
    /// shards that succeeded are committed, and those of the others are there to be flushed again.
    pub async fn flush(&mut self, pools: &[Pool<DB>]) -> Result<Vec<Flushed>, Error> {
        self.sharding.check_databases(pools.len())?;
        // Before anything is sent: what one shard would refuse to plan must not leave the others done.
        let plans = self.shards.iter_mut().map(UnitOfWork::planned);
        let plans: Vec<Plan> = plans.collect::<Result<_, _>>()?;
        if let Some(watch) = &self.watch {
            Watch::of(watch).rows = plans.iter().map(|plan| (0, plan.rows())).collect();
        }
        let flushes = self.shards.iter_mut().zip(pools).map(|(work, pool)| {
            let flush: BoxFuture<'_, Result<Flushed, Error>> = Box::pin(async move {
                if work.is_empty() {
                    return Ok(Flushed::default());
                }
                work.flush(pool).await
            });
            flush
        });
        let outcomes = join_all(flushes).await;
        if outcomes.iter().any(Result::is_err) {
            return Err(Error::of_shards(outcomes));
        }
        Ok(outcomes.into_iter().flatten().collect())
    }
}

/// The tables of each shard and their numbers of rows.
impl<DB: Backend> fmt::Debug for ShardedUnitOfWork<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardedUnitOfWork")
            .field("sharding", &self.sharding)
            .field("shards", &self.shards)
            .finish_non_exhaustive()
    }
}
