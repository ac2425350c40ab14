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
/// The database is inferred from what it is flushed to. An entity is any struct with
/// `#[derive(OrderedKey)]`; each type's rows are kept in one `Vec`.
///
#[doc = ordid_sql::documentation!(changes)]
/// # Example: what two people write to different columns stays
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
    /// Writes everything in one transaction of its own, and is empty afterwards. If it fails,
    /// nothing is written and nothing is lost: the same entities with the same keys are there to
    /// be flushed again.
    ///
    /// # Retries
    ///
    /// What another time may succeed ([`Error::is_transient`], [`Error::is_connection_lost`]) is rolled
    /// back and tried again, with the same keys, as often as [`with_retry`](Self::with_retry) says. The
    /// connection goes back to the pool meanwhile; one that was lost is closed. A server that is away for
    /// longer than the pool's `acquire_timeout` ends the flush: the pool has waited itself.
    ///
    #[doc = ordid_sql::documentation!(unknown_commits)]
    ///
    /// # Dropping the future
    ///
    /// It leaves nothing behind: the transaction is rolled back, and the entities are still here. A
    /// pool's connection to MySQL, MariaDB or PostgreSQL is closed: with the first two SQLx loses count of a transaction
    /// that is dropped while it begins, and one to PostgreSQL would come back only after an answer, which a silent
    /// network never brings.
    /// Dropped while it waits for the answer to COMMIT, it leaves all rows or none, like a lost answer;
    /// the next `flush` then begins by asking the database, unless entities were added.
    ///
    /// # `COPY` on PostgreSQL
    ///
    /// A table with 1,000 rows or more is sent by `COPY` in binary form, which takes the server less
    /// than multi-row statements. The rows are the same, and so are the errors. What `COPY` would do
    /// in another way than `INSERT` is inserted: [`FlushedTable::bulk`](crate::FlushedTable::bulk) has the rows that were
    /// copied, and [`not_bulk`](crate::FlushedTable::not_bulk) says why the others were not. Many rows that are upserted or
    /// updated may be copied into a temporary table, which these do not count.
    ///
    /// - Copied are values of built-in types that are the column's own. A value that has to be
    ///   cast, as `i32` in a `bigint` column, an array, an enum or a domain ends the copying.
    /// - Not copied are views and foreign tables, tables with rules, active row-level security or
    ///   triggers, columns that an `INSERT` may not set, and anything before PostgreSQL 12.
    /// - If the server says that it does not have `COPY`, the flush begins anew with `INSERT`.
    /// - In a flush that copies, the server sends errors but neither notices nor warnings.
    /// - A flush dropped in the midst of a `COPY` closes its connection instead of giving it back to
    ///   the pool: SQLx cannot tell what will come over it next.
    /// - Many rows may be on their way when one is refused. [`Error::chunk`] and [`Error::key`] are
    ///   found as below; where they cannot be, [`Error::rows`] are all rows of the command.
    ///
    #[doc = ordid_sql::documentation!(flush_errors)]
    pub async fn flush(&mut self, pool: &Pool<DB>) -> Result<Flushed, Error> {
        let source = Source::of(pool);
        self.0.flush(source, TransactionScope::Transaction).await
    }

    /// As [`flush`](Self::flush), over one connection: in a transaction of its own there, and empty
    /// afterwards.
    ///
    /// ```text
    /// work.flush_on(&mut connection).await?;       // PgConnection, MySqlConnection, SqliteConnection
    /// work.flush_on(&mut *pool_connection).await?; // PoolConnection
    /// ```
    ///
    /// # Retries
    ///
    /// What another time may succeed and leaves the connection whole ([`Error::is_transient`]) is tried
    /// again over it. One that is lost is an error: [`Error::is_connection_lost`], or
    /// [`Error::is_commit_unknown`] where COMMIT had been sent. The entities stay either way, with their
    /// keys. Flush them over another connection or a pool: where COMMIT is unknown, that flush begins by
    /// asking whether they are there.
    ///
    /// # A transaction that is open already
    ///
    /// It is not touched, and nothing is sent: [`Error::is_connection_state`]. MySQL and MariaDB would
    /// commit it by the BEGIN of the flush, so they are asked before, as is PostgreSQL: one round trip
    /// more. There, a connection with `autocommit = 0` counts as one with a transaction open. To write
    /// inside a transaction, there is [`flush_in`](Self::flush_in).
    ///
    /// # Dropping the future
    ///
    /// On PostgreSQL and SQLite the transaction is rolled back before anything else that is sent over the
    /// connection, and it can be used on. **MySQL's and MariaDB's connection must not be used again**, close
    /// or drop it, which rolls back: SQLx 0.9 loses count there of a statement that is dropped while it is
    /// prepared, and of a transaction that is dropped while it begins. Of a pool's connection
    /// [`close_on_drop`](sqlx::pool::PoolConnection::close_on_drop) sees to that; a `flush` over the pool does
    /// it itself.
    ///
    /// Rows never go by `COPY`: dropped in the midst of it, your connection could not be used again.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush), and that a transaction is open.
    pub async fn flush_on<C>(&mut self, connection: &mut C) -> Result<Flushed, Error>
    where
        C: Connection<Database = DB>,
        DB: Database<Connection = C>,
    {
        let source = Source::on(connection);
        self.0.flush(source, TransactionScope::Transaction).await
    }

    #[doc = ordid_sql::documentation!(flush_in)]
    /// It never sends `COPY`: dropped in the midst of it, your connection could not be used again.
    ///
    /// Dropped before its end, it spoils the transaction: drop that too, and close the connection. Where a
    /// savepoint is dropped while it begins, SQLx 0.9 rolls back all of the transaction and its `commit` says
    /// nothing; where it is dropped while it ends, PostgreSQL's next statement gets an error that is not its
    /// own; and of MySQL, [`flush_on`](Self::flush_on) tells.
    ///
    #[doc = ordid_sql::documentation!(flush_in_errors)]
    /// The error of your commit leaves the outcome open where it is none of the database's
    /// ([`as_database_error`](sqlx::Error::as_database_error)).
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
