//! The unit of work: models of many entities, inserted, updated and deleted together.

use ordid_sql::{EngineProfile, Flushed, Work};
use sea_orm::{DatabaseConnection, DatabaseTransaction, DbBackend, IntoActiveModel};

use crate::{
    Error,
    connection::{Begin, Source},
    entity::{Binder, Entity, changed, model},
    failure::engine,
};

#[doc = ordid_sql::documentation!(unit_of_work)]
///
/// It takes `Model`s and `ActiveModel`s of every entity whose `Model` has `#[derive(OrderedKey)]`. A
/// column of an `ActiveModel` that is `NotSet` is not written, so that the database's default holds.
/// Hooks of `ActiveModelBehavior` are not called, as `Entity::insert_many` calls none.
///
#[doc = ordid_sql::documentation!(changes)]
/// An update sets all columns of a `Model`, and of an `ActiveModel` those that are `Set`. The columns of
/// `update_columns` are `issue::Model::title`, with `#[ordid(columns)]` at the `Model`. One `UPDATE` takes the rows
/// that follow each other and set the same columns.
///
/// # Parents
///
/// A parent is found by its key type. Where that is a raw `Uuid`, name the parent's `ActiveModel`:
/// `#[ordid(parent = super::author::ActiveModel)]`.
///
/// # What SeaORM does not have
///
/// SeaORM lends no single connection, so there is no flush over one. An `ActiveModel` does not implement
/// serde's `Serialize`, so there is no journal.
///
/// # Example: what a flush would send
///
/// ```
#[doc = include_str!("example_models.md")]
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
#[doc(alias("bulk insert", "batch insert", "upsert", "insert many"))]
pub struct UnitOfWork(Work<Binder>);

ordid_sql::work_settings! { impl[] UnitOfWork, Binder }
ordid_sql::work_entities! {
    impl[] UnitOfWork, Entity,
    impl IntoActiveModel<E>, impl IntoActiveModel<E>, model::<E>, changed::<E, _>
}
ordid_sql::work_plan! { impl[] UnitOfWork, [backend: DbBackend] engine(backend)?, Error }

impl UnitOfWork {
    /// Writes everything in one transaction of its own, and empties the unit of work. If the flush fails,
    /// nothing is written, and the unit of work still has the same models with the same keys, so it can
    /// be flushed again.
    ///
    /// # Retries
    ///
    /// A flush that fails for a reason that may pass ([`Error::is_transient`],
    /// [`Error::is_connection_lost`]) is rolled back and tried again, with the same keys, as often as
    /// [`with_retry`](Self::with_retry) says.
    ///
    #[doc = ordid_sql::documentation!(unknown_commits)]
    /// If the database exists only in the lost connection, as an in-memory database of SQLite does, no row is found.
    ///
    /// # Dropping the future
    ///
    /// A dropped flush is rolled back, and the models are still here. If it is dropped while it waits for the
    /// answer to COMMIT, all rows are there or none, as after a lost answer; the next `flush` then begins by
    /// asking the database, unless models were added.
    ///
    /// **This takes the feature `runtime-tokio`**: Tokio carries the statement that is under way to its end, and
    /// then rolls back. If the server does not answer for five seconds, the connection is closed, so that the pool can
    /// open another. SQLx 0.9 loses count of a transaction that is dropped while it begins, on PostgreSQL,
    /// MySQL and MariaDB, and of a statement that is dropped while it is prepared, on the latter two; what the
    /// pool's next user writes over that connection is then not committed. SeaORM's own `begin` has the same
    /// gap.
    ///
    #[doc = ordid_sql::documentation!(flush_errors)]
    ///
    /// A database that is not known here is an error, too.
    pub async fn flush(&mut self, db: &DatabaseConnection) -> Result<Flushed, Error> {
        self.flush_on(db).await
    }

    #[doc = ordid_sql::documentation!(flush_in)]
    /// If this future is dropped before its end, the transaction is unusable: drop it, too. SeaORM lends no
    /// connection that could be closed, so on MySQL and MariaDB never drop a flush in your transaction before its end.
    ///
    #[doc = ordid_sql::documentation!(flush_in_errors)]
    pub async fn flush_in(&mut self, transaction: &DatabaseTransaction) -> Result<Flushed, Error> {
        self.flush_on(transaction).await
    }

    pub(crate) async fn flush_on<C: Begin>(&mut self, on: &C) -> Result<Flushed, Error> {
        let source = Source::of(on)?;
        let scope = source.scope();
        self.0.flush(source, scope).await
    }
}

#[doc = ordid_sql::documentation!(detect_engine)]
/// # Errors
///
/// SeaORM's.
pub async fn detect_engine(db: &DatabaseConnection) -> Result<EngineProfile, Error> {
    ordid_sql::detect_engine(Source::of(db)?).await
}

#[cfg(test)]
mod tests;
