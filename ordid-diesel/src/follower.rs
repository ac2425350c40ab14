//! The followers of [`ordid_sql::follower`], over connections of Diesel.

use std::{fmt, marker::PhantomData};

use diesel::{
    connection::LoadConnection,
    deserialize::QueryableByName,
    query_builder::QueryBuilder as _,
    result::{Error as DieselError, QueryResult},
};
use ordid_core::{KeyField, KeyOf, OrderedKey, storage::Column};
use ordid_sql::{
    Columns, RowSink as _,
    follower::{self, FollowDialect, FollowError as Failed, FollowNames, FollowerDriver},
    spi::{BoxFuture, RowBinder as _, Statement, StatementKind},
    table_driver::{Kind, Sent, TableDriver},
};

#[cfg(feature = "async")]
use crate::connection::Awaited;
use crate::{
    backend::Backend,
    connection::{Blocking, Calls, Control, Query},
    entity::{Binder, Entity, text},
    failure::classify,
    stored::StoredAs,
};

/// Reads the rows of an entity's table that were inserted since the last call, including rows that were committed late.
/// Each row is delivered once. A call takes `&mut` a connection of Diesel's, in a transaction or not, and blocks.
/// [`follower::Follower`] says what a follower promises.
///
/// The entity needs `#[derive(QueryableByName)]`.
///
/// # Example
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
/// # use libsqlite3_sys as _;
/// use std::{thread::sleep, time::Duration};
/// use diesel::{connection::SimpleConnection, prelude::*};
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// use ordid_diesel::{Follower, Position, UnitOfWork};
///
/// #[derive(KeyType)]
/// #[ordid(diesel)]
/// struct OrderId(Uuid);
///
/// diesel::table! {
///     orders (id) { id -> Binary, total -> BigInt, }
/// }
///
/// #[derive(OrderedKey, QueryableByName)]
/// #[diesel(table_name = orders)]
/// #[ordid(diesel)]
/// struct Order { id: OrderId, total: i64 }
///
/// let mut connection = SqliteConnection::establish(":memory:")?;
/// connection.batch_execute("CREATE TABLE orders (id BLOB PRIMARY KEY, total INTEGER NOT NULL)")?;
/// let mut work = UnitOfWork::new();
/// for total in [1, 2, 3] {
///     work.add(Order { id: OrderId::generate(), total });
/// }
/// work.flush(&mut connection)?;
///
/// let orders = Follower::<diesel::sqlite::Sqlite, Order>::settled_after(Duration::from_millis(50));
/// sleep(Duration::from_millis(60));
/// let batch = orders.next(&mut connection, &Position::START, 2)?;
/// let totals: Vec<i64> = batch.rows.iter().map(|order| order.total).collect();
/// assert!(totals == [1, 2] && !batch.is_complete);
///
/// let stored = batch.position.to_string();
/// let batch = orders.next(&mut connection, &stored.parse()?, 2)?;
/// assert!(batch.rows.len() == 1 && batch.is_complete);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Follower<DB, E> = follower::Follower<Diesel<DB, E, Blocking>, E>;

/// As [`Follower`], over connections of diesel-async: its calls return futures.
#[cfg(feature = "async")]
pub type AsyncFollower<DB, E> = follower::Follower<Diesel<DB, E, Awaited>, E>;

/// The error of a [`Follower`]. Its [`driver`](Failed::driver) is Diesel's error.
pub type FollowError = Failed<DieselError>;

/// Diesel or diesel-async, with a database and what its rows are read as.
pub struct Diesel<DB, R, K>(PhantomData<Of<DB, R, K>>);

type Of<DB, R, K> = fn() -> (DB, R, K);

/// The connection over which a call sends its statements. `&mut` a connection turns into it.
pub struct Over<'c, DB: Backend, R, K> {
    connection: Box<dyn Ask<DB, R> + 'c>,
    kind: PhantomData<fn() -> K>,
}

impl<DB: Backend, R, K> fmt::Debug for Over<'_, DB, R, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Over").finish_non_exhaustive()
    }
}

/// A connection whose type does not matter.
trait Ask<DB: Backend, R>: Send {
    fn texts(&mut self, sql: String) -> BoxFuture<'_, QueryResult<Vec<String>>>;
    fn run(&mut self, sql: String) -> BoxFuture<'_, QueryResult<()>>;
    fn rows(&mut self, sql: String, keys: Keys<DB>) -> BoxFuture<'_, QueryResult<Vec<R>>>;
}

/// The parameters of a query: keys, which are values of one column.
struct Keys<DB: Backend> {
    values: Binder<DB>,
    column: usize,
}

/// A connection, whose calls are made in a way.
struct Connection<'c, C, K>(&'c mut C, PhantomData<fn() -> K>);

fn query(sql: String, columns: &[usize]) -> Statement {
    Statement {
        kind: StatementKind::Read,
        sql: sql.into(),
        columns: columns.into(),
        rows: 1,
        is_kept: false,
    }
}

impl<DB, R, C, K> Ask<DB, R> for Connection<'_, C, K>
where
    DB: Backend,
    R: QueryableByName<DB> + Send,
    C: Send,
    K: Calls<C, DB = DB>,
{
    fn texts(&mut self, sql: String) -> BoxFuture<'_, QueryResult<Vec<String>>> {
        Box::pin(async move {
            let (statement, values) = (query(sql, &[]), Binder::without_columns());
            let query = Query {
                statement: &statement,
                values: &values,
            };
            let rows = K::read(self.0, query, None).await?;
            Ok(rows.into_iter().map(|row| row.text).collect())
        })
    }

    fn run(&mut self, sql: String) -> BoxFuture<'_, QueryResult<()>> {
        Box::pin(async move { K::control(self.0, Control::Script(&sql)).await })
    }

    fn rows(&mut self, sql: String, keys: Keys<DB>) -> BoxFuture<'_, QueryResult<Vec<R>>> {
        Box::pin(async move {
            let statement = query(sql, &[keys.column]);
            let query = Query {
                statement: &statement,
                values: &keys.values,
            };
            K::rows(self.0, query).await
        })
    }
}

impl<'c, DB, R, C> From<&'c mut C> for Over<'c, DB, R, Blocking>
where
    DB: Backend,
    R: QueryableByName<DB> + Send + 'static,
    C: LoadConnection<Backend = DB> + Send + 'static,
{
    fn from(connection: &'c mut C) -> Self {
        Self {
            connection: Box::new(Connection::<C, Blocking>(connection, PhantomData)),
            kind: PhantomData,
        }
    }
}

#[cfg(feature = "async")]
impl<'c, DB, R, C> From<&'c mut C> for Over<'c, DB, R, Awaited>
where
    DB: Backend,
    R: QueryableByName<DB> + Send + 'static,
    C: diesel_async::AsyncConnection<Backend = DB> + 'static,
{
    fn from(connection: &'c mut C) -> Self {
        Self {
            connection: Box::new(Connection::<C, Awaited>(connection, PhantomData)),
            kind: PhantomData,
        }
    }
}

impl<DB: Backend, R: Send + 'static, K: Kind> TableDriver for Diesel<DB, R, K> {
    type Error = DieselError;
    type Source<'c> = Over<'c, DB, R, K>;
    type Kind = K;

    fn texts<'a>(over: &'a mut Over<'_, DB, R, K>, sql: String) -> Sent<'a, Self, Vec<String>> {
        Box::pin(async move {
            let texts = over.connection.texts(sql).await;
            texts.map_err(|error| classify::<DB>(error, false))
        })
    }

    fn run<'a>(over: &'a mut Over<'_, DB, R, K>, sql: String) -> Sent<'a, Self, ()> {
        Box::pin(async move {
            let done = over.connection.run(sql).await;
            done.map_err(|error| classify::<DB>(error, false))
        })
    }
}

impl<DB, E, K> FollowerDriver<E> for Diesel<DB, E, K>
where
    DB: Backend<Dialect: FollowDialect>,
    E: Entity<DB> + OrderedKey<Field: KeyField<Key: StoredAs<DB>>>,
    K: Kind,
{
    type Dialect = DB::Dialect;
    type Row = E;

    const KEEPS_ORDER: bool = !<<KeyOf<E> as StoredAs<DB>>::Column as Column>::UNORDERED;

    /// Diesel's own, which a `table!` may give other names than the entity has.
    fn names() -> FollowNames {
        let quoted = |name: &&str| text::<DB>(|out| out.push_identifier(name));
        let columns: Vec<_> = E::NAMES.iter().map(quoted).collect();
        let filled = E::RETURNING_NAMES.iter().map(quoted);
        FollowNames {
            table: text::<DB>(E::table),
            key: columns[key_column::<E>()].clone(),
            selected: columns
                .into_iter()
                .chain(filled)
                .collect::<Vec<_>>()
                .join(", "),
            placeholder: Binder::<DB>::PLACEHOLDER,
        }
    }

    fn rows<'a>(
        over: &'a mut Over<'_, DB, E, K>,
        sql: String,
        keys: Vec<KeyOf<E>>,
    ) -> Sent<'a, Self, Vec<E>> {
        let column = key_column::<E>();
        let mut values = Binder::with_room(E::__register().entity, keys.len(), 1);
        for key in keys {
            values.begin_row(Columns::Given(&[column]));
            E::write_key(key, &mut values);
            values.end_row();
        }
        Box::pin(async move {
            let rows = over.connection.rows(sql, Keys { values, column }).await;
            rows.map_err(|error| classify::<DB>(error, false))
        })
    }

    fn key(row: &E) -> Option<KeyOf<E>> {
        row.key()
    }
}

/// Returns the position of the key's column.
pub(crate) fn key_column<E: OrderedKey>() -> usize {
    let position = E::COLUMNS.iter().position(|name| *name == E::KEY_COLUMN);
    position.expect("the key is a column")
}
