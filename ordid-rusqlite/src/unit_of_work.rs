//! The unit of work: entities of many types, inserted, updated and deleted together.

use std::{error::Error as StdError, ops::Deref};

use ordid_sql::{
    Flushed, Work,
    spi::{TransactionScope, blocking},
};
use rusqlite::Connection;

use crate::{
    Error,
    binder::{Binder, Entity},
    connection::{ENGINE, inside, made_by, on_connection},
};

#[doc = ordid_sql::documentation!(unit_of_work)]
///
/// An entity is any struct with `#[derive(OrderedKey)]` whose key type names a column, and whose fields implement
/// rusqlite's `ToSql`; each type's rows are kept in one `Vec`.
///
#[doc = ordid_sql::documentation!(circles)]
/// A foreign key that is declared `#[ordid(parent, deferrable)]` needs no NULL: it is checked at COMMIT.
///
#[doc = ordid_sql::documentation!(updates)]
/// SQLite takes many rows an `UPDATE` from 3.33 on. Two rows cannot exchange unique values, since these are checked row by
/// row.
///
/// SQLite checks foreign keys only under `PRAGMA foreign_keys = ON`. The SQLite that is built with `libsqlite3-sys` has it on;
/// with the system's, each connection has to say it.
///
/// # Example: something without a key does not get in
///
/// ```compile_fail
/// struct Loose { name: String }
///
/// fn flush(work: &mut ordid_rusqlite::UnitOfWork) {
///     work.add(Loose { name: String::new() });
/// }
/// ```
#[doc(alias("bulk insert", "batch insert", "upsert", "insert many"))]
pub struct UnitOfWork(pub(crate) Work<Binder>);

ordid_sql::work_settings! { impl[] UnitOfWork, Binder }
ordid_sql::work_entities! { impl[] UnitOfWork, Entity }
ordid_sql::work_plan! { impl[] UnitOfWork, ENGINE, Error }

impl UnitOfWork {
    #[doc = ordid_sql::documentation!(flush)]
    ///
    /// The transaction begins with `BEGIN IMMEDIATE`, so it waits for another writer before it sends a row, as long as
    /// the connection's [`busy_timeout`](Connection::busy_timeout) says: five seconds, unless you set another.
    ///
    #[doc = ordid_sql::documentation!(retries)]
    /// Between two attempts this thread sleeps.
    ///
    /// # From async code
    ///
    /// The flush blocks. Run it by tokio's `spawn_blocking`, on a thread that may block, or by `interact` of a
    /// connection of the crate deadpool-sqlite, which lends the `&mut Connection` for this method:
    ///
    /// ```
    #[doc = include_str!("example_city.md")]
    /// use ordid_rusqlite::UnitOfWork;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let runtime = deadpool_runtime::Runtime::Tokio1;
    /// # let open = || {
    /// #     let connection = rusqlite::Connection::open_in_memory()?;
    /// #     connection.execute_batch(TABLE)?;
    /// #     Ok::<_, rusqlite::Error>(connection)
    /// # };
    /// # let connection = deadpool_sync::SyncWrapper::new(runtime, open).await?;
    /// let mut work = UnitOfWork::new();
    /// work.add(City { id: CityId::generate() });
    /// // The unit of work comes back, since it has the rows of a flush that failed.
    /// let flush = connection.interact(move |connection| (work.flush(connection), work));
    /// let (flushed, work) = flush.await?;
    /// assert_eq!((flushed?.rows(), work.len()), (1, 0));
    /// # Ok(())
    /// # }
    /// ```
    ///
    #[doc = ordid_sql::documentation!(flush_errors)]
    ///
    /// A connection with a transaction open is refused ([`is_connection_state`](Error::is_connection_state)): see
    /// [`flush_in`](Self::flush_in).
    pub fn flush(&mut self, connection: &mut Connection) -> Result<Flushed, Error> {
        let source = on_connection(connection);
        blocking(self.0.flush(source, TransactionScope::Transaction))
    }

    /// As [`flush`](Self::flush), over a connection that a pool lends, or a boxed connection that the given function
    /// opens. The function is called once, and again after a connection was lost. A connection of SQLite counts as
    /// lost if SQLite does not say whether the disk has a COMMIT.
    ///
    #[doc = ordid_sql::documentation!(flush_with)]
    ///
    /// # Errors
    ///
    /// Returns the errors of [`flush`](Self::flush), and an error if the function fails at every attempt of the flush.
    ///
    /// # Example
    ///
    /// ```
    #[doc = include_str!("example_city.md")]
    /// use ordid_rusqlite::UnitOfWork;
    /// use r2d2_sqlite::SqliteConnectionManager;
    /// use rusqlite::Connection;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("cities.db");
    /// let pool = r2d2::Pool::new(SqliteConnectionManager::file(&path))?;
    /// # pool.get()?.execute_batch(TABLE)?;
    /// let mut work = UnitOfWork::new();
    /// work.add(City { id: CityId::generate() });
    /// work.flush_with(|| pool.get())?;
    ///
    /// work.add(City { id: CityId::generate() });
    /// work.flush_with(|| Connection::open(&path).map(Box::new))?;
    /// # let cities: i64 = pool.get()?.query_row("SELECT count(*) FROM cities", [], |row| row.get(0))?;
    /// # assert_eq!(cities, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn flush_with<C, E>(
        &mut self,
        connect: impl FnMut() -> Result<C, E> + Send,
    ) -> Result<Flushed, Error>
    where
        C: Deref<Target = Connection> + Send,
        E: StdError + Send + Sync + 'static,
    {
        let source = made_by(connect);
        blocking(self.0.flush(source, TransactionScope::Transaction))
    }

    #[doc = ordid_sql::documentation!(flush_in)]
    /// The savepoint is called `ordid_flush`. SQLite ends the whole transaction by itself where the disk is full or fails,
    /// and at a constraint that says `ON CONFLICT ROLLBACK`.
    ///
    #[doc = ordid_sql::documentation!(flush_in_errors)]
    /// It is an error if no transaction is open.
    ///
    /// # Example
    ///
    /// ```
    #[doc = include_str!("example_city.md")]
    /// # let mut connection = rusqlite::Connection::open_in_memory()?;
    /// # connection.execute_batch(TABLE)?;
    /// let mut work = ordid_rusqlite::UnitOfWork::new();
    /// work.add(City { id: CityId::generate() });
    ///
    /// let transaction = connection.transaction()?;
    /// work.flush_in(&transaction)?;
    /// transaction.commit()?;
    /// work.clear();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn flush_in(&mut self, transaction: &Connection) -> Result<Flushed, Error> {
        let source = inside(transaction);
        blocking(self.0.flush(source, TransactionScope::Savepoint))
    }
}

#[doc = ordid_sql::documentation!(journaled)]
/// # Example: a run that did not come to its end
///
/// ```
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// use ordid_file::FlushJournal;
/// use ordid_rusqlite::{Journaled, UnitOfWork};
/// use rusqlite::Connection;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7, rusqlite)]
/// struct OrderId(Uuid);
///
/// #[derive(OrderedKey, Serialize, Deserialize)]
/// #[ordid(table = "orders")]
/// struct Order { #[ordid(key)] id: OrderId, total: i64 }
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("orders.journal");
/// let mut connection = Connection::open_in_memory()?;
/// let journal = FlushJournal::open(&path)?;
/// let mut work = UnitOfWork::new().with_journal(Journaled::new(journal).row::<Order>());
/// let id = work.add(Order { id: OrderId::generate(), total: 1250 });
/// work.flush(&mut connection).unwrap_err(); // there is no table yet
/// drop(work); // and here the process ends
///
/// connection.execute_batch(
///     "CREATE TABLE orders (id BLOB NOT NULL PRIMARY KEY, total INTEGER NOT NULL) WITHOUT ROWID",
/// )?;
/// let journal = FlushJournal::open(&path)?;
/// let mut work = UnitOfWork::new().with_journal(Journaled::new(journal).row::<Order>());
/// assert_eq!(work.resume()?, 1);
/// work.flush(&mut connection)?;
///
/// let found: OrderId = connection.query_row("SELECT id FROM orders", [], |row| row.get(0))?;
/// assert_eq!(found, id);
/// assert_eq!(std::fs::metadata(&path)?.len(), 0); // nothing is pending
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "journal")]
pub struct Journaled(ordid_sql::Journaled<Binder>);

#[cfg(feature = "journal")]
ordid_sql::work_journal! { impl[] UnitOfWork, Journaled, Entity, Error }
