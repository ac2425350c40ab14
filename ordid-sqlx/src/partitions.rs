//! The partitions of [`ordid_sql::partitions`], by the time in the key, over connections of SQLx to PostgreSQL.

use ordid_core::{
    KeyField, OrderedKey,
    storage::{ColumnOn, dialect},
};
use ordid_sql::partitions::{self, PartitionDriver};
use sqlx::Postgres;

pub use ordid_sql::partitions::{Partition, Period};

use crate::{
    leases::Sqlx,
    stored::{ColumnOf, StoredAs},
};

/// Lists the partitions of an entity's table, creates the next ones, and says which are old. A call takes `&Pool`,
/// `&mut Connection`, or `&mut Transaction` ([`Over`](crate::Over)). [`partitions::Partitions`] says which locks the
/// calls take.
///
/// # Example
///
/// ```
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// use ordid_sqlx::partitions::{Partitions, Period};
///
/// #[derive(KeyType)]
/// #[ordid(sqlx)]
/// struct EventId(Uuid);
///
/// #[derive(OrderedKey)]
/// #[ordid(table = "events")]
/// struct Event { id: EventId, text: String }
///
/// let events = Partitions::<Event>::new(Period::Day);
/// assert_eq!(events.partition_by_sql(), r#"PARTITION BY RANGE ("id")"#);
/// let time = std::time::UNIX_EPOCH + std::time::Duration::from_hours(500_000);
/// let sql = events.create_sql(time.try_into()?)?;
/// assert!(sql.contains(r#"CREATE TABLE "events_20270115""#), "{sql}");
/// # Ok::<(), ordid::Error>(())
/// ```
pub type Partitions<E> = partitions::Partitions<Sqlx<Postgres>, E>;

/// The error of [`Partitions`]. Its [`driver`](PartitionError::driver) is SQLx's error.
pub type PartitionError = partitions::PartitionError<sqlx::Error>;

impl<E> PartitionDriver<E> for Sqlx<Postgres>
where
    E: OrderedKey<Field: KeyField<Key: StoredAs<Postgres, Column: ColumnOn<dialect::Postgres>>>>,
{
    type Column = ColumnOf<Postgres, ordid_core::KeyOf<E>>;
}
