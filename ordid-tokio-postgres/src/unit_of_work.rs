//! The unit of work: entities of many types, inserted, updated and deleted together.

#[cfg(feature = "postgres")]
mod blocking;
#[cfg(not(feature = "postgres"))]
mod not_blocking;
mod two_phase;

use std::error::Error as StdError;

use ordid_core::storage::dialect::Postgres;
use ordid_sql::{EngineProfile, FlushDialect as _, Flushed, Sharded, Work, spi::TransactionScope};
use tokio_postgres::{Client, Transaction};

#[cfg(feature = "postgres")]
pub use self::blocking::{
    create_flushes_table_blocking, detect_engine_blocking, remove_old_markers_blocking,
};
pub use self::two_phase::{prepared_orphans, recover_prepared};
use crate::{
    Error,
    binder::{Binder, Entity},
    connection::{AsClient, Borrowed, made_by, on},
};

#[doc = ordid_sql::documentation!(unit_of_work)]
///
/// An entity is any struct with `#[derive(OrderedKey)]` whose key type names a column; each type's rows are kept in one
/// `Vec`.
///
#[doc = ordid_sql::documentation!(circles)]
/// A foreign key that is declared `#[ordid(parent, deferrable)]` needs no NULL: it is checked at COMMIT.
///
#[doc = ordid_sql::documentation!(updates)]
/// Many rows take one `UPDATE`; more than 1,000 rows of a table go through a temporary table, if the server lets the flush
/// make one: see [`EngineProfile::temporary_tables`]. `flush_in` makes none. Two rows cannot exchange unique values, since
/// PostgreSQL checks these row by row.
///
/// # Example: what would be sent
///
/// ```
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// use ordid_tokio_postgres::UnitOfWork;
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7, tokio_postgres)]
/// struct OrderId(Uuid);
///
/// #[derive(OrderedKey)]
/// #[ordid(table = "orders")]
/// struct Order { #[ordid(key)] id: OrderId, total: i64 }
///
/// let mut work = UnitOfWork::new();
/// for total in [1250, 990] {
///     work.add(Order { id: OrderId::generate(), total });
/// }
/// let plan = work.plan()?;
/// assert_eq!(
///     &*plan.tables[0].statements[0].sql,
///     r#"INSERT INTO "orders" ("id", "total") VALUES ($1, $2), ($3, $4)"#
/// );
/// # Ok::<(), ordid_tokio_postgres::Error>(())
/// ```
///
/// # Example: something without a key does not get in
///
/// ```compile_fail
/// struct Loose { name: String }
///
/// fn flush(work: &mut ordid_tokio_postgres::UnitOfWork) {
///     work.add(Loose { name: String::new() });
/// }
/// ```
#[doc(alias("bulk insert", "batch insert", "upsert", "insert many"))]
pub struct UnitOfWork(Work<Binder>);

ordid_sql::work_settings! { impl[] UnitOfWork, Binder }
ordid_sql::work_entities! { impl[] UnitOfWork, Entity }
ordid_sql::work_plan! { impl[] UnitOfWork, EngineProfile::POSTGRES, Error }

impl UnitOfWork {
    #[doc = ordid_sql::documentation!(flush)]
    ///
    #[doc = ordid_sql::documentation!(retries)]
    ///
    /// # Dropping the future
    ///
    /// A dropped flush leaves nothing behind: the transaction is rolled back before anything else is sent over the
    /// connection. You can go on using the connection, and the unit of work still has the entities. If the flush is
    /// dropped while it waits for the answer to COMMIT, all rows are written or none, as after a lost answer. The next
    /// `flush` then first asks the database, unless entities were added.
    ///
    /// # `COPY`
    ///
    /// A table with 1,000 rows or more is sent by `COPY` in binary form, which takes the server less than multi-row
    /// statements. The rows are the same, and so are the errors. If `COPY` would not do the same as `INSERT`, the
    /// flush sends an `INSERT`. [`FlushedTable::bulk`](crate::FlushedTable::bulk) counts the rows that were copied,
    /// and [`not_bulk`](crate::FlushedTable::not_bulk) says why the others were not. If many rows are upserted or
    /// updated, they may be copied into a temporary table; these two do not count such rows.
    ///
    /// - Rows are copied if their columns have PostgreSQL's own scalar types, without arrays, enums and domains, and
    ///   if no value is sent as text (`ToSql::encode_format`).
    /// - Rows are not copied into views, foreign tables, tables with rules, active row-level security or triggers, or
    ///   columns that an `INSERT` may not set, nor on servers before PostgreSQL 12.
    /// - Many rows may have been sent when one is refused. [`Error::chunk`](crate::FlushError::chunk) and
    ///   [`Error::key`](crate::FlushError::key) are found as described below. If they cannot be found,
    ///   [`Error::rows`](crate::FlushError::rows) has all rows of the command.
    ///
    #[doc = ordid_sql::documentation!(flush_errors)]
    ///
    /// A client with a transaction open is refused ([`is_connection_state`](crate::FlushError::is_connection_state)).
    pub async fn flush(&mut self, client: &mut Client) -> Result<Flushed, Error> {
        let source = on(Borrowed::Client(client));
        self.0.flush(source, TransactionScope::Transaction).await
    }

    /// As [`flush`](Self::flush), over clients that a function makes, or a pool lends: one at a time.
    ///
    #[doc = ordid_sql::documentation!(flush_with)]
    ///
    /// A pool must lend connections without an open transaction: the flush does not check this, and its COMMIT would
    /// commit such a transaction.
    ///
    /// If the flush is dropped while it waits for the server, it closes its connection. Otherwise the connection goes back
    /// to the pool, which may lend it at once: the ROLLBACK is sent before anything else.
    ///
    /// # Example
    ///
    /// ```no_run
    /// # use ordid::{KeyType, OrderedKey, uuid::Uuid};
    /// # #[derive(KeyType)]
    /// # #[ordid(scheme = uuid_v7, tokio_postgres)]
    /// # struct CityId(Uuid);
    /// # #[derive(OrderedKey)]
    /// # struct City { id: CityId }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use ordid_tokio_postgres::UnitOfWork;
    /// use tokio_postgres::{Client, Error, NoTls};
    ///
    /// async fn connect(url: &str) -> Result<Client, Error> {
    ///     let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    ///     tokio::spawn(connection);
    ///     Ok(client)
    /// }
    ///
    /// let url = std::env::var("DATABASE_URL")?;
    /// let mut work = UnitOfWork::new();
    /// work.add(City { id: CityId::generate() });
    /// // Likewise, of a pool of deadpool-postgres or bb8-postgres, `|| pool.get()`.
    /// work.flush_with(|| connect(&url)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`flush`](Self::flush), and an error if the function fails at every attempt of the flush.
    pub async fn flush_with<C, E, W>(
        &mut self,
        connect: impl FnMut() -> W + Send,
    ) -> Result<Flushed, Error>
    where
        C: AsClient,
        E: StdError + Send + Sync + 'static,
        W: Future<Output = Result<C, E>> + Send,
    {
        let source = made_by(connect);
        self.0.flush(source, TransactionScope::Transaction).await
    }

    #[doc = ordid_sql::documentation!(flush_in)]
    /// The savepoint is called `ordid_flush`. This method never sends `COPY`.
    ///
    /// If the flush is dropped before its end, it is rolled back before anything else is sent in the transaction, and
    /// you can go on using the transaction. If it is dropped while it waits for the end of its savepoint, all rows
    /// stay in the transaction.
    ///
    #[doc = ordid_sql::documentation!(flush_in_errors)]
    pub async fn flush_in(&mut self, transaction: &mut Transaction<'_>) -> Result<Flushed, Error> {
        let source = on(Borrowed::Shared(transaction.client()));
        self.0.flush(source, TransactionScope::Savepoint).await
    }
}

#[doc = ordid_sql::documentation!(journaled)]
#[cfg(feature = "journal")]
pub struct Journaled(ordid_sql::Journaled<Binder>);

#[cfg(feature = "journal")]
ordid_sql::work_journal! { impl[] UnitOfWork, Journaled, Entity, Error }

#[doc = ordid_sql::documentation!(sharded_parts)]
///
/// What must be written together belongs to one shard. Where that cannot be, there is
/// [`two_phase_commit`](Self::two_phase_commit), which has its price.
///
#[doc = ordid_sql::documentation!(sharded_parents)]
/// # Example: orders live where their customer lives
///
/// ```no_run
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// use ordid_tokio_postgres::{ShardedUnitOfWork, Sharding};
/// use tokio_postgres::Client;
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7, tokio_postgres)]
/// struct CustomerId(Uuid);
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7, tokio_postgres)]
/// struct OrderId(Uuid);
///
/// #[derive(OrderedKey)]
/// struct Order { #[ordid(key)] id: OrderId, customer: CustomerId, total: i64 }
///
/// async fn flush(clients: &mut [Client; 2]) -> Result<(), Box<dyn std::error::Error>> {
///     let sharding = Sharding::by_hash(2)?.route(|order: &Order| order.customer);
///     let mut work = ShardedUnitOfWork::new(sharding);
///     work.add(Order { id: OrderId::generate(), customer: CustomerId::generate(), total: 1250 })?;
///     work.flush(clients).await?;
///     Ok(())
/// }
/// ```
pub struct ShardedUnitOfWork(Sharded<UnitOfWork>);

ordid_sql::sharded_unit_of_work! {
    impl[] ShardedUnitOfWork, UnitOfWork, Entity, EngineProfile::POSTGRES, Error
}

impl ShardedUnitOfWork {
    /// Flushes each shard into its own database, the first over the first client, each in a transaction of its own and all
    /// at the same time: as [`UnitOfWork::flush`]. Returns what each of them wrote. A shard without entities sends nothing.
    #[doc = ordid_sql::documentation!(sharded_errors)]
    pub async fn flush(&mut self, clients: &mut [Client]) -> Result<Vec<Flushed>, Error> {
        let sources = clients.iter_mut().map(|it| on(Borrowed::Client(it)));
        self.0.flush(sources).await
    }

    /// As [`flush`](Self::flush), over clients that a function gets from a pool, or from what else there is for each shard:
    /// `work.flush_with(&pools, |pool| pool.get())`.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush) and [`UnitOfWork::flush_with`].
    pub async fn flush_with<'p, P, C, E, W>(
        &mut self,
        pools: &'p [P],
        connect: impl Fn(&'p P) -> W + Send + Sync,
    ) -> Result<Vec<Flushed>, Error>
    where
        P: Sync,
        C: AsClient,
        E: StdError + Send + Sync + 'static,
        W: Future<Output = Result<C, E>> + Send,
    {
        let connect = &connect;
        let sources = pools.iter().map(|pool| made_by(move || connect(pool)));
        self.0.flush(sources).await
    }
}

#[doc = ordid_sql::documentation!(flushes_table)]
/// It does nothing if the table exists.
///
/// # Example
///
/// ```
/// let sql = ordid_tokio_postgres::flushes_table();
/// assert!(sql.starts_with("CREATE TABLE IF NOT EXISTS ordid_flushes"));
/// ```
pub const fn flushes_table() -> &'static str {
    Postgres::FLUSHES_TABLE
}

#[doc = ordid_sql::documentation!(create_flushes_table)]
/// # Errors
///
/// tokio-postgres', such as a privilege that is missing.
pub async fn create_flushes_table(client: &Client) -> Result<(), tokio_postgres::Error> {
    match client.batch_execute(flushes_table()).await {
        Ok(()) => Ok(()),
        // `IF NOT EXISTS` does not see a table that another session is about to commit.
        Err(error) => {
            let again = client.batch_execute(flushes_table()).await;
            again.map_err(|_| error)
        }
    }
}

#[doc = ordid_sql::documentation!(remove_old_markers)]
/// # Errors
///
/// tokio-postgres', a table that [is missing](crate::FlushError::is_flushes_table_missing), and a transaction that is open.
pub async fn remove_old_markers(client: &mut Client) -> Result<u64, Error> {
    ordid_sql::remove_old_markers(on(Borrowed::Client(client))).await
}

#[doc = ordid_sql::documentation!(detect_engine)]
/// # Errors
///
/// tokio-postgres', and a transaction that is open.
pub async fn detect_engine(client: &mut Client) -> Result<EngineProfile, Error> {
    ordid_sql::detect_engine(on(Borrowed::Client(client))).await
}
