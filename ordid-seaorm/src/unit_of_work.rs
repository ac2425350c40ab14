//! The unit of work: models of many entities, inserted, updated and deleted together.

use ordid_core::{EnsuredKey, KeyOf, OrderedKey, entity::SchemeOf, generator::Generator};
use ordid_sql::{FlushPlan, Flushed, Work};
use sea_orm::{
    ActiveValue, DatabaseConnection, DatabaseTransaction, DbBackend, EntityTrait, IntoActiveModel,
    Iterable as _,
};

use crate::{
    Error,
    connection::{Begin, Source},
    entity::{Binder, Entity},
    failure::engine,
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
/// Tables may refer to each other, and rows to rows of their own table. If rows refer to each other in a
/// circle, one of them is inserted with NULL in a foreign key that can be NULL, and an `UPDATE` sets it after
/// all inserts; before they are deleted it is set to NULL. With a foreign key that is declared
/// `#[ordid(parent, deferrable)]` this is not necessary on PostgreSQL and SQLite, which then check it at
/// COMMIT. A circle without such a foreign key is an error that names it, before anything is sent.
///
/// A parent is found by its key type. Where that is a raw `Uuid`, name the parent's `ActiveModel`:
/// `#[ordid(parent = super::author::ActiveModel)]`.
///
/// # Updates and deletes
///
/// Each row has to be there: if one is not, nothing is written ([`Error::is_missing_row`]). An update sets
/// the columns of an `ActiveModel` that are `Set`. On PostgreSQL and SQLite (from 3.33 on) one `UPDATE` takes
/// the rows that follow each other and set the same columns; MySQL and MariaDB get an `UPDATE` for each row.
/// Rows are updated after all inserts and deleted after that, so a unique value is not free for a new row
/// before the next flush.
///
/// # What SeaORM does not have
///
/// SeaORM lends no single connection, so there is no flush over one. An `ActiveModel` does not implement
/// serde's `Serialize`, so there is no journal.
pub struct UnitOfWork(Work<Binder>);

ordid_sql::work_settings! { impl[] UnitOfWork, Binder }

impl UnitOfWork {
    /// Makes an empty unit of work.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a new `Model` or `ActiveModel`, assigns its key if it has none, and returns the key: children
    /// can refer to it at once. The order of adding does not matter.
    ///
    /// For key types whose schemes have no generator for the process this does not compile: see
    /// [`add_with`](Self::add_with) and [`try_add`](Self::try_add).
    ///
    /// # Panics
    ///
    /// As [`KeyType::generate`](ordid_core::KeyType::generate), for a key that is not assigned yet.
    pub fn add<A: Entity>(&mut self, model: impl IntoActiveModel<A>) -> KeyOf<A>
    where
        <A as OrderedKey>::Field: EnsuredKey,
    {
        self.0.add(model.into_active_model(), A::__register)
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
        self.0
            .add_with(generator, model.into_active_model(), A::__register)
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
        self.0.try_add(model.into_active_model(), A::__register)
    }

    /// Adds a `Model` or `ActiveModel` whose row will be updated: all columns of a `Model`, those that
    /// are `Set` of an `ActiveModel`. That row must be there, otherwise nothing is written: see
    /// [`Error::is_missing_row`].
    ///
    /// The row is updated after all inserts, so it may refer to a new one. `flush` fails if the model has no
    /// key, or if another pending change has the same key.
    pub fn update<A: Entity>(&mut self, model: impl IntoActiveModel<A>) {
        let mut model = model.into_active_model();
        let columns = || <A::Entity as EntityTrait>::Column::iter();
        // What was a `Model` is unchanged throughout.
        if columns().all(|column| matches!(model.get(column), ActiveValue::Unchanged(_))) {
            model = model.reset_all();
        }
        self.0.update(model, A::__register);
    }

    /// Adds a `Model` or `ActiveModel` whose row will be deleted, by its key. That row must be there,
    /// otherwise nothing is written: see [`Error::is_missing_row`].
    ///
    /// Rows are deleted after all else, children before parents: only the key and the foreign keys
    /// count.
    pub fn delete<A: Entity>(&mut self, model: impl IntoActiveModel<A>) {
        self.0.delete(&model.into_active_model(), A::__register);
    }

    /// Returns the models of an entity that will be inserted, in the order in which they were added.
    pub fn get<A: Entity>(&self) -> &[A] {
        self.0.rows().get()
    }

    /// Returns what a flush to a database of this kind would send: the tables in their order, parents
    /// first, and the statements of each, with their text. No database is asked, and nothing is taken
    /// out.
    ///
    /// Inserts come first. Where rows refer to each other in a circle, one of them is inserted with
    /// NULL there, and [`Action::FixUp`](ordid_sql::Action::FixUp) sets it afterwards.
    /// Then come updates, and at last deletes, children first.
    ///
    /// # Errors
    ///
    /// What can be known to fail without a database: a key that was added twice, tables or rows that
    /// refer to each other in a circle that cannot be broken, a row with more columns than a statement
    /// takes. All [`is_plan`](Error::is_plan). And a database that is not known here.
    ///
    /// # Example
    ///
    /// ```
    /// # mod author {
    /// # use ordid::{KeyType, OrderedKey, uuid::Uuid};
    /// # use sea_orm::entity::prelude::*;
    /// # #[derive(KeyType)]
    /// # #[ordid(sea_orm)]
    /// # pub struct AuthorId(Uuid);
    /// # #[derive(Clone, Debug, PartialEq, DeriveEntityModel, OrderedKey)]
    /// # #[sea_orm(table_name = "author")]
    /// # pub struct Model {
    /// #     #[sea_orm(primary_key, auto_increment = false)]
    /// #     pub id: AuthorId,
    /// #     pub name: String,
    /// # }
    /// # #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    /// # pub enum Relation {}
    /// # impl ActiveModelBehavior for ActiveModel {}
    /// # }
    /// use ordid_seaorm::UnitOfWork;
    /// use sea_orm::{ActiveValue::{NotSet, Set}, DbBackend};
    ///
    /// # fn main() -> Result<(), ordid_seaorm::Error> {
    /// let mut work = UnitOfWork::new();
    /// for name in ["Ada", "Grace"] {
    ///     work.add(author::ActiveModel { id: NotSet, name: Set(name.to_owned()) });
    /// }
    /// let plan = work.plan(DbBackend::Postgres)?;
    /// assert_eq!(
    ///     &*plan.tables[0].statements[0].sql,
    ///     r#"INSERT INTO "author" ("id", "name") VALUES ($1, $2), ($3, $4)"#
    /// );
    /// # Ok(())
    /// # }
    /// ```
    pub fn plan(&mut self, backend: DbBackend) -> Result<FlushPlan, Error> {
        Ok(self.0.plan(engine(backend)?)?)
    }

    /// Writes everything in one transaction of its own, and is empty afterwards. If it fails,
    /// nothing is written and nothing is lost: the same models with the same keys are there to
    /// be flushed again.
    ///
    /// # Retries
    ///
    /// A flush that fails for a reason that may pass ([`Error::is_transient`],
    /// [`Error::is_connection_lost`]) is rolled back and tried again, with the same keys, as often as
    /// [`with_retry`](Self::with_retry) says.
    ///
    /// If the answer to COMMIT is lost, the rows may be there. So the flush looks for one of them by its key,
    /// over another connection, and sends the rows again only if it is not there: they are there all or none. A
    /// flush with updates or deletes looks for a marker row instead, in the table that
    /// [`flushes_table`](crate::flushes_table) declares, and so does any with
    /// [`with_record`](Self::with_record). If the database is gone with its one connection, as SQLite's in
    /// memory, nothing is found.
    ///
    /// # Dropping the future
    ///
    /// A dropped flush is rolled back, and the models are still here. If it is dropped while it waits for the
    /// answer to COMMIT, all rows are there or none, as after a lost answer; the next `flush` then begins by
    /// asking the database, unless models were added.
    ///
    /// **This takes the feature `runtime-tokio`**: Tokio carries the statement that is under way to its end, and
    /// then rolls back. SQLx 0.9 loses count of a transaction that is dropped while it begins, on PostgreSQL,
    /// MySQL and MariaDB, and of a statement that is dropped while it is prepared, on the latter two; what the
    /// pool's next user writes over that connection is then not committed. SeaORM's own `begin` has the same
    /// gap.
    ///
    /// # Errors
    ///
    /// What cannot be planned, such as a key that was added twice or a circle that cannot be cut, and a database
    /// that is not known here: then nothing is sent. Any other error says what failed, in which table and chunk,
    /// and with which row's key. To find the row, the flush sends everything up to it again, in a transaction
    /// that is rolled back.
    pub async fn flush(&mut self, db: &DatabaseConnection) -> Result<Flushed, Error> {
        self.flush_on(db).await
    }

    /// Writes everything inside an open transaction, in a savepoint: if it fails, the transaction
    /// is as before. The models stay until [`clear`](Self::clear), since only the caller knows
    /// when the transaction is committed.
    ///
    /// It is never tried again, since what came before it in the transaction would have to be repeated, too:
    /// most databases end the whole transaction at a deadlock.
    ///
    /// Constraints that the database checks at COMMIT fail in your commit, not here.
    ///
    /// If this future is dropped before its end, the transaction is spoilt: drop that, too. SeaORM lends no
    /// connection that could be closed: on MySQL and MariaDB let a flush in your transaction come to its end.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush), but never one that
    /// [`is_commit_unknown`](Error::is_commit_unknown): that question belongs to your commit.
    pub async fn flush_in(&mut self, transaction: &DatabaseTransaction) -> Result<Flushed, Error> {
        self.flush_on(transaction).await
    }

    pub(crate) async fn flush_on<C: Begin>(&mut self, on: &C) -> Result<Flushed, Error> {
        let source = Source::of(on)?;
        let scope = source.scope();
        self.0.flush(source, scope).await
    }
}

#[cfg(test)]
mod tests;
