//! The followers of [`ordid_sql::follower`], over connections of the `oracle` crate.

use std::fmt;

use oracle::{Connection, Error, RowValue, sql_type::ToSql};
use ordid_core::{
    KeyField, KeyOf, OrderedKey,
    storage::{Column, dialect},
};
use ordid_sql::{
    follower::{self, FollowError as Failed, FollowerDriver},
    table_driver::{Blocking, Sent, TableDriver},
};

use crate::{classify::classify, lease::OracleDriver, stored::StoredAs};

/// Reads the rows of an entity's table that were inserted since the last call, each once, when their keys are older than
/// a bound ([`settled_after`](follower::Follower::settled_after)). A call takes `&` a [`Connection`], and blocks.
/// [`follower::Follower`] says what a follower promises.
///
/// The entity implements [`RowValue`], which has a derive.
///
/// A call sends one query, which reads what was committed when it began. It commits nothing and rolls nothing back. If the
/// session is SERIALIZABLE, the query reads what was committed when the transaction began, so end the transaction
/// before each call.
///
/// # Example
///
/// ```no_run
/// use std::time::Duration;
/// use oracle::{Connection, RowValue};
/// use ordid::{KeyType, OrderedKey};
/// use ordid_oracle::{Follower, Position};
/// use ordid::uuid::Uuid;
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7, oracle)]
/// struct OrderId(Uuid);
///
/// #[derive(OrderedKey, RowValue)]
/// #[ordid(table = "ORDERS", rename_all = "SCREAMING_SNAKE_CASE")]
/// struct Order { id: OrderId, total: i64 }
///
/// fn follow(connection: &Connection) -> Result<(), Box<dyn std::error::Error>> {
///     // Longer than any transaction that inserts orders.
///     let orders = Follower::<Order>::settled_after(Duration::from_secs(300));
///     let mut position = Position::START;
///     loop {
///         let batch = orders.next(connection, &position, 100)?;
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
///
/// A column that does not keep the order of its keys cannot be followed:
///
/// ```compile_fail,E0080
/// # use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// # use ordid_oracle::Follower;
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7, oracle(oracle = unordered(raw16_dotnet)))]
/// struct OrderId(Uuid);
/// # #[derive(OrderedKey, oracle::RowValue)]
/// # #[ordid(table = "orders")]
/// # struct Order { id: OrderId }
///
/// Follower::<Order>::settled_after(std::time::Duration::from_secs(300));
/// ```
pub type Follower<E> = follower::Follower<OracleDriver, E>;

/// The error of a [`Follower`]. Its [`driver`](Failed::driver) is the `oracle` crate's error.
pub type FollowError = Failed<Error>;

/// The connection over which a call sends its statements. `&` a connection turns into it.
pub struct Over<'c>(&'c Connection);

impl fmt::Debug for Over<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Over").finish_non_exhaustive()
    }
}

impl<'c> From<&'c Connection> for Over<'c> {
    fn from(connection: &'c Connection) -> Self {
        Self(connection)
    }
}

impl Over<'_> {
    /// Sends a query, and reads its rows.
    fn query<T: RowValue>(&self, sql: &str, parameters: &[&dyn ToSql]) -> oracle::Result<Vec<T>> {
        self.0.query_as(sql, parameters)?.collect()
    }
}

impl TableDriver for OracleDriver {
    type Error = Error;
    type Source<'c> = Over<'c>;
    type Kind = Blocking;

    fn texts<'a>(over: &'a mut Over<'_>, sql: String) -> Sent<'a, Self, Vec<String>> {
        Box::pin(async move {
            let texts = over.query::<Option<String>>(&sql, &[]).map_err(classify)?;
            Ok(texts.into_iter().map(Option::unwrap_or_default).collect())
        })
    }

    fn run<'a>(over: &'a mut Over<'_>, sql: String) -> Sent<'a, Self, ()> {
        Box::pin(async move { over.0.execute(&sql, &[]).map(drop).map_err(classify) })
    }
}

impl<E> FollowerDriver<E> for OracleDriver
where
    E: OrderedKey<Field: KeyField<Key: StoredAs + ToSql>> + RowValue + Send + 'static,
{
    type Dialect = dialect::Oracle;
    type Row = E;

    const KEEPS_ORDER: bool = !<<KeyOf<E> as StoredAs>::Column as Column>::UNORDERED;

    fn rows<'a>(
        over: &'a mut Over<'_>,
        sql: String,
        keys: Vec<KeyOf<E>>,
    ) -> Sent<'a, Self, Vec<E>> {
        Box::pin(async move {
            let keys: Vec<&dyn ToSql> = keys.iter().map(|key| key as &dyn ToSql).collect();
            over.query(&sql, &keys).map_err(classify)
        })
    }

    fn key(row: &E) -> Option<KeyOf<E>> {
        row.key()
    }
}
