//! Finds out whether a flush that only inserts can do without a marker row.
//!
//! A table is protected if a unique index refuses its rows a second time, and no trigger replaces their values. If a
//! flush only inserts, one row of a protected table is enough to send the flush again safely, since all rows are in one
//! transaction. If nobody else writes keys of that table, the key of that row also shows whether the flush was committed.
//! A flush without such a row needs a marker row, which has to be written in the same transaction. So the catalog is asked
//! before the first attempt.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::no_values;
use crate::{
    Action, Chunk, DriverError, Failure, FlushError, PendingRows, Plan,
    spi::{Begin, FlushConnection, FlushTransaction, RowBinder},
    text::{TableNames, Writer},
};

/// The tables that are protected according to the catalog. They are remembered so that not every flush has to ask.
///
/// This is only a hint: a table may have changed since, or a table in another database may have the same name. So the
/// catalog is asked again after a lost COMMIT, and the outcome stays unknown if no table is protected.
#[derive(Debug, Default)]
pub(crate) struct ProtectedTables {
    known: Mutex<BTreeSet<u64>>,
    /// Whether every table counts as known, as if the program had flushed each of them before.
    #[cfg(test)]
    knows_all: bool,
}

/// The protected tables that this process knows.
pub(crate) static OF_PROCESS: ProtectedTables = ProtectedTables {
    known: Mutex::new(BTreeSet::new()),
    #[cfg(test)]
    knows_all: false,
};

/// The largest number of tables that are remembered. A program that makes up table names must not fill the memory.
const MAX_KNOWN: usize = 4_096;

impl ProtectedTables {
    #[cfg(test)]
    pub(super) fn of_all() -> &'static Self {
        static ALL: ProtectedTables = ProtectedTables {
            known: Mutex::new(BTreeSet::new()),
            knows_all: true,
        };
        &ALL
    }

    /// Returns the first chunk of a table that is known and has keys which nobody else writes.
    fn first<B: RowBinder>(
        &self,
        rows: &PendingRows<B>,
        writer: Writer<'_>,
        plan: &Plan,
    ) -> Option<Chunk> {
        with_own_keys(rows, writer, plan).find(|it| self.knows(inserted(rows, writer, it).id()))
    }

    /// Returns the chunk whose first row tells by its key that the flush was committed, if there is one. A table that is
    /// known goes first, as a trigger may have replaced the keys of others.
    pub(super) fn telling<B: RowBinder>(
        &self,
        rows: &PendingRows<B>,
        writer: Writer<'_>,
        plan: &Plan,
    ) -> Option<Chunk> {
        let known = self.first(rows, writer, plan);
        known.or_else(|| with_own_keys(rows, writer, plan).next())
    }

    /// Returns whether a flush that only inserts, and has [keys that nobody else writes](can_tell), has to ask the catalog
    /// first.
    pub(super) fn has_to_ask<B: RowBinder>(
        &self,
        rows: &PendingRows<B>,
        writer: Writer<'_>,
        plan: &Plan,
    ) -> bool {
        writer.engine.words.is_protected.is_some() && self.first(rows, writer, plan).is_none()
    }

    /// Asks the catalog whether one of the tables whose keys nobody else writes is protected. It does so in a separate
    /// transaction, since a query that the server refuses would make the flush's transaction unusable. If the catalog
    /// cannot be asked, this returns true: the flush is just as safe without a marker row, but its outcome may stay
    /// unknown.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection cannot be used, or if the flush may succeed another time. The second value
    /// says whether the connection must not be used again.
    pub(super) async fn ask<C: FlushConnection>(
        &self,
        rows: &PendingRows<C::Binder>,
        connection: &mut C,
        writer: Writer<'_>,
        plan: &Plan,
    ) -> Result<bool, (FlushError<C::Error>, bool)> {
        let mut open = connection
            .begin(Begin::PLAIN)
            .await
            .map_err(|error| (error, false))?;
        let answer = self.asked(rows, &mut open, writer, plan).await;
        let is_lost = matches!(&answer, Err(error) if error.failure == Failure::Lost);
        let rolled_back = open.rollback(is_lost).await;
        match (answer, rolled_back) {
            (Err(error), rolled_back)
                if matches!(error.failure, Failure::Transient | Failure::Lost) =>
            {
                Err((FlushError::begin(error), rolled_back.is_err()))
            }
            (_, Err(error)) => Err((FlushError::begin(error), true)),
            (Err(_) | Ok(None), Ok(())) => Ok(true),
            // A flush into another database may have changed the memory in the meantime.
            (Ok(Some(found)), Ok(())) => {
                let mut own = with_own_keys(rows, writer, plan);
                Ok(own.any(|it| found.contains(&inserted(rows, writer, &it).id())))
            }
        }
    }

    /// Returns whether one of the tables is protected according to the catalog, or true if the engine's catalog is not
    /// asked. The query looks only at the first row of each table.
    pub(super) async fn is_one<T: FlushTransaction>(
        &self,
        rows: &PendingRows<T::Binder>,
        open: &mut T,
        writer: Writer<'_>,
        plan: &Plan,
    ) -> Result<bool, DriverError<T::Error>> {
        let found = self.asked(rows, open, writer, plan).await?;
        Ok(found.is_none_or(|it| !it.is_empty()))
    }

    /// Returns the tables that are protected according to the catalog, and remembers them; `None` if the engine's catalog
    /// is not asked.
    async fn asked<T: FlushTransaction>(
        &self,
        rows: &PendingRows<T::Binder>,
        open: &mut T,
        writer: Writer<'_>,
        plan: &Plan,
    ) -> Result<Option<BTreeSet<u64>>, DriverError<T::Error>> {
        let tables: Vec<_> = firsts(plan).map(|it| inserted(rows, writer, &it)).collect();
        let asked = tables.iter().map(|it| (&it.names, &*it.sent));
        let Some(query) = writer.are_protected(asked) else {
            return Ok(None);
        };
        if tables.is_empty() {
            return Ok(Some(BTreeSet::new()));
        }
        let answer = open.read(&query, no_values(rows)).await?;
        let is_protected = |number: usize| answer.iter().any(|it| it.text.parse() == Ok(number));
        let mut known = self.known();
        let mut found = BTreeSet::new();
        for (number, table) in tables.iter().enumerate() {
            if !is_protected(number) {
                known.remove(&table.id());
                continue;
            }
            found.insert(table.id());
            remember(&mut known, table.id());
        }
        Ok(Some(found))
    }

    fn knows(&self, id: u64) -> bool {
        #[cfg(test)]
        if self.knows_all {
            return true;
        }
        self.known().contains(&id)
    }

    fn known(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn remember(known: &mut BTreeSet<u64>, id: u64) {
    if known.len() >= MAX_KNOWN {
        known.clear();
    }
    known.insert(id);
}

/// A table that rows are inserted into.
struct Inserted<'a> {
    dialect: &'a str,
    names: TableNames,
    /// The positions of the columns of the first row that are sent.
    sent: Vec<usize>,
}

impl Inserted<'_> {
    /// Returns a hash of everything that the catalog's answer depends on. If two tables have the same hash, the hint
    /// may be wrong.
    fn id(&self) -> u64 {
        let names = |columns: &[usize], hasher: &mut DefaultHasher| {
            columns.len().hash(hasher);
            for column in columns {
                self.names.columns[*column].hash(hasher);
            }
        };
        let mut hasher = DefaultHasher::new();
        (self.dialect, &self.names.table).hash(&mut hasher);
        names(&self.names.keys, &mut hasher);
        names(&self.sent, &mut hasher);
        hasher.finish()
    }
}

/// Returns whether the key of an inserted row can show that the flush was committed.
pub(super) fn can_tell<B: RowBinder>(
    rows: &PendingRows<B>,
    writer: Writer<'_>,
    plan: &Plan,
) -> bool {
    with_own_keys(rows, writer, plan).next().is_some()
}

/// Returns the chunks with the first rows of the tables whose keys nobody else writes.
fn with_own_keys<'a, B: RowBinder>(
    rows: &'a PendingRows<B>,
    writer: Writer<'a>,
    plan: &'a Plan,
) -> impl Iterator<Item = Chunk> {
    let counts = writer.engine.counts_inserts;
    firsts(plan).filter(move |it| counts && rows.table(it.table).has_own_keys())
}

/// Returns the chunk with the first row of each table that rows are inserted into, in the order in which they are written.
fn firsts(plan: &Plan) -> impl Iterator<Item = Chunk> {
    let mut seen = BTreeSet::new();
    plan.chunks()
        .filter(move |it| it.action == Action::Insert && seen.insert(it.table))
}

/// Describes the table of which this chunk has the first row.
fn inserted<'a, B: RowBinder>(
    rows: &PendingRows<B>,
    writer: Writer<'a>,
    first: &Chunk,
) -> Inserted<'a> {
    let table = rows.table(first.table);
    Inserted {
        dialect: writer.engine.dialect(),
        names: B::names(rows.entity(first.table), &table, writer.engine),
        sent: sent_columns(rows, first, table.columns().len()),
    }
}

/// Returns the positions of the columns that are sent for the first row of a chunk.
fn sent_columns<B: RowBinder>(rows: &PendingRows<B>, chunk: &Chunk, columns: usize) -> Vec<usize> {
    if !B::HAS_RUNS {
        return (0..columns).collect();
    }
    let first = chunk.rows.start;
    let mut values = B::with_room(rows.entity(chunk.table), 1, columns);
    values.begin_rows(chunk.action);
    rows.write(chunk, first..first + 1, &mut values);
    let run = values.into_runs(1).into_iter().next();
    run.and_then(|run| run.columns)
        .unwrap_or_else(|| (0..columns).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that makes up table names does not fill the memory.
    #[test]
    fn a_process_remembers_so_many_tables() {
        let tables = ProtectedTables::default();
        let table = |number: usize| Inserted {
            dialect: "",
            names: TableNames {
                table: number.to_string(),
                columns: vec!["id".to_owned(), "at".to_owned()],
                keys: vec![0],
                version: None,
                around: Vec::new(),
                returning: Vec::new(),
            },
            sent: vec![0],
        };
        for number in 0..3 * MAX_KNOWN {
            remember(&mut tables.known(), table(number).id());
        }
        let len = tables.known().len();
        assert!((1..=MAX_KNOWN).contains(&len), "{len}");
        assert!(tables.knows(table(3 * MAX_KNOWN - 1).id()));
        // The answer depends on these, too.
        let last = table(0);
        let others = [
            Inserted {
                sent: vec![0, 1],
                ..table(0)
            },
            Inserted {
                dialect: "x",
                ..table(0)
            },
        ];
        assert!(others.iter().all(|it| it.id() != last.id()));
        assert_eq!(table(0).id(), last.id());
    }
}
