//! The followers of [`ordid_sql::follower`], over connections of rusqlite.

use std::fmt;

use ordid_core::{
    KeyField, KeyOf, OrderedKey,
    storage::{Column, dialect::Sqlite},
};
use ordid_sql::{
    follower::{self, FollowError as Failed, FollowerDriver},
    table_driver::{Blocking, Sent, TableDriver},
};
use rusqlite::{Connection, Error, Params, Row, Transaction, params_from_iter};

use crate::{classify::classify, connection::Shared, stored::StoredAs};

/// Reads the rows of an entity's table that were inserted since the last call. Each row is delivered once, when its key
/// is older than a bound ([`settled_after`](follower::Follower::settled_after)). A call takes `&` a connection or a
/// transaction, and blocks. [`follower::Follower`] says what a follower promises.
///
/// The entity implements `TryFrom<&rusqlite::Row<'_>>`.
///
/// # Example
///
/// ```
/// use std::{thread::sleep, time::Duration};
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// use ordid_rusqlite::{Follower, Position, UnitOfWork};
/// use rusqlite::{Connection, Row};
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7, rusqlite)]
/// struct OrderId(Uuid);
///
/// #[derive(OrderedKey)]
/// #[ordid(table = "orders")]
/// struct Order { id: OrderId, total: i64 }
///
/// impl TryFrom<&Row<'_>> for Order {
///     type Error = rusqlite::Error;
///
///     fn try_from(row: &Row<'_>) -> rusqlite::Result<Self> {
///         Ok(Self { id: row.get("id")?, total: row.get("total")? })
///     }
/// }
///
/// let mut connection = Connection::open_in_memory()?;
/// connection.execute_batch(
///     "CREATE TABLE orders (id BLOB NOT NULL PRIMARY KEY, total INTEGER NOT NULL) WITHOUT ROWID",
/// )?;
/// let mut work = UnitOfWork::new();
/// for total in [1, 2, 3] {
///     work.add(Order { id: OrderId::generate(), total });
/// }
/// work.flush(&mut connection)?;
///
/// let orders = Follower::<Order>::settled_after(Duration::from_millis(50));
/// sleep(Duration::from_millis(60));
/// let batch = orders.next(&connection, &Position::START, 2)?;
/// let totals: Vec<i64> = batch.rows.iter().map(|order| order.total).collect();
/// assert!(totals == [1, 2] && !batch.is_complete);
///
/// let stored = batch.position.to_string();
/// let batch = orders.next(&connection, &stored.parse()?, 2)?;
/// assert!(batch.rows.len() == 1 && batch.is_complete);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Follower<E> = follower::Follower<Rusqlite, E>;

/// The error of a [`Follower`]. Its [`driver`](Failed::driver) is rusqlite's error.
pub type FollowError = Failed<Error>;

/// rusqlite, as the library of a [`Follower`].
#[derive(Debug)]
pub struct Rusqlite;

/// The connection over which a call sends its statements. `&` a connection or a transaction turns into it.
pub struct Over<'c>(Shared<'c>);

impl fmt::Debug for Over<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Over").finish_non_exhaustive()
    }
}

impl<'c> From<&'c Connection> for Over<'c> {
    fn from(connection: &'c Connection) -> Self {
        Self(Shared::new(connection))
    }
}

impl<'c> From<&'c Transaction<'_>> for Over<'c> {
    fn from(transaction: &'c Transaction<'_>) -> Self {
        Self(Shared::new(transaction))
    }
}

impl Over<'_> {
    /// Sends a query, and reads its rows.
    fn query<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        let mut query = self.0.prepare(sql)?;
        query.query_map(parameters, read)?.collect()
    }
}

impl TableDriver for Rusqlite {
    type Error = Error;
    type Source<'c> = Over<'c>;
    type Kind = Blocking;

    fn texts<'a>(over: &'a mut Over<'_>, sql: String) -> Sent<'a, Self, Vec<String>> {
        let text = |row: &Row<'_>| Ok(row.get::<_, Option<String>>(0)?.unwrap_or_default());
        Box::pin(async move {
            let texts = over.query(&sql, [], text);
            texts.map_err(|error| classify(error, &sql))
        })
    }

    fn run<'a>(over: &'a mut Over<'_>, sql: String) -> Sent<'a, Self, ()> {
        Box::pin(async move {
            let done = over.0.execute_batch(&sql);
            done.map_err(|error| classify(error, &sql))
        })
    }
}

impl<E> FollowerDriver<E> for Rusqlite
where
    E: OrderedKey<Field: KeyField<Key: StoredAs>>
        + for<'r, 's> TryFrom<&'r Row<'s>, Error = Error>
        + Send
        + 'static,
{
    type Dialect = Sqlite;
    type Row = E;

    const KEEPS_ORDER: bool = !<<KeyOf<E> as StoredAs>::Column as Column>::UNORDERED;

    fn rows<'a>(
        over: &'a mut Over<'_>,
        sql: String,
        keys: Vec<KeyOf<E>>,
    ) -> Sent<'a, Self, Vec<E>> {
        Box::pin(async move {
            let keys = keys.iter().map(StoredAs::__to_sql);
            let keys = keys.collect::<rusqlite::Result<Vec<_>>>();
            let rows = keys
                .and_then(|keys| over.query(&sql, params_from_iter(keys), |row| E::try_from(row)));
            rows.map_err(|error| classify(error, &sql))
        })
    }

    fn key(row: &E) -> Option<KeyOf<E>> {
        row.key()
    }
}
