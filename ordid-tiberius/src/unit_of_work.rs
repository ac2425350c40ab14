//! The unit of work: entities of many types, inserted, updated and deleted together.

mod execute;
mod load;
mod locate;
mod plan;
mod record;
mod statement;

use std::{
    fmt,
    future::{Future, Ready},
};

use futures_util::io::{AsyncRead, AsyncWrite};
use ordid_core::{
    EnsuredKey, KeyOf, KeyType,
    entity::SchemeOf,
    generator::Generator,
    storage::dialect::{Babelfish, SqlServer},
    unit_of_work::{Batches, Doubt, Flushed, Generators, Plan, Progress, Retry},
};
use tiberius::Client;

pub use self::record::flushes_table;
use crate::{
    binder::{Binder, Entity},
    error::Error,
    flavour::Flavour,
};

/// Entities, collected to be inserted, updated and deleted in one transaction: parents before children,
/// deletes the other way round, many rows a statement, each table in the order in which the server sorts
/// the stored keys.
///
/// An entity is any struct with `#[derive(OrderedKey)]` whose key type names a column; each type's
/// rows are kept in one `Vec`. `D` is [`SqlServer`] ([`new`](UnitOfWork::new)) or [`Babelfish`]
/// ([`for_babelfish`](UnitOfWork::for_babelfish)): the type of the client does not tell, and the two
/// sort in different orders. A flush asks the server, and refuses the wrong one.
///
/// # Rows that refer to each other
///
/// Tables may refer to each other, and rows to rows of their own table. Where rows do so in a circle,
/// one of them is inserted with NULL in a foreign key that can be NULL, and an `UPDATE` sets it when
/// all are there; before they are deleted it is set to NULL. A circle of foreign keys that cannot be NULL
/// is an error that names it, before anything is sent.
///
/// # Updates and deletes
///
/// Each row has to be there: if one is not, nothing is written ([`is_missing_row`](crate::FlushError::is_missing_row)). Rows are
/// updated after all inserts and deleted after that, so a unique value is not free for a new row
/// before the next flush. A value arrives as by an `INSERT`, many rows an `UPDATE`. On Babelfish two rows
/// cannot exchange unique values, since PostgreSQL checks these row by row.
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
pub struct UnitOfWork<D: Flavour = SqlServer> {
    batches: Batches<Binder<D>>,
    generators: Generators,
    observer: Option<Box<dyn FnMut(Progress) + Send>>,
    retry: Retry,
    records: bool,
    /// What an earlier flush left behind that does not know what became of its commit.
    doubt: Option<Doubt>,
}

/// The connection that a flush over one client does not make.
type NoOther<S> = Ready<tiberius::Result<Client<S>>>;

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

impl<D: Flavour> UnitOfWork<D> {
    /// Says how often a flush is tried and how long it waits in between; [`Retry::DEFAULT`] unless this
    /// is called. See [`flush`](Self::flush).
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Has each flush write a row of its own, in the table that
    /// [`flushes_table`](crate::flushes_table) declares, also one that only inserts.
    ///
    /// If the answer to COMMIT is lost, a flush that only inserts looks for one of its rows, and a row that
    /// somebody deleted meanwhile is inserted again. Where others delete rows that are so new, this is the
    /// remedy; it costs a statement a flush.
    #[must_use]
    pub fn with_record(mut self) -> Self {
        self.records = true;
        self
    }

    /// Gives a generator for the keys of a type, which [`try_add`](Self::try_add) asks from now on:
    /// for schemes that take a node of your own, and for tests with a clock of their own. It stays
    /// over flushes. To share it, give an [`Arc`](std::sync::Arc) or a `&'static` of it.
    #[must_use]
    pub fn with_generator<K: KeyType>(
        mut self,
        generator: impl Generator<Scheme = K::Scheme> + Send + Sync + 'static,
    ) -> Self {
        self.generators.insert::<K>(generator);
        self
    }

    /// Adds a new entity, assigns its key if it has none, and returns the key: children can refer
    /// to it at once. The order of adding does not matter.
    ///
    /// An entity whose key field is no `Option` has its key already. Where it is one, the key is
    /// made by the process's generator, and for schemes that have none this does not compile: see
    /// [`add_with`](Self::add_with) and [`try_add`](Self::try_add).
    ///
    /// # Panics
    ///
    /// As [`KeyType::generate`], for a key that is not assigned yet.
    pub fn add<E>(&mut self, mut entity: E) -> KeyOf<E>
    where
        E: Entity<D>,
        E::Field: EnsuredKey,
    {
        let key = entity.ensure_key();
        self.rows_mut::<E>().push(entity);
        key
    }

    /// As [`add`](Self::add); a missing key is made by this generator.
    ///
    /// # Errors
    ///
    /// As [`Generator::try_generate`]; the entity is not added.
    pub fn add_with<E, G>(
        &mut self,
        generator: &G,
        mut entity: E,
    ) -> Result<KeyOf<E>, ordid_core::Error>
    where
        E: Entity<D>,
        G: Generator<Scheme = SchemeOf<E>>,
    {
        let key = entity.ensure_key_with(generator)?;
        self.rows_mut::<E>().push(entity);
        Ok(key)
    }

    /// As [`add`](Self::add); a missing key is made by the generator that
    /// [`with_generator`](Self::with_generator) gave for its type.
    ///
    /// # Errors
    ///
    /// As [`Generator::try_generate`], and an error that [`is_plan`](ordid_core::Error::is_plan) if
    /// no generator was given; the entity is not added.
    pub fn try_add<E: Entity<D>>(&mut self, mut entity: E) -> Result<KeyOf<E>, ordid_core::Error> {
        let key = self.generators.ensure_key(&mut entity)?;
        self.rows_mut::<E>().push(entity);
        Ok(key)
    }

    /// Adds an entity whose row will be updated: all its columns, in the row that has its key. That
    /// row must be there, otherwise nothing is written: see [`is_missing_row`](crate::FlushError::is_missing_row).
    ///
    /// The row is updated after all inserts, so it may refer to a new one. An entity without a key, or
    /// with that of another update, an insert or a delete, is told by the flush.
    ///
    /// # Example
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
    ///     "UPDATE t SET [balance] = v.[balance] FROM [accounts] AS t JOIN (VALUES (@P1, @P2)) AS v \
    ///      ([id], [balance]) ON t.[id] = v.[id]; SELECT @@ROWCOUNT"
    /// );
    /// # Ok::<(), ordid_tiberius::Error>(())
    /// ```
    pub fn update<E: Entity<D>>(&mut self, entity: E) {
        self.rows_mut::<E>();
        self.batches.update(entity);
    }

    /// Adds an entity whose row will be deleted, by its key. That row must be there, otherwise nothing
    /// is written: see [`is_missing_row`](crate::FlushError::is_missing_row).
    ///
    /// Rows are deleted after all else, children before parents: only the key and the foreign keys of
    /// the entity count.
    pub fn delete<E: Entity<D>>(&mut self, entity: &E) {
        self.rows_mut::<E>();
        self.batches.delete(entity);
    }

    /// Makes room for more entities of a type.
    pub fn reserve<E: Entity<D>>(&mut self, additional: usize) {
        self.rows_mut::<E>().reserve(additional);
    }

    /// Rows go in the order of their stored keys, whatever is done with them, so that an insert appends
    /// to the index even where the column does not keep the keys' own order.
    fn rows_mut<E: Entity<D>>(&mut self) -> &mut Vec<E> {
        // With other rows it is another flush.
        self.doubt = None;
        self.batches.rows_mut_by(E::__COMPARE)
    }

    /// Returns the entities of a type, in the order in which they were added.
    pub fn get<E: Entity<D>>(&self) -> &[E] {
        self.batches.get()
    }

    /// Returns the number of entities, of all types.
    pub fn len(&self) -> usize {
        self.batches.len()
    }

    /// Returns whether there is nothing to flush.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Forgets all entities: after [`flush_in`](Self::flush_in), once the transaction is committed.
    pub fn clear(&mut self) {
        self.doubt = None;
        self.batches.clear();
    }

    /// Calls a function after each chunk of a flush, as for a progress bar. A flush that is tried again
    /// tells of its rows anew.
    pub fn observe(&mut self, observer: impl FnMut(Progress) + Send + 'static) {
        self.observer = Some(Box::new(observer));
    }

    /// Writes everything in one transaction of its own, and is empty afterwards. If it fails,
    /// nothing is written and nothing is lost: the same entities with the same keys are there to
    /// be flushed again.
    ///
    /// If the future is dropped, or [`is_connection_lost`](crate::FlushError::is_connection_lost), drop the client, which rolls back:
    /// tiberius cannot use it again, and its transaction is still open.
    ///
    /// # Retries
    ///
    /// What another time may succeed on the same connection ([`is_transient`](crate::FlushError::is_transient)), as a deadlock or
    /// a lock time-out, is rolled back and tried again, with the same keys, as often as
    /// [`with_retry`](Self::with_retry) says. A client is one connection, so where that is lost it is
    /// over: connect anew, and flush again, or use [`flush_with`](Self::flush_with), which does.
    ///
    /// If it was lost in the midst of the commit ([`is_commit_unknown`](crate::FlushError::is_commit_unknown)), or the future was dropped
    /// there, the rows may be there. So the next flush begins by asking the server, unless entities were
    /// added, and sends the rows once more only if they are not there. It asks by the key of one of them,
    /// as they are there all or none; a flush with updates or deletes has a row of its own for this, in the
    /// table that [`flushes_table`](crate::flushes_table) declares.
    ///
    /// # Bulk load on SQL Server
    ///
    /// A table of more than four statements is sent by `INSERT BULK`, with the hint that its rows come
    /// in the order of the key, `ORDER([id] ASC)`, so that the server need not sort them. The hint
    /// is left out where they do not, as in a table that refers to itself. Constraints are checked,
    /// triggers fire, NULL stays NULL, so that the rows are what `INSERT` would make of them. Where
    /// they might not be, the table goes by statements, each of at most 2,098 parameters and 1,000
    /// rows: [`FlushedTable::bulk`](crate::FlushedTable::bulk) tells. That is
    ///
    /// - where a value is not of its column's own type, such as `i32` in a `bigint` column, or has to
    ///   be rounded, cut off, or converted: text in a `varchar` goes if it is ASCII, and a
    ///   `datetime2` only at scale 7, which is that of tiberius' values;
    /// - for `nchar`, `char`, `datetime`, `money`, `xml` columns, and for `nvarchar(n)` above 2,000
    ///   characters, which tiberius 0.13 declares in other words than it sends;
    /// - for identity columns, computed ones, and tables that may not be read;
    /// - on Babelfish.
    ///
    /// The answer to a load comes at its end: it must come within tiberius'
    /// [`Config::command_timeout`](tiberius::Config::command_timeout), 30 seconds unless you say
    /// otherwise.
    ///
    /// # Errors
    ///
    /// What [`plan`](Self::plan) finds, before anything is sent: among it a key that was added twice.
    /// Otherwise says what failed to be done, in which table, which chunk, and with which row's key. To
    /// find the row, what was sent is sent once more up to it, in a transaction that is rolled back. A
    /// server of another flavour, and a transaction that is open already, are errors.
    pub async fn flush<S>(&mut self, client: &mut Client<S>) -> Result<Flushed, Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let none: Option<fn() -> NoOther<S>> = None;
        Ok(self.flush_over(client, none).await?)
    }

    /// As [`flush`](Self::flush), and goes on over another connection where one is lost: `connect` makes
    /// it, and it takes the place of the client.
    ///
    /// What was not committed is sent again, with the same keys. If the answer to the commit is lost, the
    /// server is asked first, over the new connection, whether the rows are there. Each connection that is
    /// lost and each that cannot be made counts as an attempt of [`with_retry`](Self::with_retry). The
    /// first is the client as it is: where it may have been idle for long, so that its connection is gone,
    /// that costs an attempt, too.
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
        connect: C,
    ) -> Result<Flushed, Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
        C: FnMut() -> F,
        F: Future<Output = tiberius::Result<Client<S>>>,
    {
        Ok(self.flush_over(client, Some(connect)).await?)
    }

    /// Writes everything inside the transaction that is open on the client, after a savepoint: if it
    /// fails, the transaction is as before. The entities stay until [`clear`](Self::clear), since
    /// only the caller knows when the transaction is committed.
    ///
    /// It is never tried again, as what came before it in the transaction would have to be done again.
    ///
    /// It never sends a bulk load: to ask for the columns may fail, and with it your transaction.
    ///
    /// SQL Server itself ends the transaction at a deadlock ([`Error::is_deadlock`]), and at any error
    /// under `SET XACT_ABORT ON`. The savepoint is gone then, too: look at `@@TRANCOUNT` before you
    /// go on.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush), but never one that
    /// [`is_commit_unknown`](crate::FlushError::is_commit_unknown): that question belongs to your commit. That no
    /// transaction is open is an error.
    pub async fn flush_in<S>(&mut self, client: &mut Client<S>) -> Result<Flushed, Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        Ok(self.flush_inside(client).await?)
    }

    /// Finds the order of rows and tables.
    fn planned(&mut self) -> Result<Plan, ordid_core::Error> {
        self.batches.plan::<D>()
    }
}

impl<D: Flavour> Default for UnitOfWork<D> {
    fn default() -> Self {
        Self {
            batches: Batches::new(),
            generators: Generators::new(),
            observer: None,
            retry: Retry::DEFAULT,
            records: false,
            doubt: None,
        }
    }
}

impl<D: Flavour> fmt::Debug for UnitOfWork<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.batches, f)
    }
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
