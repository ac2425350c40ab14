//! The unit of work: new entities of many types, inserted together.

mod locate;
mod plan;
mod statement;
mod stream;

use std::{
    fmt,
    time::{Duration, Instant},
};

use ordid_core::{
    EnsuredKey, KeyOf, KeyType,
    entity::SchemeOf,
    generator::Generator,
    unit_of_work::{Batches, Chunk, Flush, Generators, Plan, Step},
};
use sqlx::{Connection, Pool, Transaction};

pub use self::plan::{FlushPlan, PlannedStatement, PlannedTable};
use self::{
    locate::locate,
    statement::{Statements, bind, send},
    stream::prepare,
};
use crate::{
    backend::{Backend, Binder, BoxFuture, Entity},
    bulk::{Bulk, InStep, Lent},
    error::Error,
};

/// New entities, collected to be inserted in one transaction: parents before children, many rows a
/// statement, each table in the order of its keys.
///
/// The database is inferred from what it is flushed to. An entity is any struct with
/// `#[derive(OrderedKey)]`; each type's rows are kept in one `Vec`.
///
/// # Example: something without a key does not get in
///
/// ```compile_fail
/// struct Loose { name: String }
///
/// fn flush(work: &mut ordid_sqlx::UnitOfWork<sqlx::Sqlite>) {
///     work.add(Loose { name: String::new() });
/// }
/// ```
pub struct UnitOfWork<DB: Backend> {
    batches: Batches<Binder<DB>>,
    generators: Generators,
    observer: Option<Box<dyn FnMut(Progress) + Send>>,
}

/// What a flush wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flushed {
    /// The tables in the order in which they were written.
    pub tables: Vec<FlushedTable>,
}

/// What a flush wrote into one table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlushedTable {
    /// The table's name.
    pub table: &'static str,
    /// The rows written.
    pub rows: usize,
    /// How many of them went by `COPY`: see [`UnitOfWork::flush`].
    pub copied: usize,
    /// The statements that it took.
    pub statements: usize,
    /// The time spent on them, binding included.
    pub elapsed: Duration,
}

impl Flushed {
    /// Returns the number of rows written, over all tables.
    pub fn rows(&self) -> usize {
        self.tables.iter().map(|table| table.rows).sum()
    }
}

/// A chunk was sent; nothing is committed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The table's name.
    pub table: &'static str,
    /// The rows of this chunk.
    pub rows: usize,
}

impl<DB: Backend> UnitOfWork<DB> {
    /// Makes an empty unit of work.
    pub fn new() -> Self {
        Self {
            batches: Batches::new(),
            generators: Generators::new(),
            observer: None,
        }
    }

    /// Gives a generator for the keys of a type, which [`try_add`](Self::try_add) asks from now on:
    /// for schemes that take a node of your own, and for tests with a clock of their own. It stays
    /// over flushes. To share it, give an [`Arc`](std::sync::Arc) or a `&'static` of it.
    ///
    /// # Example
    ///
    #[cfg_attr(feature = "sqlite", doc = "```")]
    #[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
    /// use ordid::{KeyType, OrderedKey, clock::SystemClock, entropy::ThreadEntropy};
    /// use ordid::generator::{OrderedGenerator, Policy};
    /// use ordid::scheme::snowflake::SnowflakeNode;
    /// use ordid_sqlx::UnitOfWork;
    ///
    /// #[derive(KeyType, sqlx::Type)]
    /// #[sqlx(transparent)]
    /// #[ordid(scheme = snowflake)]
    /// struct OrderId(i64);
    ///
    /// #[derive(OrderedKey)]
    /// struct Order { id: Option<OrderId>, total: i64 }
    ///
    /// let node = SnowflakeNode::new(7)?; // this process's alone
    /// let generator =
    ///     OrderedGenerator::with_node(node, SystemClock, ThreadEntropy, Policy::DEFAULT);
    /// let mut work = UnitOfWork::<sqlx::Sqlite>::new().with_generator::<OrderId>(generator);
    /// let first = work.try_add(Order { id: None, total: 1250 })?;
    /// let second = work.try_add(Order { id: None, total: 990 })?;
    /// assert!(first < second);
    /// # Ok::<(), ordid::Error>(())
    /// ```
    #[must_use]
    pub fn with_generator<K: KeyType>(
        mut self,
        generator: impl Generator<Scheme = K::Scheme> + Send + Sync + 'static,
    ) -> Self {
        self.generators.insert::<K>(generator);
        self
    }

    /// Adds a new entity, assigns its key if it has none, and returns the key: children can refer
    /// to it at once. The order of adding does not matter.
    ///
    /// An entity whose key field is no `Option` has its key already. Where it is one, the key is
    /// made by the process's generator, and for schemes that have none this does not compile: see
    /// [`add_with`](Self::add_with) and [`try_add`](Self::try_add).
    ///
    /// # Panics
    ///
    /// As [`KeyType::generate`], for a key that is not assigned yet.
    pub fn add<E>(&mut self, mut entity: E) -> KeyOf<E>
    where
        E: Entity<DB>,
        E::Field: EnsuredKey,
    {
        let key = entity.ensure_key();
        self.batches.rows_mut::<E>().push(entity);
        key
    }

    /// As [`add`](Self::add); a missing key is made by this generator.
    ///
    /// # Errors
    ///
    /// As [`Generator::try_generate`]; the entity is not added.
    pub fn add_with<E, G>(
        &mut self,
        generator: &G,
        mut entity: E,
    ) -> Result<KeyOf<E>, ordid_core::Error>
    where
        E: Entity<DB>,
        G: Generator<Scheme = SchemeOf<E>>,
    {
        let key = entity.ensure_key_with(generator)?;
        self.batches.rows_mut::<E>().push(entity);
        Ok(key)
    }

    /// As [`add`](Self::add); a missing key is made by the generator that
    /// [`with_generator`](Self::with_generator) gave for its type.
    ///
    /// # Errors
    ///
    /// As [`Generator::try_generate`], and an error that [`is_plan`](ordid_core::Error::is_plan) if
    /// no generator was given; the entity is not added.
    pub fn try_add<E: Entity<DB>>(&mut self, mut entity: E) -> Result<KeyOf<E>, ordid_core::Error> {
        let key = self.generators.ensure_key(&mut entity)?;
        self.batches.rows_mut::<E>().push(entity);
        Ok(key)
    }

    /// Makes room for more entities of a type.
    pub fn reserve<E: Entity<DB>>(&mut self, additional: usize) {
        self.batches.rows_mut::<E>().reserve(additional);
    }

    /// Returns the entities of a type, in the order in which they were added.
    pub fn get<E: Entity<DB>>(&self) -> &[E] {
        self.batches.get()
    }

    /// Returns the number of entities, of all types.
    pub fn len(&self) -> usize {
        self.batches.len()
    }

    /// Returns whether there is nothing to flush.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Forgets all entities: after [`flush_in`](Self::flush_in), once the transaction is committed.
    pub fn clear(&mut self) {
        self.batches.clear();
    }

    /// Calls a function after each chunk of a flush, as for a progress bar.
    pub fn observe(&mut self, observer: impl FnMut(Progress) + Send + 'static) {
        self.observer = Some(Box::new(observer));
    }

    /// Inserts everything in one transaction of its own, and is empty afterwards. If it fails,
    /// nothing is written and nothing is lost: the same entities with the same keys are there to
    /// be flushed again.
    ///
    /// Dropping the future rolls back.
    ///
    /// # `COPY` on PostgreSQL
    ///
    /// A table with 1,000 rows or more is sent by `COPY` in binary form, which takes the server less
    /// than multi-row statements. The rows are the same, and so are the errors. What `COPY` would do
    /// in another way than `INSERT` is inserted: [`FlushedTable::copied`] tells.
    ///
    /// - Copied are values of built-in types that are the column's own. A value that has to be
    ///   cast, as `i32` in a `bigint` column, an array, an enum or a domain ends the copying.
    /// - Not copied are views and foreign tables, tables with rules, active row-level security or
    ///   triggers, columns that an `INSERT` may not set, and anything before PostgreSQL 12.
    /// - In a flush that copies, the server sends errors but neither notices nor warnings.
    /// - A flush dropped in the midst of a `COPY` closes its connection instead of giving it back to
    ///   the pool: SQLx cannot tell what will come over it next.
    /// - Many rows may be on their way when one is refused. [`Error::chunk`] and [`Error::key`] are
    ///   found as below; where they cannot be, [`Error::rows`] are all rows of the command.
    ///
    /// # Errors
    ///
    /// What [`plan`](Self::plan) finds, before anything is sent: among it a key that was added twice.
    /// Otherwise says which table, which chunk, and which row's key failed. To find the row, what was sent is
    /// sent once more up to it, in a transaction that is rolled back.
    pub async fn flush(&mut self, pool: &Pool<DB>) -> Result<Flushed, Error> {
        let mut lent = Lent::from(pool).await.map_err(Error::begin)?;
        let way = Way {
            begin: DB::BEGIN,
            in_step: Some(&lent.in_step),
        };
        let flushed = self.run(&mut lent.connection, way).await?;
        self.clear();
        Ok(flushed)
    }

    /// Inserts everything inside an open transaction, in a savepoint: if it fails, the transaction
    /// is as before. The entities stay until [`clear`](Self::clear), since only the caller knows
    /// when the transaction is committed.
    ///
    /// It never sends `COPY`: dropped in the midst of it, your connection could not be used again.
    ///
    /// What the database checks at COMMIT, as deferred constraints, is told by your commit, not here.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush), but never one that
    /// [`is_commit_unknown`](Error::is_commit_unknown): that question belongs to your commit.
    pub async fn flush_in(
        &mut self,
        transaction: &mut Transaction<'_, DB>,
    ) -> Result<Flushed, Error> {
        let way = Way {
            begin: None,
            in_step: None,
        };
        self.run(&mut *transaction, way).await
    }

    /// Finds the order of rows and tables.
    fn planned(&mut self) -> Result<Plan, Error> {
        Ok(self.batches.plan::<DB::Dialect>()?)
    }

    /// Boxed, because the compiler cannot tell otherwise that the future may move between threads.
    fn run<'a>(
        &'a mut self,
        connection: &'a mut DB::Connection,
        way: Way<'a>,
    ) -> BoxFuture<'a, Result<Flushed, Error>> {
        Box::pin(async move {
            let plan = self.planned()?;
            match self.execute(connection, way, &plan).await {
                Ok(flushed) => Ok(flushed),
                Err((mut error, Some(chunk))) if error.refuses_a_row() => {
                    let found = locate(&self.batches, connection, way.begin, &plan, &chunk);
                    if let Some((chunk, key)) = found.await {
                        error.set_row(chunk, key);
                    }
                    Err(error)
                }
                Err((error, _)) => Err(error),
            }
        })
    }

    /// Executes a plan; an error comes with the rows that it happened to, of the chunk or, where
    /// they were streamed, of several.
    async fn execute(
        &mut self,
        connection: &mut DB::Connection,
        way: Way<'_>,
        plan: &Plan,
    ) -> Result<Flushed, (Error, Option<Chunk>)> {
        let mut bulks = match way.in_step {
            Some(_) => prepare::<DB>(&self.batches.tables(), connection).await,
            None => plan.tables().map(|_| None).collect(),
        };
        let streams = bulks.iter().any(Option::is_some);
        let begin = DB::Bulk::BEGIN.filter(|_| streams).or(way.begin);
        let mut flushed = Flushed::default();
        let mut flush = Flush::new(plan.clone());
        let mut statements = Statements::new(&self.batches);
        let mut failure = None;
        let mut bound = None;
        let mut current = None;
        // The machine's first step is always to begin.
        let begun = begin_with::<DB>(connection, begin).await;
        let mut transaction = match begun {
            Ok(transaction) => {
                flush.succeeded();
                Some(transaction)
            }
            Err(error) => return Err((Error::begin(error), None)),
        };
        loop {
            match (flush.step(), &mut transaction) {
                (Step::Send(chunk), Some(open)) => {
                    if current.replace(chunk.table) != Some(chunk.table) {
                        flushed.begin(self.batches.table(chunk.table).name());
                    }
                    if let Some(in_step) = way.in_step
                        && let Some(bulk) = bulks[chunk.table].take()
                    {
                        let streamed =
                            self.stream(&mut **open, bulk, &mut flush, &mut flushed, in_step);
                        if let Err((error, rows)) = streamed.await {
                            flush.failed();
                            failure = Some((error, Some(rows)));
                        }
                        continue;
                    }
                    let started = Instant::now();
                    let now = match bound.take() {
                        Some(bound) => bound,
                        None => bind(&self.batches, &chunk, &mut statements),
                    };
                    // While the database works on this chunk, the next one is bound.
                    let sent = send(&mut **open, now, || {
                        let next = flush.upcoming();
                        let next = next.filter(|next| bulks[next.table].is_none());
                        bound = next.map(|next| bind(&self.batches, &next, &mut statements));
                    });
                    match sent.await {
                        Ok(()) => {
                            flush.succeeded();
                            flushed.count(chunk.rows.len(), 0, 1, started.elapsed());
                            self.report(&chunk);
                        }
                        Err(error) => {
                            flush.failed();
                            failure = Some((error, Some(chunk)));
                        }
                    }
                }
                (Step::Commit, open) => match open.take() {
                    Some(open) => match open.commit().await {
                        Ok(()) => flush.succeeded(),
                        Err(error) => {
                            flush.failed();
                            failure = Some((way.not_committed(error), None));
                        }
                    },
                    None => flush.failed(),
                },
                (Step::Rollback, open) => {
                    // A connection out of step will be closed, which rolls back as well.
                    if let Some(open) = open.take()
                        && !way.in_step.is_some_and(InStep::is_lost)
                    {
                        // Its own failure says no more: the server drops what is not committed.
                        let _ = open.rollback().await;
                    }
                    flush.succeeded();
                }
                (Step::Done { committed: true }, _) => return Ok(flushed),
                (_, _) => break,
            }
        }
        Err(failure.unwrap_or_else(|| (Error::begin(sqlx::Error::WorkerCrashed), None)))
    }

    fn report(&mut self, chunk: &Chunk) {
        if let Some(observer) = &mut self.observer {
            observer(Progress {
                table: self.batches.table(chunk.table).name(),
                rows: chunk.rows.len(),
            });
        }
    }
}

/// What differs between a flush of its own and one in the user's transaction.
#[derive(Clone, Copy)]
struct Way<'a> {
    begin: Option<&'static str>,
    /// Whose connection is closed should it get out of step, so that rows can be streamed. `None` in
    /// the user's transaction.
    in_step: Option<&'a InStep>,
}

impl Way<'_> {
    /// What SQLx calls a commit is the release of a savepoint inside the user's transaction.
    fn not_committed(self, error: sqlx::Error) -> Error {
        match self.in_step {
            Some(_) => Error::commit(error),
            None => Error::release(error),
        }
    }
}

impl<DB: Backend> Default for UnitOfWork<DB> {
    fn default() -> Self {
        Self::new()
    }
}

impl<DB: Backend> fmt::Debug for UnitOfWork<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.batches, f)
    }
}

impl Flushed {
    fn begin(&mut self, table: &'static str) {
        self.tables.push(FlushedTable {
            table,
            rows: 0,
            copied: 0,
            statements: 0,
            elapsed: Duration::ZERO,
        });
    }

    /// Counts what was sent for the table that was begun last.
    fn count(&mut self, rows: usize, copied: usize, statements: usize, elapsed: Duration) {
        if let Some(table) = self.tables.last_mut() {
            table.rows += rows;
            table.copied += copied;
            table.statements += statements;
            table.elapsed += elapsed;
        }
    }
}

async fn begin_with<'c, DB: Backend>(
    connection: &'c mut DB::Connection,
    begin: Option<&'static str>,
) -> Result<Transaction<'c, DB>, sqlx::Error> {
    match begin {
        Some(begin) => connection.begin_with(begin).await,
        None => connection.begin().await,
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;

    /// Compiles: a handler of a web framework flushes inside a future that moves between threads.
    #[test]
    fn flushes_can_move_between_threads() {
        fn is_send<T: Send>(_: T) {}

        async fn flushes(
            work: &mut UnitOfWork<sqlx::Sqlite>,
            pool: &Pool<sqlx::Sqlite>,
            transaction: &mut Transaction<'_, sqlx::Sqlite>,
        ) {
            is_send(work.flush(pool));
            is_send(work.flush_in(transaction));
            is_send(work);
        }

        let _ = flushes;
    }
}
