//! The unit of work: new entities of many types, inserted together.

use std::{fmt, thread::sleep, time::Instant};

use oracle::{Connection, oci_attr::TransactionInProgress};
use ordid_core::{
    EnsuredKey, KeyOf, KeyType,
    entity::SchemeOf,
    generator::Generator,
    storage::{Dialect, Stores, dialect::Oracle},
    unit_of_work::{
        Action, Batches, Chunk, Flush, Flushed, Generators, Outcome, Progress, Retry, Step, Table,
        Tally,
    },
};

use crate::{
    binder::{Binder, Entity},
    error::{Error, Place, failed_row},
    stored::StoredAs,
};

/// Setting a savepoint again moves it, so one name serves every flush of a transaction.
const SAVEPOINT: &str = "SAVEPOINT ordid_flush";
const ROLLBACK_TO: &str = "ROLLBACK TO SAVEPOINT ordid_flush";

/// New entities, collected to be inserted in one transaction: parents before children, each table in
/// the order in which Oracle sorts its keys, up to 1,000 rows a round trip by array binds.
///
/// An entity is any struct with `#[derive(OrderedKey)]`; each type's rows are kept in one `Vec`.
///
/// # Example: something without a key does not get in
///
/// ```compile_fail
/// struct Loose { name: String }
///
/// fn flush(work: &mut ordid_oracle::UnitOfWork) {
///     work.add(Loose { name: String::new() });
/// }
/// ```
#[derive(Default)]
pub struct UnitOfWork {
    batches: Batches<Binder>,
    generators: Generators,
    observer: Option<Box<dyn FnMut(Progress) + Send>>,
    retry: Retry,
}

impl UnitOfWork {
    /// Makes an empty unit of work.
    pub fn new() -> Self {
        Self::default()
    }

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
        E: Entity,
        E::Field: EnsuredKey,
    {
        let key = entity.ensure_key();
        self.rows_mut::<E>().push(entity);
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
        E: Entity,
        G: Generator<Scheme = SchemeOf<E>>,
    {
        let key = entity.ensure_key_with(generator)?;
        self.rows_mut::<E>().push(entity);
        Ok(key)
    }

    /// As [`add`](Self::add); a missing key is made by the generator that
    /// [`with_generator`](Self::with_generator) gave for its type.
    ///
    /// # Errors
    ///
    /// As [`Generator::try_generate`], and an error that [`is_plan`](ordid_core::Error::is_plan) if
    /// no generator was given; the entity is not added.
    pub fn try_add<E: Entity>(&mut self, mut entity: E) -> Result<KeyOf<E>, ordid_core::Error> {
        let key = self.generators.ensure_key(&mut entity)?;
        self.rows_mut::<E>().push(entity);
        Ok(key)
    }

    /// Makes room for more entities of a type.
    pub fn reserve<E: Entity>(&mut self, additional: usize) {
        self.rows_mut::<E>().reserve(additional);
    }

    /// Returns the entities of a type, in the order in which they were added.
    pub fn get<E: Entity>(&self) -> &[E] {
        self.batches.get::<E>()
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
    /// nothing is written and nothing is lost: the same entities with the same keys are there to be
    /// flushed again.
    ///
    /// # Retries
    ///
    /// What another time may succeed on the same connection ([`Error::is_transient`]), as a deadlock or
    /// a serialization failure, is rolled back and tried again, with the same keys, as often as
    /// [`with_retry`](Self::with_retry) says; this thread sleeps in between. Where the connection is
    /// lost it is over: connect anew, and flush again. If that happened in the midst of COMMIT
    /// ([`Error::is_commit_unknown`]), look for one of the keys first; without, a row that is there is
    /// refused, never written twice.
    ///
    /// # Errors
    ///
    /// Says which table, which chunk, and the key of the first row that the database refused. A
    /// connection that commits by itself, or with a transaction open, is refused
    /// ([`Error::is_connection_state`]): Oracle begins a transaction with the first statement that
    /// needs one, and what was done before would be committed with the flush.
    pub fn flush(&mut self, connection: &Connection) -> Result<Flushed, Error> {
        let flushed = self.run(connection, Scope::Transaction)?;
        self.clear();
        Ok(flushed)
    }

    /// Inserts everything inside the connection's transaction, behind a savepoint: if it fails, the
    /// transaction is as before. Nothing is committed, and the entities stay until
    /// [`clear`](Self::clear), since only the caller knows when the transaction is committed.
    ///
    /// It is never tried again, as what came before it in the transaction may have to be done again.
    ///
    /// The savepoint is called `ordid_flush`.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush), but for the open transaction.
    pub fn flush_in(&mut self, connection: &Connection) -> Result<Flushed, Error> {
        self.run(connection, Scope::Savepoint)
    }

    /// Rows are sent in the order of the stored values, which for `unordered(column)` is not that of
    /// the keys.
    fn rows_mut<E: Entity>(&mut self) -> &mut Vec<E> {
        self.batches.rows_mut_by::<E>(|left, right| {
            let stored = <KeyOf<E> as StoredAs>::Column::sort_key;
            stored(left.to_raw()).cmp(&stored(right.to_raw()))
        })
    }

    fn run(&mut self, connection: &Connection, scope: Scope) -> Result<Flushed, Error> {
        let plan = self.batches.plan::<Oracle>()?;
        let mut tally = Tally::new(&plan);
        let mut flush = match scope {
            Scope::Transaction => Flush::new(plan).with_retry(self.retry).on_one_connection(),
            Scope::Savepoint => Flush::in_transaction(plan),
        };
        let mut open = None;
        let mut failure = None;
        let outcome = loop {
            let done = match flush.step() {
                Step::Begin => {
                    tally.restart();
                    Open::begin(connection, scope).map(|begun| open = Some(begun))
                }
                Step::Send(chunk) => {
                    let started = Instant::now();
                    let sent = self.send(connection, &chunk);
                    if sent.is_ok() {
                        let name = self.batches.table(chunk.table).name();
                        tally.count(name, &chunk, chunk.rows.len(), 0, started.elapsed());
                        let progress = tally.progress(name, &chunk);
                        if let Some(observer) = &mut self.observer {
                            observer(progress);
                        }
                    }
                    sent
                }
                Step::Commit => open.take().map_or(Ok(()), Open::commit),
                Step::Rollback => {
                    drop(open.take());
                    Ok(())
                }
                Step::Sleep(delay) => {
                    sleep(delay);
                    Ok(())
                }
                Step::Done { outcome } => break outcome,
                // There is no other connection to probe on.
                _ => break Outcome::Unknown,
            };
            match done {
                Ok(()) => flush.succeeded(),
                Err(error) => {
                    flush.failed(error.failure());
                    failure = Some(error);
                }
            }
        };
        let retries = flush.retries();
        match (outcome, failure) {
            (Outcome::Nothing | Outcome::Unknown, Some(mut error)) => {
                error.set_retries(retries);
                if outcome == Outcome::Unknown {
                    error.set_unknown();
                }
                Err(error)
            }
            _ => {
                let mut flushed = tally.flushed();
                flushed.retries = retries;
                Ok(flushed)
            }
        }
    }

    /// Inserts the rows of a chunk by one statement, with an array for each column.
    fn send(&self, connection: &Connection, chunk: &Chunk) -> Result<(), Error> {
        let table = self.batches.table(chunk.table);
        let place = |row: Option<usize>| Place {
            key: row.map(|row| self.batches.key_text(chunk, chunk.rows.start + row)),
            ..Place::of(table.name(), chunk)
        };
        let mut binder = Binder::with_capacity(chunk.rows.len());
        self.batches.write(chunk, chunk.rows.clone(), &mut binder);

        let sql = statement(&table, chunk.action);
        // Without this mode the rest of the rows would not be tried, but neither would it be known
        // which one failed.
        let mut batch = connection
            .batch(&sql, chunk.rows.len())
            .with_batch_errors()
            .build()
            .map_err(|error| Error::insert(error, place(None)))?;
        binder
            .append_to(&mut batch)
            .map_err(|(row, error)| Error::bind(error, place(Some(row))))?;
        batch.execute().map_err(|error| {
            let row = failed_row(&error);
            Error::insert(error, place(row))
        })
    }
}

impl fmt::Debug for UnitOfWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.batches.fmt(f)
    }
}

/// What a flush is all or nothing in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Transaction,
    Savepoint,
}

/// A transaction or savepoint of this flush, rolled back unless it is committed: also when a value's
/// own code panics while it is bound.
struct Open<'c> {
    connection: &'c Connection,
    scope: Scope,
    ends_well: bool,
}

impl<'c> Open<'c> {
    fn begin(connection: &'c Connection, scope: Scope) -> Result<Self, Error> {
        if connection.autocommit() {
            return Err(Error::connection(
                "the connection commits by itself after each statement: call \
                 `set_autocommit(false)`",
            ));
        }
        match scope {
            Scope::Transaction => {
                let in_progress = connection.oci_attr::<TransactionInProgress>();
                if in_progress.map_err(Error::begin)? {
                    return Err(Error::connection(
                        "the connection has a transaction open, which would be committed too: \
                         commit it first, or call `flush_in`",
                    ));
                }
            }
            Scope::Savepoint => {
                connection.execute(SAVEPOINT, &[]).map_err(Error::begin)?;
            }
        }
        Ok(Self {
            connection,
            scope,
            ends_well: false,
        })
    }

    fn commit(mut self) -> Result<(), Error> {
        if self.scope == Scope::Transaction {
            self.connection.commit().map_err(Error::commit)?;
        }
        self.ends_well = true;
        Ok(())
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if self.ends_well {
            return;
        }
        // Its own failure says no more: the server drops what is not committed.
        let _ = match self.scope {
            Scope::Transaction => self.connection.rollback(),
            Scope::Savepoint => self.connection.execute(ROLLBACK_TO, &[]).map(drop),
        };
    }
}

/// Writes the statement of an action for one row.
fn statement(table: &Table, action: Action) -> String {
    match action {
        Action::FixUp { parent } => fix_up_statement(table, parent),
        _ => insert_statement(table),
    }
}

/// Writes `UPDATE "NODES" SET "UP" = :2 WHERE "ID" = :1`: values come in the order of the columns.
fn fix_up_statement(table: &Table, parent: usize) -> String {
    let column = table.parents()[parent].column();
    let position = |name| table.columns().iter().position(|column| *column == name);
    let (key, set) = if position(table.key_column()) < position(column) {
        (1, 2)
    } else {
        (2, 1)
    };
    format!(
        "UPDATE {} SET {} = :{set} WHERE {} = :{key}",
        Oracle::quote_table(table.schema(), table.name()),
        Oracle::quote(column),
        Oracle::quote(table.key_column()),
    )
}

/// Writes `INSERT INTO "ORDERS" ("ID", "TOTAL") VALUES (:1, :2)`. All names are quoted.
fn insert_statement(table: &Table) -> String {
    let columns = table.columns();
    let names: Vec<_> = columns.iter().map(|column| Oracle::quote(column)).collect();
    let places: Vec<_> = (1..=columns.len())
        .map(|number| format!(":{number}"))
        .collect();
    format!(
        "INSERT INTO {} ({}) VALUES ({})",
        Oracle::quote_table(table.schema(), table.name()),
        names.join(", "),
        places.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use ordid::{KeyType, OrderedKey, uuid::Uuid};

    use super::*;

    #[derive(KeyType)]
    #[ordid(scheme = uuid_v7, oracle)]
    struct NodeId(Uuid);

    #[derive(OrderedKey)]
    #[ordid(table = "NODES")]
    struct Node {
        #[ordid(parent)]
        up: Option<NodeId>,
        id: NodeId,
    }

    #[test]
    fn a_circle_is_inserted_with_null_and_set_by_key() {
        let ids: [NodeId; 2] = std::array::from_fn(|_| NodeId::generate());
        let mut work = UnitOfWork::new();
        for (id, up) in ids.into_iter().zip(ids.into_iter().rev()) {
            work.add(Node { up: Some(up), id });
        }
        let plan = work.batches.plan::<Oracle>().unwrap();
        let table = work.batches.table(0);
        let sent: Vec<_> = plan
            .chunks()
            .map(|chunk| (statement(&table, chunk.action), chunk.rows))
            .collect();
        assert_eq!(
            sent,
            [
                (
                    r#"INSERT INTO "NODES" ("up", "id") VALUES (:1, :2)"#.to_owned(),
                    0..2
                ),
                (
                    r#"UPDATE "NODES" SET "up" = :1 WHERE "id" = :2"#.to_owned(),
                    0..1
                ),
            ]
        );
    }
}
