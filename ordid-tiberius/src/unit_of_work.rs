//! The unit of work: new entities of many types, inserted together.

mod load;
mod locate;
mod statement;

use std::{
    fmt,
    time::{Duration, Instant},
};

use futures_timer::Delay;
use futures_util::io::{AsyncRead, AsyncWrite};
use ordid_core::{
    EnsuredKey, KeyOf, KeyType,
    entity::SchemeOf,
    generator::Generator,
    storage::dialect::{Babelfish, SqlServer},
    unit_of_work::{
        Batches, Chunk, Flush, Flushed, Generators, Outcome, Plan, Progress, Retry, Step, Table,
        Tally,
    },
};
use tiberius::Client;

use self::{
    load::prepare,
    locate::locate,
    statement::{Statements, send},
};
use crate::{
    binder::{Binder, Entity},
    error::Error,
    flavour::{Flavour, Session},
};

/// New entities, collected to be inserted in one transaction: parents before children, many rows a
/// statement, each table in the order in which the server sorts the stored keys.
///
/// An entity is any struct with `#[derive(OrderedKey)]` whose key type names a column; each type's
/// rows are kept in one `Vec`. `D` is [`SqlServer`] ([`new`](UnitOfWork::new)) or [`Babelfish`]
/// ([`for_babelfish`](UnitOfWork::for_babelfish)): the type of the client does not tell, and the two
/// sort in different orders. A flush asks the server, and refuses the wrong one.
///
/// # Example: something without a key does not get in
///
/// ```compile_fail
/// struct Loose { name: String }
///
/// fn flush(work: &mut ordid_tiberius::UnitOfWork) {
///     work.add(Loose { name: String::new() });
/// }
/// ```
///
/// # Example: neither does a bare UUID as a key of SQL Server
///
/// It may be of any version, and most lose their order there.
///
/// ```compile_fail,E0277
/// use ordid::{OrderedKey, uuid::Uuid};
///
/// #[derive(OrderedKey)]
/// struct Order { id: Uuid, total: i64 }
///
/// fn flush(work: &mut ordid_tiberius::UnitOfWork, order: Order) {
///     work.add(order);
/// }
/// ```
///
/// On Babelfish it may be one:
///
/// ```
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
///
/// #[derive(OrderedKey)]
/// struct Order { id: Uuid, total: i64 }
///
/// let mut work = ordid_tiberius::UnitOfWork::for_babelfish();
/// work.add(Order { id: Uuid::generate(), total: 1250 });
/// assert_eq!(work.len(), 1);
/// ```
pub struct UnitOfWork<D: Flavour = SqlServer> {
    batches: Batches<Binder<D>>,
    generators: Generators,
    observer: Option<Box<dyn FnMut(Progress) + Send>>,
    retry: Retry,
}

/// How far a flush is.
struct Run {
    plan: Plan,
    flush: Flush,
    tally: Tally,
    /// Why the last step failed that did, and for which rows.
    error: Option<(Error, Option<Chunk>)>,
}

impl Run {
    fn failed(&mut self, error: Error, rows: Option<Chunk>) {
        self.flush.failed(error.failure());
        self.error = Some((error, rows));
    }

    /// Counts what one statement or load sent, up to rows of this chunk.
    fn count(&mut self, table: &Table, chunk: &Chunk, rows: usize, bulk: usize, elapsed: Duration) {
        self.tally.count(table.name(), chunk, rows, bulk, elapsed);
    }
}

impl UnitOfWork {
    /// Makes an empty unit of work for SQL Server.
    pub fn new() -> Self {
        Self::default()
    }
}

impl UnitOfWork<Babelfish> {
    /// Makes an empty unit of work for Babelfish.
    pub fn for_babelfish() -> Self {
        Self::default()
    }
}

impl<D: Flavour> UnitOfWork<D> {
    /// Says how often a flush is tried and how long it waits in between; [`Retry::DEFAULT`] unless this
    /// is called. See [`flush`](Self::flush).
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Gives a generator for the keys of a type, which [`try_add`](Self::try_add) asks from now on:
    /// for schemes that take a node of your own, and for tests with a clock of their own. It stays
    /// over flushes. To share it, give an [`Arc`](std::sync::Arc) or a `&'static` of it.
    #[must_use]
    pub fn with_generator<K: KeyType>(
        mut self,
        generator: impl Generator<Scheme = K::Scheme> + Send + Sync + 'static,
    ) -> Self {
        self.generators.insert::<K>(generator);
        self
    }

    /// Adds a new entity, assigns its key if it has none, and returns the key: children can refer
    /// to it at once. The order of adding does not matter.
    ///
    /// An entity whose key field is no `Option` has its key already. Where it is one, the key is
    /// made by the process's generator, and for schemes that have none this does not compile: see
    /// [`add_with`](Self::add_with) and [`try_add`](Self::try_add).
    ///
    /// # Panics
    ///
    /// As [`KeyType::generate`], for a key that is not assigned yet.
    pub fn add<E>(&mut self, mut entity: E) -> KeyOf<E>
    where
        E: Entity<D>,
        E::Field: EnsuredKey,
    {
        let key = entity.ensure_key();
        self.push(entity);
        key
    }

    /// As [`add`](Self::add); a missing key is made by this generator.
    ///
    /// # Errors
    ///
    /// As [`Generator::try_generate`]; the entity is not added.
    pub fn add_with<E, G>(
        &mut self,
        generator: &G,
        mut entity: E,
    ) -> Result<KeyOf<E>, ordid_core::Error>
    where
        E: Entity<D>,
        G: Generator<Scheme = SchemeOf<E>>,
    {
        let key = entity.ensure_key_with(generator)?;
        self.push(entity);
        Ok(key)
    }

    /// As [`add`](Self::add); a missing key is made by the generator that
    /// [`with_generator`](Self::with_generator) gave for its type.
    ///
    /// # Errors
    ///
    /// As [`Generator::try_generate`], and an error that [`is_plan`](ordid_core::Error::is_plan) if
    /// no generator was given; the entity is not added.
    pub fn try_add<E: Entity<D>>(&mut self, mut entity: E) -> Result<KeyOf<E>, ordid_core::Error> {
        let key = self.generators.ensure_key(&mut entity)?;
        self.push(entity);
        Ok(key)
    }

    fn push<E: Entity<D>>(&mut self, entity: E) {
        self.batches.rows_mut_by::<E>(E::__compare).push(entity);
    }

    /// Makes room for more entities of a type.
    pub fn reserve<E: Entity<D>>(&mut self, additional: usize) {
        self.batches
            .rows_mut_by::<E>(E::__compare)
            .reserve(additional);
    }

    /// Returns the entities of a type, in the order in which they were added.
    pub fn get<E: Entity<D>>(&self) -> &[E] {
        self.batches.get()
    }

    /// Returns the number of entities, of all types.
    pub fn len(&self) -> usize {
        self.batches.len()
    }

    /// Returns whether there is nothing to flush.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Forgets all entities: after [`flush_in`](Self::flush_in), once the transaction is committed.
    pub fn clear(&mut self) {
        self.batches.clear();
    }

    /// Calls a function after each chunk of a flush, as for a progress bar. A flush that is tried again
    /// tells of its rows anew.
    pub fn observe(&mut self, observer: impl FnMut(Progress) + Send + 'static) {
        self.observer = Some(Box::new(observer));
    }

    /// Inserts everything in one transaction of its own, and is empty afterwards. If it fails,
    /// nothing is written and nothing is lost: the same entities with the same keys are there to
    /// be flushed again.
    ///
    /// If the future is dropped, or [`Error::is_connection_lost`], drop the client, which rolls back:
    /// tiberius cannot use it again, and its transaction is still open.
    ///
    /// # Retries
    ///
    /// What another time may succeed on the same connection ([`Error::is_transient`]), as a deadlock or
    /// a lock time-out, is rolled back and tried again, with the same keys, as often as
    /// [`with_retry`](Self::with_retry) says. A client is one connection, so where that is lost it is
    /// over: connect anew, and flush again. If that happened in the midst of the commit
    /// ([`Error::is_commit_unknown`]), look for one of the keys first; without, a row that is there is
    /// refused, never written twice.
    ///
    /// # Bulk load on SQL Server
    ///
    /// A table of more than four statements is sent by `INSERT BULK`, with the hint that its rows come
    /// in the order of the key, `ORDER([id] ASC)`, so that the server need not sort them. The hint
    /// is left out where they do not, as in a table that refers to itself. Constraints are checked,
    /// triggers fire, NULL stays NULL, so that the rows are what `INSERT` would make of them. Where
    /// they might not be, the table goes by statements, each of at most 2,098 parameters and 1,000
    /// rows: [`FlushedTable::bulk`](crate::FlushedTable::bulk) tells. That is
    ///
    /// - where a value is not of its column's own type, such as `i32` in a `bigint` column, or has to
    ///   be rounded, cut off, or converted: text in a `varchar` goes if it is ASCII, and a
    ///   `datetime2` only at scale 7, which is that of tiberius' values;
    /// - for `nchar`, `char`, `datetime`, `money`, `xml` columns, and for `nvarchar(n)` above 2,000
    ///   characters, which tiberius 0.13 declares in other words than it sends;
    /// - for identity columns, computed ones, and tables that may not be read;
    /// - on Babelfish.
    ///
    /// The answer to a load comes at its end: it must come within tiberius'
    /// [`Config::command_timeout`](tiberius::Config::command_timeout), 30 seconds unless you say
    /// otherwise.
    ///
    /// # Errors
    ///
    /// Says which table, which chunk, and which row's key failed. To find the row, what was sent is
    /// sent once more up to it, in a transaction that is rolled back. A server of another flavour,
    /// and a transaction that is open already, are errors.
    pub async fn flush<S>(&mut self, client: &mut Client<S>) -> Result<Flushed, Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        if Self::check(client).await? {
            return Err(Error::open_transaction());
        }
        let flushed = self.run(client, Scope::Transaction).await?;
        self.clear();
        Ok(flushed)
    }

    /// Inserts everything inside the transaction that is open on the client, after a savepoint: if it
    /// fails, the transaction is as before. The entities stay until [`clear`](Self::clear), since
    /// only the caller knows when the transaction is committed.
    ///
    /// It is never tried again, as what came before it in the transaction would have to be done again.
    ///
    /// It never sends a bulk load: to ask for the columns may fail, and with it your transaction.
    ///
    /// SQL Server itself ends the transaction at a deadlock ([`Error::is_deadlock`]), and at any error
    /// under `SET XACT_ABORT ON`. The savepoint is gone then, too: look at `@@TRANCOUNT` before you
    /// go on.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush); that no transaction is open is an error.
    pub async fn flush_in<S>(&mut self, client: &mut Client<S>) -> Result<Flushed, Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        if !Self::check(client).await? {
            return Err(Error::no_transaction());
        }
        self.run(client, Scope::Savepoint).await
    }

    /// Returns whether a transaction is open, on a server of the right flavour.
    async fn check<S>(client: &mut Client<S>) -> Result<bool, Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let session = Session::ask(client).await.map_err(Error::begin)?;
        if !D::is(&session.version) {
            return Err(Error::flavour(D::NAME, &session.version));
        }
        Ok(session.transactions != 0)
    }

    async fn run<S>(&mut self, client: &mut Client<S>, scope: Scope) -> Result<Flushed, Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let plan = self.batches.plan::<D>()?;
        let flush = match scope {
            Scope::Transaction => Flush::new(plan.clone())
                .with_retry(self.retry)
                .on_one_connection(),
            Scope::Savepoint => Flush::in_transaction(plan.clone()),
        };
        let mut run = Run {
            tally: Tally::new(&plan),
            plan,
            flush,
            error: None,
        };
        let outcome = loop {
            match run.flush.step() {
                Step::Begin => self.attempt(client, scope, &mut run).await,
                Step::Sleep(delay) => {
                    Delay::new(delay).await;
                    run.flush.succeeded();
                }
                Step::Done { outcome } => break outcome,
                // The other steps are an attempt's, and there is no other connection to probe on.
                _ => break Outcome::Unknown,
            }
        };
        let retries = run.flush.retries();
        if outcome == Outcome::Committed {
            let mut flushed = run.tally.flushed();
            flushed.retries = retries;
            return Ok(flushed);
        }
        let stopped = || {
            let error = tiberius::error::Error::Protocol("the flush stopped".into());
            (Error::begin(error), None)
        };
        let (mut error, rows) = run.error.unwrap_or_else(stopped);
        error.set_retries(retries);
        if outcome == Outcome::Unknown {
            error.set_unknown();
        } else if let Some(rows) = rows
            && error.refuses_a_row()
            && let Some((chunk, key)) = locate(&self.batches, client, scope, &run.plan, &rows).await
        {
            error.set_row(chunk, key);
        }
        Err(error)
    }

    /// Carries the steps out from the beginning of a transaction to its end.
    async fn attempt<S>(&mut self, client: &mut Client<S>, scope: Scope, run: &mut Run)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        run.tally.restart();
        let mut loads = if D::LOADS && matches!(scope, Scope::Transaction) {
            prepare(&self.batches, &run.plan, client).await
        } else {
            Vec::new()
        };
        let mut statements = Statements::new::<D>(&self.batches);
        let mut begun = false;
        loop {
            match run.flush.step() {
                Step::Begin if !begun => match scope.begin(client).await {
                    Ok(()) => {
                        begun = true;
                        run.flush.succeeded();
                    }
                    Err(error) => return run.failed(Error::begin(error), None),
                },
                Step::Send(chunk) => {
                    let load = loads.get_mut(chunk.table).and_then(Option::take);
                    let sent = match load {
                        Some(load) => self.load(client, &load, run).await,
                        None => {
                            let started = Instant::now();
                            let sent = send(&self.batches, client, &chunk, &mut statements).await;
                            let sent = sent.map_err(|error| (error, chunk.clone()));
                            if sent.is_ok() {
                                let table = self.batches.table(chunk.table);
                                run.count(&table, &chunk, chunk.rows.len(), 0, started.elapsed());
                                self.report(run, &chunk);
                            }
                            sent
                        }
                    };
                    match sent {
                        Ok(()) => run.flush.succeeded(),
                        Err((error, rows)) => run.failed(error, Some(rows)),
                    }
                }
                Step::Commit => match scope.commit(client).await {
                    Ok(()) => run.flush.succeeded(),
                    Err(error) => run.failed(Error::commit(error), None),
                },
                Step::Rollback => {
                    // Its own failure says no more: the server has rolled back, or will when the
                    // connection ends.
                    let _ = scope.roll_back(client).await;
                    run.flush.succeeded();
                }
                _ => return,
            }
        }
    }

    fn report(&mut self, run: &mut Run, chunk: &Chunk) {
        let progress = run
            .tally
            .progress(self.batches.table(chunk.table).name(), chunk);
        if let Some(observer) = &mut self.observer {
            observer(progress);
        }
    }
}

/// What a flush begins and ends.
#[derive(Debug, Clone, Copy)]
enum Scope {
    /// A transaction of its own.
    Transaction,
    /// A savepoint in the user's.
    Savepoint,
}

impl Scope {
    async fn begin<S>(self, client: &mut Client<S>) -> tiberius::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        match self {
            Self::Transaction => client.begin_transaction().await,
            // By statement: tiberius 0.13 counts the name of its request in characters, where the
            // protocol counts bytes.
            Self::Savepoint => batch(client, "SAVE TRANSACTION [ordid_flush]").await,
        }
    }

    async fn commit<S>(self, client: &mut Client<S>) -> tiberius::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        match self {
            Self::Transaction => client.commit_transaction().await,
            // A savepoint is not released.
            Self::Savepoint => Ok(()),
        }
    }

    async fn roll_back<S>(self, client: &mut Client<S>) -> tiberius::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        match self {
            Self::Transaction => client.rollback_transaction().await,
            Self::Savepoint => batch(client, "ROLLBACK TRANSACTION [ordid_flush]").await,
        }
    }
}

async fn batch<S>(client: &mut Client<S>, sql: &str) -> tiberius::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    client.simple_query(sql).await?.into_results().await?;
    Ok(())
}

impl<D: Flavour> Default for UnitOfWork<D> {
    fn default() -> Self {
        Self {
            batches: Batches::new(),
            generators: Generators::new(),
            observer: None,
            retry: Retry::DEFAULT,
        }
    }
}

impl<D: Flavour> fmt::Debug for UnitOfWork<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.batches, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compiles: a handler of a web framework flushes inside a future that moves between threads.
    #[test]
    fn flushes_can_move_between_threads() {
        fn is_send<T: Send>(_: T) {}

        async fn flushes(
            work: &mut UnitOfWork,
            client: &mut Client<tokio_util::compat::Compat<tokio::net::TcpStream>>,
        ) {
            is_send(work.flush(client));
            is_send(work.flush_in(client));
            is_send(work);
        }

        let _ = flushes;
    }
}
