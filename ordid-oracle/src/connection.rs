//! Connections of the `oracle` crate, and where they come from. Their calls block, so all futures are ready.

use std::{future::ready, thread::sleep, time::Duration};

use oracle::{Connection, conn::CloseMode, oci_attr::TransactionInProgress};
use ordid_sql::{
    DriverError, EngineProfile,
    spi::{
        Begin, Changed, ConnectionSource, FlushConnection, FlushTransaction, Statement,
        StatementFailure, StatementKind, TransactionScope,
    },
};

use crate::{
    binder::Binder,
    classify::{classify, classify_commit, failed_rows},
    error::FlushError,
};

type Result<T, E = FlushError> = std::result::Result<T, E>;

/// Setting a savepoint again moves it, so one name serves every flush of a transaction.
const SAVEPOINT: &str = "SAVEPOINT ordid_flush";
const ROLLBACK_TO: &str = "ROLLBACK TO SAVEPOINT ordid_flush";

/// A connection for the length of a flush.
pub(crate) enum OracleConnection<'c> {
    Borrowed(&'c Connection),
    Made(Connection),
}

impl OracleConnection<'_> {
    const fn connection(&self) -> &Connection {
        match self {
            Self::Borrowed(connection) => connection,
            Self::Made(connection) => connection,
        }
    }

    fn checked(&self, wanted: TransactionScope) -> Result<TransactionScope> {
        let connection = self.connection();
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

    /// Oracle begins a transaction with the first statement that needs one. The connection is checked each time:
    /// what an attempt could not roll back would be committed by the next.
    fn begun(&self, begin: Begin) -> Result<OracleTransaction<'_>> {
        self.checked(begin.scope)?;
        let connection = self.connection();
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

    fn found(&self, query: &Statement, values: &Binder) -> Result<bool, oracle::Error> {
        let connection = self.connection();
        let mut statement = connection
            .statement(&query.sql)
            .fetch_array_size(1)
            .build()?;
        let row = statement.query(&values.row(0))?.next();
        Ok(row.transpose()?.is_some())
    }
}

fn begin_failed(error: oracle::Error) -> FlushError {
    FlushError::begin(classify(error))
}

impl FlushConnection for OracleConnection<'_> {
    type Error = oracle::Error;
    type Binder = Binder;
    type Bulk = std::convert::Infallible;
    type Transaction<'t>
        = OracleTransaction<'t>
    where
        Self: 't;

    const ADAPTER: &'static str = "ordid_oracle";

    async fn check(&mut self, wanted: TransactionScope) -> Result<TransactionScope> {
        self.checked(wanted)
    }

    async fn begin(&mut self, begin: Begin) -> Result<OracleTransaction<'_>> {
        self.begun(begin)
    }

    async fn exists(
        &mut self,
        query: &Statement,
        values: Binder,
    ) -> Result<bool, DriverError<oracle::Error>> {
        let found = self.found(query, &values);
        // In a serializable session the next attempt would otherwise see what this one saw.
        let rolled_back = self.connection().rollback();
        let found = found.and_then(|found| rolled_back.map(|()| found));
        found.map_err(classify)
    }
}

/// A transaction or savepoint, rolled back unless it is committed: also when a value's own code panics while it is
/// bound.
pub(crate) struct OracleTransaction<'t> {
    connection: &'t Connection,
    scope: TransactionScope,
    ends_well: bool,
}

impl OracleTransaction<'_> {
    /// Sends the rows by one statement with an array for each of its parameters.
    #[expect(
        clippy::result_large_err,
        reason = "the executor takes the error apart at once"
    )]
    fn send(
        &self,
        statement: &Statement,
        values: &Binder,
    ) -> Result<Changed, StatementFailure<oracle::Error>> {
        let changes = statement.kind != StatementKind::Insert;
        // Without batch errors the rest of the rows would not be tried, but neither would it be known which one
        // failed.
        let mut builder = self.connection.batch(&statement.sql, statement.rows);
        builder.with_batch_errors();
        if changes {
            builder.with_row_counts();
        }
        let mut batch = builder.build().map_err(refused)?;
        let appended = values.append_to(&mut batch, &statement.columns);
        appended.map_err(|(row, error)| StatementFailure {
            error: classify(error),
            is_binding: true,
            row: Some((row, 0)),
        })?;
        batch.execute().map_err(refused)?;
        Ok(match changes {
            true => Changed::OfEach(batch.row_counts().map_err(refused)?),
            false => Changed::Rows(0),
        })
    }
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

    async fn execute(
        &mut self,
        statement: &Statement,
        values: Binder,
    ) -> Result<Changed, StatementFailure<oracle::Error>> {
        self.send(statement, &values)
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
            TransactionScope::Savepoint => self.connection.execute(ROLLBACK_TO, &[]).map(drop),
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

/// The one connection that there is.
pub(crate) struct OnConnection<'c>(OracleConnection<'c>);

impl<'c> OnConnection<'c> {
    pub(crate) const fn new(connection: &'c Connection) -> Self {
        Self(OracleConnection::Borrowed(connection))
    }
}

impl<'c> ConnectionSource for OnConnection<'c> {
    type Connection = OracleConnection<'c>;

    fn engine(&self) -> EngineProfile {
        EngineProfile::ORACLE
    }

    async fn get(&mut self, _: bool) -> Result<(&mut OracleConnection<'c>, bool)> {
        Ok((&mut self.0, false))
    }

    fn may_reconnect(&self) -> bool {
        false
    }

    fn pause(&self, delay: Duration) -> impl Future<Output = ()> + Send {
        sleep(delay);
        ready(())
    }
}

/// Connections that a closure makes, or a pool lends, one after the other.
pub(crate) struct Made<F> {
    connect: F,
    open: Option<OracleConnection<'static>>,
}

impl<F: FnMut() -> Result<Connection> + Send> Made<F> {
    pub(crate) const fn new(connect: F) -> Self {
        Self {
            connect,
            open: None,
        }
    }
}

impl<F: FnMut() -> Result<Connection> + Send> ConnectionSource for Made<F> {
    type Connection = OracleConnection<'static>;

    fn engine(&self) -> EngineProfile {
        EngineProfile::ORACLE
    }

    async fn get(&mut self, _: bool) -> Result<(&mut OracleConnection<'static>, bool)> {
        match &mut self.open {
            Some(open) => Ok((open, false)),
            empty => {
                let made = OracleConnection::Made((self.connect)()?);
                Ok((empty.insert(made), true))
            }
        }
    }

    fn discard(&mut self) {
        if let Some(OracleConnection::Made(connection)) = self.open.take() {
            // Of a pool, which shall not lend it again. Any other refuses this, and is closed as it is
            // dropped.
            let _ = connection.close_with_mode(CloseMode::Drop);
        }
    }

    fn may_reconnect(&self) -> bool {
        true
    }

    fn pause(&self, delay: Duration) -> impl Future<Output = ()> + Send {
        sleep(delay);
        ready(())
    }
}
