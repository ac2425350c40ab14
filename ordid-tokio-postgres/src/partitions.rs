//! The partitions of [`ordid_sql::partitions`], by the time in the key, over clients of tokio-postgres.

use ordid_core::{
    KeyField, KeyOf, OrderedKey,
    storage::{ColumnOn, dialect::Postgres},
};
use ordid_sql::{
    partitions::{self, PartitionDriver},
    table_driver::Kind,
};
use tokio_postgres::Error;

pub use ordid_sql::partitions::{Partition, Period};

use crate::{follower::TokioPostgres, stored::StoredAs};

/// Lists the partitions of an entity's table, creates the next ones, and says which are old. A call takes `&` a client, a
/// transaction, or a connection of a pool ([`AsClient`](crate::AsClient)). [`partitions::Partitions`] says which locks
/// the calls take.
///
/// # Example
///
/// ```
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// use ordid_tokio_postgres::partitions::{Partitions, Period};
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7, tokio_postgres)]
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
pub type Partitions<E> = partitions::Partitions<TokioPostgres, E>;

/// As [`Partitions`], over clients of the crate `postgres`. A call takes `&mut` a client or a transaction, and blocks.
#[cfg(feature = "postgres")]
pub type BlockingPartitions<E> = partitions::Partitions<crate::follower::BlockingPostgres, E>;

/// The error of [`Partitions`]. Its [`driver`](PartitionError::driver) is tokio-postgres' error.
pub type PartitionError = partitions::PartitionError<Error>;

impl<E, K> PartitionDriver<E> for TokioPostgres<K>
where
    E: OrderedKey<Field: KeyField<Key: StoredAs<Column: ColumnOn<Postgres>>>>,
    K: Kind,
{
    type Column = <KeyOf<E> as StoredAs>::Column;
}
