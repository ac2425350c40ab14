//! The partitions of [`ordid_sql::partitions`], by the time in the key, over connections of Diesel to PostgreSQL.

use diesel::{
    deserialize::{self, QueryableByName},
    pg::Pg,
    result::Error as DieselError,
    row::NamedRow,
};
use ordid_core::{
    KeyField, KeyOf, OrderedKey,
    storage::{ColumnOn, dialect::Postgres},
};
use ordid_sql::{
    partitions::{self, PartitionDriver},
    table_driver::Kind,
};

pub use ordid_sql::partitions::{Partition, Period};

#[cfg(feature = "async")]
use crate::connection::Awaited;
use crate::{connection::Blocking, follower::Diesel, stored::StoredAs};

/// Lists the partitions of an entity's table, creates the next ones, and says which are old. A call takes `&mut` a
/// connection of Diesel's, in a transaction or not, and blocks. [`partitions::Partitions`] says which locks the calls take.
///
/// # Example
///
/// ```
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// use ordid_diesel::partitions::{Partitions, Period};
///
/// #[derive(KeyType)]
/// #[ordid(diesel)]
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
pub type Partitions<E> = partitions::Partitions<Diesel<Pg, NoRow, Blocking>, E>;

/// As [`Partitions`], over connections of diesel-async: its calls return futures.
#[cfg(feature = "async")]
pub type AsyncPartitions<E> = partitions::Partitions<Diesel<Pg, NoRow, Awaited>, E>;

/// The error of [`Partitions`]. Its [`driver`](PartitionError::driver) is Diesel's error.
pub type PartitionError = partitions::PartitionError<DieselError>;

/// No rows of the table are read.
#[doc(hidden)]
#[derive(Debug)]
pub enum NoRow {}

impl QueryableByName<Pg> for NoRow {
    fn build<'a>(_: &impl NamedRow<'a, Pg>) -> deserialize::Result<Self> {
        Err("no rows are read".into())
    }
}

impl<E, K> PartitionDriver<E> for Diesel<Pg, NoRow, K>
where
    E: OrderedKey<Field: KeyField<Key: StoredAs<Pg, Column: ColumnOn<Postgres>>>>,
    K: Kind,
{
    type Column = <KeyOf<E> as StoredAs<Pg>>::Column;
}
