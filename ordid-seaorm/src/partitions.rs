//! The partitions of [`ordid_sql::partitions`], by the time in the key, over connections of SeaORM to PostgreSQL.

use ordid_core::{
    KeyField, KeyOf, OrderedKey,
    storage::{ColumnOn, dialect::Postgres},
};
use ordid_sql::partitions::{self, PartitionDriver, PartitionNames};
use sea_orm::DbErr;

pub use ordid_sql::partitions::{Partition, Period};

use crate::{
    entity::{Entity, EntityNames},
    follower::SeaOrm,
    stored::StoredAs,
};

/// Lists the partitions of an entity's table, creates the next ones, and says which are old. A call takes
/// `&DatabaseConnection` or `&DatabaseTransaction`. [`partitions::Partitions`] says which locks the calls take.
///
/// `A` is the model's `ActiveModel`.
///
/// # Example
///
/// ```
/// mod event {
///     use ordid::{OrderedKey, uuid::Uuid};
///     use sea_orm::entity::prelude::*;
///
///     #[derive(Clone, Debug, PartialEq, OrderedKey, DeriveEntityModel)]
///     #[sea_orm(table_name = "events")]
///     pub struct Model {
///         #[sea_orm(primary_key, auto_increment = false)]
///         pub id: Uuid,
///         pub text: String,
///     }
///
///     #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
///     pub enum Relation {}
///
///     ordid_seaorm::assign_before_save!(ActiveModel);
/// }
///
/// use ordid_seaorm::partitions::{Partitions, Period};
///
/// let events = Partitions::<event::ActiveModel>::new(Period::Day);
/// assert_eq!(events.partition_by_sql(), r#"PARTITION BY RANGE ("id")"#);
/// let time = std::time::UNIX_EPOCH + std::time::Duration::from_hours(500_000);
/// let sql = events.create_sql(time.try_into()?)?;
/// assert!(sql.contains(r#"CREATE TABLE "events_20270115""#), "{sql}");
/// # Ok::<(), ordid::Error>(())
/// ```
pub type Partitions<A> = partitions::Partitions<SeaOrm<Postgres>, A>;

/// The error of [`Partitions`]. Its [`driver`](PartitionError::driver) is SeaORM's error.
pub type PartitionError = partitions::PartitionError<DbErr>;

impl<A> PartitionDriver<A> for SeaOrm<Postgres>
where
    A: Entity + OrderedKey<Field: KeyField<Key: StoredAs<Column: ColumnOn<Postgres>>>>,
{
    type Column = <KeyOf<A> as StoredAs>::Column;

    /// SeaORM's names.
    fn names() -> PartitionNames {
        let entity = EntityNames::of::<A>();
        PartitionNames {
            schema: entity.schema().map(str::to_owned),
            table: entity.table().to_owned(),
            key: entity.key().unwrap_or(A::KEY_COLUMN).to_owned(),
        }
    }
}
