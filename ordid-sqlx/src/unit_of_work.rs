//! The unit of work: entities of many types, inserted, updated and deleted together.

mod begin;
mod execute;
mod journal;
mod locate;
mod plan;
mod record;
mod statement;
mod stream;

use std::fmt;

use ordid_core::{
    EnsuredKey, KeyOf, KeyType,
    entity::SchemeOf,
    generator::Generator,
    unit_of_work::{Batches, Doubt, Flushed, Generators, Plan, Progress, Retry},
};
use sqlx::{Connection, Database, Pool, Transaction};

#[cfg(feature = "journal")]
pub use self::journal::Journaled;
use self::journal::Keeper;
pub use self::record::flushes_table;
use crate::{
    Error,
    backend::{Backend, Binder, Entity},
};

/// Entities, collected to be inserted, updated and deleted in one transaction: parents before children,
/// deletes the other way round, many rows a statement, each table in the order of its stored keys.
///
/// The database is inferred from what it is flushed to. An entity is any struct with
/// `#[derive(OrderedKey)]`; each type's rows are kept in one `Vec`.
///
/// # Rows that refer to each other
///
/// Tables may refer to each other, and rows to rows of their own table. Where rows do so in a circle,
/// one of them is inserted with NULL in a foreign key that can be NULL, and an `UPDATE` sets it when
/// all are there; before they are deleted it is set to NULL. A foreign key that is declared
/// `#[ordid(parent, deferrable)]` needs neither on PostgreSQL and SQLite, which then check it at COMMIT.
/// A circle that has neither is an error that names it, before anything is sent.
///
/// # Updates and deletes
///
/// Each row has to be there: if one is not, nothing is written ([`Error::is_missing_row`]). Rows are
/// updated after all inserts and deleted after that, so a unique value is not free for a new row
/// before the next flush. PostgreSQL and SQLite (from 3.33 on) take many rows an `UPDATE`, and a value
/// arrives as by an `INSERT`; MySQL and MariaDB are sent one for each row, which takes as many round
/// trips. Two rows cannot exchange unique values, since these are checked row by row.
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
    retry: Retry,
    /// Whether a flush that only inserts is recorded, too.
    records: bool,
    /// What an earlier flush left behind that does not know what became of its COMMIT.
    doubt: Option<Doubt>,
    keeper: Keeper<DB>,
}

impl<DB: Backend> UnitOfWork<DB> {
    /// Makes an empty unit of work.
    pub fn new() -> Self {
        Self {
            batches: Batches::new(),
            generators: Generators::new(),
            observer: None,
            retry: Retry::DEFAULT,
            records: false,
            doubt: None,
            keeper: Keeper::new(),
        }
    }

    /// Says how often a flush is tried and how long it waits in between; [`Retry::DEFAULT`] unless this
    /// is called. See [`flush`](Self::flush).
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Has each flush write a row of its own, in the table that
    /// [`flushes_table`](crate::flushes_table) declares, also one that only inserts.
    ///
    /// If the answer to COMMIT is lost, a flush that only inserts looks for one of its rows, and a row that
    /// somebody deleted meanwhile is inserted again. Where others delete rows that are so new, this is the
    /// remedy; it costs a statement a flush.
    #[must_use]
    pub fn with_record(mut self) -> Self {
        self.records = true;
        self
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
        self.rows_mut::<E>().push(entity);
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
        self.rows_mut::<E>().push(entity);
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
        self.rows_mut::<E>().push(entity);
        Ok(key)
    }

    /// Adds an entity whose row will be updated: all its columns, in the row that has its key. That
    /// row must be there, otherwise nothing is written: see [`Error::is_missing_row`].
    ///
    /// The row is updated after all inserts, so it may refer to a new one. An entity without a key, or
    /// with that of another update, an insert or a delete, is told by the flush.
    ///
    /// # Example
    ///
    #[cfg_attr(feature = "sqlite", doc = "```")]
    #[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use ordid::{KeyType, OrderedKey, uuid::Uuid};
    /// use ordid_sqlx::UnitOfWork;
    ///
    /// #[derive(OrderedKey, sqlx::FromRow)]
    /// #[ordid(table = "accounts")]
    /// struct Account { id: Uuid, balance: i64 }
    ///
    /// let pool = sqlx::SqlitePool::connect("sqlite::memory:").await?;
    /// sqlx::raw_sql("CREATE TABLE accounts (id BLOB PRIMARY KEY, balance INTEGER NOT NULL)")
    ///     .execute(&pool)
    ///     .await?;
    /// let mut transaction = pool.begin().await?;
    /// let mut work = UnitOfWork::new();
    /// let first = work.add(Account { id: Uuid::generate(), balance: 10 });
    /// let second = work.add(Account { id: Uuid::generate(), balance: 0 });
    /// work.flush_in(&mut transaction).await?;
    /// work.clear();
    ///
    /// work.update(Account { id: second, balance: 10 });
    /// work.delete(&Account { id: first, balance: 10 });
    /// work.flush_in(&mut transaction).await?;
    /// transaction.commit().await?;
    /// let left: Vec<Account> = sqlx::query_as("SELECT * FROM accounts").fetch_all(&pool).await?;
    /// assert_eq!((left.len(), left[0].id, left[0].balance), (1, second, 10));
    /// # Ok(())
    /// # }
    /// ```
    pub fn update<E: Entity<DB>>(&mut self, entity: E) {
        self.rows_mut::<E>();
        self.batches.update(entity);
    }

    /// Adds an entity whose row will be deleted, by its key. That row must be there, otherwise nothing
    /// is written: see [`Error::is_missing_row`].
    ///
    /// Rows are deleted after all else, children before parents: only the key and the foreign keys of
    /// the entity count.
    pub fn delete<E: Entity<DB>>(&mut self, entity: &E) {
        self.rows_mut::<E>();
        self.batches.delete(entity);
    }

    /// Makes room for more entities of a type.
    pub fn reserve<E: Entity<DB>>(&mut self, additional: usize) {
        self.rows_mut::<E>().reserve(additional);
    }

    /// Rows go in the order of their stored keys, whatever is done with them, so that an insert appends
    /// to the index even where the column does not keep the keys' own order.
    fn rows_mut<E: Entity<DB>>(&mut self) -> &mut Vec<E> {
        // With other rows it is another flush.
        self.doubt = None;
        self.batches.rows_mut_with(E::__stored_order)
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
        self.doubt = None;
        self.keeper.released();
        self.batches.clear();
    }

    /// Calls a function after each chunk of a flush, as for a progress bar. A flush that is tried again
    /// tells of its rows anew.
    pub fn observe(&mut self, observer: impl FnMut(Progress) + Send + 'static) {
        self.observer = Some(Box::new(observer));
    }

    /// Writes everything in one transaction of its own, and is empty afterwards. If it fails,
    /// nothing is written and nothing is lost: the same entities with the same keys are there to
    /// be flushed again.
    ///
    /// # Retries
    ///
    /// What another time may succeed ([`Error::is_transient`], [`Error::is_connection_lost`]) is rolled
    /// back and tried again, with the same keys, as often as [`with_retry`](Self::with_retry) says. The
    /// connection goes back to the pool meanwhile; one that was lost is closed. A server that is away for
    /// longer than the pool's `acquire_timeout` ends the flush: the pool has waited itself.
    ///
    /// If the answer to COMMIT is lost, the rows may be there. So the database is asked, over another
    /// connection, and the rows are sent once more only if they are not there: by the key of one of
    /// them, as they are there all or none. A flush with updates or deletes has a row of its own for
    /// this, in the table that [`flushes_table`](crate::flushes_table) declares, as has any with
    /// [`with_record`](Self::with_record).
    ///
    /// # Dropping the future
    ///
    /// It leaves nothing behind: the transaction is rolled back, and the entities are still here. MySQL's
    /// and MariaDB's connection is closed for it, as SQLx loses count of a transaction that is dropped
    /// while it begins.
    /// Dropped while it waits for the answer to COMMIT, it leaves all rows or none, like a lost answer;
    /// the next `flush` then begins by asking the database, unless entities were added.
    ///
    /// # `COPY` on PostgreSQL
    ///
    /// A table with 1,000 rows or more is sent by `COPY` in binary form, which takes the server less
    /// than multi-row statements. The rows are the same, and so are the errors. What `COPY` would do
    /// in another way than `INSERT` is inserted: [`FlushedTable::bulk`](crate::FlushedTable::bulk) tells.
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
    /// Otherwise says what failed to be done, in which table, which chunk, and with which row's key. To
    /// find the row, what was sent is sent once more up to it, in a transaction that is rolled back.
    pub async fn flush(&mut self, pool: &Pool<DB>) -> Result<Flushed, Error> {
        self.flush_to(pool).await
    }

    /// As [`flush`](Self::flush), over one connection: in a transaction of its own there, and empty
    /// afterwards.
    ///
    /// ```text
    /// work.flush_on(&mut connection).await?;       // PgConnection, MySqlConnection, SqliteConnection
    /// work.flush_on(&mut *pool_connection).await?; // PoolConnection
    /// ```
    ///
    /// # Retries
    ///
    /// What another time may succeed and leaves the connection whole ([`Error::is_transient`]) is tried
    /// again over it. One that is lost is an error: [`Error::is_connection_lost`], or
    /// [`Error::is_commit_unknown`] where COMMIT had been sent. The entities stay either way, with their
    /// keys. Flush them over another connection or a pool: where COMMIT is unknown, that flush begins by
    /// asking whether they are there.
    ///
    /// # A transaction that is open already
    ///
    /// It is not touched, and nothing is sent: [`Error::is_connection_state`]. MySQL and MariaDB would
    /// commit it by the BEGIN of the flush, so they are asked before, as is PostgreSQL: one round trip
    /// more. There, a connection with `autocommit = 0` counts as one with a transaction open. To write
    /// inside a transaction, there is [`flush_in`](Self::flush_in).
    ///
    /// # Dropping the future
    ///
    /// On PostgreSQL and SQLite the transaction is rolled back before anything else that is sent over the
    /// connection, and it can be used on. **MySQL's and MariaDB's connection must not be used again**, close
    /// or drop it, which rolls back: SQLx 0.9 loses count there of a statement that is dropped while it is
    /// prepared, and of a transaction that is dropped while it begins. Of a pool's connection
    /// [`close_on_drop`](sqlx::pool::PoolConnection::close_on_drop) sees to that; a `flush` over the pool does
    /// it itself.
    ///
    /// Rows never go by `COPY`: dropped in the midst of it, your connection could not be used again.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush), and that a transaction is open.
    pub async fn flush_on<C>(&mut self, connection: &mut C) -> Result<Flushed, Error>
    where
        C: Connection<Database = DB>,
        DB: Database<Connection = C>,
    {
        self.flush_over(connection).await
    }

    /// Writes everything inside an open transaction, in a savepoint: if it fails, the transaction
    /// is as before. The entities stay until [`clear`](Self::clear), since only the caller knows
    /// when the transaction is committed.
    ///
    /// It is never tried again, as what came before it in the transaction would have to be done again,
    /// too: most databases end the whole transaction at a deadlock.
    ///
    /// It never sends `COPY`: dropped in the midst of it, your connection could not be used again.
    ///
    /// Dropped before its end, it spoils the transaction: drop that too, and close the connection. Where a
    /// savepoint is dropped while it begins, SQLx 0.9 rolls back all of the transaction and its `commit` says
    /// nothing; where it is dropped while it ends, PostgreSQL's next statement gets an error that is not its
    /// own; and of MySQL, [`flush_on`](Self::flush_on) tells.
    ///
    /// What the database checks at COMMIT, as deferred constraints, is told by your commit, not here.
    /// Where the flush had to defer them ([`FlushPlan::defers`](crate::FlushPlan::defers)), they stay
    /// deferred until then, all that can be.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush), but never one that
    /// [`is_commit_unknown`](Error::is_commit_unknown): that question belongs to your commit, whose error
    /// leaves the outcome open where it is none of the database's
    /// ([`as_database_error`](sqlx::Error::as_database_error)).
    pub async fn flush_in(
        &mut self,
        transaction: &mut Transaction<'_, DB>,
    ) -> Result<Flushed, Error> {
        self.flush_inside(transaction).await
    }

    /// Finds the order of rows and tables.
    pub(crate) fn planned(&mut self) -> Result<Plan, Error> {
        Ok(self.batches.plan::<DB::Dialect>()?)
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
            connection: &mut sqlx::SqliteConnection,
            transaction: &mut Transaction<'_, sqlx::Sqlite>,
        ) {
            is_send(work.flush(pool));
            is_send(work.flush_on(connection));
            is_send(work.flush_in(transaction));
            is_send(work);
        }

        let _ = flushes;
    }
}
