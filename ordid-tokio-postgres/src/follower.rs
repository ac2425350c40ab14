//! The followers of [`ordid_sql::follower`], over clients of tokio-postgres.

use std::fmt;

use bytes::BytesMut;
use ordid_core::{
    KeyField, KeyOf, OrderedKey,
    storage::{Column, dialect::Postgres},
};
use ordid_sql::{
    DriverError,
    follower::{self, FollowError as Failed, FollowerDriver},
    spi::BoxFuture,
    table_driver::{Sent, TableDriver},
};
use tokio_postgres::{
    Client, Error, Row, SimpleQueryMessage, Transaction,
    types::{IsNull, ToSql, Type},
};

use crate::{
    binder::Parameter,
    classify::classify,
    connection::AsClient,
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

/// The error of a [`Follower`]. Its [`driver`](Failed::driver) is tokio-postgres' error.
pub type FollowError = Failed<Error>;

/// tokio-postgres, as the library of a [`Follower`] and of [`Partitions`](crate::partitions::Partitions).
#[derive(Debug)]
pub struct TokioPostgres;

/// The client over which a call sends its statements. `&` a client, a transaction or a connection of a pool turns into it.
pub struct Over<'c>(&'c Client);

impl fmt::Debug for Over<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Over").finish_non_exhaustive()
    }
}

impl<'c, C: AsClient> From<&'c C> for Over<'c> {
    fn from(client: &'c C) -> Self {
        Self(client.as_client())
    }
}

impl<'c> From<&'c Transaction<'_>> for Over<'c> {
    fn from(transaction: &'c Transaction<'_>) -> Self {
        Self(transaction.client())
    }
}

impl TableDriver for TokioPostgres {
    type Error = Error;
    type Source<'c> = Over<'c>;
    type Answer<'a, T: Send + 'a> = BoxFuture<'a, T>;

    fn answer<'a, T: Send + 'a>(call: impl Future<Output = T> + Send + 'a) -> BoxFuture<'a, T> {
        Box::pin(call)
    }

    fn texts<'a>(over: &'a mut Over<'_>, sql: String) -> Sent<'a, Self, Vec<String>> {
        Box::pin(async move {
            let messages = over.0.simple_query(&sql).await;
            Ok(texts(&messages.map_err(classify)?))
        })
    }

    fn run<'a>(over: &'a mut Over<'_>, sql: String) -> Sent<'a, Self, ()> {
        Box::pin(async move { over.0.batch_execute(&sql).await.map_err(classify) })
    }

    /// The client is the user's.
    fn release(_: &mut Over<'_>, _: bool) {}
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

fn read<E: for<'r> TryFrom<&'r Row, Error = Error>>(
    rows: &[Row],
) -> Result<Vec<E>, DriverError<Error>> {
    let rows = rows.iter().map(E::try_from);
    rows.collect::<Result<_, _>>().map_err(classify)
}

fn texts(messages: &[SimpleQueryMessage]) -> Vec<String> {
    let texts = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
        _ => None,
    });
    texts.collect()
}

impl<E> FollowerDriver<E> for TokioPostgres
where
    E: OrderedKey<Field: KeyField<Key: StoredAs>>
        + for<'r> TryFrom<&'r Row, Error = Error>
        + Send
        + 'static,
{
    type Dialect = Postgres;
    type Row = E;

    const KEEPS_ORDER: bool = !<<KeyOf<E> as StoredAs>::Column as Column>::UNORDERED;

    fn rows<'a>(
        over: &'a mut Over<'_>,
        sql: String,
        keys: Vec<KeyOf<E>>,
    ) -> Sent<'a, Self, Vec<E>> {
        Box::pin(async move {
            let keys: Vec<_> = keys.into_iter().map(Bound).collect();
            // Prepared without a name, and bound in the same message: behind a pooler, too.
            let rows = over.0.query_typed(&sql, &parameters(&keys)).await;
            read(&rows.map_err(classify)?)
        })
    }

    fn key(row: &E) -> Option<KeyOf<E>> {
        row.key()
    }

    /// Nothing is prepared by name, and a query goes in one message.
    fn isolate(_: &mut Over<'_>) {}
}

#[cfg(feature = "postgres")]
pub use blocking::{BlockingFollower, BlockingOver, BlockingPostgres};

#[cfg(feature = "postgres")]
mod blocking {
    use std::fmt;

    use ordid_core::{
        KeyField, KeyOf, OrderedKey,
        storage::{Column, dialect},
    };
    use ordid_sql::{
        follower::{self, FollowerDriver},
        spi::blocking,
        table_driver::{Sent, TableDriver},
    };
    use postgres::{Client, GenericClient, Transaction};
    use tokio_postgres::{Error, Row, SimpleQueryMessage};

    use super::{Bound, parameters, read, texts};
    use crate::{binder::Parameter, classify::classify, stored::StoredAs};

    /// As [`Follower`](super::Follower), over clients of the crate `postgres`. A call takes `&mut` a client or a
    /// transaction, and blocks.
    pub type BlockingFollower<E> = follower::Follower<BlockingPostgres, E>;

    /// The crate `postgres`, as the library of a [`BlockingFollower`] and of
    /// [`BlockingPartitions`](crate::partitions::BlockingPartitions).
    #[derive(Debug)]
    pub struct BlockingPostgres;

    /// The client over which a call sends its statements. `&mut` a client or a transaction turns into it.
    pub struct BlockingOver<'c>(Box<dyn Ask + 'c>);

    impl fmt::Debug for BlockingOver<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("BlockingOver").finish_non_exhaustive()
        }
    }

    impl<'c> From<&'c mut Client> for BlockingOver<'c> {
        fn from(client: &'c mut Client) -> Self {
            Self(Box::new(client))
        }
    }

    impl<'c> From<&'c mut Transaction<'_>> for BlockingOver<'c> {
        fn from(transaction: &'c mut Transaction<'_>) -> Self {
            Self(Box::new(transaction))
        }
    }

    /// A client whose type does not matter.
    trait Ask: Send {
        fn simple(&mut self, sql: &str) -> Result<Vec<SimpleQueryMessage>, Error>;
        fn run(&mut self, sql: &str) -> Result<(), Error>;
        fn query(&mut self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, Error>;
    }

    impl<C: GenericClient + Send> Ask for &mut C {
        fn simple(&mut self, sql: &str) -> Result<Vec<SimpleQueryMessage>, Error> {
            self.simple_query(sql)
        }

        fn run(&mut self, sql: &str) -> Result<(), Error> {
            self.batch_execute(sql)
        }

        fn query(&mut self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, Error> {
            self.query_typed(sql, parameters)
        }
    }

    impl TableDriver for BlockingPostgres {
        type Error = Error;
        type Source<'c> = BlockingOver<'c>;
        type Answer<'a, T: Send + 'a> = T;

        fn answer<'a, T: Send + 'a>(call: impl Future<Output = T> + Send + 'a) -> T {
            blocking(call)
        }

        fn texts<'a>(over: &'a mut BlockingOver<'_>, sql: String) -> Sent<'a, Self, Vec<String>> {
            Box::pin(async move { Ok(texts(&over.0.simple(&sql).map_err(classify)?)) })
        }

        fn run<'a>(over: &'a mut BlockingOver<'_>, sql: String) -> Sent<'a, Self, ()> {
            Box::pin(async move { over.0.run(&sql).map_err(classify) })
        }

        /// The client is the user's.
        fn release(_: &mut BlockingOver<'_>, _: bool) {}
    }

    impl<E> FollowerDriver<E> for BlockingPostgres
    where
        E: OrderedKey<Field: KeyField<Key: StoredAs>>
            + for<'r> TryFrom<&'r Row, Error = Error>
            + Send
            + 'static,
    {
        type Dialect = dialect::Postgres;
        type Row = E;

        const KEEPS_ORDER: bool = !<<KeyOf<E> as StoredAs>::Column as Column>::UNORDERED;

        fn rows<'a>(
            over: &'a mut BlockingOver<'_>,
            sql: String,
            keys: Vec<KeyOf<E>>,
        ) -> Sent<'a, Self, Vec<E>> {
            Box::pin(async move {
                let keys: Vec<_> = keys.into_iter().map(Bound).collect();
                let rows = over.0.query(&sql, &parameters(&keys));
                read(&rows.map_err(classify)?)
            })
        }

        fn key(row: &E) -> Option<KeyOf<E>> {
            row.key()
        }

        /// Nothing is prepared by name, and a query goes in one message.
        fn isolate(_: &mut BlockingOver<'_>) {}
    }
}
