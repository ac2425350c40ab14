//! The functions of a mapping table that users call.

use std::{
    fmt,
    marker::PhantomData,
    sync::{Arc, OnceLock},
};

use ordid_core::{KeyType, uuid::Uuid};

use super::{
    Batch, MappingDialect as _, MappingDriver, MappingError,
    error::Failed,
    job::{Create, Job, Mapper, Reader, Task, run},
    quoted_table,
};
use crate::{EngineProfile, Retry};

/// A table that gives each UUID an integer, and keeps it: for foreign keys and indexes of 8 bytes in the
/// place of 16, behind an interface that knows UUIDs alone.
///
/// ```text
/// id         bigint that counts by itself    the primary key
/// uuid       uuid, BINARY(16), BLOB
/// uuid_hash  its CRC-32, 0 to 4294967295     UNIQUE (uuid_hash, uuid)
/// ```
///
/// The hash is MySQL's `CRC32()` of the 16 bytes, computed by the client. Two UUIDs of one hash are two rows.
///
/// `K` is the key type that goes in and comes out, any over a [`Uuid`]. A call takes what its statements are sent over,
/// in SQLx `&Pool`, `&mut Connection`, or `&mut Transaction`. UUIDs may come in any order and more than once; what is
/// returned is in the order of what was given.
///
/// # Many at once
///
/// No lock is taken but those of the rows that a statement inserts: the unique index decides whose row it
/// is, and the others find that. Statements have up to 1,000 rows (10,000 on PostgreSQL and SQLite), in the
/// order of the index, so that two calls with the same UUIDs wait for each other and do not deadlock; on
/// MySQL and MariaDB, where a duplicate locks the gap before it, they do so now and then.
/// Outside of a transaction of yours each statement commits by itself: a call that fails half-way, or is
/// dropped, leaves rows that the next one finds.
///
/// Over a pool of MySQL or MariaDB this holds whatever its connections' `autocommit` and isolation level are: each
/// statement is a transaction that reads committed rows. Over a connection or in a transaction both are yours. With
/// `autocommit = 0` nothing is there for others before you commit, and under READ UNCOMMITTED a look-up finds rows that
/// may be rolled back.
///
/// Over a pool, what another time may succeed is tried again ([`with_retry`](Self::with_retry)), from the
/// statement on that failed. Over a connection or in a transaction it is not, since what came before would
/// have to be done again, too. Dropped there before its end, MySQL's and MariaDB's connection must not be
/// used again over SQLx, as `flush_on` of its unit of work says.
///
/// # Gaps in the ids
///
/// An id that was given to a row which then turns out to be there, or is rolled back, is given to no other:
/// all three engines count so. So UUIDs are looked for first, and ids are lost only where another connection
/// inserts the same UUIDs at the same moment. [`insert`](Self::insert) alone does not look first. On MySQL and
/// MariaDB [`insert_many`](Self::insert_many), which must know whose row it is, sends statements of which all
/// rows are new or none is, and loses the ids of one that is refused.
///
/// Where several servers take writes, each counts by an `auto_increment_increment` above 1, so that no two of them count
/// the same. In a Galera cluster or a group of MySQL, which compares ids before a COMMIT, they are one apart over a pool all
/// the same; do not let two such clusters replicate the table to each other. Where two servers then give the same id at
/// the same moment, one of them is refused; it is tried again, and the rest of that call counts by the server's steps.
/// Over a connection or in a transaction ids have the server's steps, since nothing is tried again there; but a
/// transaction may be refused at its COMMIT, as by a deadlock, because of an id that another server gave over a pool.
pub struct MappingTable<S: MappingDriver, K = Uuid> {
    /// Quoted.
    table: String,
    retry: Retry,
    /// Whether statements may be prepared by name.
    prepares: bool,
    /// Whether the servers of a cluster compare ids, once one was asked.
    compares: Arc<OnceLock<bool>>,
    _types: PhantomData<fn(K) -> (S, K)>,
}

/// What [`MappingTable::insert`] returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Mapping {
    /// The integer.
    pub id: i64,
    /// Whether this call inserted it: `false` where it was there, or is given a second time in the call.
    pub is_new: bool,
}

impl<S: MappingDriver, K: KeyType<Raw = Uuid>> MappingTable<S, K> {
    /// Names a table, as it is: capital letters, blanks and quotes are part of the name.
    ///
    /// # Errors
    ///
    /// A name that is empty, longer than 63 bytes, or has a NUL gives an error that
    /// [`is_parse`](ordid_core::Error::is_parse).
    pub fn new(table: &str) -> Result<Self, ordid_core::Error> {
        Self::named(None, table)
    }

    /// Names a table in a schema, which MySQL and MariaDB call a database.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn in_schema(schema: &str, table: &str) -> Result<Self, ordid_core::Error> {
        Self::named(Some(schema), table)
    }

    fn named(schema: Option<&str>, table: &str) -> Result<Self, ordid_core::Error> {
        Ok(Self {
            table: quoted_table::<S::Dialect>(schema, table)?,
            retry: Retry::DEFAULT,
            prepares: true,
            compares: Arc::default(),
            _types: PhantomData,
        })
    }

    /// Says how often a statement over a pool is tried; [`Retry::DEFAULT`] unless this is called.
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Gives the profile of the engine. Only whether it [prepares](EngineProfile::prepares) statements by name matters:
    /// behind PgBouncer's mode `transaction`, give [`PGBOUNCER`](EngineProfile::PGBOUNCER). Then each statement outside of
    /// a transaction of yours has one of its own.
    #[must_use]
    pub fn with_engine(mut self, engine: EngineProfile) -> Self {
        self.prepares = engine.prepares;
        self
    }

    /// Returns the `CREATE TABLE IF NOT EXISTS`, for migrations.
    pub fn create_sql(&self) -> String {
        format!(
            "CREATE TABLE IF NOT EXISTS {} {}",
            self.table,
            S::Dialect::DEFINITION
        )
    }

    /// Creates the table if it is not there. MySQL and MariaDB commit an open transaction by it.
    ///
    /// # Errors
    ///
    /// What the database says.
    pub async fn create(
        &self,
        over: impl Into<S::Source<'_>>,
    ) -> Result<(), MappingError<S::Error>> {
        self.run(over, &mut Create(self.create_sql())).await
    }

    /// Returns the integer of a UUID, where it has one.
    ///
    /// # Errors
    ///
    /// What the database says, and [`is_unexpected_row`](MappingError::is_unexpected_row).
    pub async fn get(
        &self,
        over: impl Into<S::Source<'_>>,
        key: K,
    ) -> Result<Option<i64>, MappingError<S::Error>> {
        let batch = self.map(over, Task::Find, &[key]).await?;
        Ok(batch.into_ids().next().flatten())
    }

    /// Returns the integers of UUIDs, where they have one.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub async fn get_many(
        &self,
        over: impl Into<S::Source<'_>>,
        keys: &[K],
    ) -> Result<Vec<Option<i64>>, MappingError<S::Error>> {
        let batch = self.map(over, Task::Find, keys).await?;
        Ok(batch.into_ids().collect())
    }

    /// Returns the integer of a UUID, which it is given if it has none: one round trip where it has, two
    /// where it has not.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get); and that the ids are used up.
    pub async fn insert_or_get(
        &self,
        over: impl Into<S::Source<'_>>,
        key: K,
    ) -> Result<i64, MappingError<S::Error>> {
        let batch = self.map(over, Task::INSERT_OR_GET, &[key]).await?;
        let mut ids = batch.into_ids().flatten();
        ids.next().ok_or_else(|| self.elusive(&[key]))
    }

    /// Returns the integers of UUIDs, which they are given where they have none.
    ///
    /// # Errors
    ///
    /// As [`insert_or_get`](Self::insert_or_get).
    pub async fn insert_or_get_many(
        &self,
        over: impl Into<S::Source<'_>>,
        keys: &[K],
    ) -> Result<Vec<i64>, MappingError<S::Error>> {
        let batch = self.map(over, Task::INSERT_OR_GET, keys).await?;
        let ids: Option<_> = batch.into_ids().collect();
        ids.ok_or_else(|| self.elusive(keys))
    }

    /// Gives an integer to a UUID that is taken to be new: one round trip where it is, two where it is not,
    /// and then an id is lost.
    ///
    /// # Errors
    ///
    /// As [`insert_or_get`](Self::insert_or_get). A UUID that was there is none: [`Mapping::is_new`]. Where
    /// the answer is lost, it is not asked for again, as a row that was inserted would pass for an old one.
    pub async fn insert(
        &self,
        over: impl Into<S::Source<'_>>,
        key: K,
    ) -> Result<Mapping, MappingError<S::Error>> {
        let task = Task::Insert {
            looks_first: false,
            exact: true,
        };
        let batch = self.map(over, task, &[key]).await?;
        let mut mappings = self.mappings(batch, &[key])?.into_iter();
        mappings.next().ok_or_else(|| self.elusive(&[key]))
    }

    /// As [`insert_or_get_many`](Self::insert_or_get_many), and tells which were there.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub async fn insert_many(
        &self,
        over: impl Into<S::Source<'_>>,
        keys: &[K],
    ) -> Result<Vec<Mapping>, MappingError<S::Error>> {
        let task = Task::Insert {
            looks_first: true,
            exact: true,
        };
        let batch = self.map(over, task, keys).await?;
        self.mappings(batch, keys)
    }

    /// Returns the UUID of an integer, if there is one.
    ///
    /// # Errors
    ///
    /// What the database says. A row with NULL, another length than 16 bytes, a hash that is not the UUID's,
    /// or a UUID that is not of `K`'s scheme gives an error that
    /// [`is_unexpected_row`](MappingError::is_unexpected_row).
    pub async fn key(
        &self,
        over: impl Into<S::Source<'_>>,
        id: i64,
    ) -> Result<Option<K>, MappingError<S::Error>> {
        Ok(self.keys(over, &[id]).await?.pop().flatten())
    }

    /// Returns the UUIDs of integers, where there are.
    ///
    /// # Errors
    ///
    /// As [`key`](Self::key).
    pub async fn keys(
        &self,
        over: impl Into<S::Source<'_>>,
        ids: &[i64],
    ) -> Result<Vec<Option<K>>, MappingError<S::Error>> {
        let mut job = Reader::new(ids);
        self.run(over, &mut job).await?;
        let keys = job
            .into_uuids()
            .map(|uuid| uuid.map(K::from_raw).transpose());
        let keys: Result<_, _> = keys.collect();
        keys.map_err(|error| Failed::from(error).of(&self.table, 0))
    }

    async fn map(
        &self,
        over: impl Into<S::Source<'_>>,
        task: Task,
        keys: &[K],
    ) -> Result<Batch, MappingError<S::Error>> {
        let uuids = keys.iter().map(|key| key.to_raw());
        let mut job = Mapper::new::<S>(task, uuids, Arc::clone(&self.compares));
        self.run(over, &mut job).await?;
        Ok(job.into_batch())
    }

    async fn run(
        &self,
        over: impl Into<S::Source<'_>>,
        job: &mut impl Job<S>,
    ) -> Result<(), MappingError<S::Error>> {
        run::<S>(over.into(), &self.table, self.retry, self.prepares, job).await
    }

    fn mappings(&self, batch: Batch, keys: &[K]) -> Result<Vec<Mapping>, MappingError<S::Error>> {
        let mappings = batch.into_mappings();
        let mappings = mappings.map(|(id, is_new)| Some(Mapping { id: id?, is_new }));
        let mappings: Option<_> = mappings.collect();
        mappings.ok_or_else(|| self.elusive(keys))
    }

    /// An insert ends with an id for each, or with an error.
    fn elusive(&self, keys: &[K]) -> MappingError<S::Error> {
        let key = keys.first().map(|key| key.to_raw()).unwrap_or_default();
        Failed::elusive(key).of(&self.table, 0)
    }
}

impl<S: MappingDriver, K> Clone for MappingTable<S, K> {
    fn clone(&self) -> Self {
        Self {
            table: self.table.clone(),
            retry: self.retry,
            prepares: self.prepares,
            compares: Arc::clone(&self.compares),
            _types: PhantomData,
        }
    }
}

impl<S: MappingDriver, K> fmt::Debug for MappingTable<S, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappingTable")
            .field("table", &self.table)
            .field("retry", &self.retry)
            .finish()
    }
}
