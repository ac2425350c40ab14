//! The followers of [`ordid_sql::follower`], over connections of mysql_async.

use std::fmt;

use mysql_async::{
    Conn, DriverError as OwnError, Error, FromRowError, Row, Transaction, Value, prelude::FromRow,
};
use ordid_core::{
    KeyField, KeyOf, OrderedKey,
    storage::{Column, dialect::MySql},
};
use ordid_sql::{
    DriverError,
    follower::{self, FollowError as Failed, FollowerDriver},
    table_driver::{Awaited, Sent, TableDriver},
};

use crate::{
    classify::classify,
    connection::{Queries, queries_on},
    stored::StoredAs,
};

/// Reads the rows of an entity's table that were inserted since the last call, each once, when their keys are older than a
/// bound ([`settled_after`](follower::Follower::settled_after)). A call takes `&mut` a `Conn` or a `Transaction`. [`follower::Follower`] says what a follower
/// promises.
///
/// The entity implements mysql_async's [`FromRow`], which has a derive. The columns of a row are in the order of the fields.
///
/// A call first asks the server, by one round trip more, whether the answer to a query of yours that was dropped is still
/// due on the connection: it would be taken for the rows. Then the call fails with
/// [`is_connection_lost`](Failed::is_connection_lost), and the connection is closed, if this process has flushed or followed
/// before (see the [crate's documentation](crate)). It is also closed if the call is
/// dropped while it waits for the server.
///
/// # Example
///
/// ```no_run
/// use std::time::Duration;
/// use mysql_async::{Conn, FromRowError, Row, prelude::FromRow};
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// use ordid_mysql_async::{Follower, Position};
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7, mysql_async)]
/// struct OrderId(Uuid);
///
/// #[derive(OrderedKey)]
/// #[ordid(table = "orders")]
/// struct Order { id: OrderId, total: i64 }
///
/// impl FromRow for Order {
///     fn from_row_opt(row: Row) -> Result<Self, FromRowError> {
///         let (id, total) = FromRow::from_row_opt(row)?;
///         Ok(Self { id, total })
///     }
/// }
///
/// async fn follow(conn: &mut Conn) -> Result<(), Box<dyn std::error::Error>> {
///     // Longer than any transaction that inserts orders.
///     let orders = Follower::<Order>::settled_after(Duration::from_secs(300));
///     let mut position = Position::START;
///     loop {
///         let batch = orders.next(&mut *conn, &position, 100).await?;
///         for order in &batch.rows {
///             println!("{}: {}", order.id, order.total);
///         }
///         // Store it with what was made of the rows.
///         position = batch.position;
///         if batch.is_complete {
///             return Ok(());
///         }
///     }
/// }
/// ```
pub type Follower<E> = follower::Follower<MysqlAsync, E>;

/// The error of a [`Follower`]. Its [`driver`](Failed::driver) is mysql_async's error.
pub type FollowError = Failed<Error>;

/// mysql_async, as the library of a [`Follower`].
#[derive(Debug)]
pub struct MysqlAsync;

/// The connection over which a call sends its statements. `&mut` a connection or a transaction turns into it.
pub struct Over<'c>(Box<dyn Queries + 'c>);

impl fmt::Debug for Over<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Over").finish_non_exhaustive()
    }
}

impl<'c> From<&'c mut Conn> for Over<'c> {
    fn from(conn: &'c mut Conn) -> Self {
        Self(queries_on(conn))
    }
}

impl<'c> From<&'c mut Transaction<'_>> for Over<'c> {
    fn from(transaction: &'c mut Transaction<'_>) -> Self {
        Self(queries_on(transaction))
    }
}

impl Over<'_> {
    async fn query<T: FromRow>(
        &mut self,
        sql: String,
        values: Vec<Value>,
    ) -> Result<Vec<T>, DriverError<Error>> {
        let rows = self.0.query(sql, values).await?.into_iter();
        let read = |row: Row| {
            T::from_row_opt(row).map_err(|FromRowError(row)| OwnError::FromRow { row }.into())
        };
        rows.map(read).collect::<Result<_, _>>().map_err(classify)
    }
}

impl TableDriver for MysqlAsync {
    type Error = Error;
    type Source<'c> = Over<'c>;
    type Kind = Awaited;

    fn texts<'a>(over: &'a mut Over<'_>, sql: String) -> Sent<'a, Self, Vec<String>> {
        Box::pin(over.query(sql, Vec::new()))
    }

    fn run<'a>(over: &'a mut Over<'_>, sql: String) -> Sent<'a, Self, ()> {
        Box::pin(async move { over.0.query(sql, Vec::new()).await.map(drop) })
    }
}

impl<E> FollowerDriver<E> for MysqlAsync
where
    E: OrderedKey<Field: KeyField<Key: StoredAs>> + FromRow + Send + 'static,
{
    type Dialect = MySql;
    type Row = E;

    const KEEPS_ORDER: bool = !<<KeyOf<E> as StoredAs>::Column as Column>::UNORDERED;

    fn rows<'a>(
        over: &'a mut Over<'_>,
        sql: String,
        keys: Vec<KeyOf<E>>,
    ) -> Sent<'a, Self, Vec<E>> {
        Box::pin(over.query(sql, keys.into_iter().map(StoredAs::__value).collect()))
    }

    fn key(row: &E) -> Option<KeyOf<E>> {
        row.key()
    }
}
