//! The unit of work: entities of many types, inserted, updated and deleted together.

use oracle::Connection;
use ordid_core::storage::dialect::Oracle;
use ordid_sql::{
    EngineProfile, FlushDialect as _, Flushed, Sharded, Work,
    spi::{TransactionScope, blocking},
};

use crate::{
    binder::{Binder, Entity},
    connection::{made_by, on_connection},
    error::Error,
};

#[doc = ordid_sql::documentation!(unit_of_work)]
/// Up to 1,000 rows go in one round trip, by array binds.
///
/// An entity is any struct with `#[derive(OrderedKey)]` whose key type names a column; each type's rows are kept in one
/// `Vec`.
///
#[doc = ordid_sql::documentation!(circles)]
/// With a foreign key that is declared `#[ordid(parent, deferrable)]` this is not necessary: it is checked at COMMIT.
///
#[doc = ordid_sql::documentation!(updates)]
/// Two rows cannot exchange unique values: up to 1,000 rows are sent at once, but Oracle updates each row by a separate
/// `UPDATE`.
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
#[doc(alias("bulk insert", "batch insert", "upsert", "insert many"))]
pub struct UnitOfWork(Work<Binder>);

ordid_sql::work_settings! { impl[] UnitOfWork, Binder }
ordid_sql::work_entities! { impl[] UnitOfWork, Entity }
ordid_sql::work_plan! { impl[] UnitOfWork, EngineProfile::ORACLE, Error }

impl UnitOfWork {
    #[doc = ordid_sql::documentation!(flush)]
    ///
    #[doc = ordid_sql::documentation!(retries)]
    /// Between two attempts this thread sleeps.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`plan`](Self::plan) before anything is sent. Any other error says what failed, in which
    /// table and chunk, and with which row's key. A connection that commits by itself, or with a transaction open, is
    /// refused ([`is_connection_state`](crate::FlushError::is_connection_state)): Oracle begins a transaction with the
    /// first statement that needs one, and what was done before would be committed with the flush.
    pub fn flush(&mut self, connection: &Connection) -> Result<Flushed, Error> {
        self.flush_within(connection, TransactionScope::Transaction)
    }

    /// Does the same as [`flush`](Self::flush), over a connection that `connect` makes or gets from a pool. `connect`
    /// is called once, and again after a connection was lost.
    ///
    #[doc = ordid_sql::documentation!(flush_with)]
    ///
    /// # Errors
    ///
    /// Returns the errors of [`flush`](Self::flush) and those of `connect`. If `connect` fails with an error that may
    /// pass, such as a missing listener, it is called again after a pause, as often as [`with_retry`](Self::with_retry)
    /// says.
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
        let source = made_by(|| connect().map_err(|error| error.into().of_connecting()));
        Ok(blocking(
            self.0.flush(source, TransactionScope::Transaction),
        )?)
    }

    #[doc = ordid_sql::documentation!(flush_in)]
    /// The savepoint is called `ordid_flush`.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush), but for the open transaction, and never one that
    /// [`is_commit_unknown`](crate::FlushError::is_commit_unknown): that question belongs to your commit.
    pub fn flush_in(&mut self, connection: &Connection) -> Result<Flushed, Error> {
        self.flush_within(connection, TransactionScope::Savepoint)
    }

    fn flush_within(
        &mut self,
        connection: &Connection,
        scope: TransactionScope,
    ) -> Result<Flushed, Error> {
        Ok(blocking(self.0.flush(on_connection(connection), scope))?)
    }
}

#[doc = ordid_sql::documentation!(journaled)]
#[cfg(feature = "journal")]
pub struct Journaled(ordid_sql::Journaled<Binder>);

#[cfg(feature = "journal")]
ordid_sql::work_journal! { impl[] UnitOfWork, Journaled, Entity, Error }

#[doc = ordid_sql::documentation!(sharded_parts)]
///
/// There is no two-phase commit: what must be written together belongs to one shard.
///
#[doc = ordid_sql::documentation!(sharded_parents)]
pub struct ShardedUnitOfWork(Sharded<UnitOfWork>);

ordid_sql::sharded_unit_of_work! {
    impl[] ShardedUnitOfWork, UnitOfWork, Entity, EngineProfile::ORACLE, Error
}

impl ShardedUnitOfWork {
    /// Flushes each shard into its own database as [`UnitOfWork::flush`] does, one after the other, the first shard
    /// over the first connection. Returns what was written for each shard. A shard without entities sends nothing.
    #[doc = ordid_sql::documentation!(sharded_errors)]
    pub fn flush(&mut self, connections: &[Connection]) -> Result<Vec<Flushed>, Error> {
        let sources = connections.iter().map(on_connection);
        Ok(blocking(self.0.flush(sources))?)
    }
}

#[doc = ordid_sql::documentation!(flushes_table)]
/// Oracle knows `IF NOT EXISTS` only from 23ai on, so it is not in it.
pub const fn flushes_table() -> &'static str {
    Oracle::FLUSHES_TABLE
}

#[doc = ordid_sql::documentation!(create_flushes_table)]
/// Oracle commits the transaction that is open on this connection.
///
/// # Errors
///
/// The library's, such as a privilege that is missing.
pub fn create_flushes_table(connection: &Connection) -> oracle::Result<()> {
    /// ORA-00955: name is already used by an existing object.
    const EXISTS: i32 = 955;
    match connection.execute(flushes_table(), &[]) {
        Err(error) if error.db_error().is_none_or(|it| it.code() != EXISTS) => Err(error),
        _ => Ok(()),
    }
}

#[doc = ordid_sql::documentation!(remove_old_markers)]
/// # Errors
///
/// The library's, a table that [is missing](crate::FlushError::is_flushes_table_missing), and a transaction that is
/// open.
pub fn remove_old_markers(connection: &Connection) -> Result<u64, Error> {
    let source = on_connection(connection);
    Ok(blocking(ordid_sql::remove_old_markers(source))?)
}
