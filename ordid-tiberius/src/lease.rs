//! The driver of [`ordid_sql::leases`] for tiberius.

use std::{fmt, marker::PhantomData, pin::Pin, time::Duration};

use futures_util::io::{AsyncRead, AsyncWrite};
use ordid_core::{
    Error,
    coordination::CoordinationFailure,
    storage::dialect::{Babelfish, SqlServer},
};
use ordid_sql::{
    FlushDialect,
    classify::sql_server::is_missing_table,
    leases::{
        self, StoreDriver, Unanswered,
        numbers::{Answer, Statement, Value},
    },
};
use tiberius::{Client, ColumnData, Query, Row};

use crate::{
    failure::classify,
    flavour::{Flavour, Session},
};

/// A stream over which tiberius can connect. Every type with the traits that tiberius requires implements it.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Leases nodes from a table of SQL Server or Babelfish: [`leases::SqlLease`] says what it promises.
///
/// A new connection that has a transaction open is refused
/// ([`Mismatch`](CoordinationFailure::Mismatch)), and so is a server of the other flavour.
///
/// The ceiling is only as durable as a commit. A database with `DELAYED_DURABILITY = FORCED` confirms a commit before
/// its log is on the disk, so the ceiling is not durable there. A secondary that commits asynchronously counts as a
/// restored copy.
///
/// SQL Server is 2016 or later, for `DATEDIFF_BIG`.
///
/// # Example
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use ordid_core::{
///     clock::SystemClock, coordination::LeaseTerms, entropy::ThreadEntropy,
///     generator::{AtCeiling, Generator, LeaseKeeper, Policy}, scheme::Snowflake,
/// };
/// use ordid_tiberius::{Connect, SqlLease};
/// use tiberius::{Client, Config};
/// use tokio::net::TcpStream;
/// use tokio_util::compat::TokioAsyncWriteCompatExt;
///
/// let config = Config::from_ado_string(&std::env::var("MSSQL_URL")?)?;
/// let connect = Connect::new(move || {
///     let config = config.clone();
///     async move {
///         let stream = TcpStream::connect(config.get_addr()).await?;
///         Client::connect(config, stream.compat_write()).await
///     }
/// });
/// let leases = Arc::new(SqlLease::new(connect, LeaseTerms::new(0..1_024)?));
/// leases.create().await?; // once, as a migration
///
/// let keeper = LeaseKeeper::<Snowflake, _, _>::acquire(
///     &*leases, SystemClock, ThreadEntropy, Policy::DEFAULT, AtCeiling::Error,
/// ).await?;
/// let keys = keeper.generator();
/// tokio::spawn(keeper.run(leases, tokio::time::sleep));
/// let key = keys.try_generate()?;
/// # Ok(())
/// # }
/// ```
pub type SqlLease<S, D = SqlServer> = leases::SqlLease<Tiberius<S, D>>;

type Connecting<S> = Pin<Box<dyn Future<Output = tiberius::Result<Client<S>>> + Send>>;

/// How to connect to SQL Server, or to Babelfish.
pub struct Connect<S: Stream, D: Flavour = SqlServer> {
    connect: Box<dyn Fn() -> Connecting<S> + Send + Sync>,
    flavour: PhantomData<fn() -> D>,
}

impl<S: Stream> Connect<S> {
    /// Takes what connects to SQL Server.
    pub fn new<F>(connect: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = tiberius::Result<Client<S>>> + Send + 'static,
    {
        Self::of(connect)
    }
}

impl<S: Stream> Connect<S, Babelfish> {
    /// Takes what connects to Babelfish.
    pub fn for_babelfish<F>(connect: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = tiberius::Result<Client<S>>> + Send + 'static,
    {
        Self::of(connect)
    }
}

impl<S: Stream, D: Flavour> Connect<S, D> {
    fn of<F>(connect: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = tiberius::Result<Client<S>>> + Send + 'static,
    {
        Self {
            connect: Box::new(move || Box::pin(connect())),
            flavour: PhantomData,
        }
    }
}

impl<S: Stream, D: Flavour> fmt::Debug for Connect<S, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connect").finish_non_exhaustive()
    }
}

/// tiberius with a flavour of server, as [`ordid_sql`] has it: leases are over it.
#[derive(Debug)]
pub struct Tiberius<S, D = SqlServer>(PhantomData<fn() -> (S, D)>);

impl<S: Stream + 'static, D: Flavour> StoreDriver for Tiberius<S, D> {
    type Dialect = D;
    type Options = Connect<S, D>;
    type Connection = Client<S>;

    const SURVIVES_FORKS: bool = true;

    async fn connect(connect: &Connect<S, D>, _: Duration) -> Result<Client<S>, Error> {
        let connected = (connect.connect)().await;
        let mut client = connected.map_err(|error| said::<D>(&error))?;
        let session = Session::ask(&mut client, Session::QUESTION_OF_STATEMENTS).await;
        let session = session.map_err(|error| said::<D>(&error))?;
        let problem = if !D::is(&session.version) {
            let found = session.version.lines().next().unwrap_or_default();
            format!(
                "these leases are for {}, and the server is `{found}`",
                D::NAME
            )
        } else if session.transactions > 0 {
            format!(
                "{}: a transaction is open on the new connection, and what it would undo is not granted: \
                 connect without one",
                D::NAME
            )
        } else {
            return Ok(client);
        };
        Err(Error::coordination(CoordinationFailure::Mismatch, problem))
    }

    async fn ask(
        client: &mut Client<S>,
        statement: &Statement,
        values: &[Value<'_>],
    ) -> Result<Answer, Unanswered> {
        let rows = asked(client, statement.sql(), values).await;
        let rows = rows.map_err(|error| Unanswered {
            error: said::<D>(&error),
            remedy: classify(error).failure.into(),
        })?;
        Ok(Answer {
            rows,
            ..Answer::default()
        })
    }

    async fn run(client: &mut Client<S>, script: String) -> Result<(), Error> {
        let done = async { client.simple_query(script).await?.into_results().await };
        done.await.map(drop).map_err(|error| said::<D>(&error))
    }
}

fn said<D: FlushDialect>(error: &tiberius::error::Error) -> Error {
    let failure = match error {
        tiberius::error::Error::Server(token)
            if is_missing_table(token.code().into(), token.message()) =>
        {
            CoordinationFailure::StateLost
        }
        _ => CoordinationFailure::Unavailable,
    };
    Error::coordination(failure, format!("{}: {error}", D::NAME))
}

/// The rows of a statement; of one that changes some, their number.
async fn asked<S: Stream>(
    client: &mut Client<S>,
    sql: &str,
    values: &[Value<'_>],
) -> tiberius::Result<Vec<Vec<i64>>> {
    let mut query = Query::new(sql);
    for value in values {
        match *value {
            Value::Number(number) => query.bind(number),
            Value::Text(text) => query.bind(text.to_owned()),
        }
    }
    let results = query.query(client).await?.into_results().await?;
    // The last: a trigger may have answered before.
    let rows = results.into_iter().next_back().unwrap_or_default();
    rows.into_iter().map(integers).collect()
}

fn integers(row: Row) -> tiberius::Result<Vec<i64>> {
    let integer = |value: ColumnData<'_>| match value {
        ColumnData::I64(Some(number)) => Ok(number),
        // Counts.
        ColumnData::I32(Some(number)) => Ok(number.into()),
        other => {
            let problem = format!("expected a bigint in a table of leases, found {other:?}");
            Err(tiberius::error::Error::Conversion(problem.into()))
        }
    };
    row.into_iter().map(integer).collect()
}
