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

#[doc = ordid_sql::docs!(unit_of_work)]
///
#[doc = ordid_sql::docs!(entities)]
/// Up to 1,000 rows go in one round trip, by array binds.
///
#[doc = ordid_sql::docs!(circles)]
/// With a foreign key that is declared `#[ordid(parent, deferrable)]` this is not necessary: it is checked at COMMIT.
///
#[doc = ordid_sql::docs!(changes)]
/// Two rows cannot exchange unique values, since each is an `UPDATE` of its own to Oracle, of which it takes 1,000 at
/// once.
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

    #[doc = ordid_sql::docs!(flush)]
    ///
    #[doc = ordid_sql::docs!(retries)]
    /// Between two attempts this thread sleeps.
    ///
    /// # Errors
    ///
    /// What [`plan`](Self::plan) finds, before anything is sent. Otherwise says what failed, in which table, which
    /// chunk, and with which row's key. A connection that commits by itself, or with a transaction open, is refused
    /// ([`is_connection_state`](crate::FlushError::is_connection_state)): Oracle begins a transaction with the first
    /// statement that needs one, and what was done before would be committed with the flush.
    pub fn flush(&mut self, connection: &Connection) -> Result<Flushed, Error> {
        self.flush_within(connection, TransactionScope::Transaction)
    }

    /// As [`flush`](Self::flush), over a connection that this function makes, or a pool lends. It is called once, and
    /// again after a connection was lost.
    ///
    #[doc = ordid_sql::docs!(flush_with)]
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush), and what the function returns. A failure that may pass, such as that there is no
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
        let source = made_by(|| connect().map_err(|error| error.into().of_connecting()));
        Ok(blocking(
            self.0.flush(source, TransactionScope::Transaction),
        )?)
    }

    #[doc = ordid_sql::docs!(flush_in)]
    ///
    #[doc = ordid_sql::docs!(flush_in_errors)]
    ///
    /// # The savepoint
    ///
    /// It is called `ordid_flush`. Constraints that the database checks at COMMIT fail in your commit, not here. If the
    /// flush had to defer them, all that can be deferred stay so until then.
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

#[doc = ordid_sql::docs!(journaled)]
#[cfg(feature = "journal")]
pub struct Journaled(ordid_sql::Journaled<Binder>);

#[cfg(feature = "journal")]
ordid_sql::work_journal! { impl[] UnitOfWork, Journaled, Entity, Error }

#[doc = ordid_sql::docs!(sharded)]
pub struct ShardedUnitOfWork(Sharded<UnitOfWork>);

ordid_sql::sharded_unit_of_work! {
    impl[] ShardedUnitOfWork, UnitOfWork, Entity, EngineProfile::ORACLE, Error
}

impl ShardedUnitOfWork {
    #[doc = ordid_sql::docs!(sharded_flush)]
    /// The shards are flushed one after the other.
    ///
    #[doc = ordid_sql::docs!(sharded_errors)]
    pub fn flush(&mut self, connections: &[Connection]) -> Result<Vec<Flushed>, Error> {
        let shards = connections.len();
        let flush = self.0.flush(EngineProfile::ORACLE, shards, |work, shard| {
            let source = on_connection(&connections[shard]);
            Box::pin(work.0.flush(source, TransactionScope::Transaction))
        });
        Ok(blocking(flush)?)
    }
}

#[doc = ordid_sql::docs!(flushes_table)]
/// Oracle knows `IF NOT EXISTS` only from 23ai on, so it is not in it: run it once.
pub const fn flushes_table() -> &'static str {
    Oracle::FLUSHES_TABLE
}
