//! One unit of work over several databases.

use ordid_sql::{Flushed, Sharded};
use sea_orm::{DatabaseConnection, DbBackend, IntoActiveModel};

use crate::{
    Error,
    connection::Source,
    entity::{Entity, changed, model},
    failure::engine,
    unit_of_work::UnitOfWork,
};

#[doc = ordid_sql::documentation!(sharded)]
/// # Example: books live where their author lives
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
#[doc = include_str!("example_models.md")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ordid_seaorm::{ShardedUnitOfWork, Sharding, create_table};
/// use sea_orm::{ActiveValue::{NotSet, Set}, ConnectionTrait, Database, EntityTrait};
///
/// let databases = [
///     Database::connect("sqlite::memory:").await?,
///     Database::connect("sqlite::memory:").await?,
/// ];
/// # for db in &databases {
/// #     db.execute(&create_table(db.get_database_backend(), author::Entity)).await?;
/// #     db.execute(&create_table(db.get_database_backend(), book::Entity)).await?;
/// # }
/// // An author is found by its own key, a book by its author's.
/// let sharding = Sharding::by_hash(2)?
///     .route(|book: &book::ActiveModel| book.author.try_as_ref().copied());
///
/// let mut work = ShardedUnitOfWork::new(sharding.clone());
/// let ada = work.add(author::ActiveModel { id: NotSet, name: Set("Ada".into()) })?;
/// work.add(book::ActiveModel { id: NotSet, author: Set(ada), title: Set("Notes".into()) })?;
/// let flushed = work.flush(&databases).await?;
/// assert_eq!(flushed.iter().map(|shard| shard.rows()).sum::<usize>(), 2);
///
/// let db = &databases[sharding.shard(ada)?];
/// let books = book::Entity::find().all(db).await?;
/// assert_eq!(books[0].author, ada);
/// # Ok(())
/// # }
/// ```
pub struct ShardedUnitOfWork(Sharded<UnitOfWork>);

ordid_sql::sharded_unit_of_work! {
    impl[] ShardedUnitOfWork, UnitOfWork, Entity, [backend: DbBackend] engine(backend)?, Error,
    impl IntoActiveModel<E>, impl IntoActiveModel<E>, model::<E>, changed::<E, _>
}

impl ShardedUnitOfWork {
    /// Flushes each shard into its own database, the first into the first, each in a transaction of its own: as
    /// [`UnitOfWork::flush`], and all at the same time. Returns what each of them wrote. A shard without
    /// entities sends nothing. The databases need not be of one engine.
    ///
    /// Dropping the future rolls back what is not committed yet, as [`UnitOfWork::flush`] says. What is committed
    /// stays, and is taken out of the unit of work. With [`two_phase_commit`](Self::two_phase_commit), what is prepared
    /// stays so until the next flush of this unit of work or [`recover_prepared`](crate::recover_prepared) ends it.
    ///
    #[doc = ordid_sql::documentation!(sharded_errors)]
    pub async fn flush(&mut self, databases: &[DatabaseConnection]) -> Result<Vec<Flushed>, Error> {
        let sources = databases.iter().map(Source::of);
        let sources = sources.collect::<Result<Vec<_>, _>>()?;
        self.0.flush(sources).await
    }
}
