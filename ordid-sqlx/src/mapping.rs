//! Tables that map UUIDs to integers: those of [`ordid_sql::mapping`], over connections of SQLx.

use ordid_core::uuid::Uuid;
use ordid_sql::{
    DriverError,
    mapping::{self, Answer, MappingDriver, MappingRow, Values},
};
use sqlx::{AssertSqlSafe, SqlSafeStr as _, SqlStr};

use crate::{
    backend::{Backend, BoxFuture},
    classify::classify,
    connection::Source,
    follower::ask_in_transaction,
    leases::Sqlx,
};

/// A table of PostgreSQL, MySQL, MariaDB or SQLite that gives each UUID an integer, and keeps it. A call takes `&Pool`,
/// `&mut Connection`, or `&mut Transaction` ([`Over`](crate::Over)). [`mapping::MappingTable`] says what happens where
/// many insert at once, and where ids are lost.
///
/// # Example
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ordid::{KeyType, uuid::Uuid};
/// use ordid_sqlx::MappingTable;
///
/// let pool = sqlx::SqlitePool::connect("sqlite::memory:").await?;
/// let customers = MappingTable::<sqlx::Sqlite>::new("customer_ids")?;
/// customers.create(&pool).await?;
///
/// let [ada, bob, eve] = [Uuid::generate(), Uuid::generate(), Uuid::generate()];
/// let ids = customers.insert_or_get_many(&pool, &[ada, bob, ada]).await?;
/// assert!(ids[0] == ids[2] && ids[0] != ids[1]);
///
/// // Which were there before?
/// let mappings = customers.insert_many(&pool, &[eve, ada]).await?;
/// assert!(mappings[0].is_new && !mappings[1].is_new);
///
/// assert_eq!(customers.get(&pool, ada).await?, Some(ids[0]));
/// assert_eq!(customers.key(&pool, ids[1]).await?, Some(bob));
///
/// // With the rest of a transaction, or not at all.
/// let mut transaction = pool.begin().await?;
/// let id = customers.insert_or_get(&mut transaction, Uuid::generate()).await?;
/// transaction.rollback().await?;
/// assert_eq!(customers.key(&pool, id).await?, None);
/// # Ok(())
/// # }
/// ```
///
/// # Example: the table, for a migration
///
#[cfg_attr(feature = "mysql", doc = "```")]
#[cfg_attr(not(feature = "mysql"), doc = "```ignore")]
/// let table = ordid_sqlx::MappingTable::<sqlx::MySql>::new("order_ids")?;
/// assert_eq!(
///     table.create_sql(),
///     "CREATE TABLE IF NOT EXISTS `order_ids` (
///     id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
///     `uuid` BINARY(16) NOT NULL,
///     uuid_hash INT UNSIGNED NOT NULL,
///     UNIQUE KEY (uuid_hash, `uuid`),
///     CHECK (uuid_hash = CRC32(`uuid`))
/// ) ENGINE=InnoDB"
/// );
/// # Ok::<(), ordid::Error>(())
/// ```
pub type MappingTable<DB, K = Uuid> = mapping::MappingTable<Sqlx<DB>, K>;

/// Why a [`MappingTable`] was not read or written; its [`driver`](MappingError::driver) is SQLx's error.
pub type MappingError = mapping::MappingError<sqlx::Error>;

impl<DB: Backend> MappingDriver for Sqlx<DB> {
    type Dialect = DB::Dialect;
    type Error = sqlx::Error;
    type Source<'c> = Source<'c, DB>;

    fn ask<'a>(
        source: &'a mut Self::Source<'_>,
        sql: String,
        values: Values<'a>,
        is_kept: bool,
    ) -> BoxFuture<'a, Result<Answer<MappingRow>, DriverError<sqlx::Error>>> {
        // All names in it are quoted.
        let sql = AssertSqlSafe(sql).into_sql_str();
        Box::pin(async move {
            let isolates = source.isolates();
            let open = source.open_again().await.map_err(classify)?;
            let (connection, state) = open.connection();
            state.set_busy(true);
            let arguments = DB::bind_mapped(values);
            let answer = if isolates {
                ask_in_transaction::<DB, _>(connection, sql, arguments, DB::mapped).await
            } else {
                DB::ask(connection, sql, arguments, is_kept, DB::mapped).await
            };
            state.set_busy(false);
            answer.map_err(classify)
        })
    }

    fn isolate(source: &mut Self::Source<'_>) {
        source.isolate();
    }

    fn run<'a>(
        source: &'a mut Self::Source<'_>,
        script: String,
    ) -> BoxFuture<'a, Result<Answer<MappingRow>, DriverError<sqlx::Error>>> {
        // All names in it are quoted, and all values are numbers.
        let script = AssertSqlSafe(script).into_sql_str();
        Box::pin(async move {
            let open = source.open_again().await.map_err(classify)?;
            let (connection, state) = open.connection();
            state.set_busy(true);
            let answer = DB::ask_script(connection, script, DB::mapped).await;
            if answer.is_err() {
                let rollback = SqlStr::from_static("ROLLBACK");
                if DB::run_script(connection, rollback).await.is_err() {
                    state.lose();
                }
            }
            state.set_busy(false);
            answer.map_err(classify)
        })
    }

    fn release(source: &mut Self::Source<'_>, is_lost: bool) {
        source.give_back(is_lost);
    }

    fn may_reconnect(source: &Self::Source<'_>) -> bool {
        source.is_pool()
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;

    /// Compiles: a handler of a web framework maps inside a future that moves between threads.
    #[test]
    fn calls_can_move_between_threads() {
        fn is_send<T: Send>(_: T) {}

        async fn calls(
            table: MappingTable<sqlx::Sqlite>,
            pool: &sqlx::SqlitePool,
            connection: &mut sqlx::SqliteConnection,
            transaction: &mut sqlx::Transaction<'_, sqlx::Sqlite>,
        ) {
            is_send(table.insert_or_get(pool, Uuid::nil()));
            is_send(table.insert_many(connection, &[]));
            is_send(table.key(transaction, 1));
            is_send(table);
        }

        let _ = calls;
    }
}
