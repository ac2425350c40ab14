//! The unit of work: entities of many types, inserted, updated and deleted together.

use oracle::Connection;
use ordid_core::storage::dialect::Oracle;
use ordid_sql::{
    EngineProfile, FlushDialect as _, Flushed, Sharded, Work,
    spi::{TransactionScope, blocking},
};

use crate::{
    binder::{Binder, Entity},
    connection::{Made, OnConnection},
    error::Error,
};

/// Entities, collected to be inserted, updated and deleted in one transaction: parents before children,
/// deletes the other way round, each table in the order in which Oracle sorts its keys, up to 1,000
/// rows a round trip by array binds.
///
/// An entity is any struct with `#[derive(OrderedKey)]`; each type's rows are kept in one `Vec`.
///
/// # Rows that refer to each other
///
/// Tables may refer to each other, and rows to rows of their own table. Where rows do so in a circle,
/// one of them is inserted with NULL in a foreign key that can be NULL, and an `UPDATE` sets it when
/// all are there; before they are deleted it is set to NULL. A foreign key that is declared
/// `#[ordid(parent, deferrable)]` needs neither: it is checked at COMMIT. A circle that has neither is
/// an error that names it, before anything is sent.
///
/// # Updates and deletes
///
/// Each row has to be there: if one is not, nothing is written ([`is_missing_row`](crate::FlushError::is_missing_row)). Rows are
/// updated after all inserts and deleted after that, so a unique value is not free for a new row
/// before the next flush. Two rows cannot exchange unique values, since each is an `UPDATE` of its own
/// to Oracle, of which it takes 1,000 at once.
///
/// Such a flush first writes a row of its own, which tells whether it was committed, into the table
/// that [`flushes_table`](crate::flushes_table) declares.
///
/// # Example: something without a key does not get in
///
/// ```compile_fail
/// struct Loose { name: String }
///
/// fn flush(work: &mut ordid_oracle::UnitOfWork) {
///     work.add(Loose { name: String::new() });
/// }
/// ```
pub struct UnitOfWork(Work<Binder>);

ordid_sql::work_settings! { impl[] UnitOfWork, Binder }
ordid_sql::work_entities! { impl[] UnitOfWork, Entity }
ordid_sql::work_plan! { impl[] UnitOfWork, EngineProfile::ORACLE, Error }

impl UnitOfWork {
    /// Makes an empty unit of work.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes everything in one transaction of its own on this connection, and is empty afterwards. If
    /// it fails, nothing is written and nothing is lost: the same entities with the same keys are
    /// there to be flushed again.
    ///
    /// # Retries
    ///
    /// What another time may succeed on the same connection ([`is_transient`](crate::FlushError::is_transient)), as a deadlock or
    /// a serialization failure, is rolled back and tried again, with the same keys, as often as
    /// [`with_retry`](Self::with_retry) says; this thread sleeps in between. Where the connection is
    /// lost ([`is_connection_lost`](crate::FlushError::is_connection_lost)) it is over: connect anew, and flush again.
    /// [`flush_with`](Self::flush_with) does that itself.
    ///
    /// If the answer to COMMIT is lost, the rows may be there ([`is_commit_unknown`](crate::FlushError::is_commit_unknown)). The next
    /// flush then begins by asking the database, unless entities were added.
    ///
    /// # Errors
    ///
    /// What [`plan`](Self::plan) finds, before anything is sent. Otherwise says what failed
    /// to be done, in which table, which chunk, and with which row's key. A connection that commits by
    /// itself, or with a transaction open, is refused ([`is_connection_state`](crate::FlushError::is_connection_state)): Oracle begins
    /// a transaction with the first statement that needs one, and what was done before would be
    /// committed with the flush.
    pub fn flush(&mut self, connection: &Connection) -> Result<Flushed, Error> {
        let source = OnConnection::new(connection);
        Ok(blocking(
            self.0.flush(source, TransactionScope::Transaction),
        )?)
    }

    /// As [`flush`](Self::flush), over a connection that this function makes, or a pool lends. It is
    /// called once, and again after a connection was lost.
    ///
    /// So a lost connection is no end: what was sent is sent again over another, with the same keys. If
    /// the answer to COMMIT is lost, the rows may be there. Then the database is asked, over another
    /// connection, and the rows are sent once more only if they are not there: by the key of one of
    /// them, as they are there all or none. A flush with updates or deletes has a row of its own for
    /// this, in the table that [`flushes_table`](crate::flushes_table) declares.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush), and what the function returns. One that may pass, as that there is no
    /// listener, is waited for as often as [`with_retry`](Self::with_retry) says.
    ///
    /// # Example
    ///
    /// ```no_run
    /// # use ordid::{KeyType, OrderedKey, uuid::Uuid};
    /// # #[derive(KeyType)]
    /// # #[ordid(scheme = uuid_v7, oracle)]
    /// # struct CityId(Uuid);
    /// # #[derive(OrderedKey)]
    /// # struct City { id: CityId }
    /// use ordid_oracle::UnitOfWork;
    ///
    /// let pool = oracle::pool::PoolBuilder::new("scott", "tiger", "//localhost/FREEPDB1").build()?;
    /// let mut work = UnitOfWork::new();
    /// work.add(City { id: CityId::generate() });
    /// work.flush_with(|| pool.get())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn flush_with<E: Into<Error>>(
        &mut self,
        mut connect: impl FnMut() -> Result<Connection, E> + Send,
    ) -> Result<Flushed, Error> {
        let source = Made::new(|| connect().map_err(|error| error.into().of_connecting()));
        Ok(blocking(
            self.0.flush(source, TransactionScope::Transaction),
        )?)
    }

    /// Writes everything inside the connection's transaction, behind a savepoint: if it fails, the
    /// transaction is as before. Nothing is committed, and the entities stay until
    /// [`clear`](Self::clear), since only the caller knows when the transaction is committed.
    ///
    /// It is never tried again, as what came before it in the transaction may have to be done again.
    ///
    /// The savepoint is called `ordid_flush`. What the database checks at COMMIT, as deferred constraints,
    /// is told by your commit, not here. Where the flush had to defer them, they stay deferred until
    /// then, all that can be.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush), but for the open transaction, and never one that
    /// [`is_commit_unknown`](crate::FlushError::is_commit_unknown): that question belongs to your commit.
    pub fn flush_in(&mut self, connection: &Connection) -> Result<Flushed, Error> {
        let source = OnConnection::new(connection);
        Ok(blocking(self.0.flush(source, TransactionScope::Savepoint))?)
    }
}

/// A [`Journal`](ordid_sql::Journal) for [`UnitOfWork::with_journal`], and the entity types whose rows it keeps:
/// types with serde's `Serialize` and `Deserialize`. What serde leaves out or writes with less precision is found
/// before anything is sent.
#[cfg(feature = "journal")]
pub struct Journaled(ordid_sql::Journaled<Binder>);

#[cfg(feature = "journal")]
ordid_sql::work_journal! { impl[] UnitOfWork, Journaled, Entity, Error }

/// Entities of which each goes to one of several databases, split by key: a [`UnitOfWork`] for each shard of a
/// [`Sharding`](ordid_sql::Sharding).
///
/// Each shard's part is one transaction of its database. The whole is not: parts are committed one after the
/// other, and if one fails, the others are committed all the same. What failed stays, with the same keys, so that
/// flushing again sends what is left.
pub struct ShardedUnitOfWork(Sharded<UnitOfWork>);

ordid_sql::sharded_unit_of_work! {
    impl[] ShardedUnitOfWork, UnitOfWork, Entity, EngineProfile::ORACLE, Error
}

impl ShardedUnitOfWork {
    /// Flushes each shard into its own database, the first over the first connection, one after the other: as
    /// [`UnitOfWork::flush`]. Says what each of them wrote.
    ///
    /// # Errors
    ///
    /// What [`plan`](Self::plan) finds, and another number of connections than of shards: then nothing was sent to
    /// any of them. Otherwise [`shards`](crate::FlushError::shards) says what became of each.
    pub fn flush(&mut self, connections: &[Connection]) -> Result<Vec<Flushed>, Error> {
        let flush = self
            .0
            .flush(EngineProfile::ORACLE, connections.len(), |work, shard| {
                let source = OnConnection::new(&connections[shard]);
                Box::pin(work.0.flush(source, TransactionScope::Transaction))
            });
        Ok(blocking(flush)?)
    }
}

/// Returns the `CREATE TABLE` of `ordid_flushes`, into which a flush with updates or deletes writes a row
/// in its own transaction: whether that row is there tells what became of a COMMIT whose answer was
/// lost. A flush that only inserts does without, unless it is [asked to](UnitOfWork::with_record).
///
/// Run it once, as a migration: Oracle knows `IF NOT EXISTS` only from 23ai on, so it is not in it.
/// Rows are only looked for while their flush is under way: delete those of more than a day at any
/// time, by `flushed_at`.
pub const fn flushes_table() -> &'static str {
    Oracle::FLUSHES_TABLE
}
