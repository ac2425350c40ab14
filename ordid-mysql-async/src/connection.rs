//! Connections of mysql_async, and where they come from.
//!
//! # Dropped futures
//!
//! mysql_async 0.37 does not read an answer that nobody waits for: whoever uses the connection next takes it for their own.
//! So a connection on which a flush was dropped, or on which its transaction is still open, is [closed](close): the server
//! rolls back, and a pool makes another one.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering},
};

use futures_util::FutureExt as _;
use mysql_async::{
    Conn, DriverError as OwnError, Error, Params, Pool, Row, Transaction, Value,
    consts::StatusFlags,
    prelude::{Protocol, Queryable},
};
use ordid_sql::{
    DriverError, EngineProfile, Failure,
    spi::{
        Begin, BoxFuture, Changed, Connected, ConnectionSource, FlushConnection, FlushTransaction,
        OneConnection, RELEASE, ReadRow, SAVEPOINT, Statement, StatementFailure, StatementKind,
        TransactionScope, UNDO,
    },
};

use crate::{
    Error as FlushError,
    binder::Binder,
    classify::{classify, classify_commit},
};

/// What a connection is reached by.
pub(crate) trait Client: Send {
    /// What statements are sent by.
    type Queries: Queryable;

    /// Whether it is the user's, who may have begun a transaction.
    const IS_USERS: bool;

    fn conn(&self) -> &Conn;

    fn queries(&mut self) -> &mut Self::Queries;
}

/// A pool's.
impl Client for Conn {
    type Queries = Self;

    const IS_USERS: bool = false;

    fn conn(&self) -> &Conn {
        self
    }

    fn queries(&mut self) -> &mut Self {
        self
    }
}

/// The user's.
impl Client for &mut Conn {
    type Queries = Conn;

    const IS_USERS: bool = true;

    fn conn(&self) -> &Conn {
        self
    }

    fn queries(&mut self) -> &mut Conn {
        self
    }
}

/// That of the user's transaction.
impl<'t> Client for &mut Transaction<'t> {
    type Queries = Transaction<'t>;

    const IS_USERS: bool = true;

    fn conn(&self) -> &Conn {
        self
    }

    fn queries(&mut self) -> &mut Transaction<'t> {
        self
    }
}

/// A statement of a connection that may be gone. It is never sent: see [`close`].
static UNSENT: OnceLock<mysql_async::Statement> = OnceLock::new();

/// Closes a connection that others may hold, at once.
///
/// `Conn::disconnect` takes the connection by value, but the user keeps a `Conn` or a `Transaction` that was borrowed, and
/// a destructor cannot wait for it. Dropping does not help either: a pool takes the connection back. But mysql_async closes
/// every connection over which something fails that is not the server's error, and it refuses a number of parameters that
/// is not the statement's before it sends anything. It does not compare the statement's connection with this one, so one
/// statement is enough for all. Only mysql_async can make a statement, from the answer of a server, and so nothing is
/// closed before [`prepare_to_close`](MysqlConnection::prepare_to_close) has had one.
fn close(client: &mut impl Client) {
    if let Some(statement) = UNSENT.get() {
        let too_many = usize::from(statement.num_params()) + 1;
        let values = vec![Value::NULL; too_many];
        let refused = client.queries().exec_drop(statement, values);
        // What it has to wait for is what the server no longer reads.
        let _ = refused.now_or_never();
    }
}

/// A connection, for the length of a flush.
pub(crate) struct MysqlConnection<C: Client> {
    client: C,
    /// Whether a transaction or a savepoint of the flush may be open.
    is_open: Option<TransactionScope>,
    /// Whether nothing more can be sent over it.
    is_lost: bool,
    /// The statement that was prepared last, if it is kept. mysql_async closes the one that was not used for longest.
    last: Option<(Arc<str>, mysql_async::Statement)>,
}

impl<C: Client> MysqlConnection<C> {
    fn new(client: C) -> Self {
        Self {
            client,
            is_open: None,
            is_lost: false,
            last: None,
        }
    }

    /// Sends statements without parameters, all in one text.
    async fn run(&mut self, sql: &str) -> Result<(), Error> {
        self.client.queries().query_drop(sql).await
    }

    /// Sends a statement, and returns the rows of its answer.
    async fn ask(&mut self, statement: &Statement, values: &mut Binder) -> Result<Vec<Row>, Error> {
        let queries = self.client.queries();
        if statement.columns.is_empty() {
            return rows(queries.query_iter(&*statement.sql).await?).await;
        }
        let values = Params::Positional(std::mem::take(&mut values.values));
        if let Some((_, prepared)) = self.last.as_ref().filter(|(sql, _)| *sql == statement.sql) {
            return rows(queries.exec_iter(prepared, values).await?).await;
        }
        self.last = None;
        let prepared = queries.prep(&*statement.sql).await?;
        let answer = async { rows(queries.exec_iter(&prepared, values).await?).await }.await;
        if statement.is_kept && self.client.conn().opts().stmt_cache_size() > 0 {
            self.last = Some((Arc::clone(&statement.sql), prepared));
        } else if let Ok(_) | Err(Error::Server(_)) = &answer {
            self.client.queries().close(prepared).await?;
        }
        answer
    }

    /// Returns how many rows a statement found.
    fn found(&self, kind: StatementKind) -> u64 {
        let conn = self.client.conn();
        match kind {
            // Unless a connection has `CLIENT_FOUND_ROWS`, rows that have these values already are not counted as affected.
            // The text counts them, in every language first: "Rows matched: 2  Changed: 1  Warnings: 0".
            StatementKind::Update | StatementKind::SetNull => {
                first_number(&conn.info()).unwrap_or_else(|| conn.affected_rows())
            }
            _ => conn.affected_rows(),
        }
    }

    /// Returns whether a transaction is open on it, and makes sure that the answer is that to this question.
    ///
    /// It may be the answer to any statement of the user's, so it is read as a row of any shape. An error may be one, too.
    async fn has_transaction(&mut self) -> Result<bool, DriverError<Error>> {
        static NEXT: AtomicU64 = AtomicU64::new(0);

        let text = format!("ordid {}", NEXT.fetch_add(1, Ordering::Relaxed));
        let sql = format!("SELECT '{text}'");
        let answer = async { rows(self.client.queries().query_iter(sql).await?).await }.await;
        let expected = vec![Value::Bytes(text.into_bytes())];
        match answer.map(|rows| rows.into_iter().map(Row::unwrap).collect::<Vec<_>>()) {
            Ok(rows) if rows == [expected] => Ok(self.was_in_transaction()),
            Ok(_) => Err(self.lost(OwnError::PacketOutOfOrder)),
            Err(error) => Err(self.lost(error)),
        }
    }

    /// Marks it as lost: the server and mysql_async may disagree on which answer is due.
    fn lost(&mut self, error: impl Into<Error>) -> DriverError<Error> {
        self.is_lost = true;
        DriverError::new(error.into(), Failure::Lost)
    }

    /// Returns whether a transaction was open behind the last statement.
    fn was_in_transaction(&self) -> bool {
        let last = self.client.conn().last_ok_packet();
        let flags = last.map(|it| it.status_flags()).unwrap_or_default();
        flags.contains(StatusFlags::SERVER_STATUS_IN_TRANS)
    }

    /// Prepares what [`close`] needs, once in a process.
    async fn prepare_to_close(&mut self) -> Result<(), DriverError<Error>> {
        if UNSENT.get().is_some() {
            return Ok(());
        }
        let queries = self.client.queries();
        let statement = match queries.prep("DO ?").await {
            Ok(statement) => statement,
            // It may be the error of another statement.
            Err(error) => return Err(self.lost(error)),
        };
        // Any statement will do, so that this connection is closed, too, if the answer was to something else.
        let _ = UNSENT.set(statement.clone());
        if statement.num_params() != 1 {
            return Err(self.lost(OwnError::PacketOutOfOrder));
        }
        queries.close(statement).await.map_err(classify)
    }

    /// Makes sure that the answers over it are those to its own statements, and that it can be closed. Returns whether its
    /// user has a transaction open.
    async fn ready(&mut self) -> Result<bool, DriverError<Error>> {
        // Either the answer to what was dropped last is still due, or the server is gone.
        if self.client.conn().is_disconnected() {
            return Err(self.lost(OwnError::ConnectionClosed));
        }
        let has_transaction = match C::IS_USERS {
            true => self.has_transaction().await?,
            // A pool that resets no connections may lend one on which somebody has left a transaction open.
            false => self.was_in_transaction(),
        };
        // Behind the question: what is read for a prepared statement may promise more than ever comes.
        self.prepare_to_close().await?;
        Ok(has_transaction)
    }

    /// Rolls back what is open.
    async fn roll_back(&mut self) -> Result<(), Error> {
        let ending = match self.is_open {
            None => return Ok(()),
            Some(TransactionScope::Transaction) => "ROLLBACK",
            Some(TransactionScope::Savepoint) => UNDO,
        };
        let ended = self.run(ending).await;
        match &ended {
            Ok(()) => self.is_open = None,
            // A savepoint that the server does not know is gone with its transaction, as at a deadlock.
            Err(Error::Server(error)) if SAVEPOINT_IS_GONE.contains(&error.code) => {
                self.is_open = None;
            }
            // A node of Galera that is not ready refuses ROLLBACK. The transaction may be open then, and beginning another
            // one on this connection would commit it.
            Err(_) => {}
        }
        ended
    }
}

/// Returns the rows of an answer, which has come to its end then.
async fn rows<P: Protocol>(
    answer: mysql_async::QueryResult<'_, 'static, P>,
) -> Result<Vec<Row>, Error> {
    answer.collect_and_drop().await
}

/// There is no such savepoint; the same in a replication group; the transaction was the victim of another one.
const SAVEPOINT_IS_GONE: [u16; 3] = [1305, 1030, 1213];

fn first_number(text: &str) -> Option<u64> {
    let mut numbers = text.split(|it: char| !it.is_ascii_digit());
    numbers.find(|it| !it.is_empty())?.parse().ok()
}

fn not_begun(error: Error) -> FlushError {
    FlushError::begin(classify(error))
}

impl<C: Client> Drop for MysqlConnection<C> {
    fn drop(&mut self) {
        // mysql_async takes a connection for lost while it waits for an answer.
        if self.is_lost || self.is_open.is_some() || self.client.conn().is_disconnected() {
            close(&mut self.client);
        }
    }
}

impl<C: Client> FlushConnection for MysqlConnection<C> {
    type Error = Error;
    type Binder = Binder;
    type Bulk = std::convert::Infallible;
    type Transaction<'t>
        = MysqlTransaction<'t, C>
    where
        Self: 't;

    const ADAPTER: &'static str = "ordid_mysql_async";

    /// Checks the connection, since the BEGIN of the flush would commit a transaction that is open. Inside a
    /// transaction, the flush could read the answer to a query that the user dropped.
    async fn check(&mut self, wanted: TransactionScope) -> Result<TransactionScope, FlushError> {
        let is_open = self.ready().await.map_err(FlushError::begin)?;
        if is_open && wanted == TransactionScope::Transaction {
            return Err(FlushError::open_transaction("connection"));
        }
        Ok(wanted)
    }

    async fn begin(&mut self, begin: Begin<'_>) -> Result<MysqlTransaction<'_, C>, FlushError> {
        if let Err(error) = self.roll_back().await {
            self.is_lost = true;
            return Err(not_begun(error));
        }
        let statement = match (begin.scope, begin.ask) {
            (TransactionScope::Transaction, _) => {
                begin.statement.unwrap_or("START TRANSACTION").to_owned()
            }
            (TransactionScope::Savepoint, Some(ask)) => format!("{ask}; {SAVEPOINT}"),
            (TransactionScope::Savepoint, None) => SAVEPOINT.to_owned(),
        };
        for sql in [Some(&*statement), begin.defer].into_iter().flatten() {
            self.run(sql).await.map_err(not_begun)?;
            self.is_open = Some(begin.scope);
        }
        // Then the savepoint is gone, and each statement would be committed by itself.
        if begin.scope == TransactionScope::Savepoint && !self.was_in_transaction() {
            self.is_open = None;
            return Err(FlushError::no_transaction("connection"));
        }
        Ok(MysqlTransaction {
            connection: self,
            scope: begin.scope,
        })
    }

    fn is_usable(&self) -> bool {
        !self.is_lost && !self.client.conn().is_disconnected()
    }
}

/// An open transaction or savepoint. If it is dropped, it is rolled back before the next one begins, or with the
/// connection.
pub(crate) struct MysqlTransaction<'t, C: Client> {
    connection: &'t mut MysqlConnection<C>,
    scope: TransactionScope,
}

impl<C: Client> FlushTransaction for MysqlTransaction<'_, C> {
    type Error = Error;
    type Binder = Binder;
    type Bulk = std::convert::Infallible;

    async fn execute(
        &mut self,
        statement: &Statement,
        mut values: Binder,
    ) -> Result<Changed, StatementFailure<Error>> {
        match self.connection.ask(statement, &mut values).await {
            Ok(_) => Ok(Changed::Rows(self.connection.found(statement.kind))),
            Err(error) => Err(classify(error).into()),
        }
    }

    async fn exists(
        &mut self,
        query: &Statement,
        mut values: Binder,
    ) -> Result<bool, DriverError<Error>> {
        let rows = self.connection.ask(query, &mut values).await;
        Ok(!rows.map_err(classify)?.is_empty())
    }

    async fn read(
        &mut self,
        query: &Statement,
        mut values: Binder,
    ) -> Result<Vec<ReadRow>, DriverError<Error>> {
        let rows = self.connection.ask(query, &mut values).await;
        let rows = rows.map_err(classify)?.into_iter();
        let rows = rows.map(|row| values.read(query.kind, row));
        rows.collect::<Result<_, _>>().map_err(classify)
    }

    /// A transaction whose COMMIT failed may be open. If the connection is whole, it is rolled back, so that the connection
    /// need not be closed.
    async fn commit(self) -> Result<(), DriverError<Error>> {
        match self.scope {
            TransactionScope::Transaction => {
                if let Err(error) = self.connection.run("COMMIT").await {
                    let mut error = classify_commit(error);
                    // If it cannot be rolled back, the connection is closed.
                    if error.failure != Failure::Lost && self.connection.roll_back().await.is_err()
                    {
                        error.failure = Failure::Lost;
                    }
                    return Err(error);
                }
            }
            TransactionScope::Savepoint => self.connection.run(RELEASE).await.map_err(classify)?,
        }
        self.connection.is_open = None;
        Ok(())
    }

    /// A connection that is lost is closed, which rolls back.
    async fn rollback(self, is_lost: bool) -> Result<(), DriverError<Error>> {
        match is_lost {
            true => Ok(()),
            false => self.connection.roll_back().await.map_err(classify),
        }
    }
}

/// The user's connection or transaction, for queries that are not those of a flush.
pub(crate) trait Queries: Send {
    /// Sends a query with these parameters, and returns its rows.
    fn query(
        &mut self,
        sql: String,
        values: Vec<Value>,
    ) -> BoxFuture<'_, Result<Vec<Row>, DriverError<Error>>>;
}

impl<C: Client> Queries for MysqlConnection<C> {
    fn query(
        &mut self,
        sql: String,
        values: Vec<Value>,
    ) -> BoxFuture<'_, Result<Vec<Row>, DriverError<Error>>> {
        let statement = Statement {
            kind: StatementKind::Exists,
            sql: sql.into(),
            columns: (0..values.len()).collect(),
            rows: 1,
            is_kept: false,
        };
        let mut values = Binder::of(values);
        Box::pin(async move {
            self.ready().await?;
            self.ask(&statement, &mut values).await.map_err(classify)
        })
    }
}

/// Takes the user's own connection, or that of the user's transaction.
pub(crate) fn queries_on<'c, C: Client + 'c>(client: C) -> Box<dyn Queries + 'c> {
    Box::new(MysqlConnection::new(client))
}

/// Returns the source of the user's own connection, or of that of the user's transaction.
pub(crate) fn on<C: Client>(client: C) -> OneConnection<MysqlConnection<C>> {
    OneConnection::new(MysqlConnection::new(client), EngineProfile::MYSQL)
}

/// Connections of a pool, one after the other.
pub(crate) struct PoolSource {
    pool: Pool,
    open: Option<MysqlConnection<Conn>>,
}

impl PoolSource {
    pub(crate) fn of(pool: &Pool) -> Self {
        Self {
            pool: pool.clone(),
            open: None,
        }
    }

    /// Takes a connection from the pool. After one was lost, those that do not answer are closed, as they perhaps went
    /// with it. Each is given back before the next one is taken, for which the pool may have no room otherwise.
    async fn connect(&self, after_loss: bool) -> Result<Conn, Error> {
        let mut conn = self.pool.get_conn().await?;
        if after_loss {
            for _ in 0..conn.opts().pool_opts().constraints().max() {
                if conn.ping().await.is_ok() {
                    break;
                }
                let _ = conn.disconnect().await;
                conn = self.pool.get_conn().await?;
            }
        }
        Ok(conn)
    }
}

impl ConnectionSource for PoolSource {
    type Connection = MysqlConnection<Conn>;

    fn engine(&self) -> EngineProfile {
        EngineProfile::MYSQL
    }

    async fn get(&mut self, after_loss: bool) -> Connected<'_, MysqlConnection<Conn>> {
        let is_new = self.open.is_none();
        if is_new {
            let conn = self.connect(after_loss).await.map_err(not_begun)?;
            self.open = Some(MysqlConnection::new(conn));
        }
        let open = self.open.as_mut().expect("it was opened");
        Ok((open, is_new))
    }

    fn release(&mut self) {
        self.open = None;
    }

    fn discard(&mut self) {
        if let Some(mut lost) = self.open.take() {
            lost.is_lost = true;
        }
    }

    fn may_reconnect(&self) -> bool {
        true
    }
}
