//! A client as a connection of the executor, and where a flush gets another one.

use std::{io, marker::PhantomData, mem};

use futures_util::future::BoxFuture;
use ordid_sql::{
    DriverError, FlushError, NotBulk, PendingRows,
    spi::{
        Begin, BulkFailure, BulkRows, Changed, ConnectionSource, FlushConnection, FlushTransaction,
        ReadRow, Statement, StatementFailure, TransactionScope,
    },
};
use tiberius::{Client, Query, error::Error};

use super::load::{self, Load};
use crate::{
    binder::Binder,
    decode::read_row,
    failure::{classify, classify_commit},
    flavour::{Flavour, Session},
    lease::Stream,
};

type Result<T, E = FlushError<Error>> = std::result::Result<T, E>;

/// The client of a flush.
pub(crate) struct Connection<'c, S: Stream, D> {
    client: &'c mut Client<S>,
    /// Whether the connection is gone, or nobody knows what comes over it next.
    is_lost: bool,
    /// Whether the last error was the server's, and the session goes on.
    goes_on: bool,
    flavour: PhantomData<fn() -> D>,
}

/// A transaction, or a savepoint in the user's.
pub(crate) struct Transaction<'t, 'c, S: Stream, D> {
    connection: &'t mut Connection<'c, S, D>,
    scope: TransactionScope,
}

/// Connects another client.
pub(crate) type Connect<'c, S> = Box<dyn FnMut() -> Connecting<'c, S> + Send + 'c>;
pub(crate) type Connecting<'c, S> = BoxFuture<'c, tiberius::Result<Client<S>>>;

/// A client, and perhaps a closure that connects another one in its place.
pub(crate) struct Source<'c, S: Stream, D> {
    connection: Connection<'c, S, D>,
    connect: Option<Connect<'c, S>>,
}

impl<'c, S: Stream, D> Source<'c, S, D> {
    pub(crate) fn new(client: &'c mut Client<S>, connect: Option<Connect<'c, S>>) -> Self {
        let connection = Connection {
            client,
            is_lost: false,
            goes_on: false,
            flavour: PhantomData,
        };
        Self {
            connection,
            connect,
        }
    }
}

impl<'c, S: Stream, D: Flavour> ConnectionSource for Source<'c, S, D> {
    type Connection = Connection<'c, S, D>;

    fn engine(&self) -> ordid_sql::EngineProfile {
        D::PROFILE
    }

    async fn get(&mut self, after_loss: bool) -> Result<(&mut Connection<'c, S, D>, bool)> {
        let is_new = after_loss || self.connection.is_lost;
        if is_new {
            self.connection.is_lost = true;
            let connected = match &mut self.connect {
                Some(connect) => connect().await,
                None => Err(io::Error::from(io::ErrorKind::NotConnected).into()),
            };
            // The server rolls the old one back when it goes.
            *self.connection.client = connected.map_err(begin_failed)?;
            self.connection.is_lost = false;
        }
        Ok((&mut self.connection, is_new))
    }

    fn discard(&mut self) {
        self.connection.is_lost = true;
    }

    fn may_reconnect(&self) -> bool {
        self.connect.is_some()
    }
}

impl<'c, S: Stream, D: Flavour> FlushConnection for Connection<'c, S, D> {
    type Error = Error;
    type Binder = Binder<D>;
    type Bulk = Load;
    type Transaction<'t>
        = Transaction<'t, 'c, S, D>
    where
        Self: 't;

    const ADAPTER: &'static str = "ordid_tiberius";
    /// The whole table: each command costs three round trips.
    const MAX_BULK_CHUNKS: usize = usize::MAX;

    async fn check(&mut self, wanted: TransactionScope) -> Result<TransactionScope> {
        let session = match Session::ask(self.client, D::QUESTION).await {
            // Another flavour may not have all that is asked for.
            Err(Error::Server(told)) => {
                let session = Session::ask(self.client, Session::QUESTION).await;
                let is_ours = session.as_ref().is_ok_and(|it| D::is(&it.version));
                if is_ours {
                    Err(Error::Server(told))
                } else {
                    session
                }
            }
            session => session,
        };
        let session = session.map_err(begin_failed)?;
        if !D::is(&session.version) {
            return Err(wrong_flavour(D::NAME, &session.version));
        }
        match (wanted, session.transactions) {
            // A COMMIT would end the inner transaction only, and the rows would be lost with the session.
            (TransactionScope::Transaction, ..=-1) => Err(FlushError::state(
                "the session has IMPLICIT_TRANSACTIONS on, in which COMMIT may leave the rows in a transaction that is open",
                "send `SET IMPLICIT_TRANSACTIONS OFF` first",
            )),
            (TransactionScope::Savepoint, -1 | 0) => Err(FlushError::no_transaction("client")),
            (TransactionScope::Transaction, 1..) => Err(FlushError::open_transaction("client")),
            _ => Ok(wanted),
        }
    }

    async fn bulk(
        &mut self,
        rows: &PendingRows<Binder<D>>,
        table: usize,
    ) -> std::result::Result<Load, NotBulk> {
        load::prepare(self.client, rows, table).await
    }

    async fn begin(&mut self, begin: Begin<'_>) -> Result<Transaction<'_, 'c, S, D>> {
        let client = &mut *self.client;
        let begun = match (begin.scope, begin.statement) {
            (TransactionScope::Transaction, None) => client.begin_transaction().await,
            (TransactionScope::Transaction, Some(statement)) => batch(client, statement).await,
            // By statement: tiberius 0.13 counts the name of its request in characters, where the
            // protocol counts bytes.
            (TransactionScope::Savepoint, _) => {
                batch(client, "SAVE TRANSACTION [ordid_flush]").await
            }
        };
        begun.map_err(begin_failed)?;
        Ok(Transaction {
            scope: begin.scope,
            connection: self,
        })
    }

    fn is_usable(&self) -> bool {
        !self.is_lost
    }
}

impl<S: Stream, D: Flavour> FlushTransaction for Transaction<'_, '_, S, D> {
    type Error = Error;
    type Binder = Binder<D>;
    type Bulk = Load;

    async fn execute(
        &mut self,
        statement: &Statement,
        values: Binder<D>,
    ) -> Result<Changed, StatementFailure<Error>> {
        let query = values.query(statement);
        let client = &mut *self.connection.client;
        let changed = changed(query, client).await;
        Ok(Changed::Rows(changed.map_err(|error| self.failed(error))?))
    }

    /// As a batch: what `sp_executesql` sets ends with it.
    async fn set(&mut self, statement: &Statement, _: Binder<D>) -> Result<(), DriverError<Error>> {
        let set = batch(self.connection.client, &statement.sql).await;
        set.map_err(|error| self.failed(error))
    }

    async fn exists(
        &mut self,
        query: &Statement,
        values: Binder<D>,
    ) -> Result<bool, DriverError<Error>> {
        let found = async {
            let answer = values.query(query).query(self.connection.client).await?;
            Ok(answer.into_row().await?.is_some())
        };
        found.await.map_err(|error| self.failed(error))
    }

    async fn read(
        &mut self,
        query: &Statement,
        mut values: Binder<D>,
    ) -> Result<Vec<ReadRow>, DriverError<Error>> {
        let readers = mem::take(&mut values.readers);
        let found = async {
            let answer = values.query(query).query(self.connection.client).await?;
            let rows = answer.into_first_result().await?.into_iter();
            rows.map(|row| read_row(&readers, row))
                .collect::<tiberius::Result<Vec<_>>>()
        };
        found.await.map_err(|error| self.failed(error))
    }

    async fn send_bulk(
        &mut self,
        load: &mut Load,
        rows: &mut BulkRows<'_, Binder<D>, Error>,
    ) -> Result<Option<u64>, BulkFailure<Error>> {
        let sent = load.send(self.connection.client, rows).await;
        // The number of rows in the server's answer is not known to leave out what a trigger has.
        sent.map(|()| None).inspect_err(|failure| {
            if let BulkFailure::Driver(error) | BulkFailure::LastRow(error) = failure {
                self.connection.note(&error.error);
            }
        })
    }

    async fn commit(self) -> Result<(), DriverError<Error>> {
        // A savepoint is not released.
        if self.scope == TransactionScope::Savepoint {
            return Ok(());
        }
        let Err(error) = self.connection.client.commit_transaction().await else {
            return Ok(());
        };
        // The transaction may be open after an error of the server, whatever that says of the rows.
        let is_told = matches!(error, tiberius::error::Error::Server(_));
        let error = classify_commit(error);
        let may_roll_back = is_told || error.failure != ordid_sql::Failure::Lost;
        let connection = &mut *self.connection;
        if may_roll_back && connection.roll_back(self.scope).await.is_err() {
            connection.is_lost = true;
        }
        Err(error)
    }

    /// The session may go on where the server's own word was that it cannot serve, such as 3906 of a database that has become
    /// read-only. So the transaction is rolled back then, too, and a savepoint always.
    async fn rollback(self, is_lost: bool) -> Result<(), DriverError<Error>> {
        let connection = &mut *self.connection;
        if self.scope == TransactionScope::Transaction && is_lost && !connection.goes_on {
            return Ok(());
        }
        let rolled_back = connection.roll_back(self.scope).await;
        connection.is_lost |= is_lost && rolled_back.is_err();
        rolled_back
    }
}

impl<S: Stream, D: Flavour> Transaction<'_, '_, S, D> {
    fn failed(&mut self, error: Error) -> DriverError<Error> {
        self.connection.note(&error);
        classify(error)
    }
}

impl<S: Stream, D> Connection<'_, S, D> {
    /// Notes whether the session goes on after an error. The server closes it at severity 20 and above.
    fn note(&mut self, error: &Error) {
        self.goes_on = matches!(error, Error::Server(told) if told.class() < 20);
    }

    /// Rolls back. An error that the connection survives says that the server has ended the transaction by itself. Then the
    /// savepoint is gone with it, and a transaction of the flush's own needs no rollback.
    async fn roll_back(&mut self, scope: TransactionScope) -> Result<(), DriverError<Error>> {
        if scope == TransactionScope::Savepoint {
            let rolled_back = batch(self.client, "ROLLBACK TRANSACTION [ordid_flush]").await;
            return rolled_back.map_err(classify);
        }
        match self.client.rollback_transaction().await.map_err(classify) {
            Err(error) if error.failure == ordid_sql::Failure::Lost => Err(error),
            _ => Ok(()),
        }
    }
}

fn begin_failed(error: Error) -> FlushError<Error> {
    FlushError::begin(classify(error))
}

fn wrong_flavour(wanted: &str, version: &str) -> FlushError<Error> {
    let found = version.lines().next().unwrap_or_default();
    FlushError::database(
        format!("this unit of work is for {wanted}"),
        format!(
            "the server is `{found}`, which sorts uniqueidentifier in another order; use the \
             UnitOfWork of its flavour, and name a column for it in the key types"
        ),
    )
}

async fn batch<S: Stream>(client: &mut Client<S>, sql: &str) -> tiberius::Result<()> {
    client.simple_query(sql).await?.into_results().await?;
    Ok(())
}

/// Sends a statement that answers with how many rows it changed.
///
/// The counts beside the answers would not do. A trigger's own statements have some, too, and under
/// `SET NOCOUNT ON`, which a server may have for its default, there are none. `@@ROWCOUNT` is set all the
/// same, and is of the statement itself, not of its triggers: Entity Framework Core counts by it on tables
/// with triggers.
async fn changed<S: Stream>(query: Query<'_>, client: &mut Client<S>) -> tiberius::Result<u64> {
    let results = query.query(client).await?.into_results().await?;
    // The last: a trigger may have answered before.
    let row = results.last().and_then(|rows| rows.first());
    let count: Option<i32> = match row {
        Some(row) => row.try_get(0)?,
        None => None,
    };
    count
        .and_then(|count| u64::try_from(count).ok())
        .ok_or_else(|| Error::Protocol("no answer to @@ROWCOUNT".into()))
}
