//! The unit of work: entities of many types, inserted, updated and deleted together.

#[cfg(feature = "async")]
mod awaited;
#[cfg(not(feature = "async"))]
mod not_awaited;
#[cfg(all(test, feature = "sqlite", feature = "postgres", feature = "mysql"))]
mod tests;

#[cfg(feature = "async")]
pub use self::awaited::detect_engine_async;
use diesel::connection::LoadConnection;
use ordid_sql::{
    EngineProfile, Flushed, Work,
    spi::{TransactionScope, blocking},
};

use crate::{
    Error,
    backend::Backend,
    connection::{Blocking, Source, engine},
    entity::{Binder, Entity},
};

#[doc = ordid_sql::documentation!(unit_of_work)]
///
/// The backend is inferred from the connection that it is flushed over: any `Connection` of Diesel's,
/// also one of a pool. An entity is any struct with `#[derive(OrderedKey)]` and `#[ordid(diesel)]`
/// beside its `#[diesel(table_name = ...)]`; each type's rows are kept in one `Vec`.
///
#[doc = ordid_sql::documentation!(changes)]
/// # Example: something without a key does not get in
///
/// ```compile_fail
/// struct Loose { name: String }
///
/// fn flush(work: &mut ordid_diesel::UnitOfWork<diesel::sqlite::Sqlite>) {
///     work.add(Loose { name: String::new() });
/// }
/// ```
///
/// # Example: what a flush would send
///
/// The entities are those of the [crate's example](crate#example-a-graph-of-rows-in-one-transaction).
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
#[doc = include_str!("example_entities.md")]
/// use ordid_diesel::UnitOfWork;
///
/// let mut work = UnitOfWork::<diesel::sqlite::Sqlite>::new();
/// let customer = CustomerId::generate();
/// for total in [1250, 990] {
///     work.add(Order { id: OrderId::generate(), customer, total });
/// }
/// work.add(Customer { id: customer, name: "Ada".into() });
///
/// let plan = work.plan()?;
/// let sent: Vec<&str> = plan.tables.iter().map(|table| &*table.statements[0].sql).collect();
/// assert_eq!(
///     sent,
///     [
///         "INSERT INTO `customers` (`id`, `name`) VALUES (?, ?)",
///         "INSERT INTO `orders` (`id`, `customer`, `total`) VALUES (?, ?, ?), (?, ?, ?)",
///     ]
/// );
/// assert_eq!(plan.tables[1].rows, 2);
/// # Ok::<(), ordid_diesel::Error>(())
/// ```
#[doc(alias("bulk insert", "batch insert", "upsert", "insert many"))]
pub struct UnitOfWork<DB: Backend>(pub(crate) Work<Binder<DB>>);

ordid_sql::work_settings! { impl[DB: Backend] UnitOfWork<DB>, Binder<DB> }
ordid_sql::work_entities! { impl[DB: Backend] UnitOfWork<DB>, Entity<DB> }
ordid_sql::work_plan! { impl[DB: Backend] UnitOfWork<DB>, engine::<DB>(), Error }

#[doc = ordid_sql::documentation!(journaled)]
/// # Example: a run that did not come to its end
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
/// # use libsqlite3_sys as _;
/// use diesel::{connection::SimpleConnection, prelude::*};
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// use ordid_diesel::{Journaled, UnitOfWork};
/// use ordid_file::FlushJournal;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7, diesel)]
/// struct OrderId(Uuid);
///
/// diesel::table! {
///     orders (id) { id -> Binary, total -> BigInt, }
/// }
///
/// #[derive(OrderedKey, Serialize, Deserialize)]
/// #[diesel(table_name = orders)]
/// #[ordid(diesel)]
/// struct Order { id: OrderId, total: i64 }
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("orders.journal");
/// let mut connection = SqliteConnection::establish(":memory:")?;
/// let journal = FlushJournal::open(&path)?;
/// let mut work = UnitOfWork::new().with_journal(Journaled::new(journal).row::<Order>());
/// let id = work.add(Order { id: OrderId::generate(), total: 1250 });
/// work.flush(&mut connection).unwrap_err(); // there is no table yet
/// drop(work); // and here the process ends
///
/// connection.batch_execute(
///     "CREATE TABLE orders (id BLOB NOT NULL PRIMARY KEY, total INTEGER NOT NULL)",
/// )?;
/// let journal = FlushJournal::open(&path)?;
/// let mut work = UnitOfWork::new().with_journal(Journaled::new(journal).row::<Order>());
/// assert_eq!(work.resume()?, 1);
/// work.flush(&mut connection)?;
///
/// let found: OrderId = orders::table.select(orders::id).first(&mut connection)?;
/// assert_eq!(found, id);
/// assert_eq!(std::fs::metadata(&path)?.len(), 0); // nothing is pending
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "journal")]
pub struct Journaled<DB: Backend>(ordid_sql::Journaled<Binder<DB>>);

#[cfg(feature = "journal")]
ordid_sql::work_journal! { impl[DB: Backend] UnitOfWork<DB>, Journaled<DB>, Entity<DB>, Error }

impl<DB: Backend> UnitOfWork<DB> {
    /// Writes everything in one transaction of its own, and empties the unit of work. If the flush fails,
    /// nothing is written, and the unit of work still has the same entities with the same keys, so it can be
    /// flushed again.
    ///
    /// # Retries
    ///
    /// If another attempt on the same connection may succeed ([`Error::is_transient`]), the flush is rolled back
    /// and retried with the same keys, as often as [`with_retry`](Self::with_retry) says; this thread sleeps
    /// between two attempts. A lost connection ends the flush: see [`flush_with`](Self::flush_with), or flush again
    /// over another connection. If the answer to COMMIT was lost ([`Error::is_commit_unknown`]), that second flush
    /// first asks the database whether the rows are there.
    ///
    /// Diesel does not show most error codes, so this crate recognizes some errors by their English texts. If the
    /// server has other `lc_messages`, a lock time-out is not retried, and a failed COMMIT is unknown rather than
    /// refused.
    ///
    /// # In an open transaction
    ///
    /// The flush is refused, since it would be neither alone in the transaction nor committed: call
    /// [`flush_in`](Self::flush_in). In a test transaction of Diesel's (`begin_test_transaction`) the flush
    /// uses a savepoint, and is not retried.
    ///
    #[doc = ordid_sql::documentation!(flush_errors)]
    pub fn flush<C>(&mut self, connection: &mut C) -> Result<Flushed, Error>
    where
        C: LoadConnection<Backend = DB> + 'static,
    {
        let source = Source::<Blocking, C>::one(connection);
        blocking(self.0.flush(source, TransactionScope::Transaction))
    }

    /// As [`flush`](Self::flush), over connections that a function makes or takes from a pool: one at a
    /// time, given back while the flush waits. A lost connection does not end the flush, which goes on over
    /// another one.
    ///
    #[doc = ordid_sql::documentation!(unknown_commits)]
    ///
    /// # Example
    ///
    #[cfg_attr(feature = "sqlite", doc = "```no_run")]
    #[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
    /// use diesel::{Connection, SqliteConnection};
    ///
    /// let mut work = ordid_diesel::UnitOfWork::new();
    /// // Likewise `|| PgConnection::establish(&url)`, or of a pool `|| pool.get()`.
    /// work.flush_with(|| SqliteConnection::establish("shop.db"))?;
    /// # Ok::<(), ordid_diesel::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`flush`](Self::flush), and an error if the function fails at every attempt of the flush.
    pub fn flush_with<C, E, F>(&mut self, connect: F) -> Result<Flushed, Error>
    where
        C: LoadConnection<Backend = DB> + 'static,
        E: std::error::Error + Send + Sync + 'static,
        F: FnMut() -> Result<C, E> + Send,
    {
        let source = Source::blocking(connect);
        blocking(self.0.flush(source, TransactionScope::Transaction))
    }

    #[doc = ordid_sql::documentation!(flush_in)]
    #[doc = ordid_sql::documentation!(flush_in_errors)]
    /// It is an error if no transaction is open.
    pub fn flush_in<C>(&mut self, connection: &mut C) -> Result<Flushed, Error>
    where
        C: LoadConnection<Backend = DB> + 'static,
    {
        let source = Source::<Blocking, C>::one(connection);
        blocking(self.0.flush(source, TransactionScope::Savepoint))
    }
}

#[doc = ordid_sql::documentation!(detect_engine)]
/// # Errors
///
/// Diesel's, and a transaction that is open.
pub fn detect_engine<C>(connection: &mut C) -> Result<EngineProfile, Error>
where
    C: LoadConnection<Backend: Backend> + Send + 'static,
{
    let source = Source::<Blocking, C>::one(connection);
    blocking(ordid_sql::detect_engine(source))
}
