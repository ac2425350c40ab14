//! Connections of SQLx, and where they come from.

use std::{
    fmt,
    sync::atomic::{AtomicBool, Ordering},
};

use ordid_sql::{
    DriverError, EngineProfile, NotBulk, PendingRows,
    spi::{
        Begin, BulkFailure, BulkRows, Changed, ConnectionSource, FlushConnection, FlushTransaction,
        ReadRow, Statement, StatementFailure, TransactionScope,
    },
};
use sqlx::{
    AssertSqlSafe, Connection as _, Pool, SqlSafeStr as _, SqlStr, Transaction,
    pool::PoolConnection,
};

use crate::{
    Error,
    backend::{Answer, Backend, Binder, BoxFuture, Bulk},
    classify::{classify, classify_commit, not_begun, savepoint_not_begun},
};

/// Whether client and server still agree on what comes next over a connection.
#[derive(Debug, Default)]
pub struct ProtocolState {
    /// They do not: the connection failed, or a `COPY` is under way. SQLx does not count the answer that a
    /// `COPY` waits for, so whoever uses the connection after a future was dropped there takes that answer for
    /// their own.
    lost: AtomicBool,
    /// A call is under way. Dropped there, only SQLite's connection can be used again.
    busy: AtomicBool,
    /// A transaction begins. Dropped there, the connection has a transaction open that SQLx 0.9 does not know of,
    /// and whoever uses it next writes into that.
    beginning: AtomicBool,
}

impl ProtocolState {
    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }

    /// The server has said how the command ended.
    #[cfg(feature = "postgres")]
    pub(crate) fn regain(&self) {
        self.lost.store(false, Ordering::Relaxed);
    }

    /// Says whether a call is under way.
    pub(crate) fn set_busy(&self, busy: bool) {
        self.busy.store(busy, Ordering::Relaxed);
    }
}

/// A connection of SQLx, for the length of a flush or of a call.
pub struct SqlxConnection<'c, DB: Backend> {
    held: Held<'c, DB>,
    state: ProtocolState,
}

enum Held<'c, DB: Backend> {
    /// It goes back to its pool only if client and server agree on what comes next: otherwise it is closed, as
    /// it is where a flush is dropped in the midst of a `COPY`.
    Pooled(PoolConnection<DB>),
    Borrowed(&'c mut DB::Connection),
}

impl<'c, DB: Backend> SqlxConnection<'c, DB> {
    fn new(held: Held<'c, DB>) -> Self {
        Self {
            held,
            state: ProtocolState::default(),
        }
    }

    /// Takes a connection from the pool.
    async fn from_pool(pool: &Pool<DB>) -> Result<Self, sqlx::Error> {
        let acquire: BoxFuture<'_, _> = Box::pin(pool.acquire());
        Ok(Self::new(Held::Pooled(acquire.await?)))
    }

    /// As [`from_pool`](Self::from_pool), after another connection was lost: closes those that do not answer,
    /// which perhaps went with it.
    async fn from_pool_after_loss(pool: &Pool<DB>) -> Result<Self, sqlx::Error> {
        for _ in 0..pool.options().get_max_connections() {
            let mut open = Self::from_pool(pool).await?;
            // If this is dropped, the answer of the ping is still to come.
            open.state.set_busy(true);
            let ping: BoxFuture<'_, _> = Box::pin(open.connection().0.ping());
            let answered = ping.await.is_ok();
            open.state.set_busy(false);
            if answered {
                return Ok(open);
            }
            open.state.lose();
        }
        Self::from_pool(pool).await
    }

    /// Returns the connection, and what is known of its protocol.
    pub(crate) fn connection(&mut self) -> (&mut DB::Connection, &ProtocolState) {
        let connection = match &mut self.held {
            Held::Pooled(connection) => &mut **connection,
            Held::Borrowed(connection) => &mut **connection,
        };
        (connection, &self.state)
    }
}

impl<DB: Backend> Drop for SqlxConnection<'_, DB> {
    fn drop(&mut self) {
        if self.state.beginning.load(Ordering::Relaxed) {
            DB::abandon(self.connection().0);
        }
        let is_lost = self.state.lost.load(Ordering::Relaxed);
        let is_busy = self.state.busy.load(Ordering::Relaxed) && !DB::SURVIVES_DROPS;
        if (is_lost || is_busy)
            && let Held::Pooled(connection) = &mut self.held
        {
            connection.close_on_drop();
        }
    }
}

/// A text of ordid's own, of quoted names.
fn sql_of(statement: &Statement) -> SqlStr {
    AssertSqlSafe(std::sync::Arc::clone(&statement.sql)).into_sql_str()
}

impl<DB: Backend> FlushConnection for SqlxConnection<'_, DB> {
    type Error = sqlx::Error;
    type Binder = Binder<DB>;
    type Bulk = Binder<DB>;
    type Transaction<'t>
        = SqlxTransaction<'t, DB>
    where
        Self: 't;

    const ADAPTER: &'static str = "ordid_sqlx";
    const MIN_BULK_ROWS_AGAIN: usize = ordid_sql::copy::MIN_ROWS;
    const STAGES_BULK: bool = true;

    /// MySQL and MariaDB would commit a transaction that is open by the BEGIN of the flush. SQLite may have ended the user's
    /// transaction, as `ON CONFLICT ROLLBACK` and a full disk do, and SQLx would not know.
    async fn check(&mut self, wanted: TransactionScope) -> Result<TransactionScope, Error> {
        let Held::Borrowed(connection) = &mut self.held else {
            return Ok(wanted);
        };
        let is_transaction = wanted == TransactionScope::Transaction;
        if is_transaction && connection.is_in_transaction() {
            return Err(Error::open_transaction("connection"));
        }
        if is_transaction || DB::SAVEPOINT_BEGINS {
            let is_open = DB::has_transaction(connection).await;
            match is_open.map_err(|error| Error::begin(classify(error)))? {
                true if is_transaction => return Err(Error::open_transaction("connection")),
                false if !is_transaction => return Err(Error::no_transaction("connection")),
                _ => {}
            }
        }
        Ok(wanted)
    }

    /// Only a pool's connection can be closed if a flush is dropped in the midst of a `COPY`.
    async fn bulk(
        &mut self,
        rows: &PendingRows<Binder<DB>>,
        table: usize,
    ) -> Result<Binder<DB>, NotBulk> {
        let Held::Pooled(connection) = &mut self.held else {
            return Err(NotBulk::BorrowedConnection);
        };
        self.state.set_busy(true);
        let table = rows.table(table);
        let name = DB::PROFILE.quote_table(table.schema(), table.name());
        let bulk = DB::Bulk::prepare(connection, &name, table.columns()).await;
        self.state.set_busy(false);
        bulk.map(Binder::with_bulk)
    }

    async fn begin(&mut self, begin: Begin<'_>) -> Result<SqlxTransaction<'_, DB>, Error> {
        let statement = match begin.scope {
            TransactionScope::Savepoint => None,
            TransactionScope::Transaction if begin.uses_bulk && begin.statement.is_none() => {
                DB::Bulk::BEGIN.map(SqlStr::from_static)
            }
            TransactionScope::Transaction => {
                let own = begin.statement;
                own.map(|sql| AssertSqlSafe(sql.to_owned()).into_sql_str())
            }
        };
        let (connection, state) = self.connection();
        state.set_busy(true);
        let is_savepoint = connection.is_in_transaction();
        state.beginning.store(!is_savepoint, Ordering::Relaxed);
        let asked = match begin.ask {
            Some(sql) => DB::run_script(connection, SqlStr::from_static(sql)).await,
            None => Ok(()),
        };
        let begun = match (asked, statement, begin.scope) {
            (Err(error), ..) => Err(not_begun(error)),
            (Ok(()), Some(statement), _) => {
                connection.begin_with(statement).await.map_err(not_begun)
            }
            (Ok(()), None, TransactionScope::Transaction) => {
                connection.begin().await.map_err(not_begun)
            }
            (Ok(()), None, TransactionScope::Savepoint) => {
                connection.begin().await.map_err(savepoint_not_begun)
            }
        };
        state.beginning.store(false, Ordering::Relaxed);
        let begun = match begun {
            Ok(transaction) => {
                let scope = begin.scope;
                let mut open = SqlxTransaction {
                    transaction,
                    state,
                    scope,
                };
                // A statement of the profile's own leaves it out.
                let setting =
                    DB::Bulk::SETTING.filter(|_| begin.uses_bulk && begin.statement.is_some());
                let set = open.run_all([setting, begin.defer]).await;
                set.map(|()| open).map_err(not_begun)
            }
            Err(error) => Err(error),
        };
        begun.inspect_err(|_| state.set_busy(false))
    }

    fn is_usable(&self) -> bool {
        !self.state.lost.load(Ordering::Relaxed)
    }
}

/// A transaction or a savepoint of SQLx.
pub struct SqlxTransaction<'t, DB: Backend> {
    transaction: Transaction<'t, DB>,
    state: &'t ProtocolState,
    scope: TransactionScope,
}

impl<DB: Backend> SqlxTransaction<'_, DB> {
    async fn run_all(&mut self, statements: [Option<&'static str>; 2]) -> Result<(), sqlx::Error> {
        for sql in statements.into_iter().flatten() {
            // A script is not prepared by name, which a pooler of transactions would not allow.
            DB::run_script(&mut self.transaction, SqlStr::from_static(sql)).await?;
        }
        Ok(())
    }

    /// Sends a statement. One without parameters is not prepared.
    async fn ask<R: Default + Send + 'static>(
        &mut self,
        statement: &Statement,
        values: Binder<DB>,
        read: fn(&DB::Row) -> Result<R, sqlx::Error>,
    ) -> Result<Answer<R>, sqlx::Error> {
        let sql = sql_of(statement);
        if statement.columns.is_empty() {
            return DB::ask_script(&mut self.transaction, sql, read).await;
        }
        let arguments = values.into_arguments();
        DB::ask(
            &mut self.transaction,
            sql,
            arguments,
            statement.is_kept,
            read,
        )
        .await
    }
}

impl<DB: Backend> FlushTransaction for SqlxTransaction<'_, DB> {
    type Error = sqlx::Error;
    type Binder = Binder<DB>;
    type Bulk = Binder<DB>;

    async fn execute(
        &mut self,
        statement: &Statement,
        values: Binder<DB>,
    ) -> Result<Changed, StatementFailure<sqlx::Error>> {
        match self.ask(statement, values, |_| Ok(())).await {
            Ok(answer) => Ok(Changed::Rows(answer.changed)),
            Err(error) => Err(classify(error).into()),
        }
    }

    async fn exists(
        &mut self,
        query: &Statement,
        values: Binder<DB>,
    ) -> Result<bool, DriverError<sqlx::Error>> {
        let found = self
            .ask(query, values, |_| Ok(()))
            .await
            .map_err(classify)?;
        Ok(!found.rows.is_empty())
    }

    async fn read(
        &mut self,
        query: &Statement,
        mut values: Binder<DB>,
    ) -> Result<Vec<ReadRow>, DriverError<sqlx::Error>> {
        let readers = values.take_readers();
        if readers.is_empty() {
            let answer = self.ask(query, values, DB::last_text).await;
            let answer = answer.map_err(classify)?;
            return Ok(answer.rows.into_iter().map(ReadRow::from).collect());
        }
        let (sql, arguments) = (sql_of(query), values.into_arguments());
        let rows = DB::fetch(&mut self.transaction, sql, arguments, query.is_kept);
        let rows = rows.await.map_err(classify)?;
        let rows = rows.iter().map(|row| readers.read(row));
        rows.collect::<Result<_, _>>().map_err(classify)
    }

    async fn send_bulk(
        &mut self,
        bulk: &mut Binder<DB>,
        rows: &mut BulkRows<'_, Binder<DB>, sqlx::Error>,
    ) -> Result<Option<u64>, BulkFailure<sqlx::Error>> {
        DB::Bulk::send(bulk, &mut self.transaction, self.state, rows).await
    }

    async fn commit(self) -> Result<(), DriverError<sqlx::Error>> {
        // What SQLx calls a commit is the release of a savepoint inside another transaction.
        let committed = self.transaction.commit().await;
        self.state.set_busy(false);
        committed.map_err(match self.scope {
            TransactionScope::Transaction => classify_commit,
            TransactionScope::Savepoint => classify,
        })
    }

    /// A connection that is lost will be closed, which rolls back as well.
    async fn rollback(self, is_lost: bool) -> Result<(), DriverError<sqlx::Error>> {
        if is_lost || self.state.lost.load(Ordering::Relaxed) {
            return Ok(());
        }
        let rolled_back = self.transaction.rollback().await;
        self.state.set_busy(false);
        rolled_back.map_err(classify)
    }
}

/// A pool, which gives another connection after each that is lost, or the only connection.
#[doc(hidden)]
pub struct Source<'c, DB: Backend> {
    pool: Option<&'c Pool<DB>>,
    open: Option<SqlxConnection<'c, DB>>,
    /// Whether the last connection of the pool was lost.
    was_lost: bool,
    /// Whether the statements of a mapping table are each in a transaction, and not prepared by name.
    isolates: bool,
}

impl<'c, DB: Backend> Source<'c, DB> {
    pub(crate) fn of(pool: &'c Pool<DB>) -> Self {
        Self {
            pool: Some(pool),
            open: None,
            was_lost: false,
            isolates: false,
        }
    }

    pub(crate) fn on(connection: &'c mut DB::Connection) -> Self {
        Self {
            pool: None,
            open: Some(SqlxConnection::new(Held::Borrowed(connection))),
            was_lost: false,
            isolates: false,
        }
    }

    /// Puts each statement of a mapping table into a transaction from now on, and prepares none by name.
    pub(crate) fn isolate(&mut self) {
        self.isolates = true;
    }

    pub(crate) fn isolates(&self) -> bool {
        self.isolates
    }

    pub(crate) fn is_pool(&self) -> bool {
        self.pool.is_some()
    }

    async fn open(&mut self, after_loss: bool) -> Result<&mut SqlxConnection<'c, DB>, sqlx::Error> {
        if let (None, Some(pool)) = (&self.open, self.pool) {
            self.open = Some(match after_loss {
                true => SqlxConnection::from_pool_after_loss(pool).await?,
                false => SqlxConnection::from_pool(pool).await?,
            });
        }
        Ok(self.open.as_mut().expect("of a pool it was opened"))
    }

    /// Returns the connection, or another of the pool where the last one was given back.
    pub(crate) async fn open_again(&mut self) -> Result<&mut SqlxConnection<'c, DB>, sqlx::Error> {
        self.open(self.was_lost).await
    }

    /// Returns SQLx's connection.
    #[cfg(feature = "postgres")]
    pub(crate) async fn connection(&mut self) -> Result<&mut DB::Connection, sqlx::Error> {
        Ok(self.open(false).await?.connection().0)
    }

    /// Gives a pool's connection back, or closes it.
    pub(crate) fn give_back(&mut self, is_lost: bool) {
        if self.is_pool() {
            self.was_lost = is_lost;
            if let Some(open) = self.open.take()
                && is_lost
            {
                open.state.lose();
            }
        }
    }
}

impl<'c, DB: Backend> ConnectionSource for Source<'c, DB> {
    type Connection = SqlxConnection<'c, DB>;

    fn engine(&self) -> EngineProfile {
        DB::PROFILE
    }

    async fn get(
        &mut self,
        after_loss: bool,
    ) -> Result<(&mut SqlxConnection<'c, DB>, bool), Error> {
        let is_new = self.open.is_none();
        let open = self.open(after_loss).await;
        let open = open.map_err(|error| Error::begin(classify(error)))?;
        Ok((open, is_new))
    }

    fn release(&mut self) {
        self.give_back(false);
    }

    fn discard(&mut self) {
        self.give_back(true);
    }

    fn may_reconnect(&self) -> bool {
        self.is_pool()
    }
}

impl<DB: Backend> fmt::Debug for Source<'_, DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_pool = self.is_pool();
        let mut debug = f.debug_struct("Source");
        debug.field("is_pool", &is_pool).finish_non_exhaustive()
    }
}
