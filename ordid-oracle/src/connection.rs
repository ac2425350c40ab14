//! Connections of the `oracle` crate, and where they come from. Their calls block, so all futures are ready.

use std::{borrow::Borrow, future::ready};

use oracle::{Connection, conn::CloseMode, oci_attr::TransactionInProgress};
use ordid_sql::{
    DriverError, EngineProfile,
    spi::{
        Begin, Changed, ConnectionSource, FlushConnection, FlushTransaction, MadeConnections,
        OneConnection, ROLL_BACK_TO, ReadRow, SAVEPOINT, Statement, StatementFailure,
        TransactionScope,
    },
};

use crate::{
    binder::Binder,
    classify::{classify, classify_commit, failed_rows},
    error::FlushError,
};

type Result<T, E = FlushError> = std::result::Result<T, E>;

/// A connection for the length of a flush: the user's, or one that the user's function made.
pub(crate) struct OracleConnection<C>(C);

impl<C: Borrow<Connection>> OracleConnection<C> {
    fn checked(&self, wanted: TransactionScope) -> Result<TransactionScope> {
        let connection = self.0.borrow();
        if connection.autocommit() {
            return Err(FlushError::state(
                "the connection commits by itself after each statement",
                "call `set_autocommit(false)`",
            ));
        }
        if wanted == TransactionScope::Transaction {
            let in_progress = connection.oci_attr::<TransactionInProgress>();
            if in_progress.map_err(begin_failed)? {
                return Err(FlushError::open_transaction("connection"));
            }
        }
        Ok(wanted)
    }
}

fn begin_failed(error: oracle::Error) -> FlushError {
    FlushError::begin(classify(error))
}

impl<C: Borrow<Connection> + Send> FlushConnection for OracleConnection<C> {
    type Error = oracle::Error;
    type Binder = Binder;
    type Bulk = std::convert::Infallible;
    type Transaction<'t>
        = OracleTransaction<'t>
    where
        Self: 't;

    const ADAPTER: &'static str = "ordid_oracle";
    const BLOCKS: bool = true;

    async fn check(&mut self, wanted: TransactionScope) -> Result<TransactionScope> {
        self.checked(wanted)
    }

    /// Oracle begins a transaction with the first statement that needs one. The connection is checked each time:
    /// what an attempt could not roll back would be committed by the next.
    async fn begin(&mut self, begin: Begin<'_>) -> Result<OracleTransaction<'_>> {
        self.checked(begin.scope)?;
        let connection = self.0.borrow();
        if begin.scope == TransactionScope::Savepoint {
            connection.execute(SAVEPOINT, &[]).map_err(begin_failed)?;
        }
        let open = OracleTransaction {
            connection,
            scope: begin.scope,
            ends_well: false,
        };
        if let Some(defer) = begin.defer {
            connection.execute(defer, &[]).map_err(begin_failed)?;
        }
        Ok(open)
    }

    /// A pool shall not lend it again. Any other connection refuses this, and is closed as it is dropped.
    fn close(self) {
        let _ = self.0.borrow().close_with_mode(CloseMode::Drop);
    }
}

/// A transaction or savepoint, rolled back unless it is committed: also when a value's own code panics while it is
/// bound.
pub(crate) struct OracleTransaction<'t> {
    connection: &'t Connection,
    scope: TransactionScope,
    ends_well: bool,
}

fn refused(error: oracle::Error) -> StatementFailure<oracle::Error> {
    StatementFailure {
        row: failed_rows(&error),
        error: classify(error),
        is_binding: false,
    }
}

impl FlushTransaction for OracleTransaction<'_> {
    type Error = oracle::Error;
    type Binder = Binder;
    type Bulk = std::convert::Infallible;

    /// Sends the rows by one statement with an array for each of its parameters.
    async fn execute(
        &mut self,
        statement: &Statement,
        values: Binder,
    ) -> Result<Changed, StatementFailure<oracle::Error>> {
        // Without batch errors the rest of the rows would not be tried, but neither would it be known which one
        // failed.
        let mut builder = self.connection.batch(&statement.sql, statement.rows);
        builder.with_batch_errors().with_row_counts();
        let mut batch = builder.build().map_err(refused)?;
        let appended = values.append_to(&mut batch, &statement.positions());
        appended.map_err(|(row, error)| StatementFailure {
            error: classify(error),
            is_binding: true,
            row: Some((row, 0)),
        })?;
        batch.execute().map_err(refused)?;
        Ok(Changed::OfEach(batch.row_counts().map_err(refused)?))
    }

    async fn exists(
        &mut self,
        query: &Statement,
        values: Binder,
    ) -> Result<bool, DriverError<oracle::Error>> {
        let found = || {
            let mut statement = self
                .connection
                .statement(&query.sql)
                .fetch_array_size(1)
                .build()?;
            let row = statement.query(&values.row(0))?.next();
            Ok(row.transpose()?.is_some())
        };
        found().map_err(classify)
    }

    async fn read(
        &mut self,
        query: &Statement,
        values: Binder,
    ) -> Result<Vec<ReadRow>, DriverError<oracle::Error>> {
        let found = || -> Result<_, oracle::Error> {
            let mut statement = self.connection.statement(&query.sql).build()?;
            let rows = statement.query(&values.row(0))?;
            rows.map(|row| values.read(&row?)).collect()
        };
        found().map_err(classify)
    }

    async fn commit(mut self) -> Result<(), DriverError<oracle::Error>> {
        if self.scope == TransactionScope::Transaction {
            self.connection.commit().map_err(classify_commit)?;
        }
        self.ends_well = true;
        Ok(())
    }

    async fn rollback(mut self, _is_lost: bool) -> Result<(), DriverError<oracle::Error>> {
        self.ends_well = true;
        self.rolled_back().map_err(classify)
    }
}

impl OracleTransaction<'_> {
    fn rolled_back(&self) -> Result<(), oracle::Error> {
        match self.scope {
            TransactionScope::Transaction => self.connection.rollback(),
            TransactionScope::Savepoint => self.connection.execute(ROLL_BACK_TO, &[]).map(drop),
        }
    }
}

impl Drop for OracleTransaction<'_> {
    fn drop(&mut self) {
        if !self.ends_well {
            // Its own failure says no more: the server drops what is not committed.
            let _ = self.rolled_back();
        }
    }
}

/// Returns the source of the one connection that there is.
pub(crate) fn on_connection(
    connection: &Connection,
) -> OneConnection<OracleConnection<&Connection>> {
    OneConnection::new(OracleConnection(connection), EngineProfile::ORACLE)
}

/// Returns the source of connections that a closure makes, or a pool lends, one after the other.
pub(crate) fn made_by(
    mut connect: impl FnMut() -> Result<Connection> + Send,
) -> impl ConnectionSource<Connection = OracleConnection<Connection>> {
    let connect = move || ready(connect().map(OracleConnection));
    MadeConnections::new(connect, EngineProfile::ORACLE)
}
