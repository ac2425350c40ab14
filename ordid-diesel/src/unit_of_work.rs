//! The unit of work: entities of many types, inserted, updated and deleted together.

#[cfg(feature = "copy")]
mod copy;
mod locate;
mod plan;
mod run;
#[cfg(feature = "async")]
mod run_async;
mod statement;

use std::fmt;

use diesel::connection::LoadConnection;
use ordid_core::{
    EnsuredKey, KeyOf, KeyType, Scheme as _,
    entity::SchemeOf,
    generator::Generator,
    storage::Stores as _,
    unit_of_work::{Batches, Doubt, Flushed, Generators, Plan, Progress, Retry},
};

pub(crate) use self::statement::Statement;
use self::{
    run::{Made, One},
    statement::{Shape, Shapes, TableOf},
};
use crate::{
    Error,
    backend::Backend,
    entity::{Binder, Entity},
    stored::{DieselColumn, StoredAs},
};

/// Entities, collected to be inserted, updated and deleted in one transaction: parents before children,
/// deletes the other way round, many rows a statement, each table in the order of its stored keys.
///
/// The backend is inferred from the connection that it is flushed over: any `Connection` of Diesel's,
/// also one of a pool. An entity is any struct with `#[derive(OrderedKey)]` and `#[ordid(diesel)]`
/// beside its `#[diesel(table_name = ...)]`; each type's rows are kept in one `Vec`.
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
/// before the next flush. PostgreSQL and SQLite (from 3.33 on) take many rows an `UPDATE`; MySQL and
/// MariaDB are sent one for each row.
///
/// # Example: something without a key does not get in
///
/// ```compile_fail
/// struct Loose { name: String }
///
/// fn flush(work: &mut ordid_diesel::UnitOfWork<diesel::sqlite::Sqlite>) {
///     work.add(Loose { name: String::new() });
/// }
/// ```
pub struct UnitOfWork<DB: Backend> {
    batches: Batches<Binder<DB>>,
    /// What is known of each table, in the order of [`Batches::tables`].
    shapes: Vec<&'static TableOf<DB>>,
    generators: Generators,
    observer: Option<Box<dyn FnMut(Progress) + Send>>,
    retry: Retry,
    /// Whether each flush writes a row of its own.
    records: bool,
    /// What an earlier flush left behind that does not know what became of its COMMIT.
    doubt: Option<Doubt>,
}

impl<DB: Backend> UnitOfWork<DB> {
    /// Makes an empty unit of work.
    pub fn new() -> Self {
        Self {
            batches: Batches::new(),
            shapes: Vec::new(),
            generators: Generators::new(),
            observer: None,
            retry: Retry::DEFAULT,
            records: false,
            doubt: None,
        }
    }

    /// Says how often a flush is tried and how long it waits in between; [`Retry::DEFAULT`] unless this
    /// is called. See [`flush`](Self::flush).
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Has each flush write a row of its own, in the table that [`flushes_table`] declares, also one that
    /// only inserts.
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

    /// With other rows it is another flush.
    fn changed(&mut self) {
        self.doubt = None;
    }

    /// Rows go in the order of their stored keys, whatever is done with them, so that an insert appends
    /// to the index even where the column does not keep the keys' own order.
    fn rows_mut<E: Entity<DB>>(&mut self) -> &mut Vec<E> {
        self.changed();
        let shapes = &mut self.shapes;
        self.batches.rows_mut_with(|| {
            // Tables are known by the order in which their types come in.
            shapes.push(const { &TableOf::entity::<E>() });
            if <<KeyOf<E> as StoredAs<DB>>::Column as DieselColumn<DB, _>>::UNORDERED {
                <KeyOf<E> as StoredAs<DB>>::Column::compare
            } else {
                SchemeOf::<E>::cmp
            }
        })
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
        self.changed();
        self.batches.clear();
        self.shapes.clear();
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
    /// What another time may succeed on the same connection ([`Error::is_transient`]) is rolled back and
    /// tried again, with the same keys, as often as [`with_retry`](Self::with_retry) says; this thread
    /// sleeps in between. Where the connection is lost it is over: see
    /// [`flush_with`](Self::flush_with), or flush again over another one. That begins with the question
    /// whether the rows are there, if it was the answer to COMMIT that was lost
    /// ([`Error::is_commit_unknown`]).
    ///
    /// # In an open transaction
    ///
    /// It is refused, since it would be neither alone in it nor committed: call
    /// [`flush_in`](Self::flush_in). In a test transaction of Diesel's (`begin_test_transaction`) it is
    /// a savepoint, and not tried again.
    ///
    /// # Errors
    ///
    /// What can be known without a database, before anything is sent: a key that was added twice, a
    /// circle that cannot be broken. Otherwise says what failed to be done, in which table, which chunk,
    /// and with which row's key. To find the row, what was sent is sent once more up to it, in a
    /// transaction that is rolled back.
    pub fn flush<C>(&mut self, connection: &mut C) -> Result<Flushed, Error>
    where
        C: LoadConnection<Backend = DB> + 'static,
    {
        self.flush_over(One(connection))
    }

    /// As [`flush`](Self::flush), over connections that a function makes or takes from a pool: one at a
    /// time, given back while the flush waits. So a lost connection is no end: the flush goes on over
    /// another one.
    ///
    /// If the answer to COMMIT is lost, the rows may be there. So the database is asked, over another
    /// connection, and the rows are sent once more only if they are not there: by the key of one of
    /// them, as they are there all or none. A flush with updates or deletes has a row of its own for
    /// this, in the table that [`flushes_table`] declares, as has any with
    /// [`with_record`](Self::with_record).
    ///
    /// # Example
    ///
    #[cfg_attr(feature = "sqlite", doc = "```no_run")]
    #[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
    /// use diesel::{Connection, SqliteConnection};
    ///
    /// let mut work = ordid_diesel::UnitOfWork::new();
    /// // Likewise `|| PgConnection::establish(&url)`, or of a pool `|| pool.get()`.
    /// work.flush_with(|| SqliteConnection::establish("shop.db"))?;
    /// # Ok::<(), ordid_diesel::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush), and where the function fails as often as the flush is tried.
    pub fn flush_with<C, E, F>(&mut self, connect: F) -> Result<Flushed, Error>
    where
        C: LoadConnection<Backend = DB> + 'static,
        E: std::error::Error + Send + Sync + 'static,
        F: FnMut() -> Result<C, E>,
    {
        self.flush_over(Made {
            connect,
            open: None,
        })
    }

    /// Writes everything inside the connection's open transaction, in a savepoint: if it fails, the
    /// transaction is as before. The entities stay until [`clear`](Self::clear), since only the caller
    /// knows when the transaction is committed.
    ///
    /// It is never tried again, as what came before it in the transaction would have to be done again,
    /// too: most databases end the whole transaction at a deadlock.
    ///
    /// What the database checks at COMMIT, as deferred constraints, is told by your commit, not here.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush), but never one that
    /// [`is_commit_unknown`](Error::is_commit_unknown); and where no transaction is open.
    pub fn flush_in<C>(&mut self, connection: &mut C) -> Result<Flushed, Error>
    where
        C: LoadConnection<Backend = DB> + 'static,
    {
        self.flush_inside(connection)
    }

    /// As [`flush`](Self::flush), over a connection of diesel-async.
    ///
    /// # Dropping the future
    ///
    /// Until COMMIT is sent, nothing of it is ever committed: the connection's transaction manager is
    /// left in error, so that a pool closes it, and so should you. After that the outcome is in doubt:
    /// the next flush of the same entities, over another connection, begins with the question whether they
    /// are there.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush).
    #[cfg(feature = "async")]
    pub fn flush_async<'a, C>(
        &'a mut self,
        connection: &'a mut C,
    ) -> impl Future<Output = Result<Flushed, Error>> + Send + 'a
    where
        C: diesel_async::AsyncConnection<Backend = DB> + 'static,
    {
        self.flush_over_async(run_async::One(connection))
    }

    /// As [`flush_with`](Self::flush_with), over connections of diesel-async that a function makes or
    /// takes from a pool; as to dropping the future, see [`flush_async`](Self::flush_async).
    ///
    /// # Example
    ///
    /// ```no_run
    /// # async fn flush<C>(
    /// #     url: &str,
    /// #     work: &mut ordid_diesel::UnitOfWork<C::Backend>,
    /// # ) -> Result<(), ordid_diesel::Error>
    /// # where C: diesel_async::AsyncConnection<Backend: ordid_diesel::Backend> + 'static {
    /// // Likewise, of a pool, `|| pool.get()`.
    /// work.flush_with_async(|| C::establish(url)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`flush_with`](Self::flush_with).
    #[cfg(feature = "async")]
    pub fn flush_with_async<'a, C, E, F, W>(
        &'a mut self,
        connect: F,
    ) -> impl Future<Output = Result<Flushed, Error>> + Send + 'a
    where
        C: diesel_async::AsyncConnection<Backend = DB> + 'static,
        E: std::error::Error + Send + Sync + 'static,
        F: FnMut() -> W + Send + 'a,
        W: Future<Output = Result<C, E>> + Send + 'a,
    {
        self.flush_over_async(run_async::Made {
            connect,
            open: None,
        })
    }

    /// As [`flush_in`](Self::flush_in), over a connection of diesel-async; as to dropping the future, see
    /// [`flush_async`](Self::flush_async): it leaves a transaction that cannot be committed.
    ///
    /// # Errors
    ///
    /// As [`flush_in`](Self::flush_in).
    #[cfg(feature = "async")]
    pub fn flush_in_async<'a, C>(
        &'a mut self,
        connection: &'a mut C,
    ) -> impl Future<Output = Result<Flushed, Error>> + Send + 'a
    where
        C: diesel_async::AsyncConnection<Backend = DB> + 'static,
    {
        self.flush_inside_async(connection)
    }

    /// How the tables are named.
    fn shapes(&self) -> Shapes<DB> {
        Shapes::new(self.shapes.iter().map(|table| Shape::new(table)).collect())
    }

    /// Finds the order of rows and tables.
    fn planned(&mut self) -> Result<Plan, Error> {
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

/// Returns the `CREATE TABLE` of `ordid_flushes`, into which a flush with updates or deletes writes a row
/// in its own transaction: whether that row is there tells what became of a COMMIT whose answer was
/// lost. A flush that only inserts does without, unless it is [asked to](UnitOfWork::with_record).
///
/// Make it a migration. Rows are only looked for while their flush is under way: delete those of more
/// than a day at any time, by `flushed_at`.
pub const fn flushes_table<DB: Backend>() -> &'static str {
    DB::FLUSHES_TABLE
}
