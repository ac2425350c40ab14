//! The unit of work: new entities of many types, inserted together.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt::{self, Write as _},
    future::poll_fn,
    ops::Range,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use ordid_core::{
    KeyOf, StaticScheme,
    entity::SchemeOf,
    storage::Dialect,
    unit_of_work::{Chunk, Flush, Plan, Step, Table, row_order},
};
use sqlx::{AssertSqlSafe, Connection, Pool, SqlSafeStr, SqlStr, Transaction};

use crate::{
    backend::{Backend, Binder, BoxFuture, Entity},
    error::{Error, Place},
};

/// New entities, collected to be inserted in one transaction: parents before children, many rows a
/// statement, each table in the order of its keys.
///
/// The database is inferred from what it is flushed to. An entity is any struct with
/// `#[derive(OrderedKey)]`; each type's rows are kept in one `Vec`.
///
/// # Example: something without a key does not get in
///
/// ```compile_fail
/// struct Loose { name: String }
///
/// fn flush(work: &mut ordid_sqlx::UnitOfWork<sqlx::Sqlite>) {
///     work.add(Loose { name: String::new() });
/// }
/// ```
pub struct UnitOfWork<DB: Backend> {
    batches: Vec<Box<dyn Batch<DB>>>,
    positions: HashMap<TypeId, usize>,
    observer: Option<Box<dyn FnMut(Progress) + Send>>,
}

/// What a flush wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flushed {
    /// The tables in the order in which they were written.
    pub tables: Vec<FlushedTable>,
}

/// What a flush wrote into one table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlushedTable {
    /// The table's name.
    pub table: &'static str,
    /// The rows written.
    pub rows: usize,
    /// The statements that it took.
    pub statements: usize,
    /// The time spent on them, binding included.
    pub elapsed: Duration,
}

impl Flushed {
    /// Returns the number of rows written, over all tables.
    pub fn rows(&self) -> usize {
        self.tables.iter().map(|table| table.rows).sum()
    }
}

/// A chunk was sent; nothing is committed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The table's name.
    pub table: &'static str,
    /// The rows of this chunk.
    pub rows: usize,
}

impl<DB: Backend> UnitOfWork<DB> {
    /// Makes an empty unit of work.
    pub fn new() -> Self {
        Self {
            batches: Vec::new(),
            positions: HashMap::new(),
            observer: None,
        }
    }

    /// Adds a new entity, assigns its key if it has none, and returns the key: children can refer
    /// to it at once. The order of adding does not matter.
    ///
    /// # Panics
    ///
    /// As [`KeyType::generate`](ordid_core::KeyType::generate), for a key that is not assigned yet.
    pub fn add<E>(&mut self, mut entity: E) -> KeyOf<E>
    where
        E: Entity<DB>,
        SchemeOf<E>: StaticScheme,
    {
        let key = entity.ensure_key();
        self.rows_mut::<E>().push(entity);
        key
    }

    /// Makes room for more entities of a type.
    pub fn reserve<E: Entity<DB>>(&mut self, additional: usize) {
        self.rows_mut::<E>().reserve(additional);
    }

    /// Returns the entities of a type, in the order in which they were added.
    pub fn get<E: Entity<DB>>(&self) -> &[E] {
        self.positions
            .get(&TypeId::of::<E>())
            .and_then(|position| self.batches[*position].as_any().downcast_ref::<Rows<E>>())
            .map_or(&[], |rows| &rows.rows)
    }

    /// Returns the number of entities, of all types.
    pub fn len(&self) -> usize {
        self.batches.iter().map(|batch| batch.len()).sum()
    }

    /// Returns whether there is nothing to flush.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all entities: after [`flush_in`](Self::flush_in), once the transaction is committed.
    pub fn clear(&mut self) {
        self.batches.clear();
        self.positions.clear();
    }

    /// Calls a function after each statement of a flush, as for a progress bar.
    pub fn observe(&mut self, observer: impl FnMut(Progress) + Send + 'static) {
        self.observer = Some(Box::new(observer));
    }

    /// Inserts everything in one transaction of its own, and is empty afterwards. If it fails,
    /// nothing is written and nothing is lost: the same entities with the same keys are there to
    /// be flushed again.
    ///
    /// Dropping the future rolls back.
    ///
    /// # Errors
    ///
    /// Says which table, which chunk, and which row's key failed. To find the row, what was sent is
    /// sent once more up to it, in a transaction that is rolled back.
    pub async fn flush(&mut self, pool: &Pool<DB>) -> Result<Flushed, Error> {
        let acquire: BoxFuture<'_, _> = Box::pin(pool.acquire());
        let mut connection = acquire.await.map_err(Error::begin)?;
        let flushed = self.run(&mut connection, DB::BEGIN).await?;
        self.clear();
        Ok(flushed)
    }

    /// Inserts everything inside an open transaction, in a savepoint: if it fails, the transaction
    /// is as before. The entities stay until [`clear`](Self::clear), since only the caller knows
    /// when the transaction is committed.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush).
    pub async fn flush_in(
        &mut self,
        transaction: &mut Transaction<'_, DB>,
    ) -> Result<Flushed, Error> {
        self.run(&mut *transaction, None).await
    }

    fn rows_mut<E: Entity<DB>>(&mut self) -> &mut Vec<E> {
        let position = *self.positions.entry(TypeId::of::<E>()).or_insert_with(|| {
            self.batches.push(Box::new(Rows::<E> {
                rows: Vec::new(),
                order: None,
            }));
            self.batches.len() - 1
        });
        let rows = self.batches[position]
            .as_any_mut()
            .downcast_mut::<Rows<E>>();
        &mut rows
            .expect("positions lead to the batch of their type")
            .rows
    }

    /// Boxed, because the compiler cannot tell otherwise that the future may move between threads.
    fn run<'a>(
        &'a mut self,
        connection: &'a mut DB::Connection,
        begin: Option<&'static str>,
    ) -> BoxFuture<'a, Result<Flushed, Error>> {
        Box::pin(async move {
            for batch in &mut self.batches {
                batch.sort()?;
            }
            let tables: Vec<Table> = self.batches.iter().map(|batch| batch.table()).collect();
            let plan = Plan::new(&tables, DB::Dialect::MAX_PARAMETERS)?;
            match self.execute(connection, begin, &plan).await {
                Ok(flushed) => Ok(flushed),
                Err((mut error, Some(chunk))) if error.refuses_a_row() => {
                    if let Some(key) = locate(&self.batches, connection, begin, &plan, &chunk).await
                    {
                        error.set_key(key);
                    }
                    Err(error)
                }
                Err((error, _)) => Err(error),
            }
        })
    }

    /// Executes a plan; an error comes with the chunk that it happened in.
    async fn execute(
        &mut self,
        connection: &mut DB::Connection,
        begin: Option<&'static str>,
        plan: &Plan,
    ) -> Result<Flushed, (Error, Option<Chunk>)> {
        let mut flushed = Flushed::default();
        let mut flush = Flush::new(plan.clone());
        let mut statements = Statements::new(&self.batches);
        let mut failure = None;
        let mut bound = None;
        // The machine's first step is always to begin.
        let begun = begin_with::<DB>(connection, begin).await;
        let mut transaction = match begun {
            Ok(transaction) => {
                flush.succeeded();
                Some(transaction)
            }
            Err(error) => return Err((Error::begin(error), None)),
        };
        loop {
            match (flush.step(), &mut transaction) {
                (Step::Send(chunk), Some(open)) => {
                    let started = Instant::now();
                    let now = match bound.take() {
                        Some(bound) => bound,
                        None => bind(&self.batches, &chunk, &mut statements),
                    };
                    // While the database works on this chunk, the next one is bound.
                    let sent = send(&mut **open, now, || {
                        let next = flush.upcoming();
                        bound = next.map(|next| bind(&self.batches, &next, &mut statements));
                    });
                    match sent.await {
                        Ok(()) => {
                            flush.succeeded();
                            let table = self.batches[chunk.table].name();
                            let progress = Progress {
                                table,
                                rows: chunk.rows.len(),
                            };
                            flushed.count(progress, chunk.number, started.elapsed());
                            if let Some(observer) = &mut self.observer {
                                observer(progress);
                            }
                        }
                        Err(error) => {
                            flush.failed();
                            failure = Some((error, Some(chunk)));
                        }
                    }
                }
                (Step::Commit, open) => match open.take() {
                    Some(open) => match open.commit().await {
                        Ok(()) => flush.succeeded(),
                        Err(error) => {
                            flush.failed();
                            failure = Some((Error::commit(error), None));
                        }
                    },
                    None => flush.failed(),
                },
                (Step::Rollback, open) => {
                    if let Some(open) = open.take() {
                        // Its own failure says no more: the server drops what is not committed.
                        let _ = open.rollback().await;
                    }
                    flush.succeeded();
                }
                (Step::Done { committed: true }, _) => return Ok(flushed),
                (_, _) => break,
            }
        }
        Err(failure.unwrap_or_else(|| (Error::begin(sqlx::Error::WorkerCrashed), None)))
    }
}

impl<DB: Backend> Default for UnitOfWork<DB> {
    fn default() -> Self {
        Self::new()
    }
}

impl<DB: Backend> fmt::Debug for UnitOfWork<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables = self.batches.iter().map(|batch| (batch.name(), batch.len()));
        f.debug_map().entries(tables).finish()
    }
}

impl Flushed {
    fn count(&mut self, progress: Progress, chunk: usize, elapsed: Duration) {
        if chunk == 0 {
            let table = progress.table;
            let empty = FlushedTable {
                table,
                rows: 0,
                statements: 0,
                elapsed: Duration::ZERO,
            };
            self.tables.push(empty);
        }
        if let Some(table) = self.tables.last_mut() {
            table.rows += progress.rows;
            table.statements += 1;
            table.elapsed += elapsed;
        }
    }
}

async fn begin_with<'c, DB: Backend>(
    connection: &'c mut DB::Connection,
    begin: Option<&'static str>,
) -> Result<Transaction<'c, DB>, sqlx::Error> {
    match begin {
        Some(begin) => connection.begin_with(begin).await,
        None => connection.begin().await,
    }
}

/// Finds the row that a chunk failed for: sends everything before the chunk again, then its
/// rows one by one, and rolls back. `None` where this time no row fails.
async fn locate<DB: Backend>(
    batches: &[Box<dyn Batch<DB>>],
    connection: &mut DB::Connection,
    begin: Option<&'static str>,
    plan: &Plan,
    failed: &Chunk,
) -> Option<String> {
    let mut transaction = begin_with::<DB>(connection, begin).await.ok()?;
    let mut statements = Statements::new(batches);
    let mut key = None;
    'chunks: for chunk in plan.chunks() {
        if chunk != *failed {
            let bound = bind(batches, &chunk, &mut statements);
            if send(&mut *transaction, bound, || ()).await.is_err() {
                break;
            }
            continue;
        }
        for row in chunk.rows.clone() {
            let single = Chunk {
                rows: row..row + 1,
                ..chunk.clone()
            };
            let bound = bind(batches, &single, &mut statements);
            if let Err(error) = send(&mut *transaction, bound, || ()).await {
                let batch = &batches[chunk.table];
                key = error.refuses_a_row().then(|| batch.key_text(row));
                break 'chunks;
            }
        }
        break;
    }
    let _ = transaction.rollback().await;
    key
}

/// A statement with its parameters, or why a row could not be bound.
type Bound<DB> = Result<Statement<DB>, Error>;

struct Statement<DB: Backend> {
    sql: SqlStr,
    arguments: DB::Arguments,
    /// A prepared statement is kept in the connection's cache only where it serves again.
    repeats: bool,
    place: Place,
}

fn bind<DB: Backend>(
    batches: &[Box<dyn Batch<DB>>],
    chunk: &Chunk,
    statements: &mut Statements,
) -> Bound<DB> {
    let batch = &*batches[chunk.table];
    let mut place = Place {
        table: batch.name(),
        chunk: chunk.number,
        rows: chunk.rows.clone(),
        key: None,
    };
    let mut binder = Binder::with_capacity(chunk.rows.len() * batch.columns().len());
    if let Err((row, error)) = batch.bind(chunk.rows.clone(), &mut binder) {
        place.key = Some(batch.key_text(row));
        return Err(Error::bind(error, place));
    }
    let (sql, repeats) = statements.get(batch, chunk);
    Ok(Statement {
        sql,
        arguments: binder.into_arguments(),
        repeats,
        place,
    })
}

/// Sends a statement, and calls `meanwhile` when it is on its way.
async fn send<DB: Backend>(
    connection: &mut DB::Connection,
    bound: Bound<DB>,
    meanwhile: impl FnOnce(),
) -> Result<(), Error> {
    let Statement {
        sql,
        arguments,
        repeats,
        place,
    } = bound?;
    let mut sending = DB::execute(connection, sql, arguments, repeats);
    // One poll hands the statement to the socket, or to SQLite's thread.
    let sent = poll_fn(|context| Poll::Ready(sending.as_mut().poll(context))).await;
    meanwhile();
    let outcome = match sent {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => sending.await,
    };
    outcome.map_err(|error| Error::insert(error, place))
}

/// The text of the statement that was sent last for each table: all chunks but a table's last have
/// the same.
struct Statements {
    last: Vec<Option<(usize, Arc<str>)>>,
}

impl Statements {
    fn new<DB: Backend>(batches: &[Box<dyn Batch<DB>>]) -> Self {
        Self {
            last: batches.iter().map(|_| None).collect(),
        }
    }

    /// Returns the statement for a chunk, and whether it was or will be sent more than once.
    fn get<DB: Backend>(&mut self, batch: &dyn Batch<DB>, chunk: &Chunk) -> (SqlStr, bool) {
        let rows = chunk.rows.len();
        let slot = &mut self.last[chunk.table];
        let text = match slot {
            Some((length, text)) if *length == rows => Arc::clone(text),
            _ => {
                let text: Arc<str> = insert_statement(batch, rows).into();
                *slot = Some((rows, Arc::clone(&text)));
                text
            }
        };
        let repeats = chunk.number > 0 || batch.len() >= 2 * rows;
        (AssertSqlSafe(text).into_sql_str(), repeats)
    }
}

/// Writes `INSERT INTO "orders" ("id", "total") VALUES ($1, $2), ($3, $4)`. All names are quoted.
fn insert_statement<DB: Backend>(batch: &dyn Batch<DB>, rows: usize) -> String {
    let columns = batch.columns();
    let mut sql = String::with_capacity(64 + rows * (columns.len() * 7 + 4));
    sql.push_str("INSERT INTO ");
    sql.push_str(&DB::Dialect::quote_table(batch.schema(), batch.name()));
    let names: Vec<_> = columns
        .iter()
        .map(|column| DB::Dialect::quote(column))
        .collect();
    let _ = write!(sql, " ({}) VALUES ", names.join(", "));
    let mut number = 0;
    for row in 0..rows {
        sql.push_str(if row == 0 { "(" } else { ", (" });
        for column in 0..columns.len() {
            if column > 0 {
                sql.push_str(", ");
            }
            number += 1;
            DB::push_placeholder(&mut sql, number);
        }
        sql.push(')');
    }
    sql
}

/// The rows of one entity type, behind a box a type, none a row.
trait Batch<DB: Backend>: Send + Sync {
    fn name(&self) -> &'static str;
    fn schema(&self) -> Option<&'static str>;
    fn columns(&self) -> &'static [&'static str];
    fn len(&self) -> usize;
    fn table(&self) -> Table;
    /// Finds the order in which rows are sent.
    fn sort(&mut self) -> Result<(), ordid_core::Error>;
    /// Binds these positions of the order; an error comes with its position.
    fn bind(
        &self,
        rows: Range<usize>,
        binder: &mut Binder<DB>,
    ) -> Result<(), (usize, sqlx::error::BoxDynError)>;
    /// Returns the key at a position of the order, for messages.
    fn key_text(&self, row: usize) -> String;
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

struct Rows<E> {
    rows: Vec<E>,
    /// `None` where the rows are in order as they are.
    order: Option<Vec<usize>>,
}

impl<E> Rows<E> {
    fn at(&self, position: usize) -> &E {
        match &self.order {
            Some(order) => &self.rows[order[position]],
            None => &self.rows[position],
        }
    }
}

impl<DB: Backend, E: Entity<DB>> Batch<DB> for Rows<E> {
    fn name(&self) -> &'static str {
        E::TABLE
    }

    fn schema(&self) -> Option<&'static str> {
        E::SCHEMA
    }

    fn columns(&self) -> &'static [&'static str] {
        E::COLUMNS
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn table(&self) -> Table {
        Table::of::<E>(self.rows.len())
    }

    fn sort(&mut self) -> Result<(), ordid_core::Error> {
        self.order = row_order(&self.rows)?;
        Ok(())
    }

    fn bind(
        &self,
        rows: Range<usize>,
        binder: &mut Binder<DB>,
    ) -> Result<(), (usize, sqlx::error::BoxDynError)> {
        for row in rows {
            self.at(row).write(binder);
            if let Some(error) = binder.take_error() {
                return Err((row, error));
            }
        }
        Ok(())
    }

    fn key_text(&self, row: usize) -> String {
        match self.at(row).key() {
            Some(key) => key.to_string(),
            None => "none".to_owned(),
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;

    /// Compiles: a handler of a web framework flushes inside a future that moves between threads.
    #[test]
    fn flushes_can_move_between_threads() {
        fn is_send<T: Send>(_: T) {}

        async fn flushes(
            work: &mut UnitOfWork<sqlx::Sqlite>,
            pool: &Pool<sqlx::Sqlite>,
            transaction: &mut Transaction<'_, sqlx::Sqlite>,
        ) {
            is_send(work.flush(pool));
            is_send(work.flush_in(transaction));
            is_send(work);
        }

        let _ = flushes;
    }
}
