//! Clients of tokio-postgres, and where they come from.
//!
//! # Dropped futures
//!
//! tokio-postgres sends requests in the order in which they were made, and reads their answers also where nobody waits
//! for them. So a transaction that is dropped hands a `ROLLBACK` over, behind all that was sent in it, and whoever uses the
//! connection next is behind that, also before the server has answered. A COMMIT that was handed over is carried out or not,
//! whatever becomes of its future.
//!
//! A silent network never brings the answer, and the next user would wait for it as well. So a pool's connection is closed if
//! a flush is dropped while it waits for the server.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
#[cfg(feature = "postgres")]
use std::{future::ready, ops::DerefMut};

use ordid_sql::{
    DriverError, EngineProfile, NotBulk, PendingRows,
    spi::{
        Begin, BulkFailure, BulkRows, Changed, ConnectionSource, FlushConnection, FlushTransaction,
        MadeConnections, OneConnection, RELEASE, ReadRow, SAVEPOINT, Statement, StatementFailure,
        TransactionScope, UNDO,
    },
};
#[cfg(feature = "postgres")]
use postgres::GenericClient;
use tokio_postgres::{
    Client, Error, Row, SimpleQueryMessage,
    error::SqlState,
    types::{ToSql, Type},
};

#[cfg(feature = "postgres")]
use crate::calls::Blocking;
use crate::{
    Error as FlushError,
    binder::{Binder, Parameter},
    calls::{Awaited, Calls},
    classify::{classify, classify_commit},
    copy::{self, CopyPiece},
    types::{self, TableOf, Types},
};

/// What [`flush_with`](crate::UnitOfWork::flush_with) gets from a function or a pool: a [`Client`], or what keeps one.
///
/// It is implemented for tokio-postgres' own client, and for the connections that the pools of `deadpool-postgres` and
/// `bb8-postgres` lend, with the features `deadpool` and `bb8`. For another pool, implement it for a type of yours.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no client of tokio-postgres",
    label = "no client, and no connection of a pool that is known",
    note = "for the connections of a pool, turn its feature on: `cargo add ordid-tokio-postgres --features deadpool`, \
            or `bb8`"
)]
pub trait AsClient: Send + Sync {
    /// Returns the client.
    fn as_client(&self) -> &Client;

    /// Closes a connection that is lost, or whose answer nobody waits for, so that no pool lends it again. Without it, it is
    /// dropped.
    fn close(self)
    where
        Self: Sized,
    {
    }
}

impl AsClient for Client {
    fn as_client(&self) -> &Client {
        self
    }
}

/// The user's client, or one that is lent by `&`, as that of the user's transaction is.
pub(crate) enum Borrowed<'c> {
    Client(&'c mut Client),
    Shared(&'c Client),
}

impl AsClient for Borrowed<'_> {
    fn as_client(&self) -> &Client {
        match self {
            Self::Client(client) => client,
            Self::Shared(client) => client,
        }
    }

    fn close(self) {
        if let Self::Client(client) = self {
            client.__private_api_close();
        }
    }
}

#[cfg(feature = "deadpool")]
impl AsClient for deadpool_postgres::Object {
    fn as_client(&self) -> &Client {
        self
    }

    fn close(self) {
        drop(Self::take(self));
    }
}

#[cfg(feature = "bb8")]
impl<M> AsClient for bb8_postgres::bb8::PooledConnection<'_, M>
where
    M: bb8_postgres::bb8::ManageConnection<Connection = Client>,
{
    fn as_client(&self) -> &Client {
        self
    }

    /// bb8 keeps every client that is not closed. The crate `postgres` closes one in this way, too.
    fn close(mut self) {
        self.__private_api_close();
    }
}

/// A client, for the length of a flush.
pub(crate) struct PgConnection<C: Calls> {
    /// It is there until this is dropped.
    client: Option<C>,
    /// Whether it is the user's, who may have begun a transaction.
    is_users: bool,
    state: ProtocolState,
    known: Known,
}

/// Whether client and server still agree on what comes next over a connection.
#[derive(Debug, Default)]
pub(crate) struct ProtocolState {
    /// The flush waits for the server.
    is_busy: AtomicBool,
    /// The connection is lost.
    is_lost: AtomicBool,
    /// The client takes the answer to one request for that to another.
    miscounts: AtomicBool,
}

impl ProtocolState {
    pub(crate) fn miscount(&self) {
        self.miscounts.store(true, Ordering::Relaxed);
    }

    /// Waits for the server.
    async fn answer<T>(&self, request: impl Future<Output = T>) -> T {
        self.is_busy.store(true, Ordering::Relaxed);
        let answer = request.await;
        self.is_busy.store(false, Ordering::Relaxed);
        answer
    }
}

impl<C: Calls> PgConnection<C> {
    fn new(client: C, is_users: bool) -> Self {
        Self {
            client: Some(client),
            is_users,
            state: ProtocolState::default(),
            known: Known::default(),
        }
    }
}

impl<C: Calls> Drop for PgConnection<C> {
    fn drop(&mut self) {
        let ProtocolState {
            is_busy,
            is_lost,
            miscounts,
        } = &mut self.state;
        let closes =
            *miscounts.get_mut() || *is_lost.get_mut() || *is_busy.get_mut() && !self.is_users;
        if let Some(client) = self.client.take().filter(|_| closes) {
            client.close();
        }
    }
}

/// What is known of a connection.
#[derive(Default)]
struct Known {
    types: HashMap<&'static TableOf, Types>,
    /// The tables whose types are asked for when the next transaction begins.
    wanted: Vec<&'static TableOf>,
    /// The texts that may be prepared and were sent once. Preparing takes a round trip, so it is done for the second time.
    sent: HashSet<Arc<str>>,
    prepared: HashMap<Arc<str>, tokio_postgres::Statement>,
}

/// A transaction begins with its first statement, so another one has another time.
async fn has_transaction(client: &mut impl Calls) -> Result<bool, Error> {
    // By the simple protocol, in which all of it is one statement.
    let sql = "SELECT transaction_timestamp() <> statement_timestamp()";
    match client.simple(sql).await {
        Ok(messages) => Ok(messages.iter().any(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0) == Some("t"),
            _ => false,
        })),
        // One that has failed takes nothing but its end.
        Err(error) if error.code() == Some(&SqlState::IN_FAILED_SQL_TRANSACTION) => Ok(true),
        Err(error) => Err(error),
    }
}

fn not_begun(error: Error) -> FlushError {
    FlushError::begin(classify(error))
}

impl<C: Calls> FlushConnection for PgConnection<C> {
    type Error = Error;
    type Binder = Binder;
    type Bulk = Binder;
    type Transaction<'t>
        = PgTransaction<'t, C>
    where
        Self: 't;

    const ADAPTER: &'static str = "ordid_tokio_postgres";
    const BLOCKS: bool = C::BLOCKS;
    const MIN_BULK_ROWS_AGAIN: usize = ordid_sql::copy::MIN_ROWS;
    const STAGES_BULK: bool = true;

    /// Another `BEGIN` would be a mere warning, and COMMIT would commit what the user has done before.
    async fn check(&mut self, wanted: TransactionScope) -> Result<TransactionScope, FlushError> {
        if wanted == TransactionScope::Transaction && self.is_users {
            let client = self.client.as_mut().expect("it is not dropped");
            let is_open = self.state.answer(has_transaction(client)).await;
            if is_open.map_err(not_begun)? {
                return Err(FlushError::open_transaction("client"));
            }
        }
        Ok(wanted)
    }

    fn prepare_for(&mut self, rows: &PendingRows<Binder>) {
        let tables = (0..rows.tables().len()).filter_map(|table| rows.entity(table));
        self.known.wanted = tables.collect();
    }

    async fn bulk(&mut self, rows: &PendingRows<Binder>, table: usize) -> Result<Binder, NotBulk> {
        let table = rows.table(table);
        let name = EngineProfile::POSTGRES.quote_table(table.schema(), table.name());
        let client = self.client.as_mut().expect("it is not dropped");
        let piece = CopyPiece::prepare(client, name, table.columns());
        self.state.answer(piece).await.map(Binder::of_copy)
    }

    /// What begins the transaction and the question for types go together.
    async fn begin(&mut self, begin: Begin<'_>) -> Result<PgTransaction<'_, C>, FlushError> {
        let open = PgTransaction {
            client: self.client.as_mut().expect("it is not dropped"),
            state: &self.state,
            known: &mut self.known,
            scope: begin.scope,
            ends_well: false,
        };
        let mut sql = match begin.scope {
            TransactionScope::Transaction => begin.statement.unwrap_or("BEGIN").to_owned(),
            TransactionScope::Savepoint => SAVEPOINT.to_owned(),
        };
        if let Some(defer) = begin.defer {
            sql = format!("{sql}; {defer}");
        }
        let known = &open.known.types;
        let mut wanted = open.known.wanted.clone();
        wanted.retain(|table| !known.contains_key(table));
        let (state, client) = (open.state, &mut *open.client);
        let begun = state
            .answer(types::begin_and_ask(client, &sql, &wanted))
            .await;
        open.known.types.extend(begun.map_err(not_begun)?);
        Ok(open)
    }

    fn is_usable(&self) -> bool {
        !self.state.miscounts.load(Ordering::Relaxed)
    }

    fn close(mut self) {
        *self.state.is_lost.get_mut() = true;
    }
}

/// An open transaction or savepoint: dropped, it is rolled back.
pub(crate) struct PgTransaction<'t, C: Calls> {
    client: &'t mut C,
    state: &'t ProtocolState,
    known: &'t mut Known,
    scope: TransactionScope,
    ends_well: bool,
}

impl<C: Calls> PgTransaction<'_, C> {
    const fn ending(&self) -> &'static str {
        match self.scope {
            TransactionScope::Transaction => "ROLLBACK",
            TransactionScope::Savepoint => UNDO,
        }
    }

    /// Returns the types of the columns of these values.
    async fn types_of(&mut self, values: &Binder) -> Result<Types, Error> {
        let Some(table) = values.table else {
            return Ok(Types::default());
        };
        if let Some(types) = self.known.types.get(table) {
            return Ok(Arc::clone(types));
        }
        let found = types::ask(self.client, &[table]).await?;
        self.known.types.extend(found);
        Ok(self.known.types.get(table).cloned().unwrap_or_default())
    }

    /// Returns a statement that is prepared by name, if it may be and was sent before.
    async fn prepared(
        &mut self,
        statement: &Statement,
        parameters: &[Parameter<'_>],
    ) -> Result<Option<tokio_postgres::Statement>, Error> {
        if !statement.is_kept || self.known.sent.insert(Arc::clone(&statement.sql)) {
            return Ok(None);
        }
        if let Some(prepared) = self.known.prepared.get(&statement.sql) {
            return Ok(Some(prepared.clone()));
        }
        let types: Vec<Type> = parameters.iter().map(|(_, ty)| ty.clone()).collect();
        let prepared = self.client.prepare(&statement.sql, &types).await?;
        let sql = Arc::clone(&statement.sql);
        self.known.prepared.insert(sql, prepared.clone());
        Ok(Some(prepared))
    }

    /// Parameters without types are not sent: there is no such table, or no such column, as the server then says.
    async fn executed(
        &mut self,
        statement: &Statement,
        values: &Binder,
    ) -> Result<Changed, StatementFailure<Error>> {
        let types = self.types_of(values).await.map_err(classify)?;
        let parameters = values.parameters(statement, &types).unwrap_or_default();
        let prepared = self.prepared(statement, &parameters).await;
        let changed = match prepared.map_err(classify)? {
            Some(prepared) => self.client.execute(&prepared, &untyped(&parameters)).await,
            None => self.client.execute_typed(&statement.sql, &parameters).await,
        };
        changed.map(Changed::Rows).map_err(|error| {
            let unbound = match error.as_db_error() {
                None => unbound(&parameters),
                Some(_) => None,
            };
            let of_row = statement.columns.len();
            let mut error = classify(error);
            // tokio-postgres names the parameter by its number.
            if let Some(column) = unbound
                .zip(values.table)
                .and_then(|(number, table)| table.column(statement.columns[number % of_row]))
            {
                error.text = error.text.map(|text| format!("column {column}: {text}"));
                error.names.column = Some(column.to_owned());
            }
            StatementFailure {
                error,
                is_binding: unbound.is_some(),
                row: unbound.map(|number| (number / of_row, 0)),
            }
        })
    }

    async fn query(&mut self, query: &Statement, values: &Binder) -> Result<Vec<Row>, Error> {
        let types = self.types_of(values).await?;
        let parameters = values.parameters(query, &types).unwrap_or_default();
        match self.prepared(query, &parameters).await? {
            Some(prepared) => self.client.query(&prepared, &untyped(&parameters)).await,
            None => self.client.query_typed(&query.sql, &parameters).await,
        }
    }
}

fn untyped<'b>(parameters: &[Parameter<'b>]) -> Vec<&'b (dyn ToSql + Sync)> {
    parameters.iter().map(|(value, _)| *value).collect()
}

/// Returns the number of the first value that could not be encoded, if that is why a statement failed.
fn unbound(parameters: &[Parameter<'_>]) -> Option<usize> {
    let mut scratch = bytes::BytesMut::new();
    parameters.iter().position(|(value, ty)| {
        scratch.clear();
        value.to_sql_checked(ty, &mut scratch).is_err()
    })
}

impl<C: Calls> Drop for PgTransaction<'_, C> {
    fn drop(&mut self) {
        if !self.ends_well {
            self.client.hand_over(self.ending());
        }
    }
}

impl<C: Calls> FlushTransaction for PgTransaction<'_, C> {
    type Error = Error;
    type Binder = Binder;
    type Bulk = Binder;

    async fn execute(
        &mut self,
        statement: &Statement,
        values: Binder,
    ) -> Result<Changed, StatementFailure<Error>> {
        let state = self.state;
        state.answer(self.executed(statement, &values)).await
    }

    async fn exists(
        &mut self,
        query: &Statement,
        values: Binder,
    ) -> Result<bool, DriverError<Error>> {
        let state = self.state;
        let rows = state.answer(self.query(query, &values)).await;
        Ok(!rows.map_err(classify)?.is_empty())
    }

    async fn read(
        &mut self,
        query: &Statement,
        values: Binder,
    ) -> Result<Vec<ReadRow>, DriverError<Error>> {
        let state = self.state;
        let rows = state.answer(self.query(query, &values)).await;
        let rows = rows.map_err(classify)?;
        let rows = rows.iter().map(|row| values.read(row));
        rows.collect::<Result<_, _>>().map_err(classify)
    }

    async fn send_bulk(
        &mut self,
        bulk: &mut Binder,
        rows: &mut BulkRows<'_, Binder, Error>,
    ) -> Result<Option<u64>, BulkFailure<Error>> {
        let state = self.state;
        state
            .answer(copy::send(self.client, state, bulk, rows))
            .await
    }

    /// Once it is sent it is not rolled back: dropped while it waits, it leaves all rows or none.
    async fn commit(mut self) -> Result<(), DriverError<Error>> {
        self.ends_well = true;
        match self.scope {
            TransactionScope::Transaction => {
                let committed = self.client.batch("COMMIT");
                self.state.answer(committed).await.map_err(classify_commit)
            }
            TransactionScope::Savepoint => {
                let released = self.client.batch(RELEASE);
                let released = self.state.answer(released).await;
                self.ends_well = released.is_ok();
                released.map_err(classify)
            }
        }
    }

    /// On a connection that is lost, nobody waits for the answer.
    async fn rollback(mut self, is_lost: bool) -> Result<(), DriverError<Error>> {
        if is_lost {
            return Ok(());
        }
        self.ends_well = true;
        let rolled_back = self.client.batch(self.ending());
        self.state.answer(rolled_back).await.map_err(classify)
    }
}

/// Returns the source of the user's own client, or of that of the user's transaction.
pub(crate) fn on(client: Borrowed<'_>) -> OneConnection<PgConnection<Awaited<Borrowed<'_>>>> {
    let connection = PgConnection::new(Awaited(client), true);
    OneConnection::new(connection, EngineProfile::POSTGRES)
}

/// Returns the source of clients that a function makes, or a pool lends, one after the other.
pub(crate) fn made_by<C, E, W>(
    mut connect: impl FnMut() -> W + Send,
) -> impl ConnectionSource<Connection = PgConnection<Awaited<C>>>
where
    C: AsClient,
    E: std::error::Error + Send + Sync + 'static,
    W: Future<Output = Result<C, E>> + Send,
{
    let connect = move || {
        let connecting = connect();
        async move {
            let client = connecting.await.map_err(FlushError::connect)?;
            Ok(PgConnection::new(Awaited(client), false))
        }
    };
    MadeConnections::new(connect, EngineProfile::POSTGRES)
}

/// Returns the source of the user's own client, or transaction, of the crate `postgres`.
#[cfg(feature = "postgres")]
pub(crate) fn on_blocking<C>(client: &mut C) -> OneConnection<PgConnection<Blocking<&mut C>>>
where
    C: GenericClient + Send,
{
    let connection = PgConnection::new(Blocking(client), true);
    OneConnection::new(connection, EngineProfile::POSTGRES)
}

/// Returns the source of clients of the crate `postgres` that a function makes, or a pool lends, one after the other.
#[cfg(feature = "postgres")]
pub(crate) fn made_by_blocking<C, E>(
    mut connect: impl FnMut() -> Result<C, E> + Send,
) -> impl ConnectionSource<Connection = PgConnection<Blocking<C>>>
where
    C: DerefMut<Target = postgres::Client> + Send,
    E: std::error::Error + Send + Sync + 'static,
{
    let connect = move || {
        let client = connect().map_err(FlushError::connect);
        ready(client.map(|client| PgConnection::new(Blocking(client), false)))
    };
    MadeConnections::new(connect, EngineProfile::POSTGRES)
}
