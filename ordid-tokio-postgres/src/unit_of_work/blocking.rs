//! Flushes over clients of the crate `postgres`, whose calls block.

use std::{error::Error as StdError, ops::DerefMut};

use ordid_sql::{
    EngineProfile, Flushed,
    spi::{TransactionScope, blocking},
};
use postgres::{Client, Transaction};

use super::{ShardedUnitOfWork, UnitOfWork, flushes_table};
use crate::{
    Error,
    connection::{made_by_blocking, on_blocking},
};

impl UnitOfWork {
    /// As [`flush`](Self::flush), over a client of the crate `postgres`. It blocks, and between two attempts this thread
    /// sleeps.
    ///
    /// The client has a runtime of its own, so it panics inside another runtime: from a task of tokio, call this
    /// method in `spawn_blocking`.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush).
    ///
    /// # Example
    ///
    /// ```no_run
    /// use ordid::{KeyType, OrderedKey, uuid::Uuid};
    /// use ordid_tokio_postgres::UnitOfWork;
    /// use postgres::{Client, NoTls};
    ///
    /// #[derive(KeyType)]
    /// #[ordid(scheme = uuid_v7, tokio_postgres)]
    /// struct CityId(Uuid);
    ///
    /// #[derive(OrderedKey)]
    /// #[ordid(table = "cities")]
    /// struct City { #[ordid(key)] id: CityId, name: String }
    ///
    /// let mut client = Client::connect(&std::env::var("DATABASE_URL")?, NoTls)?;
    /// let mut work = UnitOfWork::new();
    /// let id = work.add(City { id: CityId::generate(), name: "Graz".into() });
    /// work.flush_blocking(&mut client)?;
    ///
    /// let name: String = client.query_one("SELECT name FROM cities WHERE id = $1", &[&id])?.get(0);
    /// assert_eq!(name, "Graz");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn flush_blocking(&mut self, client: &mut Client) -> Result<Flushed, Error> {
        let source = on_blocking(client);
        blocking(self.0.flush(source, TransactionScope::Transaction))
    }

    /// As [`flush_blocking`](Self::flush_blocking), over clients that `connect` returns, one at a time: clients of a
    /// pool, such as `|| pool.get()` of r2d2, or boxed new clients, `|| Client::connect(url, NoTls).map(Box::new)`.
    /// `connect` is called once, and again after each lost connection.
    ///
    #[doc = ordid_sql::documentation!(flush_with)]
    ///
    /// A pool must lend connections without an open transaction: the flush does not check this, and its COMMIT would
    /// commit such a transaction.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`flush`](Self::flush), and an error if the function fails at every attempt of the flush.
    pub fn flush_with_blocking<C, E>(
        &mut self,
        connect: impl FnMut() -> Result<C, E> + Send,
    ) -> Result<Flushed, Error>
    where
        C: DerefMut<Target = Client> + Send,
        E: StdError + Send + Sync + 'static,
    {
        let source = made_by_blocking(connect);
        blocking(self.0.flush(source, TransactionScope::Transaction))
    }

    /// As [`flush_in`](Self::flush_in), in a transaction of the crate `postgres`. It blocks.
    ///
    /// # Errors
    ///
    /// As [`flush_in`](Self::flush_in).
    pub fn flush_in_blocking(
        &mut self,
        transaction: &mut Transaction<'_>,
    ) -> Result<Flushed, Error> {
        let source = on_blocking(transaction);
        blocking(self.0.flush(source, TransactionScope::Savepoint))
    }
}

impl ShardedUnitOfWork {
    /// As [`flush`](Self::flush), over clients of the crate `postgres`, one after the other. It blocks.
    ///
    #[doc = ordid_sql::documentation!(sharded_errors)]
    pub fn flush_blocking(&mut self, clients: &mut [Client]) -> Result<Vec<Flushed>, Error> {
        blocking(self.0.flush(clients.iter_mut().map(on_blocking)))
    }

    /// As [`flush_blocking`](Self::flush_blocking), over clients that this function makes, in a box, or takes from a pool, for
    /// the shard with a number: as [`UnitOfWork::flush_with_blocking`].
    ///
    /// # Errors
    ///
    /// As [`flush_blocking`](Self::flush_blocking) and [`UnitOfWork::flush_with_blocking`].
    pub fn flush_with_blocking<C, E>(
        &mut self,
        connect: impl Fn(usize) -> Result<C, E> + Send + Sync,
    ) -> Result<Vec<Flushed>, Error>
    where
        C: DerefMut<Target = Client> + Send,
        E: StdError + Send + Sync + 'static,
    {
        let (shards, connect) = (0..self.sharding().shards(), &connect);
        let sources = shards.map(|shard| made_by_blocking(move || connect(shard)));
        blocking(self.0.flush(sources))
    }
}

/// As [`create_flushes_table`](crate::create_flushes_table), over a client of the crate `postgres`.
///
/// # Errors
///
/// As [`create_flushes_table`](crate::create_flushes_table).
pub fn create_flushes_table_blocking(client: &mut Client) -> Result<(), postgres::Error> {
    match client.batch_execute(flushes_table()) {
        Ok(()) => Ok(()),
        // `IF NOT EXISTS` does not see a table that another session is about to commit.
        Err(error) => client.batch_execute(flushes_table()).map_err(|_| error),
    }
}

/// As [`remove_old_markers`](crate::remove_old_markers), over a client of the crate `postgres`.
///
/// # Errors
///
/// As [`remove_old_markers`](crate::remove_old_markers).
pub fn remove_old_markers_blocking(client: &mut Client) -> Result<u64, Error> {
    blocking(ordid_sql::remove_old_markers(on_blocking(client)))
}

/// As [`detect_engine`](crate::detect_engine), over a client of the crate `postgres`.
///
/// # Errors
///
/// As [`detect_engine`](crate::detect_engine).
pub fn detect_engine_blocking(client: &mut Client) -> Result<EngineProfile, Error> {
    blocking(ordid_sql::detect_engine(on_blocking(client)))
}
