//! The unit of work: entities of many types, inserted, updated and deleted together.

use ordid_sql::{EngineProfile, Flushed, Work, spi::TransactionScope};
use sqlx::{Connection, Database, Pool, Transaction};

use crate::{
    Error,
    backend::{Backend, Binder, Entity},
    connection::Source,
};

#[doc = ordid_sql::documentation!(unit_of_work)]
///
/// The database is inferred from the pool or connection that the unit of work is flushed to. An entity
/// is any struct with `#[derive(OrderedKey)]`; each type's rows are kept in one `Vec`.
///
#[doc = ordid_sql::documentation!(changes)]
/// # Example: two people change different columns of a row
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// use ordid_sqlx::UnitOfWork;
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7, sqlx)]
/// struct IssueId(Uuid);
///
/// #[derive(OrderedKey, Clone, sqlx::FromRow)]
/// #[ordid(table = "issues", columns)]
/// struct Issue { #[ordid(key)] id: IssueId, title: String, state: String, votes: i64 }
///
/// # let pool = sqlx::SqlitePool::connect("sqlite::memory:").await?;
/// # sqlx::raw_sql("CREATE TABLE issues (id BLOB PRIMARY KEY, title TEXT, state TEXT, votes INTEGER)")
/// #     .execute(&pool).await?;
/// # sqlx::raw_sql(ordid_sqlx::flushes_table::<sqlx::Sqlite>()).execute(&pool).await?;
/// let mut work = UnitOfWork::new();
/// let id = IssueId::generate();
/// let issue = Issue { id, title: "Slow".into(), state: "open".into(), votes: 1 };
/// work.add(issue.clone());
/// work.flush(&pool).await?;
///
/// // Somebody votes, while somebody else has the issue open in a form.
/// sqlx::query("UPDATE issues SET votes = votes + 1").execute(&pool).await?;
/// let edited = Issue { title: "Slow start".into(), state: "closed".into(), ..issue };
/// work.update_columns(edited, (Issue::title, Issue::state));
/// work.flush(&pool).await?;
///
/// let found: Issue = sqlx::query_as("SELECT * FROM issues").fetch_one(&pool).await?;
/// assert_eq!((&*found.title, &*found.state, found.votes), ("Slow start", "closed", 2));
/// # Ok(())
/// # }
/// ```
///
/// # Example: something without a key does not get in
///
/// ```compile_fail
/// struct Loose { name: String }
///
/// fn flush(work: &mut ordid_sqlx::UnitOfWork<sqlx::Sqlite>) {
///     work.add(Loose { name: String::new() });
/// }
/// ```
#[doc(alias("bulk insert", "batch insert", "upsert", "insert many"))]
pub struct UnitOfWork<DB: Backend>(Work<Binder<DB>>);

ordid_sql::work_settings! { impl[DB: Backend] UnitOfWork<DB>, Binder<DB> }
ordid_sql::work_entities! { impl[DB: Backend] UnitOfWork<DB>, Entity<DB> }
ordid_sql::work_plan! { impl[DB: Backend] UnitOfWork<DB>, DB::PROFILE, Error }

impl<DB: Backend> UnitOfWork<DB> {
    /// Writes everything in one transaction of its own, and empties the unit of work. If the flush fails,
    /// nothing is written, and the unit of work still has the same entities with the same keys, so it can
    /// be flushed again.
    ///
    /// # Retries
    ///
    /// If another attempt may succeed ([`Error::is_transient`], [`Error::is_connection_lost`]), the flush is
    /// rolled back and retried with the same keys, as often as [`with_retry`](Self::with_retry) says. Between
    /// two attempts the connection goes back to the pool; a lost connection is closed. If the server is away
    /// for longer than the pool's `acquire_timeout`, the flush ends, since the pool has already waited.
    ///
    #[doc = ordid_sql::documentation!(unknown_commits)]
    ///
    /// # Dropping the future
    ///
    /// A dropped flush leaves nothing behind: the transaction is rolled back, and the unit of work still has the
    /// entities. The pool's connection to MySQL, MariaDB or PostgreSQL is closed. With the first two, SQLx loses count
    /// of a transaction that is dropped while it begins. A connection to PostgreSQL would return to the pool only
    /// after an answer, which a silent network never brings.
    ///
    /// If the flush is dropped while it waits for the answer to COMMIT, all rows are written or none, as after a lost
    /// answer. The next `flush` then first asks the database, unless entities were added.
    ///
    /// # `COPY` on PostgreSQL
    ///
    /// A table with 1,000 rows or more is sent by `COPY` in binary form, which takes the server less than multi-row
    /// statements. The rows are the same, and so are the errors. If `COPY` would not do the same as `INSERT`, the
    /// flush sends an `INSERT`. [`FlushedTable::bulk`](crate::FlushedTable::bulk) counts the rows that were copied,
    /// and [`not_bulk`](crate::FlushedTable::not_bulk) says why the others were not. If many rows are upserted or
    /// updated, they may be copied into a temporary table; these two do not count such rows.
    ///
    /// - A value is copied if it has a built-in type, the same as its column's. A value that has to be
    ///   cast, such as an `i32` in a `bigint` column, an array, an enum or a domain ends the copying.
    /// - Rows are not copied into views, foreign tables, tables with rules, active row-level security or
    ///   triggers, or columns that an `INSERT` may not set, nor on servers before PostgreSQL 12.
    /// - If the server says that it does not have `COPY`, the flush begins anew with `INSERT`.
    /// - In a flush that copies, the server sends errors but neither notices nor warnings.
    /// - A flush dropped in the midst of a `COPY` closes its connection instead of giving it back to
    ///   the pool: SQLx cannot tell what will come over it next.
    /// - Many rows may have been sent when one is refused. [`Error::chunk`] and [`Error::key`] are
    ///   found as described below. If they cannot be found, [`Error::rows`] has all rows of the command.
    ///
    #[doc = ordid_sql::documentation!(flush_errors)]
    pub async fn flush(&mut self, pool: &Pool<DB>) -> Result<Flushed, Error> {
        let source = Source::of(pool);
        self.0.flush(source, TransactionScope::Transaction).await
    }

    /// As [`flush`](Self::flush), over one connection, in a transaction of its own.
    ///
    /// ```text
    /// work.flush_on(&mut connection).await?;       // PgConnection, MySqlConnection, SqliteConnection
    /// work.flush_on(&mut *pool_connection).await?; // PoolConnection
    /// ```
    ///
    /// # Retries
    ///
    /// If another attempt over the same connection may succeed ([`Error::is_transient`]), the flush is
    /// retried over it. A lost connection is an error: [`Error::is_connection_lost`], or
    /// [`Error::is_commit_unknown`] if COMMIT had been sent. In both cases the unit of work keeps the entities
    /// with their keys: flush it over another connection or a pool. If the COMMIT is unknown, that flush first
    /// asks the database whether the rows are there.
    ///
    /// # If a transaction is already open
    ///
    /// The flush does not touch the transaction and sends no rows: [`Error::is_connection_state`]. On MySQL and
    /// MariaDB the BEGIN of the flush would commit the transaction. So the flush first asks these servers, and also
    /// PostgreSQL, whether one is open, which takes one more round trip. On MySQL and MariaDB, a connection with
    /// `autocommit = 0` counts as one with an open transaction. To write inside a transaction, use
    /// [`flush_in`](Self::flush_in).
    ///
    /// # Dropping the future
    ///
    /// On PostgreSQL and SQLite the transaction is rolled back before anything else is sent over the
    /// connection, and you can go on using the connection. **On MySQL and MariaDB do not use the connection again**:
    /// close or drop it, which rolls back. SQLx 0.9 loses count there of a statement that is dropped while it is
    /// prepared, and of a transaction that is dropped while it begins. For a pool's connection call
    /// [`close_on_drop`](sqlx::pool::PoolConnection::close_on_drop); a `flush` over the pool does this itself.
    ///
    /// This method never sends `COPY`: if it were dropped during one, your connection could not be used again.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`flush`](Self::flush), and an error if a transaction is open.
    pub async fn flush_on<C>(&mut self, connection: &mut C) -> Result<Flushed, Error>
    where
        C: Connection<Database = DB>,
        DB: Database<Connection = C>,
    {
        let source = Source::on(connection);
        self.0.flush(source, TransactionScope::Transaction).await
    }

    #[doc = ordid_sql::documentation!(flush_in)]
    /// This method never sends `COPY`: if it were dropped during one, your connection could not be used again.
    ///
    /// If the flush is dropped before its end, the transaction is unusable: drop it, too, and close the connection. If
    /// the flush is dropped while its savepoint begins, SQLx 0.9 rolls back the whole transaction, and the
    /// transaction's `commit` does not report this. If it is dropped while its savepoint ends, the next statement on
    /// PostgreSQL gets an error that belongs to another statement. For MySQL see [`flush_on`](Self::flush_on).
    ///
    #[doc = ordid_sql::documentation!(flush_in_errors)]
    /// If the error of your commit does not come from the database
    /// ([`as_database_error`](sqlx::Error::as_database_error)), the outcome of the commit is unknown.
    pub async fn flush_in(
        &mut self,
        transaction: &mut Transaction<'_, DB>,
    ) -> Result<Flushed, Error> {
        let source = Source::<DB>::on(transaction);
        self.0.flush(source, TransactionScope::Savepoint).await
    }
}

#[doc = ordid_sql::documentation!(journaled)]
/// # Example: a run that did not come to its end
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// use ordid_file::FlushJournal;
/// use ordid_sqlx::{Journaled, UnitOfWork};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7, sqlx)]
/// struct OrderId(Uuid);
///
/// #[derive(OrderedKey, Serialize, Deserialize)]
/// #[ordid(table = "orders")]
/// struct Order { #[ordid(key)] id: OrderId, total: i64 }
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("orders.journal");
/// let pool = sqlx::SqlitePool::connect("sqlite::memory:").await?;
/// let journal = FlushJournal::open(&path)?;
/// let mut work = UnitOfWork::new().with_journal(Journaled::new(journal).row::<Order>());
/// let id = work.add(Order { id: OrderId::generate(), total: 1250 });
/// work.flush(&pool).await.unwrap_err(); // there is no table yet
/// drop(work); // and here the process ends
///
/// sqlx::query("CREATE TABLE orders (id BLOB NOT NULL PRIMARY KEY, total INTEGER NOT NULL)")
///     .execute(&pool)
///     .await?;
/// let journal = FlushJournal::open(&path)?;
/// let mut work = UnitOfWork::new().with_journal(Journaled::new(journal).row::<Order>());
/// assert_eq!(work.resume()?, 1);
/// work.flush(&pool).await?;
///
/// let found: OrderId = sqlx::query_scalar("SELECT id FROM orders").fetch_one(&pool).await?;
/// assert_eq!(found, id);
/// assert_eq!(std::fs::metadata(&path)?.len(), 0); // nothing is pending
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "journal")]
pub struct Journaled<DB: Backend>(ordid_sql::Journaled<Binder<DB>>);

#[cfg(feature = "journal")]
ordid_sql::work_journal! { impl[DB: Backend] UnitOfWork<DB>, Journaled<DB>, Entity<DB>, Error }

#[doc = ordid_sql::documentation!(detect_engine)]
/// # Errors
///
/// SQLx's.
///
/// # Example
///
#[cfg_attr(feature = "postgres", doc = "```no_run")]
#[cfg_attr(not(feature = "postgres"), doc = "```ignore")]
/// # async fn start() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = sqlx::PgPool::connect("postgres://127.0.0.1/shop").await?;
/// let engine = ordid_sqlx::detect_engine(&pool).await?; // keep it beside the pool
/// let mut work = ordid_sqlx::UnitOfWork::<sqlx::Postgres>::new().with_engine(engine);
/// # work.flush(&pool).await?;
/// # Ok(())
/// # }
/// ```
pub async fn detect_engine<DB: Backend>(pool: &Pool<DB>) -> Result<EngineProfile, Error> {
    ordid_sql::detect_engine(Source::of(pool)).await
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;

    /// Compiles: a handler of a web framework flushes inside a future that moves between threads.
    #[test]
    fn flushes_can_move_between_threads() {
        fn is_send<T: Send>(_: T) {}

        async fn flushes(
            work: &mut UnitOfWork<sqlx::Sqlite>,
            pool: &Pool<sqlx::Sqlite>,
            connection: &mut sqlx::SqliteConnection,
            transaction: &mut Transaction<'_, sqlx::Sqlite>,
        ) {
            is_send(work.flush(pool));
            is_send(work.flush_on(connection));
            is_send(work.flush_in(transaction));
            is_send(work);
        }

        let _ = flushes;
    }
}
