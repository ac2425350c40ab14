//! The unit of work: models of many entities, inserted, updated and deleted together.

mod execute;
mod open;
mod plan;
mod record;
mod statement;

use std::fmt;

use ordid_core::{
    EnsuredKey, KeyOf, KeyType, OrderedKey, Scheme,
    entity::SchemeOf,
    generator::Generator,
    storage::dialect,
    unit_of_work::{Batches, Doubt, Flushed, Generators, Plan, Progress, Retry},
};
use sea_orm::{
    ActiveValue, DatabaseConnection, DatabaseTransaction, DbBackend, EntityTrait, IntoActiveModel,
    Iterable as _,
};

use self::statement::Rows;
pub use self::{open::Begin, record::flushes_table};
pub(crate) use self::{
    open::{Open, begin, is_transaction},
    statement::inserts,
};
use crate::{
    Error,
    entity::{Binder, Entity, Names},
    failure::unknown_database,
};

/// Models of many entities, collected to be inserted, updated and deleted in one transaction: parents
/// before children, deletes the other way round, many rows an `INSERT`, each table in the order of its
/// keys.
///
/// It takes `Model`s and `ActiveModel`s of every entity whose `Model` has `#[derive(OrderedKey)]`. A
/// column of an `ActiveModel` that is `NotSet` is not written, so that the database's default holds.
/// Hooks of `ActiveModelBehavior` are not called, as `Entity::insert_many` calls none.
///
/// # Rows that refer to each other
///
/// Tables may refer to each other, and rows to rows of their own table. Where rows do so in a circle,
/// one of them is inserted with NULL in a foreign key that can be NULL, and an `UPDATE` sets it when
/// all are there; before they are deleted it is set to NULL. A foreign key that is declared
/// `#[ordid(parent, deferrable)]` needs neither on PostgreSQL and SQLite, which then check it at COMMIT.
/// A circle that has neither is an error that names it, before anything is sent.
///
/// A parent is found by its key type. Where that is a raw `Uuid`, name the parent's `ActiveModel`:
/// `#[ordid(parent = super::author::ActiveModel)]`.
///
/// # Updates and deletes
///
/// Each row has to be there: if one is not, nothing is written ([`Error::is_missing_row`]). Of an
/// `ActiveModel` an update sets what is `Set`. On PostgreSQL and SQLite (from 3.33 on) rows that follow
/// each other and set the same columns go by one `UPDATE`, on MySQL and MariaDB row by row. Rows are
/// updated after all inserts and deleted after that, so a unique value is not free for a new row before
/// the next flush.
#[derive(Default)]
pub struct UnitOfWork {
    batches: Batches<Binder>,
    /// Of each table, by its position in the batches.
    names: Vec<Names>,
    generators: Generators,
    observer: Option<Box<dyn FnMut(Progress) + Send>>,
    retry: Retry,
    /// Whether a flush that only inserts is recorded, too.
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

    /// Adds a new `Model` or `ActiveModel`, assigns its key if it has none, and returns the key: children
    /// can refer to it at once. The order of adding does not matter.
    ///
    /// For key types whose schemes have no generator for the process this does not compile: see
    /// [`add_with`](Self::add_with) and [`try_add`](Self::try_add).
    ///
    /// # Panics
    ///
    /// As [`KeyType::generate`], for a key that is not assigned yet.
    pub fn add<A: Entity>(&mut self, model: impl IntoActiveModel<A>) -> KeyOf<A>
    where
        <A as OrderedKey>::Field: EnsuredKey,
    {
        let mut model = model.into_active_model();
        let key = model.ensure_key();
        self.rows_mut::<A>().push(model);
        key
    }

    /// As [`add`](Self::add); a missing key is made by this generator.
    ///
    /// # Errors
    ///
    /// As [`Generator::try_generate`]; the model is not added.
    pub fn add_with<A, G>(
        &mut self,
        generator: &G,
        model: impl IntoActiveModel<A>,
    ) -> Result<KeyOf<A>, ordid_core::Error>
    where
        A: Entity,
        G: Generator<Scheme = SchemeOf<A>>,
    {
        let mut model = model.into_active_model();
        let key = model.ensure_key_with(generator)?;
        self.rows_mut::<A>().push(model);
        Ok(key)
    }

    /// As [`add`](Self::add); a missing key is made by the generator that
    /// [`with_generator`](Self::with_generator) gave for its type.
    ///
    /// # Errors
    ///
    /// As [`Generator::try_generate`], and an error that [`is_plan`](ordid_core::Error::is_plan) if
    /// no generator was given; the model is not added.
    pub fn try_add<A: Entity>(
        &mut self,
        model: impl IntoActiveModel<A>,
    ) -> Result<KeyOf<A>, ordid_core::Error> {
        let mut model = model.into_active_model();
        let key = self.generators.ensure_key(&mut model)?;
        self.rows_mut::<A>().push(model);
        Ok(key)
    }

    /// Adds a `Model` or `ActiveModel` whose row will be updated: all columns of a `Model`, those that
    /// are `Set` of an `ActiveModel`. That row must be there, otherwise nothing is written: see
    /// [`Error::is_missing_row`].
    ///
    /// The row is updated after all inserts, so it may refer to a new one. A model without a key, or
    /// with that of another update, an insert or a delete, is told by the flush.
    pub fn update<A: Entity>(&mut self, model: impl IntoActiveModel<A>) {
        let mut model = model.into_active_model();
        let columns = || <A::Entity as EntityTrait>::Column::iter();
        // What was a `Model` is unchanged throughout.
        if columns().all(|column| matches!(model.get(column), ActiveValue::Unchanged(_))) {
            model = model.reset_all();
        }
        self.rows_mut::<A>();
        self.batches.update(model);
    }

    /// Adds a `Model` or `ActiveModel` whose row will be deleted, by its key. That row must be there,
    /// otherwise nothing is written: see [`Error::is_missing_row`].
    ///
    /// Rows are deleted after all else, children before parents: only the key and the foreign keys
    /// count.
    pub fn delete<A: Entity>(&mut self, model: impl IntoActiveModel<A>) {
        self.rows_mut::<A>();
        self.batches.delete(&model.into_active_model());
    }

    fn rows_mut<A: Entity>(&mut self) -> &mut Vec<A> {
        self.changed();
        let names = &mut self.names;
        self.batches.rows_mut_with(|| {
            // Tables are known by the order in which their types come in.
            names.push(Names::of::<A>());
            <SchemeOf<A> as Scheme>::cmp
        })
    }

    /// With other rows it is another flush.
    fn changed(&mut self) {
        self.doubt = None;
    }

    /// Returns the models of an entity that will be inserted, in the order in which they were added.
    pub fn get<A: Entity>(&self) -> &[A] {
        self.batches.get()
    }

    /// Returns the number of models, of all entities.
    pub fn len(&self) -> usize {
        self.batches.len()
    }

    /// Returns whether there is nothing to flush.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Forgets all models: after [`flush_in`](Self::flush_in), once the transaction is committed.
    pub fn clear(&mut self) {
        self.changed();
        self.batches.clear();
        self.names.clear();
    }

    /// Calls a function after each chunk of a flush, as for a progress bar. A flush that is tried again
    /// tells of its rows anew.
    pub fn observe(&mut self, observer: impl FnMut(Progress) + Send + 'static) {
        self.observer = Some(Box::new(observer));
    }

    /// Writes everything in one transaction of its own, and is empty afterwards. If it fails,
    /// nothing is written and nothing is lost: the same models with the same keys are there to
    /// be flushed again.
    ///
    /// # Retries
    ///
    /// What another time may succeed ([`Error::is_transient`], [`Error::is_connection_lost`]) is rolled
    /// back and tried again, with the same keys, as often as [`with_retry`](Self::with_retry) says.
    ///
    /// If the answer to COMMIT is lost, the rows may be there. So the database is asked, over another
    /// connection, and the rows are sent once more only if they are not there: by the key of one of
    /// them, as they are there all or none. A flush with updates or deletes has a row of its own for
    /// this, in the table that [`flushes_table`](crate::flushes_table) declares, as has any with
    /// [`with_record`](Self::with_record). A database that is gone with its one connection, as SQLite's in
    /// memory, has nothing to be found.
    ///
    /// # Dropping the future
    ///
    /// It leaves nothing behind: the transaction is rolled back, and the models are still here. Dropped
    /// while it waits for the answer to COMMIT, it leaves all rows or none, like a lost answer; the next
    /// `flush` then begins by asking the database, unless models were added.
    ///
    /// **This takes the feature `runtime-tokio`**, by which the statement that is under way is carried to its
    /// end by Tokio, and rolled back then. SQLx 0.9 loses count of a transaction that is dropped while it
    /// begins, of PostgreSQL, MySQL and MariaDB, and of a statement of the latter two that is dropped while it
    /// is prepared; what the pool's next user writes over that connection is not committed then. SeaORM's
    /// own `begin` has the same gap.
    ///
    /// # Errors
    ///
    /// What cannot be planned, before anything is sent: among it a key that was added twice, and a circle
    /// that cannot be cut. Otherwise says what failed to be done, in which table, which chunk, and with
    /// which row's key. To find the row, what was sent is sent once more up to it, in a transaction that
    /// is rolled back.
    pub async fn flush(&mut self, db: &DatabaseConnection) -> Result<Flushed, Error> {
        self.flush_on(db).await
    }

    /// Writes everything inside an open transaction, in a savepoint: if it fails, the transaction
    /// is as before. The models stay until [`clear`](Self::clear), since only the caller knows
    /// when the transaction is committed.
    ///
    /// It is never tried again, as what came before it in the transaction would have to be done again,
    /// too: most databases end the whole transaction at a deadlock.
    ///
    /// What the database checks at COMMIT, as deferred constraints, is told by your commit, not here.
    ///
    /// Dropped before its end, it spoils the transaction: drop that too. SeaORM lends no connection that could
    /// be closed: on MySQL and MariaDB let a flush in a transaction of yours come to its end.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush), but never one that
    /// [`is_commit_unknown`](Error::is_commit_unknown): that question belongs to your commit.
    pub async fn flush_in(&mut self, transaction: &DatabaseTransaction) -> Result<Flushed, Error> {
        self.flush_on(transaction).await
    }

    /// Finds the order of rows and tables.
    fn planned(&mut self, backend: DbBackend) -> Result<Plan, Error> {
        Ok(match backend {
            DbBackend::Postgres => self.batches.plan::<dialect::Postgres>(),
            DbBackend::MySql => self.batches.plan::<dialect::MySql>(),
            DbBackend::Sqlite => self.batches.plan::<dialect::Sqlite>(),
            _ => return Err(unknown_database()),
        }?)
    }

    fn rows(&self) -> Rows<'_> {
        Rows {
            batches: &self.batches,
            names: &self.names,
        }
    }
}

impl fmt::Debug for UnitOfWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.batches, f)
    }
}
