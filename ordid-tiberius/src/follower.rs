//! The followers of [`ordid_sql::follower`], over clients of tiberius.

use std::{fmt, marker::PhantomData};

use ordid_core::{
    KeyField, KeyOf, OrderedKey,
    storage::{Column, dialect::SqlServer},
};
use ordid_sql::{
    DriverError, Failure,
    follower::{self, FollowError as Failed, FollowerDriver},
    spi::BoxFuture,
    table_driver::{Awaited, Sent, TableDriver},
};
use tiberius::{Client, ColumnData, FromSqlOwned, Query, Row, error::Error};

use crate::{
    failure::classify,
    flavour::Flavour,
    lease::Stream,
    stored::{StoredAs, encode},
};

/// Reads the rows of an entity's table that were inserted since the last call, each once, when their keys are older than
/// a bound ([`settled_after`](follower::Follower::settled_after)). A call takes `&mut` a [`Client`].
/// [`follower::Follower`] says what a follower promises.
///
/// The entity implements `TryFrom<&tiberius::Row>`. `D` is the [flavour](Flavour) of the server. A call fails if the
/// server is of the other one, which sorts a `uniqueidentifier` in another order.
///
/// On SQL Server, a call reads committed rows under shared locks, by the hint `READCOMMITTEDLOCK`, whatever isolation
/// level the session has. If it comes to a row that is inserted, but not yet committed, it waits for that transaction, and
/// does not miss the row. `SET LOCK_TIMEOUT` bounds the wait; then the error
/// [`is_transient`](Failed::is_transient). A table in memory refuses the hint. Babelfish and readable secondaries read
/// without locks, so there the bound has to cover the time until the COMMIT, and on a secondary the lag.
///
/// # Example
///
/// ```no_run
/// use std::time::Duration;
/// use ordid::{KeyType, OrderedKey};
/// use ordid_tiberius::{Follower, Position, Stream};
/// use tiberius::{Client, Row};
/// use ordid::uuid::Uuid;
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v8_sql_server, tiberius)]
/// struct OrderId(Uuid);
///
/// #[derive(OrderedKey)]
/// #[ordid(table = "orders")]
/// struct Order { id: OrderId, total: i64 }
///
/// impl TryFrom<&Row> for Order {
///     type Error = tiberius::error::Error;
///
///     fn try_from(row: &Row) -> tiberius::Result<Self> {
///         let null = || tiberius::error::Error::Conversion("a column is NULL".into());
///         Ok(Self {
///             id: row.try_get("id")?.ok_or_else(null)?,
///             total: row.try_get("total")?.ok_or_else(null)?,
///         })
///     }
/// }
///
/// async fn follow(client: &mut Client<impl Stream>) -> Result<(), Box<dyn std::error::Error>> {
///     // Longer than any transaction that inserts orders.
///     let orders = Follower::<Order>::settled_after(Duration::from_secs(300));
///     let mut position = Position::START;
///     loop {
///         let batch = orders.next(&mut *client, &position, 100).await?;
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
/// # use ordid_tiberius::Follower;
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7, tiberius(sql_server = unordered(unique_identifier)))]
/// struct OrderId(Uuid);
/// # #[derive(OrderedKey)]
/// # #[ordid(table = "orders")]
/// # struct Order { id: OrderId }
/// # impl TryFrom<&tiberius::Row> for Order {
/// #     type Error = tiberius::error::Error;
/// #     fn try_from(_: &tiberius::Row) -> tiberius::Result<Self> { unreachable!() }
/// # }
///
/// Follower::<Order>::settled_after(std::time::Duration::from_secs(300));
/// ```
pub type Follower<E, D = SqlServer> = follower::Follower<TiberiusDriver<D>, E>;

/// The error of a [`Follower`]. Its [`driver`](Failed::driver) is tiberius' error.
pub type FollowError = Failed<Error>;

/// tiberius with a flavour of server, as the library of a [`Follower`].
#[derive(Debug)]
pub struct TiberiusDriver<D = SqlServer>(PhantomData<fn() -> D>);

/// The client over which a call sends its statements. `&mut` a client turns into it.
pub struct Over<'c>(&'c mut dyn Queries);

impl fmt::Debug for Over<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Over").finish_non_exhaustive()
    }
}

impl<'c, S: Stream + 'c> From<&'c mut Client<S>> for Over<'c> {
    fn from(client: &'c mut Client<S>) -> Self {
        Self(client)
    }
}

/// A client over any stream.
trait Queries: Send {
    /// Sends a script with parameters, and returns the rows of each of its queries.
    fn results<'a>(
        &'a mut self,
        sql: String,
        parameters: Vec<ColumnData<'static>>,
    ) -> BoxFuture<'a, tiberius::Result<Vec<Vec<Row>>>>;
}

impl<S: Stream> Queries for Client<S> {
    fn results<'a>(
        &'a mut self,
        sql: String,
        parameters: Vec<ColumnData<'static>>,
    ) -> BoxFuture<'a, tiberius::Result<Vec<Vec<Row>>>> {
        Box::pin(async move {
            if parameters.is_empty() {
                return self.simple_query(sql).await?.into_results().await;
            }
            let mut query = Query::new(sql);
            query.bind_iter(parameters);
            query.query(self).await?.into_results().await
        })
    }
}

impl<D: Flavour> TableDriver for TiberiusDriver<D> {
    type Error = Error;
    type Source<'c> = Over<'c>;
    type Kind = Awaited;

    fn texts<'a>(over: &'a mut Over<'_>, sql: String) -> Sent<'a, Self, Vec<String>> {
        Box::pin(async move {
            let results = over.0.results(sql, Vec::new()).await.map_err(classify)?;
            let rows = results.into_iter().next().unwrap_or_default();
            let texts = rows.into_iter().map(text).collect::<tiberius::Result<_>>();
            texts.map_err(classify)
        })
    }

    fn run<'a>(over: &'a mut Over<'_>, sql: String) -> Sent<'a, Self, ()> {
        Box::pin(async move {
            let done = over.0.results(sql, Vec::new()).await;
            done.map(drop).map_err(classify)
        })
    }
}

/// Returns the first column.
fn text(row: Row) -> tiberius::Result<String> {
    let value = row.into_iter().next().map(String::from_sql_owned);
    Ok(value.transpose()?.flatten().unwrap_or_default())
}

impl<D, E> FollowerDriver<E> for TiberiusDriver<D>
where
    D: Flavour,
    E: OrderedKey<Field: KeyField<Key: StoredAs<D>>>
        + for<'r> TryFrom<&'r Row, Error = Error>
        + Send
        + 'static,
{
    type Dialect = D;
    type Row = E;

    const KEEPS_ORDER: bool = !<<KeyOf<E> as StoredAs<D>>::Column as Column>::UNORDERED;

    /// The server is asked in the same round trip which flavour it is. In the other one's order, the key of the last row
    /// need not be the highest, and the rows between the two would be lost.
    fn rows<'a>(
        over: &'a mut Over<'_>,
        sql: String,
        keys: Vec<KeyOf<E>>,
    ) -> Sent<'a, Self, Vec<E>> {
        Box::pin(async move {
            let keys = keys.iter().map(encode::<D, KeyOf<E>>).collect();
            let script = format!("SELECT @@VERSION; {sql}");
            let results = over.0.results(script, keys).await.map_err(classify)?;
            let [version, rows] = <[_; 2]>::try_from(results).map_err(|_| unanswered())?;
            let version = version.into_iter().next().ok_or_else(unanswered)?;
            let version = text(version).map_err(classify)?;
            if !D::is(&version) {
                return Err(other_flavour::<D>(&version));
            }
            let rows = rows.iter().map(E::try_from);
            rows.collect::<tiberius::Result<_>>().map_err(classify)
        })
    }

    fn key(row: &E) -> Option<KeyOf<E>> {
        row.key()
    }
}

fn unanswered() -> DriverError<Error> {
    classify(Error::Protocol(
        "no answer to @@VERSION and the query".into(),
    ))
}

fn other_flavour<D: Flavour>(version: &str) -> DriverError<Error> {
    let found = version.lines().next().unwrap_or_default();
    let text = format!(
        "this follower is for {}, and the server is `{found}`, which sorts uniqueidentifier in another order: name the \
         server's flavour, as in `Follower<Order, Babelfish>`",
        D::NAME
    );
    let error = Error::Conversion(text.clone().into());
    DriverError {
        text: Some(text),
        ..DriverError::new(error, Failure::Refused)
    }
}
