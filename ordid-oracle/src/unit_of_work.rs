//! The unit of work: new entities of many types, inserted together.

use std::{
    fmt,
    time::{Duration, Instant},
};

use oracle::{Connection, oci_attr::TransactionInProgress};
use ordid_core::{
    EnsuredKey, KeyOf, KeyType,
    entity::SchemeOf,
    generator::Generator,
    storage::{Dialect, Stores, dialect::Oracle},
    unit_of_work::{Action, Batches, Chunk, Flush, Generators, Step, Table},
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
    /// The statements that it took, each with an array of rows.
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

impl UnitOfWork {
    /// Makes an empty unit of work.
    pub fn new() -> Self {
        Self::default()
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

    /// Inserts everything in one transaction of its own, and is empty afterwards. If it fails,
    /// nothing is written and nothing is lost: the same entities with the same keys are there to be
    /// flushed again.
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
        let mut flush = Flush::new(plan);
        let mut flushed = Flushed::default();
        let mut current = None;
        let mut open = None;
        let mut failure = None;
        loop {
            let outcome = match flush.step() {
                Step::Begin => Open::begin(connection, scope).map(|begun| open = Some(begun)),
                Step::Send(chunk) => {
                    if current.replace(chunk.table) != Some(chunk.table) {
                        flushed.begin(self.batches.table(chunk.table).name());
                    }
                    let started = Instant::now();
                    let sent = self.send(connection, &chunk);
                    flushed.count(chunk.rows.len(), started.elapsed());
                    sent
                }
                Step::Commit => open.take().map_or(Ok(()), Open::commit),
                Step::Rollback => {
                    drop(open.take());
                    Ok(())
                }
                // The one step that is left: it is over.
                _ => return failure.map_or(Ok(flushed), Err),
            };
            match outcome {
                Ok(()) => flush.succeeded(),
                Err(error) => {
                    failure = Some(error);
                    flush.failed();
                }
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

impl Flushed {
    fn begin(&mut self, table: &'static str) {
        self.tables.push(FlushedTable {
            table,
            rows: 0,
            statements: 0,
            elapsed: Duration::ZERO,
        });
    }

    /// Counts a statement for the table that was begun last.
    fn count(&mut self, rows: usize, elapsed: Duration) {
        if let Some(table) = self.tables.last_mut() {
            table.rows += rows;
            table.statements += 1;
            table.elapsed += elapsed;
        }
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
    let (key, set) = match position(table.key_column()) < position(column) {
        true => (1, 2),
        false => (2, 1),
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
