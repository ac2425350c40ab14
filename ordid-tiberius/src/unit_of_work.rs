//! The unit of work: entities of many types, inserted, updated and deleted together.

mod connection;
mod load;

use ordid_core::storage::dialect::{Babelfish, SqlServer};
use ordid_sql::{FlushDialect, FlushError, Flushed, Work, spi::TransactionScope};
use tiberius::Client;

pub(crate) use self::connection::{Connect, Connecting, Source};

pub(crate) use self::load::offers as load_offers;
use crate::{
    binder::{Binder, Entity},
    error::Error,
    flavour::Flavour,
    lease::Stream,
};

#[doc = ordid_sql::documentation!(unit_of_work)]
///
/// An entity is any struct with `#[derive(OrderedKey)]` whose key type names a column; each type's rows are kept in one
/// `Vec`. `D` is [`SqlServer`] ([`new`](UnitOfWork::new)) or [`Babelfish`]
/// ([`for_babelfish`](UnitOfWork::for_babelfish)). The type of the client does not say which server it is connected to,
/// and the two servers sort in different orders. So a flush asks the server, and fails if it is the wrong one.
///
#[doc = ordid_sql::documentation!(circles)]
///
#[doc = ordid_sql::documentation!(updates)]
/// One `UPDATE` changes many rows, and it converts a value as an `INSERT` would. On Babelfish two rows cannot exchange
/// unique values, since PostgreSQL checks unique values row by row.
///
/// # Example: what would be sent
///
/// ```
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// use ordid_tiberius::UnitOfWork;
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v8_sql_server, tiberius)]
/// struct AccountId(Uuid);
///
/// #[derive(OrderedKey)]
/// #[ordid(table = "accounts")]
/// struct Account { id: AccountId, balance: i64 }
///
/// let mut work = UnitOfWork::new();
/// let (first, second) = (AccountId::generate(), AccountId::generate());
/// work.update(Account { id: second, balance: 10 });
/// work.delete(&Account { id: first, balance: 10 });
/// let plan = work.plan()?;
/// assert_eq!(
///     &*plan.tables[0].statements[0].sql,
///     "UPDATE ordid_target SET [balance] = ordid_rows.[balance] FROM [accounts] AS ordid_target JOIN \
///      (VALUES (@P1, @P2)) AS ordid_rows ([id], [balance]) ON ordid_target.[id] = ordid_rows.[id]; \
///      SELECT @@ROWCOUNT"
/// );
/// # Ok::<(), ordid_tiberius::Error>(())
/// ```
///
/// # Example: something without a key does not get in
///
/// ```compile_fail
/// struct Loose { name: String }
///
/// fn flush(work: &mut ordid_tiberius::UnitOfWork) {
///     work.add(Loose { name: String::new() });
/// }
/// ```
///
/// # Example: neither does a bare UUID as a key of SQL Server
///
/// It may be of any version, and most lose their order there.
///
/// ```compile_fail,E0277
/// use ordid::{OrderedKey, uuid::Uuid};
///
/// #[derive(OrderedKey)]
/// struct Order { id: Uuid, total: i64 }
///
/// fn flush(work: &mut ordid_tiberius::UnitOfWork, order: Order) {
///     work.add(order);
/// }
/// ```
///
/// On Babelfish it may be one:
///
/// ```
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
///
/// #[derive(OrderedKey)]
/// struct Order { id: Uuid, total: i64 }
///
/// let mut work = ordid_tiberius::UnitOfWork::for_babelfish();
/// work.add(Order { id: Uuid::generate(), total: 1250 });
/// assert_eq!(work.len(), 1);
/// ```
#[doc(alias("bulk insert", "batch insert", "upsert", "insert many"))]
pub struct UnitOfWork<D: Flavour = SqlServer>(Work<Binder<D>>);

impl UnitOfWork {
    /// Makes an empty unit of work for SQL Server.
    pub fn new() -> Self {
        Self::default()
    }
}

impl UnitOfWork<Babelfish> {
    /// Makes an empty unit of work for Babelfish.
    pub fn for_babelfish() -> Self {
        Self::default()
    }
}

ordid_sql::work_settings! { @ impl[D: Flavour] UnitOfWork<D>, Binder<D> }
ordid_sql::work_entities! { impl[D: Flavour] UnitOfWork<D>, Entity<D> }
ordid_sql::work_plan! { impl[D: Flavour] UnitOfWork<D>, D::PROFILE, Error }

#[doc = ordid_sql::documentation!(journaled)]
#[cfg(feature = "journal")]
pub struct Journaled<D: Flavour = SqlServer>(ordid_sql::Journaled<Binder<D>>);

#[cfg(feature = "journal")]
ordid_sql::work_journal! { impl[D: Flavour] UnitOfWork<D>, Journaled<D>, Entity<D>, Error }

impl<D: Flavour> UnitOfWork<D> {
    #[doc = ordid_sql::documentation!(flush)]
    ///
    /// If the future is dropped, or the flush fails with an error that
    /// [`is_connection_lost`](crate::FlushError::is_connection_lost), drop the client. tiberius cannot use it again,
    /// and its transaction stays open until the client is dropped, which rolls it back. If the future is dropped while
    /// it waits for the answer to COMMIT, the outcome is as unknown as after a lost answer.
    ///
    #[doc = ordid_sql::documentation!(retries)]
    ///
    /// # Bulk load on SQL Server
    ///
    /// If a table's rows would take more than four statements, they are sent by `INSERT BULK`. If they are sent in the
    /// order of the key, the command has the hint `ORDER([id] ASC)`, so that the server need not sort them. Rows of a
    /// table that refers to itself, for example, may be sent in another order; then the hint is left out. Constraints
    /// are checked, triggers fire and NULL stays NULL, so the stored rows are the same as after an `INSERT`. Where they
    /// might differ, the table is sent by statements of at most 2,098 parameters and 1,000 rows each;
    /// [`FlushedTable::bulk`](crate::FlushedTable::bulk) counts the rows that were sent in bulk. A table is sent by
    /// statements
    ///
    /// - where a value is not of its column's own type, such as `i32` in a `bigint` column, or has to
    ///   be rounded, cut off, or converted: text in a `varchar` goes if it is ASCII, and a
    ///   `datetime2` only at scale 7, which is that of tiberius' values;
    /// - for `nchar`, `char`, `datetime`, `money`, `xml` columns, and for `nvarchar(n)` above 2,000
    ///   characters, which tiberius 0.13 declares in other words than it sends;
    /// - for identity columns, computed ones, views, and tables that may not be read;
    /// - for tables with an `INSTEAD OF` trigger or an index with `IGNORE_DUP_KEY`, as the rows of a load are not counted;
    /// - on Babelfish.
    ///
    /// The answer to a load comes at its end: it must come within tiberius'
    /// [`Config::command_timeout`](tiberius::Config::command_timeout), 30 seconds unless you say
    /// otherwise.
    ///
    #[doc = ordid_sql::documentation!(flush_errors)]
    ///
    /// A server of another flavour, and a transaction that is open already, are errors.
    pub async fn flush<S: Stream>(&mut self, client: &mut Client<S>) -> Result<Flushed, Error> {
        Ok(self.flush_over(client, None).await?)
    }

    /// Does the same as [`flush`](Self::flush), but continues over another connection if one is lost: `connect` makes
    /// the new connection, which replaces the client.
    ///
    #[doc = ordid_sql::documentation!(flush_with)]
    /// The first connection is the client as it is: if it was idle for long, so that its connection is gone, that costs
    /// an attempt, too.
    ///
    /// If it fails with [`is_connection_lost`](crate::FlushError::is_connection_lost), or the future is dropped, drop the client.
    ///
    /// # Example
    ///
    /// ```no_run
    /// # use ordid::{KeyType, OrderedKey, uuid::Uuid};
    /// # #[derive(KeyType)]
    /// # #[ordid(scheme = uuid_v8_sql_server, tiberius)]
    /// # struct OrderId(Uuid);
    /// # #[derive(OrderedKey)]
    /// # struct Order { id: OrderId, total: i64 }
    /// use ordid_tiberius::UnitOfWork;
    /// use tiberius::{Client, Config};
    /// use tokio::net::TcpStream;
    /// use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt};
    ///
    /// async fn connect(config: &Config) -> tiberius::Result<Client<Compat<TcpStream>>> {
    ///     let stream = TcpStream::connect(config.get_addr()).await?;
    ///     Client::connect(config.clone(), stream.compat_write()).await
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let config = Config::from_ado_string(&std::env::var("MSSQL_URL")?)?;
    /// let mut client = connect(&config).await?;
    /// let mut work = UnitOfWork::new();
    /// work.add(Order { id: OrderId::generate(), total: 1250 });
    /// work.flush_with(&mut client, || connect(&config)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush), and the last of `connect`'s.
    pub async fn flush_with<S, C, F>(
        &mut self,
        client: &mut Client<S>,
        mut connect: C,
    ) -> Result<Flushed, Error>
    where
        S: Stream,
        C: FnMut() -> F + Send,
        F: Future<Output = tiberius::Result<Client<S>>> + Send,
    {
        let connect = Box::new(move || -> Connecting<'_, S> { Box::pin(connect()) });
        Ok(self.flush_over(client, Some(connect)).await?)
    }

    #[doc = ordid_sql::documentation!(flush_in)]
    /// It never sends a bulk load: asking for the columns may fail, and with it your transaction.
    ///
    /// SQL Server itself ends the transaction at a deadlock ([`Error::is_deadlock`]), and at any error under
    /// `SET XACT_ABORT ON`. The savepoint is gone then, too, and the error says
    /// [`is_transaction_over`](crate::FlushError::is_transaction_over).
    ///
    #[doc = ordid_sql::documentation!(flush_in_errors)]
    /// It is an error if no transaction is open.
    pub async fn flush_in<S: Stream>(&mut self, client: &mut Client<S>) -> Result<Flushed, Error> {
        let source = Source::new(client, None);
        Ok(self.0.flush(source, TransactionScope::Savepoint).await?)
    }

    /// Flushes in a transaction of its own, over other connections where there is a way to them.
    async fn flush_over<'c, S: Stream>(
        &mut self,
        client: &'c mut Client<S>,
        connect: Option<Connect<'c, S>>,
    ) -> Result<Flushed, FlushError<tiberius::error::Error>> {
        let source = Source::new(client, connect);
        self.0.flush(source, TransactionScope::Transaction).await
    }
}

#[doc = ordid_sql::documentation!(flushes_table)]
/// It does nothing if the table exists; the time is UTC.
///
/// # Example
///
/// ```
/// let sql = ordid_tiberius::flushes_table();
/// assert!(sql.contains("CREATE TABLE [ordid_flushes]"));
/// ```
pub const fn flushes_table() -> &'static str {
    SqlServer::FLUSHES_TABLE
}

#[doc = ordid_sql::documentation!(create_flushes_table)]
/// # Errors
///
/// tiberius', such as a privilege that is missing.
pub async fn create_flushes_table<S: Stream>(client: &mut Client<S>) -> tiberius::Result<()> {
    match create(client).await {
        Ok(()) => Ok(()),
        // Another session may have created it after this one had looked.
        Err(error) => create(client).await.map_err(|_| error),
    }
}

async fn create<S: Stream>(client: &mut Client<S>) -> tiberius::Result<()> {
    let created = client.simple_query(flushes_table()).await?;
    created.into_results().await.map(drop)
}

#[doc = ordid_sql::documentation!(remove_old_markers)]
/// # Errors
///
/// tiberius', a table that [is missing](crate::FlushError::is_flushes_table_missing), and a transaction that is open.
pub async fn remove_old_markers<S: Stream>(client: &mut Client<S>) -> Result<u64, Error> {
    let source = Source::<S, SqlServer>::new(client, None);
    Ok(ordid_sql::remove_old_markers(source).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compiles: a handler of a web framework flushes inside a future that moves between threads.
    #[test]
    fn flushes_can_move_between_threads() {
        fn is_send<T: Send>(_: T) {}

        type Tcp = Client<tokio_util::compat::Compat<tokio::net::TcpStream>>;

        async fn connect(_: &str) -> tiberius::Result<Tcp> {
            Err(tiberius::error::Error::Utf8)
        }

        async fn flushes(work: &mut UnitOfWork, client: &mut Tcp) {
            let address = String::new();
            is_send(work.flush(client));
            is_send(work.flush_with(client, || connect(&address)));
            is_send(work.flush_in(client));
            is_send(work);
        }

        let _ = flushes;
    }
}
