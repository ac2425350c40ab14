//! Diesel's connections and those of diesel-async, for the executor of `ordid-sql`. Diesel's calls block, so
//! its futures are ready when they are first polled.
//!
//! # Dropped futures
//!
//! A future that is dropped cannot roll back. So a transaction over diesel-async keeps the status of the
//! connection's transaction manager and leaves it in error until it ends. Whoever goes on with the connection
//! after a flush was dropped can neither commit what was sent nor build on it, and a pool closes it.

use std::{
    future::{Ready, ready},
    marker::PhantomData,
    mem,
};

use diesel::{
    connection::{
        LoadConnection, TransactionDepthChange, TransactionManager as _, TransactionManagerStatus,
    },
    deserialize::QueryableByName,
    query_builder::{AstPass, Query as DieselQuery, QueryFragment, QueryId},
    result::{Error as DieselError, QueryResult},
    row::Row,
    sql_types::Untyped,
};
#[cfg(feature = "async")]
use diesel_async::{AsyncConnection, TransactionManager as _};
#[cfg(feature = "async")]
use futures_util::{StreamExt as _, TryStreamExt as _};
#[cfg(feature = "async")]
use ordid_sql::spi::BoxFuture;
#[cfg(feature = "async")]
pub(crate) use ordid_sql::table_driver::Awaited;
pub(crate) use ordid_sql::table_driver::Blocking;
use ordid_sql::{
    DriverError, EngineProfile, Failure, FlushDialect,
    spi::{
        Begin, Changed, ConnectionSource, FlushConnection, FlushTransaction, ReadRow, Statement,
        StatementFailure, StatementKind, TransactionScope, blocking,
    },
};
#[cfg(feature = "copy")]
use ordid_sql::{
    NotBulk, PendingRows,
    spi::{BulkFailure, BulkRows},
};

#[cfg(feature = "copy")]
use crate::postgres::copy::CopyCommand;
use crate::{
    Error,
    backend::Backend,
    entity::Binder,
    failure::classify,
    returned::{ReadValue, read_row},
};

/// Returns how the engine of a backend behaves.
pub(crate) const fn engine<DB: Backend>() -> EngineProfile {
    <DB::Dialect as FlushDialect>::PROFILE
}

/// A statement with its parameters, as a query of Diesel's.
#[derive(Debug)]
pub(crate) struct Query<'q, DB: Backend> {
    pub(crate) statement: &'q Statement,
    pub(crate) values: &'q Binder<DB>,
}

impl<DB: Backend> QueryFragment<DB> for Query<'_, DB> {
    /// Diesel walks a query several times: for its text, for its parameters, and to find out whether a
    /// prepared statement of it can be kept, which is worth it only for one that is sent again.
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        if !self.statement.is_kept {
            out.unsafe_to_cache_prepared();
        }
        let columns = &self.statement.columns;
        let mut pieces = self.statement.sql.split('\0');
        if let Some(first) = pieces.next() {
            out.push_sql(first);
        }
        for (number, piece) in pieces.enumerate() {
            let column = columns[number % columns.len()];
            let row = number / columns.len();
            self.values.columns()[column].push(row, &mut out)?;
            out.push_sql(piece);
        }
        Ok(())
    }
}

/// The text depends on the number of rows.
impl<DB: Backend> QueryId for Query<'_, DB> {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

/// A query whose rows are read column by column.
impl<DB: Backend> DieselQuery for Query<'_, DB> {
    type SqlType = Untyped;
}

/// What is sent beside rows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Control<'s> {
    Begin,
    Script(&'s str),
    Commit,
    Rollback,
}

/// How the calls of a kind of connections are made: [`Blocking`] are Diesel's, [`Awaited`] those of diesel-async.
pub(crate) trait Calls<C>: 'static {
    /// The backend of the connections.
    type DB: Backend;

    /// Whether a call blocks.
    const BLOCK: bool;

    /// Returns what the connection's transaction manager knows of its transactions.
    fn status(connection: &mut C) -> &mut TransactionManagerStatus;

    /// Returns whether a pool would close the connection, as it does not for a test's transaction.
    fn is_broken(connection: &mut C) -> bool;

    /// Begins a transaction or a savepoint, or ends the innermost one.
    fn control(
        connection: &mut C,
        control: Control<'_>,
    ) -> impl Future<Output = QueryResult<()>> + Send;

    /// Returns how many rows a statement changed. MySQL and MariaDB count rows that were already as they are
    /// wanted, since Diesel asks for this (`CLIENT_FOUND_ROWS`).
    fn execute(
        connection: &mut C,
        query: Query<'_, Self::DB>,
    ) -> impl Future<Output = QueryResult<usize>> + Send;

    /// Returns whether a query has a row.
    fn exists(
        connection: &mut C,
        query: Query<'_, Self::DB>,
    ) -> impl Future<Output = QueryResult<bool>> + Send;

    /// Returns the rows of a query: with readers, the text and then the other columns; without, the last column.
    fn read(
        connection: &mut C,
        query: Query<'_, Self::DB>,
        readers: Option<&'static [ReadValue<Self::DB>]>,
    ) -> impl Future<Output = QueryResult<Vec<ReadRow>>> + Send;

    /// Returns the rows of a query, whose columns have names.
    fn rows<E: QueryableByName<Self::DB> + Send>(
        connection: &mut C,
        query: Query<'_, Self::DB>,
    ) -> impl Future<Output = QueryResult<Vec<E>>> + Send;

    /// Returns the connection of libpq, where it is one.
    #[cfg(feature = "copy")]
    fn libpq(_: &mut C) -> Option<&mut diesel::PgConnection> {
        None
    }
}

/// Implements [`Calls`]. `$wait` is `.await` where the library's calls return futures, and a query is lent by `&` where
/// they block.
macro_rules! calls {
    (
        $kind:ident of $library:ident with $manager:ident;
        blocks: $blocks:literal, query: [$($lend:tt)?], call: [$($wait:tt)*];
        $($libpq:tt)*
    ) => {
        impl<C: $library<Backend: Backend> + 'static> Calls<C> for $kind {
            type DB = C::Backend;

            const BLOCK: bool = $blocks;

            fn status(connection: &mut C) -> &mut TransactionManagerStatus {
                $manager::<C>::transaction_manager_status_mut(connection)
            }

            fn is_broken(connection: &mut C) -> bool {
                $manager::<C>::is_broken_transaction_manager(connection)
            }

            async fn control(connection: &mut C, control: Control<'_>) -> QueryResult<()> {
                match control {
                    Control::Begin => $manager::<C>::begin_transaction(connection)$($wait)*,
                    Control::Script(statement) => connection.batch_execute(statement)$($wait)*,
                    Control::Commit => $manager::<C>::commit_transaction(connection)$($wait)*,
                    Control::Rollback => $manager::<C>::rollback_transaction(connection)$($wait)*,
                }
            }

            async fn execute(
                connection: &mut C,
                query: Query<'_, C::Backend>,
            ) -> QueryResult<usize> {
                connection.execute_returning_count($($lend)? query)$($wait)*
            }

            $($libpq)*
        }
    };
}

fn by_name<'r, DB: Backend, E: QueryableByName<DB>>(row: &impl Row<'r, DB>) -> QueryResult<E> {
    E::build(row).map_err(DieselError::DeserializationError)
}

type Manager<C> = <C as diesel::Connection>::TransactionManager;
#[cfg(feature = "async")]
type AsyncManager<C> = <C as AsyncConnection>::TransactionManager;

calls! {
    Blocking of LoadConnection with Manager;
    blocks: true, query: [&], call: [];

    async fn exists(connection: &mut C, query: Query<'_, C::Backend>) -> QueryResult<bool> {
        let mut exists = false;
        for row in connection.load(query)? {
            row?;
            exists = true;
        }
        Ok(exists)
    }

    async fn read(
        connection: &mut C,
        query: Query<'_, C::Backend>,
        readers: Option<&'static [ReadValue<C::Backend>]>,
    ) -> QueryResult<Vec<ReadRow>> {
        let rows = connection.load(query)?;
        rows.map(|row| read_row(&row?, readers)).collect()
    }

    async fn rows<E: QueryableByName<C::Backend> + Send>(
        connection: &mut C,
        query: Query<'_, C::Backend>,
    ) -> QueryResult<Vec<E>> {
        let rows = connection.load(query)?;
        rows.map(|row| by_name(&row?)).collect()
    }

    #[cfg(feature = "copy")]
    fn libpq(connection: &mut C) -> Option<&mut diesel::PgConnection> {
        crate::postgres::copy::connection(connection)
    }
}

#[cfg(feature = "async")]
calls! {
    Awaited of AsyncConnection with AsyncManager;
    blocks: false, query: [], call: [.await];

    async fn exists(connection: &mut C, query: Query<'_, C::Backend>) -> QueryResult<bool> {
        let rows = connection.load(query).await?;
        let rows: Vec<()> = rows.map_ok(drop).try_collect().await?;
        Ok(!rows.is_empty())
    }

    async fn read(
        connection: &mut C,
        query: Query<'_, C::Backend>,
        readers: Option<&'static [ReadValue<C::Backend>]>,
    ) -> QueryResult<Vec<ReadRow>> {
        let rows = connection.load(query).await?;
        let rows = rows.map(|row| read_row(&row?, readers));
        rows.try_collect().await
    }

    async fn rows<E: QueryableByName<C::Backend> + Send>(
        connection: &mut C,
        query: Query<'_, C::Backend>,
    ) -> QueryResult<Vec<E>> {
        let rows = connection.load(query).await?;
        rows.map(|row| by_name(&row?)).try_collect().await
    }
}

/// A connection of kind `K`, for the length of a flush.
pub(crate) enum Connection<'c, K, C> {
    /// The user's.
    Borrowed(&'c mut C),
    /// One that the user's function made.
    Made(C, PhantomData<fn() -> K>),
}

impl<K, C> Connection<'_, K, C> {
    fn get(&mut self) -> &mut C {
        match self {
            Self::Borrowed(connection) => connection,
            Self::Made(connection, _) => connection,
        }
    }
}

impl<K: Calls<C>, C: Send + 'static> FlushConnection for Connection<'_, K, C> {
    type Error = DieselError;
    type Binder = Binder<K::DB>;
    #[cfg(feature = "copy")]
    type Bulk = CopyCommand<K::DB>;
    #[cfg(not(feature = "copy"))]
    type Bulk = std::convert::Infallible;
    type Transaction<'t>
        = Transaction<'t, K, C>
    where
        Self: 't;

    const ADAPTER: &'static str = "ordid_diesel";
    const BLOCKS: bool = K::BLOCK;
    const MIN_BULK_ROWS_AGAIN: usize = ordid_sql::copy::MIN_ROWS;

    /// An open transaction that does not break the connection for a pool is a test's, and taken for none.
    async fn check(&mut self, wanted: TransactionScope) -> Result<TransactionScope, Error> {
        let connection = self.get();
        let failed = |error| Error::begin(classify::<K::DB>(error, false));
        let depth = K::status(connection).transaction_depth().map_err(failed)?;
        match (wanted, depth) {
            // diesel-async has given its BEGIN or COMMIT up before there was an answer.
            (_, None) if K::is_broken(connection) => {
                Err(failed(DieselError::BrokenTransactionManager))
            }
            (TransactionScope::Transaction, None) => Ok(TransactionScope::Transaction),
            (TransactionScope::Savepoint, None) => Err(Error::no_transaction("connection")),
            (TransactionScope::Transaction, Some(_)) if K::is_broken(connection) => {
                Err(Error::open_transaction("connection"))
            }
            (_, Some(_)) => Ok(TransactionScope::Savepoint),
        }
    }

    #[cfg(feature = "copy")]
    async fn bulk(
        &mut self,
        rows: &PendingRows<Binder<K::DB>>,
        table: usize,
    ) -> Result<CopyCommand<K::DB>, NotBulk> {
        let connection = K::libpq(self.get()).ok_or(NotBulk::NoCommand)?;
        CopyCommand::prepare(connection, rows.entity(table))
    }

    /// Diesel's transaction manager counts the transactions that it has begun, so it begins this one, too, unless it is
    /// to begin by a statement such as `BEGIN IMMEDIATE` or `XA START`.
    async fn begin(&mut self, begin: Begin<'_>) -> Result<Transaction<'_, K, C>, Error> {
        let connection = self.get();
        let failed = |error| Error::begin(classify::<K::DB>(error, false));
        if let Some(ask) = begin.ask {
            let asked = Transaction::<K, C>::ask(connection, begin.scope, ask).await;
            asked.map_err(failed)?;
        }
        let mut transaction = match begin.statement {
            None => {
                let begun = K::control(connection, Control::Begin).await;
                begun.map_err(failed)?;
                if begin.scope == TransactionScope::Savepoint && K::DB::DDL_COMMITS {
                    Transaction::<K, C>::find_savepoint(connection).await?;
                }
                Transaction::keep(connection, begin.scope)
            }
            Some(statement) => Transaction::begin_by(connection, begin.scope, statement)
                .await
                .map_err(failed)?,
        };
        if let Some(defer) = begin.defer {
            let deferred = K::control(transaction.connection, Control::Script(defer)).await;
            if let Err(error) = deferred {
                // The first error says why.
                let _ = transaction.end(Control::Rollback).await;
                return Err(failed(error));
            }
        }
        Ok(transaction)
    }
}

/// An open transaction or savepoint: see "Dropped futures".
pub(crate) struct Transaction<'t, K: Calls<C>, C> {
    connection: &'t mut C,
    scope: TransactionScope,
    /// What the transaction manager knew before it was left in error; it is, until this ends.
    status: Option<TransactionManagerStatus>,
    is_open: bool,
    kind: PhantomData<fn() -> K>,
}

impl<'t, K: Calls<C>, C> Transaction<'t, K, C> {
    fn keep(connection: &'t mut C, scope: TransactionScope) -> Self {
        let keep =
            |connection| mem::replace(K::status(connection), TransactionManagerStatus::InError);
        Self {
            status: (!K::BLOCK).then(|| keep(&mut *connection)),
            connection,
            scope,
            is_open: true,
            kind: PhantomData,
        }
    }

    /// Sends a script of which the transaction manager knows nothing.
    async fn ask(connection: &mut C, scope: TransactionScope, script: &str) -> QueryResult<()> {
        let mut guard = Transaction::<K, C>::keep(connection, scope);
        guard.is_open = false;
        let asked = K::control(guard.connection, Control::Script(script)).await;
        guard.give_status_back();
        asked
    }

    /// Begins a transaction by a statement of which the transaction manager knows nothing, and lets it count this one. Then
    /// it ends it, or is in error if the server does not end it: `ROLLBACK` does not end a transaction of XA.
    async fn begin_by(
        connection: &'t mut C,
        scope: TransactionScope,
        statement: &str,
    ) -> QueryResult<Self> {
        Self::ask(connection, scope, statement).await?;
        match K::status(connection) {
            TransactionManagerStatus::Valid(valid) => {
                valid.change_transaction_depth(TransactionDepthChange::IncreaseDepth)?;
            }
            TransactionManagerStatus::InError => return Err(DieselError::BrokenTransactionManager),
        }
        Ok(Self::keep(connection, scope))
    }

    /// Makes sure that the savepoint that was begun last is there. If the server has ended the transaction without Diesel's
    /// knowledge, as MySQL does at DDL, it has taken `SAVEPOINT` without an effect, and would commit each statement.
    async fn find_savepoint(connection: &mut C) -> Result<(), Error> {
        let failed = |error| Error::begin(classify::<K::DB>(error, false));
        let depth = K::status(connection).transaction_depth().map_err(failed)?;
        let savepoint = depth.map_or(0, |depth| depth.get() - 1);
        let asked = Self::ask(connection, TransactionScope::Savepoint, &undo(savepoint)).await;
        let Err(error) = asked.map_err(|error| classify::<K::DB>(error, false)) else {
            return Ok(());
        };
        if error.failure != Failure::Refused {
            return Err(Error::begin(error));
        }
        if let TransactionManagerStatus::Valid(valid) = K::status(connection) {
            let decreased = valid.change_transaction_depth(TransactionDepthChange::DecreaseDepth);
            decreased.map_err(failed)?;
        }
        Err(Error::no_transaction("connection"))
    }

    fn give_status_back(&mut self) {
        if let Some(status) = self.status.take() {
            *K::status(self.connection) = status;
        }
    }

    /// Returns how many transactions and savepoints are open; `None` also of a broken connection.
    fn depth(&mut self) -> Option<std::num::NonZeroU32> {
        K::status(self.connection)
            .transaction_depth()
            .ok()
            .flatten()
    }

    async fn end(&mut self, how: Control<'_>) -> QueryResult<()> {
        self.is_open = false;
        self.give_status_back();
        K::control(self.connection, how).await
    }
}

impl<K: Calls<C>, C> Drop for Transaction<'_, K, C> {
    fn drop(&mut self) {
        // Where calls block, it is dropped open when a value's code panics.
        if self.is_open && K::BLOCK {
            let _ = blocking(K::control(self.connection, Control::Rollback));
        }
    }
}

impl<K: Calls<C>, C: Send + 'static> FlushTransaction for Transaction<'_, K, C> {
    type Error = DieselError;
    type Binder = Binder<K::DB>;
    #[cfg(feature = "copy")]
    type Bulk = CopyCommand<K::DB>;
    #[cfg(not(feature = "copy"))]
    type Bulk = std::convert::Infallible;

    async fn execute(
        &mut self,
        statement: &Statement,
        values: Binder<K::DB>,
    ) -> Result<Changed, StatementFailure<DieselError>> {
        // It changes no rows, and MySQL takes no XA statement and no BEGIN by the protocol of prepared statements.
        if statement.kind == StatementKind::Exists && statement.columns.is_empty() {
            let sent = K::control(self.connection, Control::Script(&statement.sql)).await;
            let sent = sent.map_err(|error| classify::<K::DB>(error, false).into());
            return sent.map(|()| Changed::Rows(0));
        }
        let query = Query {
            statement,
            values: &values,
        };
        match K::execute(self.connection, query).await {
            Ok(changed) => Ok(Changed::Rows(changed.try_into().unwrap_or(u64::MAX))),
            Err(error) => Err(classify::<K::DB>(error, false).into()),
        }
    }

    async fn exists(
        &mut self,
        query: &Statement,
        values: Binder<K::DB>,
    ) -> Result<bool, DriverError<DieselError>> {
        let query = Query {
            statement: query,
            values: &values,
        };
        let found = K::exists(self.connection, query).await;
        found.map_err(|error| classify::<K::DB>(error, false))
    }

    async fn read(
        &mut self,
        query: &Statement,
        values: Binder<K::DB>,
    ) -> Result<Vec<ReadRow>, DriverError<DieselError>> {
        let readers = match query.kind {
            StatementKind::Read => Some(values.readers()),
            _ => None,
        };
        let query = Query {
            statement: query,
            values: &values,
        };
        let rows = K::read(self.connection, query, readers).await;
        rows.map_err(|error| classify::<K::DB>(error, false))
    }

    #[cfg(feature = "copy")]
    async fn send_bulk(
        &mut self,
        command: &mut CopyCommand<K::DB>,
        rows: &mut BulkRows<'_, Binder<K::DB>, DieselError>,
    ) -> Result<Option<u64>, BulkFailure<DieselError>> {
        match K::libpq(self.connection) {
            Some(connection) => command.send(connection, rows),
            None => unreachable!("a command was prepared over a connection of libpq"),
        }
    }

    async fn commit(mut self) -> Result<(), DriverError<DieselError>> {
        let is_commit = self.scope == TransactionScope::Transaction;
        let before = K::BLOCK.then(|| self.depth());
        let committed = self.end(Control::Commit).await;
        // Diesel leaves a savepoint open that it could not release; diesel-async counts it as gone.
        if committed.is_err() && !is_commit && before.is_some_and(|before| before == self.depth()) {
            let _ = K::control(self.connection, Control::Rollback).await;
        }
        committed.map_err(|error| classify::<K::DB>(error, is_commit))
    }

    /// After a deadlock Diesel says that it has rolled back to a savepoint also where MySQL has ended the whole transaction,
    /// so the server is asked first. Rolling back to a savepoint twice is the same as once.
    async fn rollback(mut self, _: bool) -> Result<(), DriverError<DieselError>> {
        let mut own = Ok(());
        if K::BLOCK
            && self.scope == TransactionScope::Savepoint
            && let Some(depth) = self.depth()
        {
            let sql = undo(depth.get() - 1);
            own = K::control(self.connection, Control::Script(&sql)).await;
        }
        let rolled_back = self.end(Control::Rollback).await.and(own);
        rolled_back.map_err(|error| classify::<K::DB>(error, false))
    }
}

/// Rolls back to a savepoint, by Diesel's name of it.
fn undo(savepoint: u32) -> String {
    format!("ROLLBACK TO SAVEPOINT diesel_savepoint_{savepoint}")
}

/// Where a flush gets its connections.
pub(crate) enum Source<'c, K, C, F = fn() -> Ready<Result<C, Error>>> {
    /// The one that there is.
    One(Connection<'c, K, C>),
    /// One after the other.
    Made {
        connect: F,
        open: Option<Connection<'c, K, C>>,
    },
}

impl<'c, K, C> Source<'c, K, C> {
    pub(crate) const fn one(connection: &'c mut C) -> Self {
        Self::One(Connection::Borrowed(connection))
    }
}

impl<C> Source<'_, Blocking, C> {
    /// Makes connections by a function that blocks.
    pub(crate) fn blocking<E>(
        mut connect: impl FnMut() -> Result<C, E> + Send,
    ) -> Source<'static, Blocking, C, impl FnMut() -> Ready<Result<C, Error>> + Send>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        Source::Made {
            connect: move || ready(connect().map_err(Error::connect)),
            open: None,
        }
    }
}

#[cfg(feature = "async")]
impl<C> Source<'_, Awaited, C> {
    /// Makes connections by a function that is awaited.
    pub(crate) fn awaited<'a, E, W>(
        mut connect: impl FnMut() -> W + Send + 'a,
    ) -> Source<'static, Awaited, C, impl FnMut() -> BoxFuture<'a, Result<C, Error>> + Send + 'a>
    where
        C: 'a,
        E: std::error::Error + Send + Sync + 'static,
        W: Future<Output = Result<C, E>> + Send + 'a,
    {
        Source::Made {
            connect: move || -> BoxFuture<'a, Result<C, Error>> {
                let made = connect();
                Box::pin(async move { made.await.map_err(Error::connect) })
            },
            open: None,
        }
    }
}

impl<'c, K, C, F, W> ConnectionSource for Source<'c, K, C, F>
where
    K: Calls<C>,
    C: Send + 'static,
    F: FnMut() -> W + Send,
    W: Future<Output = Result<C, Error>> + Send,
{
    type Connection = Connection<'c, K, C>;

    fn engine(&self) -> EngineProfile {
        engine::<K::DB>()
    }

    async fn get(&mut self, _: bool) -> Result<(&mut Self::Connection, bool), Error> {
        match self {
            Self::One(connection) => Ok((connection, false)),
            Self::Made {
                open: Some(open), ..
            } => Ok((open, false)),
            Self::Made { open, connect } => {
                let made = connect().await?;
                Ok((open.insert(Connection::Made(made, PhantomData)), true))
            }
        }
    }

    /// It is closed, or goes back to its pool.
    fn release(&mut self) {
        if let Self::Made { open, .. } = self {
            *open = None;
        }
    }

    /// A pool finds it broken.
    fn discard(&mut self) {
        self.release();
    }

    fn may_reconnect(&self) -> bool {
        matches!(self, Self::Made { .. })
    }
}
