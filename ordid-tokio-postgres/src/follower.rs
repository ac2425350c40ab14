//! The followers of [`ordid_sql::follower`], over clients of tokio-postgres.

use std::{fmt, marker::PhantomData};

use bytes::BytesMut;
use ordid_core::{
    KeyField, KeyOf, OrderedKey,
    storage::{Column, dialect::Postgres},
};
#[cfg(feature = "postgres")]
use ordid_sql::table_driver::Blocking;
use ordid_sql::{
    follower::{self, FollowError as Failed, FollowerDriver},
    spi::BoxFuture,
    table_driver::{Awaited, Kind, Sent, TableDriver},
};
use tokio_postgres::{
    Error, Row, SimpleQueryMessage, Transaction,
    types::{IsNull, ToSql, Type},
};

use crate::{
    binder::Parameter,
    calls::{self, Calls},
    classify::classify,
    connection::{AsClient, Borrowed},
    stored::{StoredAs, TypeResult},
    types,
};

/// Reads the rows of an entity's table that were inserted since the last call, including rows that were committed late.
/// Each row is delivered once. A call takes `&` a client, a transaction, or a connection of a pool ([`AsClient`]).
/// [`follower::Follower`] says what a follower promises.
///
/// The entity implements `TryFrom<&tokio_postgres::Row>`.
///
/// # Example
///
/// ```no_run
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// use ordid_tokio_postgres::{Follower, Position};
/// use tokio_postgres::{Client, Row};
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7, tokio_postgres)]
/// struct OrderId(Uuid);
///
/// #[derive(OrderedKey)]
/// #[ordid(table = "orders")]
/// struct Order { id: OrderId, total: i64 }
///
/// impl TryFrom<&Row> for Order {
///     type Error = tokio_postgres::Error;
///
///     fn try_from(row: &Row) -> Result<Self, tokio_postgres::Error> {
///         Ok(Self { id: row.try_get("id")?, total: row.try_get("total")? })
///     }
/// }
///
/// async fn follow(client: &mut Client) -> Result<(), Box<dyn std::error::Error>> {
///     let orders = Follower::<Order>::by_transaction();
///     // Once, in a migration: a column with the transaction that inserted the row.
///     for sql in orders.create_sql() {
///         client.batch_execute(&sql).await?;
///     }
///     let mut position = Position::START;
///     loop {
///         let batch = orders.next(&*client, &position, 100).await?;
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
pub type Follower<E> = follower::Follower<TokioPostgres, E>;

/// As [`Follower`], over clients of the crate `postgres`. A call takes `&mut` a client or a transaction, and blocks.
#[cfg(feature = "postgres")]
pub type BlockingFollower<E> = follower::Follower<BlockingPostgres, E>;

/// The error of a [`Follower`]. Its [`driver`](Failed::driver) is tokio-postgres' error.
pub type FollowError = Failed<Error>;

/// tokio-postgres, as the library of a [`Follower`] and of [`Partitions`](crate::partitions::Partitions).
#[derive(Debug)]
pub struct TokioPostgres<K = Awaited>(PhantomData<fn() -> K>);

/// The crate `postgres`, as the library of a [`BlockingFollower`] and of
/// [`BlockingPartitions`](crate::partitions::BlockingPartitions).
#[cfg(feature = "postgres")]
pub type BlockingPostgres = TokioPostgres<Blocking>;

/// The client over which a call sends its statements. `&` a client, a transaction or a connection of a pool turns into it.
pub struct Over<'c, K = Awaited> {
    client: Box<dyn Ask + 'c>,
    kind: PhantomData<fn() -> K>,
}

/// The client over which a call sends its statements. `&mut` a client or a transaction turns into it.
#[cfg(feature = "postgres")]
pub type BlockingOver<'c> = Over<'c, Blocking>;

impl<'c, K> Over<'c, K> {
    fn new(client: impl Calls + 'c) -> Self {
        Self {
            client: Box::new(client),
            kind: PhantomData,
        }
    }
}

impl<K> fmt::Debug for Over<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Over").finish_non_exhaustive()
    }
}

impl<'c, C: AsClient> From<&'c C> for Over<'c> {
    fn from(client: &'c C) -> Self {
        Self::new(calls::Awaited(Borrowed::Shared(client.as_client())))
    }
}

impl<'c> From<&'c Transaction<'_>> for Over<'c> {
    fn from(transaction: &'c Transaction<'_>) -> Self {
        Self::new(calls::Awaited(Borrowed::Shared(transaction.client())))
    }
}

#[cfg(feature = "postgres")]
impl<'c> From<&'c mut postgres::Client> for BlockingOver<'c> {
    fn from(client: &'c mut postgres::Client) -> Self {
        Self::new(calls::Blocking(client))
    }
}

#[cfg(feature = "postgres")]
impl<'c> From<&'c mut postgres::Transaction<'_>> for BlockingOver<'c> {
    fn from(transaction: &'c mut postgres::Transaction<'_>) -> Self {
        Self::new(calls::Blocking(transaction))
    }
}

/// A client whose type does not matter.
trait Ask: Send {
    fn simple<'a>(&'a mut self, sql: &'a str) -> Asked<'a, Vec<SimpleQueryMessage>>;
    fn batch<'a>(&'a mut self, sql: &'a str) -> Asked<'a, ()>;
    fn query<'a>(
        &'a mut self,
        sql: &'a str,
        parameters: &'a [Parameter<'_>],
    ) -> Asked<'a, Vec<Row>>;
}

type Asked<'a, T> = BoxFuture<'a, Result<T, Error>>;

impl<C: Calls> Ask for C {
    fn simple<'a>(&'a mut self, sql: &'a str) -> Asked<'a, Vec<SimpleQueryMessage>> {
        Box::pin(Calls::simple(self, sql))
    }

    fn batch<'a>(&'a mut self, sql: &'a str) -> Asked<'a, ()> {
        Box::pin(Calls::batch(self, sql))
    }

    fn query<'a>(
        &'a mut self,
        sql: &'a str,
        parameters: &'a [Parameter<'_>],
    ) -> Asked<'a, Vec<Row>> {
        // Prepared without a name, and bound in the same message: behind a pooler, too.
        Box::pin(self.query_typed(sql, parameters))
    }
}

impl<K: Kind> TableDriver for TokioPostgres<K> {
    type Error = Error;
    type Source<'c> = Over<'c, K>;
    type Kind = K;

    fn texts<'a>(over: &'a mut Over<'_, K>, sql: String) -> Sent<'a, Self, Vec<String>> {
        Box::pin(async move {
            let messages = over.client.simple(&sql).await.map_err(classify)?;
            let texts = messages.iter().filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
                _ => None,
            });
            Ok(texts.collect())
        })
    }

    fn run<'a>(over: &'a mut Over<'_, K>, sql: String) -> Sent<'a, Self, ()> {
        Box::pin(async move { over.client.batch(&sql).await.map_err(classify) })
    }
}

/// A key as a parameter of a query.
#[derive(Debug)]
struct Bound<K>(K);

impl<K: StoredAs> ToSql for Bound<K> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> TypeResult<IsNull> {
        self.0.__write(out)
    }

    fn accepts(ty: &Type) -> bool {
        K::__accepts(ty)
    }

    tokio_postgres::types::to_sql_checked!();
}

fn parameters<K: StoredAs>(keys: &[Bound<K>]) -> Vec<Parameter<'_>> {
    let ty = types::usual::<Bound<K>>();
    let ty = ty.expect("a key's column has a type of PostgreSQL's own");
    let keys = keys.iter();
    keys.map(|key| (key as &(dyn ToSql + Sync), ty.clone()))
        .collect()
}

impl<E, K> FollowerDriver<E> for TokioPostgres<K>
where
    E: OrderedKey<Field: KeyField<Key: StoredAs>>
        + for<'r> TryFrom<&'r Row, Error = Error>
        + Send
        + 'static,
    K: Kind,
{
    type Dialect = Postgres;
    type Row = E;

    const KEEPS_ORDER: bool = !<<KeyOf<E> as StoredAs>::Column as Column>::UNORDERED;

    fn rows<'a>(
        over: &'a mut Over<'_, K>,
        sql: String,
        keys: Vec<KeyOf<E>>,
    ) -> Sent<'a, Self, Vec<E>> {
        Box::pin(async move {
            let keys: Vec<_> = keys.into_iter().map(Bound).collect();
            let rows = over.client.query(&sql, &parameters(&keys)).await;
            let rows = rows.map_err(classify)?;
            let rows = rows.iter().map(E::try_from);
            rows.collect::<Result<_, _>>().map_err(classify)
        })
    }

    fn key(row: &E) -> Option<KeyOf<E>> {
        row.key()
    }
}
