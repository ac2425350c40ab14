//! The followers of [`ordid_sql::follower`], over connections of SQLx.

use ordid_core::{KeyField, KeyOf, OrderedKey, storage::Column};
use ordid_sql::{
    DriverError,
    follower::{self, FollowDialect, FollowError as Failed, FollowerDriver},
    table_driver::{Awaited, Sent, TableDriver},
};
use sqlx::{
    Arguments as _, AssertSqlSafe, Connection as _, Encode, FromRow, SqlSafeStr as _, SqlStr, Type,
    encode::IsNull, error::BoxDynError,
};

use crate::{
    backend::{Answer, Backend},
    classify::classify,
    connection::Source,
    leases::{Sqlx, ask_alone},
    stored::{self, ColumnOf, StoredAs},
};

/// Reads the rows of an entity's table that were inserted since the last call, including rows that were committed late.
/// Each row is delivered once. A call takes `&Pool`, `&mut Connection`, or `&mut Transaction` ([`Over`](crate::Over)).
/// The entity needs `#[derive(sqlx::FromRow)]`. [`follower::Follower`] says what a follower promises.
///
/// # Example
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// use ordid_sqlx::{Follower, Position};
///
/// #[derive(OrderedKey, sqlx::FromRow)]
/// #[ordid(table = "orders")]
/// struct Order { id: Uuid, total: i64 }
///
/// let pool = sqlx::pool::PoolOptions::<sqlx::Sqlite>::new().max_connections(1).connect("sqlite::memory:").await?;
/// sqlx::query("CREATE TABLE orders (id BLOB NOT NULL PRIMARY KEY, total INTEGER NOT NULL) WITHOUT ROWID")
///     .execute(&pool).await?;
/// for total in [1, 2, 3] {
///     sqlx::query("INSERT INTO orders VALUES (?, ?)").bind(Uuid::generate()).bind(total).execute(&pool).await?;
/// }
///
/// let orders = Follower::<sqlx::Sqlite, Order>::settled_after(Duration::from_millis(50));
/// let batch = orders.next(&pool, &Position::START, 100).await?;
/// assert!(batch.rows.is_empty(), "they are not settled yet");
/// tokio::time::sleep(Duration::from_millis(60)).await;
/// let batch = orders.next(&pool, &batch.position, 2).await?;
/// let totals: Vec<i64> = batch.rows.iter().map(|order| order.total).collect();
/// assert!(totals == [1, 2] && !batch.is_complete);
///
/// let stored = batch.position.to_string();
/// let batch = orders.next(&pool, &stored.parse()?, 2).await?;
/// assert!(batch.rows.len() == 1 && batch.is_complete);
/// # Ok(())
/// # }
/// ```
pub type Follower<DB, E> = follower::Follower<Sqlx<DB>, E>;

/// The error of a [`Follower`]. Its [`driver`](Failed::driver) is SQLx's error.
pub type FollowError = Failed<sqlx::Error>;

/// A key as a parameter of a query.
struct Bound<K>(K);

impl<DB: Backend, K: StoredAs<DB>> Type<DB> for Bound<K> {
    fn type_info() -> DB::TypeInfo {
        stored::type_info::<DB, K>()
    }
}

impl<DB: Backend, K: StoredAs<DB>> Encode<'_, DB> for Bound<K> {
    fn encode_by_ref(&self, buffer: &mut DB::ArgumentBuffer) -> Result<IsNull, BoxDynError> {
        stored::encode::<DB, K>(self.0, buffer)
    }
}

impl<DB: Backend> TableDriver for Sqlx<DB> {
    type Error = sqlx::Error;
    type Source<'c> = Source<'c, DB>;
    type Kind = Awaited;

    fn texts<'a>(source: &'a mut Source<'_, DB>, sql: String) -> Sent<'a, Self, Vec<String>> {
        // All names in it are quoted.
        let sql = AssertSqlSafe(sql).into_sql_str();
        Box::pin(async move {
            let open = source.open_again().await.map_err(classify)?;
            let (connection, state) = open.connection();
            state.set_busy(true);
            let answer = DB::ask_script(connection, sql, DB::text).await;
            state.set_busy(false);
            Ok(answer.map_err(classify)?.rows)
        })
    }

    fn run<'a>(source: &'a mut Source<'_, DB>, sql: String) -> Sent<'a, Self, ()> {
        // All names in it are quoted, and all values are keys.
        let sql = AssertSqlSafe(sql).into_sql_str();
        Box::pin(async move {
            let open = source.open_again().await.map_err(classify)?;
            let (connection, state) = open.connection();
            state.set_busy(true);
            let done = DB::run_script(connection, sql).await;
            state.set_busy(false);
            done.map_err(classify)
        })
    }

    fn release(source: &mut Source<'_, DB>, is_lost: bool) {
        source.give_back(is_lost);
    }
}

impl<DB, E> FollowerDriver<E> for Sqlx<DB>
where
    DB: Backend<Dialect: FollowDialect>,
    E: OrderedKey<Field: KeyField<Key: StoredAs<DB>>>
        + for<'r> FromRow<'r, DB::Row>
        + Send
        + Sync
        + 'static,
{
    type Dialect = DB::Dialect;
    type Row = E;

    const KEEPS_ORDER: bool = !<ColumnOf<DB, KeyOf<E>> as Column>::UNORDERED;

    fn rows<'a>(
        source: &'a mut Source<'_, DB>,
        sql: String,
        keys: Vec<KeyOf<E>>,
    ) -> Sent<'a, Self, Vec<E>> {
        // All names in it are quoted, and all values are numbers.
        let sql = AssertSqlSafe(sql).into_sql_str();
        Box::pin(async move {
            let mut arguments = DB::Arguments::default();
            let bound = keys
                .into_iter()
                .try_for_each(|key| arguments.add(Bound(key)));
            let arguments = bound.map(|()| arguments);
            let answer = ask(source, sql, arguments, |row| E::from_row(row).map(Some)).await?;
            Ok(answer.rows.into_iter().flatten().collect())
        })
    }

    fn key(row: &E) -> Option<KeyOf<E>> {
        row.key()
    }

    fn isolate(source: &mut Source<'_, DB>) {
        source.isolate();
    }
}

/// Sends a query, whose prepared statement is kept only where that is the faster way.
async fn ask<DB: Backend, R: Default + Send + 'static>(
    source: &mut Source<'_, DB>,
    sql: SqlStr,
    arguments: Result<DB::Arguments, BoxDynError>,
    read: fn(&DB::Row) -> Result<R, sqlx::Error>,
) -> Result<Answer<R>, DriverError<sqlx::Error>> {
    let isolates = source.isolates();
    let open = source.open_again().await.map_err(classify)?;
    let (connection, state) = open.connection();
    state.set_busy(true);
    let answer = match isolates {
        true => ask_in_transaction::<DB, R>(connection, sql, arguments, read).await,
        false => {
            let is_kept = sql.as_str().len() <= DB::KEEPS_UP_TO;
            DB::ask(connection, sql, arguments, is_kept, read).await
        }
    };
    state.set_busy(false);
    answer.map_err(classify)
}

/// Sends a statement without preparing it by name. It runs in the open transaction, or in a new one if none is open.
pub(crate) async fn ask_in_transaction<DB: Backend, R: Default + Send + 'static>(
    connection: &mut DB::Connection,
    sql: SqlStr,
    arguments: Result<DB::Arguments, BoxDynError>,
    read: fn(&DB::Row) -> Result<R, sqlx::Error>,
) -> Result<Answer<R>, sqlx::Error> {
    if connection.is_in_transaction() || DB::has_transaction(connection).await? {
        DB::ask(connection, sql, arguments, false, read).await
    } else {
        ask_alone::<DB, R>(connection, sql, arguments, read).await
    }
}
