//! Nodes leased from a table. The statements and their order are those of
//! [`nodes`](ordid_sql::leases::nodes).

use std::{fmt, marker::PhantomData, pin::Pin, time::Duration};

use futures_util::io::{AsyncRead, AsyncWrite};
use ordid_core::{
    Error,
    clock::Timestamp,
    coordination::{AsyncNodeAllocator, CoordinationFailure, Grant, LeaseTerms},
    entropy::ThreadEntropy,
    storage::dialect::{Babelfish, SqlServer},
};
use ordid_sql::leases::{
    connections::{Connections, Exchange, Unanswered},
    nodes::LeasedNodes,
    numbers::{Answer, NumberStore, Statement},
};
use tiberius::{Client, ColumnData, Query, Row};

use crate::{
    failure::failure,
    flavour::{Flavour, Session},
};

/// What a connection reads from and writes to, as tiberius wants it: every such type has this trait.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Leases nodes from a table of SQL Server or Babelfish: a
/// [`NodeAllocator`](ordid_core::coordination::NodeAllocator) where the program has a database anyway.
///
/// The database's clock decides when a silent holder's node is free, and whether a process's clock is too
/// far ahead; no duplicate depends on it. Statements run on connections that `connect` makes and that nobody
/// else uses, each statement a transaction of its own; one that has a transaction open is refused
/// ([`Mismatch`](CoordinationFailure::Mismatch)), and so is a server of the other flavour. Four are kept at
/// most. One that was closed while it was idle is replaced; a deadlock's victim is sent again.
///
/// The ceiling is as durable as a commit is: not in a database with `DELAYED_DURABILITY = FORCED`, which answers
/// before its log is on the disk. A database that falls over to a secondary that commits asynchronously, or is
/// restored from a copy, can grant time a second time, up to what was lost and at most the terms'
/// [`max_ahead`](LeaseTerms::max_ahead) ahead of the clock: a holder that renews finds out
/// ([`CeilingRegressed`](CoordinationFailure::CeilingRegressed)), and writes back what it was granted.
///
/// The child of a fork may acquire a node of its own of it, over connections of its own; its parent's grant is
/// refused there.
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
/// use ordid_tiberius::SqlLease;
/// use tiberius::{Client, Config};
/// use tokio::net::TcpStream;
/// use tokio_util::compat::TokioAsyncWriteCompatExt;
///
/// let config = Config::from_ado_string(&std::env::var("MSSQL_URL")?)?;
/// let connect = move || {
///     let config = config.clone();
///     async move {
///         let stream = TcpStream::connect(config.get_addr()).await?;
///         Client::connect(config, stream.compat_write()).await
///     }
/// };
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
pub struct SqlLease<S: Stream, D: Flavour = SqlServer> {
    store: Store<S, D>,
    nodes: LeasedNodes<D>,
}

impl<S: Stream> SqlLease<S> {
    /// Takes what connects to SQL Server, and the terms. It connects when it is first asked for something.
    pub fn new<F>(connect: impl Fn() -> F + Send + Sync + 'static, terms: LeaseTerms) -> Self
    where
        F: Future<Output = tiberius::Result<Client<S>>> + Send + 'static,
    {
        Self::of(connect, terms)
    }
}

impl<S: Stream> SqlLease<S, Babelfish> {
    /// As [`new`](SqlLease::new), for Babelfish.
    pub fn for_babelfish<F>(
        connect: impl Fn() -> F + Send + Sync + 'static,
        terms: LeaseTerms,
    ) -> Self
    where
        F: Future<Output = tiberius::Result<Client<S>>> + Send + 'static,
    {
        Self::of(connect, terms)
    }
}

impl<S: Stream, D: Flavour> SqlLease<S, D> {
    /// The name of the table unless said otherwise.
    pub const TABLE: &'static str = LeasedNodes::<D>::TABLE;

    fn of<F>(connect: impl Fn() -> F + Send + Sync + 'static, terms: LeaseTerms) -> Self
    where
        F: Future<Output = tiberius::Result<Client<S>>> + Send + 'static,
    {
        Self {
            store: Store {
                connect: Box::new(move || Box::pin(connect())),
                connections: Connections::new(),
                flavour: PhantomData,
            },
            nodes: LeasedNodes::new(terms),
        }
    }

    /// Takes a table of another name: each group of processes that share nodes has one.
    ///
    /// # Errors
    ///
    /// If it has other characters than letters, digits and underscores, or more than 63. The error is a
    /// [`Mismatch`](CoordinationFailure::Mismatch).
    pub fn with_table(self, table: &str) -> Result<Self, Error> {
        Ok(Self {
            nodes: self.nodes.with_table(table)?,
            ..self
        })
    }

    /// Says how long the database may take for an answer, connecting included: 5 s otherwise.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.store.connections.set_timeout(timeout);
        self
    }

    /// Returns the batch that makes the table, and a row for each node of the terms that has none.
    ///
    /// Run it once, as a migration. A table that was lost must not be made anew in silence: then nobody
    /// knows any more which time is used. Never delete rows.
    ///
    /// # Errors
    ///
    /// If the terms name more than 65,536 nodes. The error is a [`Mismatch`](CoordinationFailure::Mismatch).
    pub fn create_sql(&self) -> Result<String, Error> {
        self.nodes.create_sql()
    }

    /// Makes the table, and a row for each node of the terms that has none: as
    /// [`create_sql`](Self::create_sql).
    ///
    /// # Errors
    ///
    /// As [`create_sql`](Self::create_sql), and what the database says.
    pub async fn create(&self) -> Result<(), Error> {
        self.store.run(self.create_sql()?).await
    }
}

impl<S: Stream, D: Flavour> AsyncNodeAllocator for SqlLease<S, D> {
    async fn acquire(&self, now: Timestamp, last: Option<Timestamp>) -> Result<Grant, Error> {
        let nodes = &self.nodes;
        nodes.acquire(&self.store, &ThreadEntropy, now, last).await
    }

    async fn renew(&self, grant: &Grant, now: Timestamp) -> Result<Grant, Error> {
        self.nodes.renew(&self.store, grant, now).await
    }

    async fn release(&self, grant: &Grant, last: Option<Timestamp>) -> Result<(), Error> {
        self.nodes.release(&self.store, grant, last).await
    }

    fn terms(&self) -> &LeaseTerms {
        self.nodes.terms()
    }
}

impl<S: Stream, D: Flavour> fmt::Debug for SqlLease<S, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlLease")
            .field("database", &D::NAME)
            .field("connections", &self.store.connections)
            .field("table", &self.nodes.table())
            .field("terms", self.nodes.terms())
            .finish_non_exhaustive()
    }
}

type Connecting<S> = Pin<Box<dyn Future<Output = tiberius::Result<Client<S>>> + Send>>;

/// A database, and the connections to it that are not used by anybody else.
struct Store<S: Stream, D> {
    connect: Box<dyn Fn() -> Connecting<S> + Send + Sync>,
    connections: Connections<Client<S>>,
    flavour: PhantomData<fn() -> D>,
}

impl<S: Stream, D: Flavour> Store<S, D> {
    async fn connect(&self) -> Result<Client<S>, Error> {
        let connected = (self.connect)().await;
        let mut client = connected.map_err(|error| Self::error(&error))?;
        let session = Session::of_statements(&mut client).await;
        let session = session.map_err(|error| Self::error(&error))?;
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

    /// Runs a batch.
    async fn run(&self, script: String) -> Result<(), Error> {
        let work = async {
            let mut client = self.connect().await?;
            let done = async { client.simple_query(script).await?.into_results().await };
            done.await.map(drop).map_err(|error| Self::error(&error))
        };
        self.connections.within(D::NAME, work).await
    }

    fn error(error: &tiberius::error::Error) -> Error {
        /// Invalid object name.
        const NO_SUCH_TABLE: u32 = 208;

        let failure = match error.code() {
            Some(NO_SUCH_TABLE) => CoordinationFailure::StateLost,
            _ => CoordinationFailure::Unavailable,
        };
        Error::coordination(failure, format!("{}: {error}", D::NAME))
    }
}

impl<S: Stream, D: Flavour> NumberStore for Store<S, D> {
    async fn ask(&self, statement: &Statement, values: &[i64]) -> Result<Answer, Error> {
        let question = Question {
            store: self,
            sql: statement.sql(),
            values,
        };
        let answer = self.connections.exchange(&question, statement.may_repeat());
        self.connections.within(D::NAME, answer).await
    }
}

/// A statement, and the database that it is for.
struct Question<'q, S: Stream, D> {
    store: &'q Store<S, D>,
    sql: &'q str,
    values: &'q [i64],
}

impl<S: Stream, D: Flavour> Exchange for Question<'_, S, D> {
    type Connection = Client<S>;
    type Answer = Answer;

    async fn connect(&self) -> Result<Client<S>, Error> {
        self.store.connect().await
    }

    async fn ask(&self, client: &mut Client<S>) -> Result<Answer, Unanswered> {
        let rows = asked(client, self.sql, self.values).await;
        let rows = rows.map_err(|error| Unanswered {
            error: Store::<S, D>::error(&error),
            remedy: failure(&error).into(),
        })?;
        Ok(Answer {
            rows,
            ..Answer::default()
        })
    }
}

/// The rows of a statement; of one that changes some, their number.
async fn asked<S: Stream>(
    client: &mut Client<S>,
    sql: &str,
    values: &[i64],
) -> tiberius::Result<Vec<Vec<i64>>> {
    let mut query = Query::new(sql);
    query.bind_iter(values.iter().copied());
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
