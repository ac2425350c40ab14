//! The bounds and statements of PostgreSQL's partitions by the time in the key. An adapter implements
//! [`PartitionDriver`] and re-exports [`Partitions`] under its own name.
//!
//! A table that is partitioned by the range of its key has one partition for each day, week, month or year. The key alone is
//! its primary key, since it is the partition key, too. So flushes, foreign keys and look-ups by key work as usual. A
//! query for a time, `WHERE id >= $1 AND id < $2` with the ends of [`KeyType::range`], reads only the partitions of
//! that time. Old rows are removed with their partition, without a `DELETE`.
//!
//! ```text
//! orders                    PARTITION BY RANGE (id)
//!   orders_20261124         FROM (lowest key of the 24th) TO (lowest key of the 25th)
//!   orders_20261125         FROM (lowest key of the 25th) TO (lowest key of the 26th)
//! ```

use std::{fmt, marker::PhantomData, time::Duration};

use ordid_core::{
    Error, KeyOf, KeyType, OrderedKey, RawKeyOf,
    clock::{Clock as _, SystemClock, Timestamp},
    key::KeyField,
    scheme::TimeOrdered,
    storage::{Column, ColumnOn, dialect::Postgres},
};

#[cfg(feature = "catalogue")]
mod any;
mod driver;
mod error;
mod period;
mod text;

#[cfg(feature = "catalogue")]
pub use any::AnyPartitions;
pub use driver::{PartitionDriver, PartitionNames};
pub use error::PartitionError;
pub use period::Period;

use crate::{
    cause::Cause,
    table_driver::{Answer, Kind as _},
};

/// The partitions of an entity's table by the time in its keys, on PostgreSQL 12 or later.
///
/// Times are in UTC. A partition begins at the lowest key of its first millisecond. The column of the key may be
/// `uuid`, `bytea`, `text` or `bigint`. This compiles only if the scheme is ordered by time, and the column keeps the
/// order.
///
/// `D` is the library. Adapters have an alias for it.
pub struct Partitions<D, E: OrderedKey> {
    period: Period,
    /// Returns the lowest key of a time.
    lowest: fn(Timestamp) -> Result<KeyOf<E>, Error>,
    _types: PhantomData<fn() -> (D, E)>,
}

/// One partition of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Partition {
    /// Its schema, unquoted.
    pub schema: String,
    /// Its name, unquoted.
    pub name: String,
    /// The time of its lowest key; `None` if it has no lower bound, or is the default partition.
    pub from: Option<Timestamp>,
    /// The time of the lowest key after it; `None` if it has no upper bound, or is the default partition.
    pub to: Option<Timestamp>,
}

impl<D, E> Partitions<D, E>
where
    D: PartitionDriver<E>,
    E: OrderedKey<Field: KeyField<Leading = KeyOf<E>>>,
    KeyOf<E>: KeyType<Scheme: TimeOrdered>,
{
    /// Sets the period of the partitions that are created.
    pub fn new(period: Period) -> Self {
        const {
            assert!(
                !<D::Column as Column>::UNORDERED,
                "the key's column is `unordered`: a table can be partitioned by time only by a column that keeps the order"
            );
        }
        Self {
            period,
            lowest: |time| Ok(KeyOf::<E>::range(time..time)?.start),
            _types: PhantomData,
        }
    }

    /// Returns the clause that follows the columns in the `CREATE TABLE` of the whole table: `PARTITION BY RANGE
    /// ("id")`.
    pub fn partition_by_sql(&self) -> String {
        D::names().borrowed().partition_by()
    }

    /// Returns the script that creates the partition for a time, for migrations. If the partition exists, the script
    /// does nothing. If its name is the name of a partition with other bounds, the script fails. If two scripts run at
    /// the same time, one waits for the other.
    ///
    /// If the scheme's time begins or ends within the period, the partition has no lower or no upper bound.
    ///
    /// The partition is created as a table and then attached. This takes a SHARE UPDATE EXCLUSIVE lock on the whole
    /// table, which does not block queries, inserts and updates. A default partition is locked, and searched for rows
    /// that belong to the new partition, so a table should have none. If the table has foreign keys, the tables that
    /// they refer to are locked against writes for that moment.
    ///
    /// # Errors
    ///
    /// Returns an error that [`is_clock`](Error::is_clock) if no time of the period fits the scheme's layout, and one that
    /// [`is_parse`](Error::is_parse) if the name of the partition is longer than 63 bytes, which PostgreSQL would cut off.
    pub fn create_sql(&self, time: Timestamp) -> Result<String, Error> {
        let (from, to) = self.period.around(time);
        let keys = text::within((self.lowest)(from), (self.lowest)(to))?;
        let literals =
            keys.map(|key| key.map(|key| <D::Column as ColumnOn<Postgres>>::literal(key.to_raw())));
        Ok(D::names().borrowed().create(&self.name(from)?, &literals))
    }

    fn name(&self, from: Timestamp) -> Result<String, Error> {
        D::names().borrowed().partition(&self.period.name(from))
    }

    /// Creates the partition for the current time and the next `count` partitions if they are missing, and returns
    /// those that were missing.
    ///
    /// Call it at shorter intervals than the period of a partition, since a row for which there is no partition is
    /// refused. Keys are at most ten seconds ahead of the clock, unless the policy allows more.
    ///
    /// # Errors
    ///
    /// Returns the error of the database. For example, the table is not partitioned, partitions of another period
    /// overlap, or a privilege is missing. The error [`is_unexpected_bound`](PartitionError::is_unexpected_bound) if
    /// there is a partition of the name that has other bounds, or the name is longer than 63 bytes.
    pub fn create_next<'a>(
        &'a self,
        over: impl Into<D::Source<'a>>,
        count: u32,
    ) -> Answer<'a, D, Vec<Partition>, PartitionError<D::Error>> {
        let mut source = over.into();
        D::Kind::answer(async move {
            let created = self.create_missing(&mut source, count).await;
            Self::close(source, created)
        })
    }

    async fn create_missing(
        &self,
        source: &mut D::Source<'_>,
        count: u32,
    ) -> Result<Vec<Partition>, Cause<D::Error>> {
        let there = Self::read(source).await?;
        let mut missing = Vec::new();
        let mut time = SystemClock.now();
        for _ in 0..=count {
            let (from, to) = self.period.around(time);
            let read = self.read_as(from, to)?;
            if !there.iter().any(|it| it.covers(read)) {
                // The script would fail, too.
                if self.is_taken(&there, from)? {
                    return Err(self.not_created(from, to)?.into());
                }
                if let Err(error) = D::run(source, self.create_sql(from)?).await {
                    // Where transactions read repeatably, one that has waited for another does not see what that has made.
                    let now = Self::read(source).await;
                    if !now.is_ok_and(|now| now.iter().any(|it| it.covers(read))) {
                        return Err(error.into());
                    }
                }
                missing.push((read, from, to));
            }
            time = to;
        }
        if missing.is_empty() {
            return Ok(Vec::new());
        }
        let mut there = Self::read(source).await?;
        let is_there = |read| there.iter().any(|it| it.covers(read));
        if let Some((_, from, to)) = missing.iter().find(|(read, ..)| !is_there(*read)) {
            return Err(self.not_created(*from, *to)?.into());
        }
        there.retain(|it| missing.iter().any(|(read, ..)| it.covers(*read)));
        Ok(there)
    }

    /// Returns the times that are read back from the bounds of a partition: those of its keys, whose steps may be longer
    /// than a millisecond.
    fn read_as(&self, from: Timestamp, to: Timestamp) -> Result<[Timestamp; 2], Error> {
        let [from_key, to_key] = text::within((self.lowest)(from), (self.lowest)(to))?;
        let read = |key: Option<KeyOf<E>>| key.and_then(KeyType::timestamp);
        Ok([read(from_key).unwrap_or(from), read(to_key).unwrap_or(to)])
    }

    /// Returns whether a partition has the name of the one that begins at this time.
    fn is_taken(&self, there: &[Partition], from: Timestamp) -> Result<bool, Error> {
        let (name, names) = (self.name(from)?, D::names());
        let schema = names.borrowed().schema;
        Ok(there
            .iter()
            .any(|it| it.name == name && schema.is_none_or(|schema| schema == it.schema)))
    }

    fn not_created(&self, from: Timestamp, to: Timestamp) -> Result<Error, Error> {
        let name = self.name(from)?;
        Ok(Error::parse(format!(
            "there is a partition {name} that does not take the keys from {from} to {to}: rename it, or end its DETACH"
        )))
    }

    /// Returns the partitions in the order of their bounds, including those of other periods. The default partition is
    /// the last.
    ///
    /// # Errors
    ///
    /// Returns the error of the database, or an error that
    /// [`is_unexpected_bound`](PartitionError::is_unexpected_bound).
    pub fn list<'a>(
        &'a self,
        over: impl Into<D::Source<'a>>,
    ) -> Answer<'a, D, Vec<Partition>, PartitionError<D::Error>> {
        let mut source = over.into();
        D::Kind::answer(async move {
            let list = Self::read(&mut source).await;
            Self::close(source, list)
        })
    }

    /// Returns the partitions whose newest possible key is older than this time, beginning with the oldest. These are
    /// the partitions to [detach](Self::detach_sql).
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`list`](Self::list).
    pub fn older_than<'a>(
        &'a self,
        over: impl Into<D::Source<'a>>,
        age: Duration,
    ) -> Answer<'a, D, Vec<Partition>, PartitionError<D::Error>> {
        let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        let now = SystemClock.now().as_unix_millis();
        let bound = Timestamp::saturating_from_unix_millis(now.saturating_sub(age));
        let mut source = over.into();
        D::Kind::answer(async move {
            let list = Self::read(&mut source).await.map(|mut list| {
                list.retain(|it| it.to.is_some_and(|to| to <= bound));
                list
            });
            Self::close(source, list)
        })
    }

    /// Returns the statement that detaches a partition from the table. The partition is a separate table afterwards,
    /// which can be dumped or dropped. The statement needs PostgreSQL 14 or later, and has to be run outside of a
    /// transaction. It takes a SHARE UPDATE EXCLUSIVE lock on the whole table, and waits for the queries that read it.
    ///
    /// PostgreSQL refuses it if the table has a default partition. If it is interrupted, the partition is not listed any
    /// more: complete it with `ALTER TABLE .. DETACH PARTITION .. FINALIZE`.
    pub fn detach_sql(&self, partition: &Partition) -> String {
        D::names()
            .borrowed()
            .detach(&partition.schema, &partition.name)
    }

    async fn read(source: &mut D::Source<'_>) -> Result<Vec<Partition>, Cause<D::Error>> {
        let rows = D::texts(source, D::names().borrowed().list()).await?;
        let mut list = Vec::with_capacity(rows.len());
        for row in rows {
            list.push(read_partition::<D, E>(&row)?);
        }
        list.sort_by_key(|it| (it.is_default(), it.from, it.to));
        Ok(list)
    }

    fn close<T>(
        mut source: D::Source<'_>,
        outcome: Result<T, Cause<D::Error>>,
    ) -> Result<T, PartitionError<D::Error>> {
        let is_lost = outcome.as_ref().is_err_and(Cause::is_lost);
        D::release(&mut source, is_lost);
        outcome.map_err(|cause| PartitionError::new(D::names().borrowed().table(), cause))
    }
}

impl Partition {
    fn covers(&self, [from, to]: [Timestamp; 2]) -> bool {
        let is_open = self.from.is_none() && self.to.is_none();
        !is_open && self.from.is_none_or(|it| it <= from) && self.to.is_none_or(|it| to <= it)
    }

    /// Returns whether it is the default partition, or the only partition, which takes all rows.
    fn is_default(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }
}

/// Reads a row of [`list`](text::Names::list).
fn read_partition<D, E>(row: &str) -> Result<Partition, Error>
where
    D: PartitionDriver<E>,
    E: OrderedKey,
{
    read_row(row, |literal| {
        let raw = text::stored::<D::Column, RawKeyOf<E>>(literal).ok()?;
        KeyOf::<E>::from_raw(raw).ok()?.timestamp()
    })
}

/// Reads a row that has the schema, the name and the bounds on separate lines. `time_of` returns the time of a bound.
fn read_row(row: &str, time_of: impl Fn(&str) -> Option<Timestamp>) -> Result<Partition, Error> {
    let mut lines = row.splitn(3, '\n');
    let [schema, name, bounds] = [(); 3].map(|()| lines.next().unwrap_or_default());
    let unexpected = || {
        Error::parse(format!(
            "the partition {name} has the bounds {bounds}, expected FROM ('..') TO ('..') with keys"
        ))
    };
    let [from, to] = match text::bounds(bounds).ok_or_else(unexpected)? {
        None => [None, None],
        Some(bounds) => {
            let mut times = [None, None];
            for (time, bound) in times.iter_mut().zip(bounds) {
                if let text::Bound::At(literal) = bound {
                    *time = Some(time_of(literal).ok_or_else(unexpected)?);
                }
            }
            times
        }
    };
    Ok(Partition {
        schema: schema.to_owned(),
        name: name.to_owned(),
        from,
        to,
    })
}

impl<D, E: OrderedKey> Clone for Partitions<D, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D, E: OrderedKey> Copy for Partitions<D, E> {}

impl<D, E: OrderedKey> fmt::Debug for Partitions<D, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Partitions");
        debug
            .field("table", &E::TABLE)
            .field("period", &self.period);
        debug.finish_non_exhaustive()
    }
}
