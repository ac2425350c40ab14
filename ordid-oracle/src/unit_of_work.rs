//! The unit of work: entities of many types, inserted, updated and deleted together.

mod execute;
mod plan;
mod record;
mod statement;
mod transaction;

use std::fmt;

use oracle::Connection;
use ordid_core::{
    EnsuredKey, KeyOf, KeyType,
    entity::SchemeOf,
    generator::Generator,
    storage::{Stores, dialect::Oracle},
    unit_of_work::{Batches, Doubt, Flushed, Generators, Plan, Progress, Retry},
};

pub use self::record::flushes_table;
use self::transaction::Connections;
use crate::{
    binder::{Binder, Entity},
    error::Error,
    stored::StoredAs,
};

/// Entities, collected to be inserted, updated and deleted in one transaction: parents before children,
/// deletes the other way round, each table in the order in which Oracle sorts its keys, up to 1,000
/// rows a round trip by array binds.
///
/// An entity is any struct with `#[derive(OrderedKey)]`; each type's rows are kept in one `Vec`.
///
/// # Rows that refer to each other
///
/// Tables may refer to each other, and rows to rows of their own table. Where rows do so in a circle,
/// one of them is inserted with NULL in a foreign key that can be NULL, and an `UPDATE` sets it when
/// all are there; before they are deleted it is set to NULL. A foreign key that is declared
/// `#[ordid(parent, deferrable)]` needs neither: it is checked at COMMIT. A circle that has neither is
/// an error that names it, before anything is sent.
///
/// # Updates and deletes
///
/// Each row has to be there: if one is not, nothing is written ([`is_missing_row`](crate::FlushError::is_missing_row)). Rows are
/// updated after all inserts and deleted after that, so a unique value is not free for a new row
/// before the next flush. Two rows cannot exchange unique values, since each is an `UPDATE` of its own
/// to Oracle, of which it takes 1,000 at once.
///
/// Such a flush first writes a row of its own, which tells whether it was committed, into the table
/// that [`flushes_table`](crate::flushes_table) declares.
///
/// # Example: something without a key does not get in
///
/// ```compile_fail
/// struct Loose { name: String }
///
/// fn flush(work: &mut ordid_oracle::UnitOfWork) {
///     work.add(Loose { name: String::new() });
/// }
/// ```
#[derive(Default)]
pub struct UnitOfWork {
    batches: Batches<Binder>,
    generators: Generators,
    observer: Option<Box<dyn FnMut(Progress) + Send>>,
    retry: Retry,
    records: bool,
    /// What an earlier flush left behind that does not know what became of its COMMIT.
    doubt: Option<Doubt>,
}

impl UnitOfWork {
    /// Makes an empty unit of work.
    pub fn new() -> Self {
        Self::default()
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
        E: Entity,
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
        E: Entity,
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
    pub fn try_add<E: Entity>(&mut self, mut entity: E) -> Result<KeyOf<E>, ordid_core::Error> {
        let key = self.generators.ensure_key(&mut entity)?;
        self.rows_mut::<E>().push(entity);
        Ok(key)
    }

    /// Adds an entity whose row will be updated: all its columns, in the row that has its key. That
    /// row must be there, otherwise nothing is written: see [`is_missing_row`](crate::FlushError::is_missing_row).
    ///
    /// The row is updated after all inserts, so it may refer to a new one. An entity without a key, or
    /// with that of another update, an insert or a delete, is told by the flush.
    pub fn update<E: Entity>(&mut self, entity: E) {
        self.rows_mut::<E>();
        self.batches.update(entity);
    }

    /// Adds an entity whose row will be deleted, by its key. That row must be there, otherwise nothing
    /// is written: see [`is_missing_row`](crate::FlushError::is_missing_row).
    ///
    /// Rows are deleted after all else, children before parents: only the key and the foreign keys of
    /// the entity count.
    pub fn delete<E: Entity>(&mut self, entity: &E) {
        self.rows_mut::<E>();
        self.batches.delete(entity);
    }

    /// Makes room for more entities of a type.
    pub fn reserve<E: Entity>(&mut self, additional: usize) {
        self.rows_mut::<E>().reserve(additional);
    }

    /// Returns the entities of a type, in the order in which they were added.
    pub fn get<E: Entity>(&self) -> &[E] {
        self.batches.get::<E>()
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
        self.batches.clear();
    }

    /// Calls a function after each chunk of a flush, as for a progress bar. A flush that is tried again
    /// tells of its rows anew.
    pub fn observe(&mut self, observer: impl FnMut(Progress) + Send + 'static) {
        self.observer = Some(Box::new(observer));
    }

    /// Writes everything in one transaction of its own on this connection, and is empty afterwards. If
    /// it fails, nothing is written and nothing is lost: the same entities with the same keys are
    /// there to be flushed again.
    ///
    /// # Retries
    ///
    /// What another time may succeed on the same connection ([`is_transient`](crate::FlushError::is_transient)), as a deadlock or
    /// a serialization failure, is rolled back and tried again, with the same keys, as often as
    /// [`with_retry`](Self::with_retry) says; this thread sleeps in between. Where the connection is
    /// lost ([`is_connection_lost`](crate::FlushError::is_connection_lost)) it is over: connect anew, and flush again.
    /// [`flush_with`](Self::flush_with) does that itself.
    ///
    /// If the answer to COMMIT is lost, the rows may be there ([`is_commit_unknown`](crate::FlushError::is_commit_unknown)). The next
    /// flush then begins by asking the database, unless entities were added.
    ///
    /// # Errors
    ///
    /// What [`plan`](Self::plan) finds, before anything is sent. Otherwise says what failed
    /// to be done, in which table, which chunk, and with which row's key. A connection that commits by
    /// itself, or with a transaction open, is refused ([`is_connection_state`](crate::FlushError::is_connection_state)): Oracle begins
    /// a transaction with the first statement that needs one, and what was done before would be
    /// committed with the flush.
    pub fn flush(&mut self, connection: &Connection) -> Result<Flushed, Error> {
        Ok(self.flush_over(Connections::One(connection))?)
    }

    /// As [`flush`](Self::flush), over a connection that this function makes, or a pool lends. It is
    /// called once, and again after a connection was lost.
    ///
    /// So a lost connection is no end: what was sent is sent again over another, with the same keys. If
    /// the answer to COMMIT is lost, the rows may be there. Then the database is asked, over another
    /// connection, and the rows are sent once more only if they are not there: by the key of one of
    /// them, as they are there all or none. A flush with updates or deletes has a row of its own for
    /// this, in the table that [`flushes_table`](crate::flushes_table) declares.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush), and what the function returns. One that may pass, as that there is no
    /// listener, is waited for as often as [`with_retry`](Self::with_retry) says.
    ///
    /// # Example
    ///
    /// ```no_run
    /// # use ordid::{KeyType, OrderedKey, uuid::Uuid};
    /// # #[derive(KeyType)]
    /// # #[ordid(scheme = uuid_v7, oracle)]
    /// # struct CityId(Uuid);
    /// # #[derive(OrderedKey)]
    /// # struct City { id: CityId }
    /// use ordid_oracle::UnitOfWork;
    ///
    /// let pool = oracle::pool::PoolBuilder::new("scott", "tiger", "//localhost/FREEPDB1").build()?;
    /// let mut work = UnitOfWork::new();
    /// work.add(City { id: CityId::generate() });
    /// work.flush_with(|| pool.get())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn flush_with<E: Into<Error>>(
        &mut self,
        mut connect: impl FnMut() -> Result<Connection, E>,
    ) -> Result<Flushed, Error> {
        Ok(self.flush_over(Connections::Made {
            connect: &mut || connect().map_err(|error| error.into().of_connecting()),
            open: None,
        })?)
    }

    /// Writes everything inside the connection's transaction, behind a savepoint: if it fails, the
    /// transaction is as before. Nothing is committed, and the entities stay until
    /// [`clear`](Self::clear), since only the caller knows when the transaction is committed.
    ///
    /// It is never tried again, as what came before it in the transaction may have to be done again.
    ///
    /// The savepoint is called `ordid_flush`. What the database checks at COMMIT, as deferred constraints,
    /// is told by your commit, not here. Where the flush had to defer them, they stay deferred until
    /// then, all that can be.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush), but for the open transaction, and never one that
    /// [`is_commit_unknown`](crate::FlushError::is_commit_unknown): that question belongs to your commit.
    pub fn flush_in(&mut self, connection: &Connection) -> Result<Flushed, Error> {
        Ok(self.flush_inside(connection)?)
    }

    /// Finds the order of rows and tables.
    fn planned(&mut self) -> Result<Plan, ordid_core::Error> {
        self.batches.plan::<Oracle>()
    }

    /// Rows are sent in the order of the stored values, which for `unordered(column)` is not that of
    /// the keys.
    fn rows_mut<E: Entity>(&mut self) -> &mut Vec<E> {
        // With other rows it is another flush.
        self.doubt = None;
        self.batches
            .rows_mut_by::<E>(<KeyOf<E> as StoredAs>::Column::compare)
    }
}

impl fmt::Debug for UnitOfWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.batches.fmt(f)
    }
}
