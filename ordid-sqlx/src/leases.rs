//! Leases, counters, sequences and tickets: those of [`ordid_sql::leases`], over connections of SQLx.

use std::{marker::PhantomData, sync::Arc, time::Duration};

use ordid_core::{Error, coordination::CoordinationFailure, storage::Dialect as _};
use ordid_sql::leases::{
    self, StoreDriver, Unanswered,
    numbers::{Answer, Statement, Value},
};
use sqlx::{AssertSqlSafe, Connection, SqlSafeStr as _, SqlStr, error::BoxDynError};

use crate::{
    backend::{Backend, BoxFuture},
    classify::{classified, classify},
};

/// How to connect to a database: `PgConnectOptions`, `MySqlConnectOptions`, `SqliteConnectOptions`.
pub type ConnectOptions<DB> = <<DB as sqlx::Database>::Connection as Connection>::Options;

/// Leases nodes from a table of PostgreSQL, MySQL, MariaDB or SQLite: [`leases::SqlLease`] says what it promises.
///
/// For a ceiling that is durable, PostgreSQL's `synchronous_commit` and InnoDB's `innodb_flush_log_at_trx_commit` have to be
/// at their defaults or above, and `sync_binlog` has to be 1 where there is a binary log (MariaDB's default is 0). On SQLite
/// each connection gets `PRAGMA synchronous = EXTRA`.
///
/// SQLite cannot be used on both sides of a fork: in the child all is refused.
///
/// # Example
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ordid_core::{clock::{Clock, SystemClock}, coordination::{AsyncNodeAllocator, LeaseTerms}};
/// use ordid_sqlx::SqlLease;
/// use sqlx::{Sqlite, sqlite::SqliteConnectOptions};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("shop.sqlite");
/// let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
/// let leases = SqlLease::<Sqlite>::new(options, LeaseTerms::new(0..1_024)?);
/// leases.create().await?; // once, as a migration
///
/// let grant = leases.acquire(SystemClock.now(), None).await?;
/// let grant = leases.renew(&grant, SystemClock.now()).await?;
/// leases.release(&grant, None).await?;
/// # Ok(())
/// # }
/// ```
pub type SqlLease<DB> = leases::SqlLease<Sqlx<DB>>;

/// Gives each start a node that nobody had and nobody will have, from a table of PostgreSQL, MySQL, MariaDB or SQLite:
/// [`leases::SqlDisposableNode`] says for how long they last.
///
/// # Example
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ordid_core::{clock::{Clock, SystemClock}, coordination::{AsyncNodeAllocator, LeaseTerms}};
/// use ordid_sqlx::SqlDisposableNode;
/// use sqlx::{Sqlite, sqlite::SqliteConnectOptions};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("shop.sqlite");
/// let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
/// let nodes = SqlDisposableNode::<Sqlite>::new(options, LeaseTerms::new(0..1 << 22)?);
/// nodes.create().await?; // once, as a migration
///
/// let grant = nodes.acquire(SystemClock.now(), None).await?;
/// let next = nodes.acquire(SystemClock.now(), None).await?;
/// assert_eq!((grant.node(), next.node()), (1, 2));
/// # Ok(())
/// # }
/// ```
pub type SqlDisposableNode<DB> = leases::SqlDisposableNode<Sqlx<DB>>;

/// A counter in a row of a table of PostgreSQL, MySQL, MariaDB or SQLite: [`leases::SqlCounter`].
///
/// # Example
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::num::NonZeroU32;
/// use ordid_core::coordination::AsyncSegmentSource;
/// use ordid_sqlx::SqlCounter;
/// use sqlx::{Sqlite, sqlite::SqliteConnectOptions};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("shop.sqlite");
/// let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
/// let orders = SqlCounter::<Sqlite>::new(options, "orders")?;
/// orders.create(1_000).await?; // once, as a migration
///
/// let segment = orders.reserve(NonZeroU32::new(3).unwrap()).await?;
/// assert!(segment.values().eq(1_000..1_003));
/// # Ok(())
/// # }
/// ```
pub type SqlCounter<DB> = leases::SqlCounter<Sqlx<DB>>;

/// A sequence of PostgreSQL whose increment is a block: [`leases::PgSequence`] says which are refused.
///
/// # Example
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::num::NonZeroU32;
/// use ordid_core::coordination::AsyncSegmentSource;
/// use ordid_sqlx::PgSequence;
///
/// let thousand = NonZeroU32::new(1_000).unwrap();
/// let orders = PgSequence::new("postgres://shop@db/shop".parse()?, "order_ids", thousand)?;
/// orders.create().await?; // once, as a migration
/// let segment = orders.reserve(thousand).await?;
/// assert_eq!(segment.len(), 1_000);
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "postgres")]
pub type PgSequence = leases::PgSequence<Sqlx<sqlx::Postgres>>;

/// Numbers from several MySQL or MariaDB servers that do not know of each other: any of them can fail.
/// [`leases::Tickets64`] says how they are configured, and how a server is added.
///
/// # Example
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::num::NonZeroU32;
/// use ordid_core::coordination::AsyncSegmentSource;
/// use ordid_sqlx::{TicketForm, Tickets64};
///
/// let servers = ["mysql://tickets@one/tickets".parse()?, "mysql://tickets@two/tickets".parse()?];
/// let tickets = Tickets64::new(servers, TicketForm::LastInsertId, 16)?;
/// tickets.create().await?; // once, as a migration
/// let segment = tickets.reserve(NonZeroU32::new(1_000).unwrap()).await?;
/// assert_eq!((segment.len(), segment.stride()), (1_000, 16));
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "mysql")]
pub type Tickets64 = leases::Tickets64<Sqlx<sqlx::MySql>>;

/// SQLx with a database, as [`ordid_sql`] has it: leases, counters and mapping tables are over it.
#[derive(Debug)]
pub struct Sqlx<DB>(PhantomData<fn() -> DB>);

impl<DB: Backend> StoreDriver for Sqlx<DB> {
    type Dialect = DB::Dialect;
    type Options = ConnectOptions<DB>;
    type Connection = DB::Connection;

    const SURVIVES_FORKS: bool = DB::SURVIVES_FORKS;

    async fn connect(options: &ConnectOptions<DB>, _: Duration) -> Result<DB::Connection, Error> {
        let connecting: BoxFuture<'_, _> = Box::pin(DB::Connection::connect_with(options));
        connecting.await.map_err(|error| said::<DB>(&error))
    }

    async fn ask(
        connection: &mut DB::Connection,
        statement: &Statement,
        values: &[Value<'_>],
    ) -> Result<Answer, Unanswered> {
        // The text contains only checked names and numbers.
        let sql = AssertSqlSafe(Arc::clone(statement.sql())).into_sql_str();
        let values = DB::bind(values);
        let asked = if statement.is_prepared() {
            DB::ask(connection, sql, values, true, DB::integers).await
        } else {
            ask_alone::<DB, _>(connection, sql, values, DB::integers).await
        };
        asked.map_err(|error| Unanswered {
            error: said::<DB>(&error),
            remedy: classify(error).failure.into(),
        })
    }

    async fn run(connection: &mut DB::Connection, script: String) -> Result<(), Error> {
        // The text contains only checked names and numbers.
        let script = AssertSqlSafe(script).into_sql_str();
        let done = DB::run_script(connection, script).await;
        done.map_err(|error| said::<DB>(&error))
    }
}

/// Sends a statement in a transaction of its own, and prepares nothing by name.
pub(crate) async fn ask_alone<DB: Backend, R: Default + Send + 'static>(
    connection: &mut DB::Connection,
    sql: SqlStr,
    values: Result<DB::Arguments, BoxDynError>,
    read: fn(&DB::Row) -> Result<R, sqlx::Error>,
) -> Result<Answer<R>, sqlx::Error> {
    let begun: BoxFuture<'_, _> = Box::pin(connection.begin());
    let mut transaction = begun.await?;
    let answer = DB::ask(&mut transaction, sql, values, false, read).await?;
    let committed: BoxFuture<'_, _> = Box::pin(transaction.commit());
    committed.await.map(|()| answer)
}

fn said<DB: Backend>(error: &sqlx::Error) -> Error {
    let database = error.as_database_error();
    let failure = match database {
        // The sequence is at its end.
        Some(error) if error.code().as_deref() == Some("2200H") => {
            CoordinationFailure::CounterExhausted
        }
        // No such table or sequence.
        Some(error) if classified(error, false).is_missing_table => CoordinationFailure::StateLost,
        _ => CoordinationFailure::Unavailable,
    };
    Error::coordination(failure, format!("{}: {error}", DB::Dialect::NAME))
}

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_lost_and_what_does_not_answer_is_unavailable() {
        let io = sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into());
        let error = said::<sqlx::Postgres>(&io);
        assert_eq!(
            error.coordination_failure(),
            Some(CoordinationFailure::Unavailable)
        );
        assert!(
            error
                .to_string()
                .starts_with("the store is unavailable: PostgreSQL: ")
        );
    }
}
