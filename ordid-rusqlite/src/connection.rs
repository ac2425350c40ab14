//! Connections of rusqlite, and where they come from. Their calls block, so all futures are ready.

use std::{error::Error as StdError, future::ready, ops::Deref, sync::Arc};

use ordid_sql::{
    DriverError, EngineProfile,
    spi::{
        Begin, Changed, ConnectionSource, FlushConnection, FlushTransaction, MadeConnections,
        OneConnection, RELEASE, ReadRow, SAVEPOINT, Statement, StatementFailure, TransactionScope,
        UNDO,
    },
};
use rusqlite::{CachedStatement, Connection};
use send_wrapper::SendWrapper;

use crate::{
    Error,
    binder::Binder,
    classify::{classify, classify_commit},
};

/// The profile of SQLite for rusqlite. A statement costs little to send here, but SQLite copies each text and blob that is
/// bound. Those of 50 rows mostly fit into the memory that a connection has for small values (its "lookaside" buffer), and
/// SQLite allocates the others one by one. The inserts and the updates of `bench orms`' rows took 2 % fewer instructions with
/// 50 rows a statement than with 100; deletes, which bind keys alone, took 2 % more.
pub(crate) const ENGINE: EngineProfile = {
    let mut engine = EngineProfile::SQLITE;
    engine.max_rows = 50;
    engine
};

/// A connection by a shared reference: that of a flush's transaction, or one that the user's transaction lends.
///
/// A connection is not shared between threads, so such a reference stays on its own. A flush does, too, but the executor,
/// which also carries out those of async libraries, asks for what could be sent.
pub(crate) struct Shared<'c>(SendWrapper<&'c Connection>);

impl<'c> Shared<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Self {
        Self(SendWrapper::new(connection))
    }
}

impl Deref for Shared<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.0
    }
}

/// A connection for the length of a flush: the user's, or one that the user's function made.
pub(crate) struct RusqliteConnection<C>(C);

fn begin_failed(error: rusqlite::Error) -> Error {
    Error::begin(classify(error, ""))
}

impl<C: Deref<Target = Connection> + Send> FlushConnection for RusqliteConnection<C> {
    type Error = rusqlite::Error;
    type Binder = Binder;
    type Bulk = std::convert::Infallible;
    type Transaction<'t>
        = RusqliteTransaction<'t>
    where
        Self: 't;

    const ADAPTER: &'static str = "ordid_rusqlite";
    const BLOCKS: bool = true;

    async fn check(&mut self, wanted: TransactionScope) -> Result<TransactionScope, Error> {
        match (wanted, self.0.is_autocommit()) {
            (TransactionScope::Transaction, false) => Err(Error::open_transaction("connection")),
            (TransactionScope::Savepoint, true) => Err(Error::no_transaction("connection")),
            _ => Ok(wanted),
        }
    }

    async fn begin(&mut self, begin: Begin<'_>) -> Result<RusqliteTransaction<'_>, Error> {
        let statement = match begin.scope {
            TransactionScope::Transaction => begin.statement.unwrap_or("BEGIN"),
            TransactionScope::Savepoint => SAVEPOINT,
        };
        self.0.execute_batch(statement).map_err(begin_failed)?;
        let open = RusqliteTransaction {
            connection: Shared::new(&self.0),
            scope: begin.scope,
            is_open: true,
            last: None,
        };
        if let Some(defer) = begin.defer {
            open.connection.execute_batch(defer).map_err(begin_failed)?;
        }
        Ok(open)
    }
}

/// A transaction or savepoint, rolled back unless it is committed: also when a value's own code panics while it is bound.
pub(crate) struct RusqliteTransaction<'t> {
    connection: Shared<'t>,
    scope: TransactionScope,
    is_open: bool,
    /// The statement that was sent last, which the next chunk usually sends again. Each time that it goes back to the
    /// connection's cache, SQLite clears its bindings one by one, and the next chunk looks it up by its whole text.
    last: Option<Prepared<'t>>,
}

/// A statement that the connection keeps, with its text.
struct Prepared<'t> {
    sql: Arc<str>,
    statement: SendWrapper<CachedStatement<'t>>,
}

/// A parameter that could not be bound, by its number, if it was that; and the error.
type Failed = (Option<usize>, rusqlite::Error);

impl<'t> RusqliteTransaction<'t> {
    /// Prepares a statement, or takes it from those that the connection keeps, binds its parameters and runs it.
    fn run<T>(
        &mut self,
        statement: &Statement,
        values: &Binder,
        run: impl FnOnce(&mut rusqlite::Statement<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Failed> {
        let not_run = |error| (None, error);
        let run = |prepared: &mut rusqlite::Statement<'_>| {
            let bound = values.bind_to(prepared);
            bound.map_err(|(number, error)| (Some(number), error))?;
            run(prepared).map_err(not_run)
        };
        match statement.is_kept {
            true => run(self.kept(&statement.sql).map_err(not_run)?),
            false => run(&mut self.connection.prepare(&statement.sql).map_err(not_run)?),
        }
    }

    /// Returns a statement that the connection keeps.
    fn kept(&mut self, sql: &Arc<str>) -> rusqlite::Result<&mut rusqlite::Statement<'t>> {
        // The one before goes back to the cache first. It may have the same text in another `Arc`.
        let last = self.last.take().filter(|it| Arc::ptr_eq(&it.sql, sql));
        let last = match last {
            Some(last) => last,
            None => Prepared {
                sql: Arc::clone(sql),
                statement: SendWrapper::new(self.connection.0.prepare_cached(sql)?),
            },
        };
        Ok(&mut self.last.insert(last).statement)
    }

    fn end(&mut self, statement: &str) -> rusqlite::Result<()> {
        self.connection.execute_batch(statement)?;
        self.is_open = false;
        Ok(())
    }

    /// Rolls back. SQLite ends a transaction by itself where a disk is full, or a constraint says `ON CONFLICT ROLLBACK`:
    /// of one that is the user's, this is an error.
    fn roll_back(&mut self) -> rusqlite::Result<()> {
        self.is_open = false;
        match self.scope {
            TransactionScope::Transaction if self.connection.is_autocommit() => Ok(()),
            TransactionScope::Transaction => self.end("ROLLBACK"),
            TransactionScope::Savepoint => self.end(UNDO),
        }
    }
}

impl FlushTransaction for RusqliteTransaction<'_> {
    type Error = rusqlite::Error;
    type Binder = Binder;
    type Bulk = std::convert::Infallible;

    async fn execute(
        &mut self,
        statement: &Statement,
        values: Binder,
    ) -> Result<Changed, StatementFailure<rusqlite::Error>> {
        let changed = self.run(statement, &values, |prepared| prepared.raw_execute());
        match changed {
            Ok(changed) => Ok(Changed::Rows(changed.try_into().unwrap_or(u64::MAX))),
            Err((number, error)) => Err(StatementFailure {
                error: classify(error, &statement.sql),
                is_binding: number.is_some(),
                row: number.map(|number| (number / statement.columns.len().max(1), 0)),
            }),
        }
    }

    async fn exists(
        &mut self,
        query: &Statement,
        values: Binder,
    ) -> Result<bool, DriverError<rusqlite::Error>> {
        let found = self.run(query, &values, |prepared| {
            Ok(prepared.raw_query().next()?.is_some())
        });
        found.map_err(|(_, error)| classify(error, &query.sql))
    }

    async fn read(
        &mut self,
        query: &Statement,
        values: Binder,
    ) -> Result<Vec<ReadRow>, DriverError<rusqlite::Error>> {
        let found = self.run(query, &values, |prepared| {
            let rows = prepared.raw_query().mapped(|row| values.read(row));
            rows.collect()
        });
        found.map_err(|(_, error)| classify(error, &query.sql))
    }

    /// A transaction whose COMMIT failed stays open, and is rolled back as it is dropped.
    async fn commit(mut self) -> Result<(), DriverError<rusqlite::Error>> {
        match self.scope {
            TransactionScope::Transaction => {
                let ended = self.end("COMMIT");
                ended.map_err(|error| classify_commit(error, self.connection.is_autocommit()))
            }
            TransactionScope::Savepoint => self.end(RELEASE).map_err(|it| classify(it, "")),
        }
    }

    async fn rollback(mut self, _: bool) -> Result<(), DriverError<rusqlite::Error>> {
        self.roll_back().map_err(|error| classify(error, ""))
    }
}

impl Drop for RusqliteTransaction<'_> {
    fn drop(&mut self) {
        if self.is_open {
            // Its own failure says no more: there is nothing to roll back.
            let _ = self.roll_back();
        }
    }
}

/// Returns the source of the one connection that there is.
pub(crate) fn on_connection(
    connection: &mut Connection,
) -> OneConnection<RusqliteConnection<&mut Connection>> {
    OneConnection::new(RusqliteConnection(connection), ENGINE)
}

/// Returns the source of the connection of an open transaction.
pub(crate) fn inside(connection: &Connection) -> OneConnection<RusqliteConnection<Shared<'_>>> {
    let connection = RusqliteConnection(Shared::new(connection));
    OneConnection::new(connection, ENGINE)
}

/// Returns the source of connections that a function opens, or a pool lends, one after the other.
pub(crate) fn made_by<C, E>(
    mut connect: impl FnMut() -> Result<C, E> + Send,
) -> impl ConnectionSource<Connection = RusqliteConnection<C>>
where
    C: Deref<Target = Connection> + Send,
    E: StdError + Send + Sync + 'static,
{
    let connect = move || ready(connect().map(RusqliteConnection).map_err(Error::connect));
    MadeConnections::new(connect, ENGINE)
}
