//! What was written, in the same words for every adapter.

use std::{
    any::TypeId,
    collections::HashMap,
    time::{Duration, Instant},
};

use crate::{Action, Chunk, NotBulk, Plan, Table, UpsertStep, Upserted};
use ordid_core::{
    entity::{KeyOf, OrderedKey},
    key::KeyBytes,
};

/// What a flush wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flushed {
    /// The tables in the order in which they were written first.
    pub tables: Vec<FlushedTable>,
    /// How many times the flush was begun anew, with the same keys. What was sent in vain is not
    /// counted elsewhere.
    pub retries: u32,
    /// The time of the whole flush: retries, delays and COMMIT included.
    pub elapsed: Duration,
    /// What became of each row that was upserted, by its type and the key that it was given.
    pub(crate) upserted: HashMap<(TypeId, KeyBytes), Upserted>,
}

/// What a flush wrote into one table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlushedTable {
    /// The table's name.
    pub table: &'static str,
    /// Its number in the unit of work: tables of several schemas may have one name.
    pub(crate) number: usize,
    /// The rows inserted.
    pub rows: usize,
    /// The rows updated.
    pub updated: usize,
    /// The rows deleted.
    pub deleted: usize,
    /// The rows that were there already, and were to be left alone then.
    pub left_alone: usize,
    /// The rows that were inserted or updated by statements that do not say which:
    /// [`OnConflict::unreported`](crate::OnConflict::unreported).
    pub unreported: usize,
    /// How many of the inserted rows went by the engine's bulk command, `COPY` or a bulk load: the
    /// adapter's `flush` says when.
    pub bulk: usize,
    /// Why the other inserted rows did not: the first reason, if there are several. `None` if all went in bulk, and if
    /// none were inserted.
    pub not_bulk: Option<NotBulk>,
    /// The statements that it took, and commands that took many rows.
    pub statements: usize,
    /// The time spent on them, binding included.
    pub elapsed: Duration,
}

/// The database has accepted the rows of a chunk; nothing is committed yet.
///
/// The database accepts the rows of a bulk command, such as `COPY`, all at once when the command ends. The chunks of
/// the command are reported one after the other then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The table's name.
    pub table: &'static str,
    /// The rows of this chunk.
    pub rows: usize,
    /// The number of rows accepted so far, over all tables. If a flush is tried again, it begins at 0 again, and in
    /// chunks at the rows of the chunks before.
    pub done: usize,
    /// The rows to send. A row that is inserted with NULL and completed by an update counts twice, as
    /// does one whose foreign key is set to NULL before it is deleted.
    pub total: usize,
}

impl Flushed {
    /// Returns the number of rows inserted, over all tables.
    pub fn rows(&self) -> usize {
        self.tables.iter().map(|table| table.rows).sum()
    }

    /// Returns the number of rows updated, over all tables.
    pub fn updated(&self) -> usize {
        self.tables.iter().map(|table| table.updated).sum()
    }

    /// Returns the number of rows deleted, over all tables.
    pub fn deleted(&self) -> usize {
        self.tables.iter().map(|table| table.deleted).sum()
    }

    /// Returns the number of rows that were there and were left alone, over all tables.
    pub fn left_alone(&self) -> usize {
        self.tables.iter().map(|table| table.left_alone).sum()
    }

    /// Returns the number of rows that were upserted by statements that do not say what became of each row, over all tables:
    /// [`OnConflict::unreported`](crate::OnConflict::unreported).
    pub fn unreported(&self) -> usize {
        self.tables.iter().map(|table| table.unreported).sum()
    }

    /// Returns what became of a row that was upserted, by the key that it was given. `None` if there was none, if it was
    /// [not to be reported](crate::OnConflict::unreported), and if an earlier run of the program wrote it, of which a journal
    /// knows no more than that it is written.
    pub fn upserted<E: OrderedKey + 'static>(&self, key: KeyOf<E>) -> Option<Upserted> {
        let row = (TypeId::of::<E>(), KeyBytes::of(key));
        self.upserted.get(&row).copied()
    }
}

impl Flushed {
    /// Adds what a later chunk of the same unit of work wrote. The time is that of the whole flush, and not added.
    pub(crate) fn add(&mut self, later: Self) {
        for table in later.tables {
            match self.tables.iter_mut().find(|it| it.number == table.number) {
                Some(before) => before.add(table),
                None => self.tables.push(table),
            }
        }
        self.retries += later.retries;
        self.upserted.extend(later.upserted);
    }
}

impl FlushedTable {
    fn add(&mut self, later: Self) {
        self.rows += later.rows;
        self.updated += later.updated;
        self.deleted += later.deleted;
        self.left_alone += later.left_alone;
        self.unreported += later.unreported;
        self.bulk += later.bulk;
        self.not_bulk = self.not_bulk.or(later.not_bulk);
        self.statements += later.statements;
        self.elapsed += later.elapsed;
    }
}

/// Counts what an attempt sends. For adapters.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct Tally {
    flushed: Flushed,
    /// Which table each of the tables counted is.
    tables: Vec<usize>,
    done: usize,
    /// The rows that were sent before.
    before: usize,
    total: usize,
    started: Instant,
}

impl Tally {
    /// Begins to count what a plan's execution sends.
    pub fn new(plan: &Plan) -> Self {
        Self {
            flushed: Flushed::default(),
            tables: Vec::new(),
            done: 0,
            before: 0,
            total: plan.rows(),
            started: Instant::now(),
        }
    }

    /// Returns what a plan's execution has written if it was committed. Nobody has seen what became of upserts.
    pub(crate) fn of_all(plan: &Plan, tables: &[Table]) -> Flushed {
        let mut tally = Self::new(plan);
        for chunk in plan.chunks() {
            let name = tables[chunk.table].name();
            tally.count(name, &chunk, chunk.rows.len(), 0, Duration::ZERO);
        }
        for table in &mut tally.flushed.tables {
            table.statements = 0;
        }
        tally.flushed
    }

    /// Says that so many rows of so many were sent before, by other transactions.
    pub(crate) fn goes_on(&mut self, before: usize, total: usize) {
        (self.done, self.before, self.total) = (before, before, total);
    }

    /// Whether earlier chunks have committed rows.
    pub(crate) const fn goes_on_behind_others(&self) -> bool {
        self.before > 0
    }

    /// Forgets what was sent: an attempt begins.
    pub fn restart(&mut self) {
        self.flushed.tables.clear();
        self.flushed.upserted.clear();
        self.tables.clear();
        self.done = self.before;
    }

    /// Counts a statement, or a bulk command, with rows of this chunk and those before it; `bulk` of
    /// them by the command.
    pub fn count(
        &mut self,
        name: &'static str,
        chunk: &Chunk,
        rows: usize,
        bulk: usize,
        elapsed: Duration,
    ) {
        let table = self.table(name, chunk);
        match chunk.action {
            Action::Insert => table.rows += rows,
            Action::Update | Action::UpdateColumns { .. } => table.updated += rows,
            Action::Delete => table.deleted += rows,
            Action::Upsert {
                step: UpsertStep::Write,
                ..
            } => table.unreported += rows,
            // Rows that are counted as inserted or deleted, or by `upserted`.
            Action::FixUp { .. } | Action::Unlink { .. } | Action::Upsert { .. } => {}
        }
        table.bulk += bulk;
        table.statements += 1;
        table.elapsed += elapsed;
    }

    /// Counts rows of an upsert, of which the same has become.
    pub(crate) fn upserted(
        &mut self,
        name: &'static str,
        chunk: &Chunk,
        outcome: Upserted,
        keys: impl ExactSizeIterator<Item = (TypeId, KeyBytes)>,
    ) {
        let table = self.table(name, chunk);
        *match outcome {
            Upserted::Inserted => &mut table.rows,
            Upserted::Updated => &mut table.updated,
            Upserted::LeftAlone => &mut table.left_alone,
        } += keys.len();
        let keys = keys.map(|key| (key, outcome));
        self.flushed.upserted.extend(keys);
    }

    /// Returns what was counted for a chunk's table.
    fn table(&mut self, name: &'static str, chunk: &Chunk) -> &mut FlushedTable {
        let position = self.tables.iter().position(|it| *it == chunk.table);
        let position = position.unwrap_or_else(|| {
            self.tables.push(chunk.table);
            self.flushed.tables.push(FlushedTable {
                table: name,
                number: chunk.table,
                ..FlushedTable::default()
            });
            self.tables.len() - 1
        });
        &mut self.flushed.tables[position]
    }

    /// Says why rows of a chunk that was counted went by a statement, and not in bulk.
    pub fn not_bulk(&mut self, chunk: &Chunk, reason: NotBulk) {
        let position = self.tables.iter().position(|it| *it == chunk.table);
        if let Some(position) = position
            && chunk.action.inserts()
        {
            let table = &mut self.flushed.tables[position];
            table.not_bulk.get_or_insert(reason);
        }
    }

    /// Counts more statements for a chunk that [`count`](Self::count) was told of: it went row by row.
    pub fn add_statements(&mut self, chunk: &Chunk, more: usize) {
        let position = self.tables.iter().position(|it| *it == chunk.table);
        if let Some(position) = position {
            self.flushed.tables[position].statements += more;
        }
    }

    /// Counts a chunk that was sent as a whole, and tells how far the flush is.
    pub fn progress(&mut self, name: &'static str, chunk: &Chunk) -> Progress {
        self.done += chunk.rows.len();
        Progress {
            table: name,
            rows: chunk.rows.len(),
            done: self.done,
            total: self.total,
        }
    }

    /// Returns the time since the flush began.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns what was counted in this attempt.
    pub fn flushed(&self) -> Flushed {
        Flushed {
            elapsed: self.elapsed(),
            ..self.flushed.clone()
        }
    }
}
