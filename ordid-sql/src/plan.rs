//! The order of statements.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use petgraph::{algo::tarjan_scc, graph::DiGraph};

use crate::{
    EngineProfile, Table,
    graph::{self, Rules, Run},
    rows::{List, TypelessRows},
};
use ordid_core::{Error, key::KeyBytes};

/// The most rows of one statement. Larger chunks were not faster on any database measured.
pub const MAX_ROWS: usize = 1000;

/// What a statement does with its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// It inserts them.
    Insert,
    /// It sets a foreign key in which they were inserted with NULL, since the parent was not there
    /// yet.
    FixUp {
        /// Its position in [`Table::parents`].
        parent: usize,
    },
    /// It inserts those of the rows that are not there yet, and updates the others or leaves them alone.
    Upsert {
        /// Which: the position in [`Table::column_sets`].
        set: usize,
        /// What is sent of it. A plan has [`Find`](UpsertStep::Find), which the others follow.
        step: UpsertStep,
    },
    /// It updates all columns of the rows with these keys.
    Update,
    /// It updates some columns of the rows with these keys.
    UpdateColumns {
        /// Which: the position in [`Table::column_sets`].
        set: usize,
    },
    /// It sets a foreign key of rows that will be deleted to NULL, since the parent is deleted
    /// before them.
    Unlink {
        /// Its position in [`Table::parents`].
        parent: usize,
    },
    /// It deletes the rows with these keys.
    Delete,
}

impl Action {
    /// Returns the words that stand in front of the table's name, such as `insert into`.
    pub(crate) const fn verb(self) -> &'static str {
        match self {
            Self::Insert => "insert into",
            Self::Upsert { .. } => "upsert into",
            Self::Update
            | Self::UpdateColumns { .. }
            | Self::FixUp { .. }
            | Self::Unlink { .. } => "update",
            Self::Delete => "delete from",
        }
    }
}

/// What is sent of an upsert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UpsertStep {
    /// The question which rows are there.
    Find,
    /// The question whether the rows that are left alone are committed, where the first may have seen others.
    Confirm,
    /// The rows that are not.
    Insert,
    /// The columns of the others that are written.
    Update,
    /// All rows, by a statement that inserts those that are not there and writes the columns of the others, and does not
    /// say which.
    Write,
}

impl Action {
    /// Whether it is a step of an upsert.
    pub(crate) fn upserts(self) -> bool {
        matches!(self, Self::Upsert { .. })
    }

    /// Whether the database is asked first which rows are there.
    pub(crate) fn asks(self) -> bool {
        let find = UpsertStep::Find;
        matches!(self, Self::Upsert { step, .. } if step == find)
    }

    /// Returns a text for it and the table that it is done with, which another version of the program has as well.
    pub(crate) fn name_in(self, table: &Table) -> String {
        let parent = |parent: usize| table.parents[parent].column();
        let (what, of) = match self {
            Self::Insert => ("insert", ""),
            Self::FixUp { parent: it } => ("fix up", parent(it)),
            Self::Upsert { .. } => ("upsert", ""),
            Self::Update => ("update", ""),
            Self::UpdateColumns { .. } => ("update columns", ""),
            Self::Unlink { parent: it } => ("unlink", parent(it)),
            Self::Delete => ("delete", ""),
        };
        let schema = table.schema.unwrap_or_default();
        format!("{what} {of} {schema} {}\n", table.name)
    }

    /// Whether it sends rows that the database has to insert.
    pub(crate) fn inserts(self) -> bool {
        let step = UpsertStep::Insert;
        self == Self::Insert || matches!(self, Self::Upsert { step: it, .. } if it == step)
    }
}

/// One statement's worth of rows of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// What is done with the rows.
    pub action: Action,
    /// Which table: its position in [`PendingRows::tables`](crate::PendingRows::tables).
    pub table: usize,
    /// Which chunk of this action and table, from 0.
    pub number: usize,
    /// The rows, as positions in the table's list for this action, which is in the order of sending.
    pub rows: Range<usize>,
}

impl Chunk {
    /// Returns its rows, each in a chunk of its own.
    pub fn singly(&self) -> impl Iterator<Item = Self> + '_ {
        self.rows.clone().map(|row| Self {
            rows: row..row + 1,
            ..self.clone()
        })
    }

    /// Returns what is sent of it if it is an upsert.
    pub(crate) fn with_step(&self, step: UpsertStep) -> Self {
        let action = match self.action {
            Action::Upsert { set, .. } => Action::Upsert { set, step },
            other => other,
        };
        Self {
            action,
            ..self.clone()
        }
    }

    /// Whether it is of the same action and table.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (self.action, self.table) == (other.action, other.table)
    }
}

/// Which statements are sent, in which order: see [`PendingRows::plan`](crate::PendingRows::plan).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    tables: Vec<usize>,
    stretches: Vec<Stretch>,
    together: Box<Together>,
}

/// Rows that a transaction has all or none of, in the order of sending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Together {
    /// Those of circles that the database checks at COMMIT.
    deferred: Vec<Inseparable>,
    /// Those of each tenant, if they go tenant by tenant. A tenant may be too large.
    tenants: Vec<Range<usize>>,
}

/// Rows that have to go in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inseparable {
    /// Which of the plan's, counted in the order of sending.
    pub(crate) rows: Range<usize>,
    /// Their tables.
    pub(crate) tables: Vec<usize>,
}

/// Rows of one table that follow each other, in chunks of as many rows.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stretch {
    action: Action,
    table: usize,
    rows: Range<usize>,
    rows_per_chunk: usize,
    /// How many rows there are before it.
    first: usize,
    /// How many chunks there are before it.
    position: usize,
    /// How many of them are of the same action and table.
    number: usize,
    /// When it is its turn if the rows do not go tenant by tenant.
    turn: usize,
}

impl Stretch {
    /// Returns which rows of the plan it has, counted in the order of sending.
    const fn in_plan(&self) -> Range<usize> {
        self.first..self.first + (self.rows.end - self.rows.start)
    }

    fn chunks(&self) -> usize {
        self.rows.len().div_ceil(self.rows_per_chunk)
    }

    fn chunk(&self, number: usize) -> Chunk {
        let start = self.rows.start + number * self.rows_per_chunk;
        let end = self.rows.end.min(start + self.rows_per_chunk);
        Chunk {
            action: self.action,
            table: self.table,
            number: self.number + number,
            rows: start..end,
        }
    }
}

/// Refuses a name that the engine takes in no quotes.
fn check_names(table: &Table, engine: &EngineProfile) -> Result<(), Error> {
    let Some(character) = engine.words.never_in_names else {
        return Ok(());
    };
    let mut names = table
        .schema
        .iter()
        .chain([&table.name])
        .chain(table.columns);
    match names.find(|name| name.contains(character)) {
        None => Ok(()),
        Some(name) => Err(Error::plan(format!(
            "`{name}`: {} takes no `{character}` in a name, even a quoted one: rename it",
            engine.name
        ))),
    }
}

/// The tables that decide in which order all are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Orders {
    /// Also those for whose rows there is only room.
    ByAllTables,
    /// A journal keeps no others, and a process that resumes it has to have the same order.
    ByTablesWithRows,
}

impl Plan {
    /// Plans rows that were sorted, and puts those of circles into the order of sending.
    pub(crate) fn of(
        rows: &mut [&mut dyn TypelessRows],
        engine: &EngineProfile,
        orders: Orders,
    ) -> Result<Self, Error> {
        let rules = Rules {
            engine: engine.name,
            defers: engine.defer.is_some(),
            deletes_rows_of_themselves: engine.deletes_rows_of_themselves,
            tree_deletes: engine.tree_deletes,
        };
        let tables: Vec<Table> = rows.iter().map(|rows| rows.table()).collect();
        for table in &tables {
            check_names(table, engine)?;
        }
        // Not as they were added: so every flush of the same rows goes over the tables in one order.
        let mut by_name: Vec<usize> = (0..tables.len()).collect();
        by_name.sort_by_key(|table| {
            let table = &tables[*table];
            (table.schema, table.name, table.columns)
        });
        let orders = |table: &Table| orders == Orders::ByAllTables || table.all_rows() > 0;
        let mut plan = Self {
            tables: components(&tables, &by_name, orders).concat(),
            ..Self::default()
        };
        let mut fix_ups = Vec::new();
        let is_new = |table: &Table| table.rows > 0 || table.upserts().next().is_some();
        for component in components(&tables, &by_name, is_new) {
            let (first, last) = upserts_of(&component, &tables, rows);
            for table in first {
                plan.push_upserts(&tables, engine, table)?;
            }
            let order = graph::order(&component, &tables, rows, List::Inserts, rules)?;
            plan.push_runs(
                &tables,
                engine,
                Action::Insert,
                order.runs,
                order.defers.then_some(&component),
            )?;
            fix_ups.extend(order.cuts);
            for table in last {
                plan.push_upserts(&tables, engine, table)?;
            }
        }
        for (table, parent, rows) in fix_ups {
            plan.push(&tables, engine, Action::FixUp { parent }, table, 0..rows)?;
        }
        for position in 0..plan.tables.len() {
            let table = plan.tables[position];
            let sets = tables[table].column_sets.iter().enumerate();
            let sets = sets.filter(|(_, it)| it.found_by.is_none());
            let partial = sets.map(|(set, _)| Action::UpdateColumns { set });
            for action in [Action::Update].into_iter().chain(partial) {
                let rows = tables[table].rows_of(action).unwrap_or_default();
                plan.push(&tables, engine, action, table, 0..rows)?;
            }
        }
        let mut deletes = Vec::new();
        let mut unlinks = Vec::new();
        // A table between two others orders these, also if none of its rows is deleted: the database may delete some
        // (`ON DELETE CASCADE`). Of a flush in chunks, only one with rows does.
        let mut with_deletes = Vec::new();
        for together in components(&tables, &by_name, orders) {
            let mut together_by_name = by_name.clone();
            together_by_name.retain(|table| together.contains(table));
            with_deletes.extend(components(&tables, &together_by_name, |it| it.deletes > 0));
        }
        for component in with_deletes.iter().rev() {
            let order = graph::order(component, &tables, rows, List::Deletes, rules)?;
            deletes.push((order.runs, order.defers.then_some(component)));
            unlinks.extend(order.cuts);
        }
        for (table, parent, rows) in unlinks {
            plan.push(&tables, engine, Action::Unlink { parent }, table, 0..rows)?;
        }
        for (runs, deferred) in deletes {
            plan.push_runs(&tables, engine, Action::Delete, runs, deferred)?;
        }
        Ok(plan)
    }

    fn push_upserts(
        &mut self,
        tables: &[Table],
        engine: &EngineProfile,
        table: usize,
    ) -> Result<(), Error> {
        for (set, rows) in tables[table].upserts() {
            let step = UpsertStep::Find;
            let action = Action::Upsert { set, step };
            self.push(tables, engine, action, table, 0..rows)?;
        }
        Ok(())
    }

    /// Adds rows of these tables, which are in a circle that the database checks at COMMIT, or not.
    fn push_runs(
        &mut self,
        tables: &[Table],
        engine: &EngineProfile,
        action: Action,
        runs: Vec<Run>,
        deferred: Option<&Vec<usize>>,
    ) -> Result<(), Error> {
        let start = self.rows();
        for Run { table, rows } in runs {
            self.push(tables, engine, action, table, rows)?;
        }
        if let Some(tables) = deferred {
            let rows = start..self.rows();
            self.together.deferred.push(Inseparable {
                rows,
                tables: tables.clone(),
            });
        }
        Ok(())
    }

    fn push(
        &mut self,
        tables: &[Table],
        engine: &EngineProfile,
        action: Action,
        table: usize,
        rows: Range<usize>,
    ) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let columns = match action {
            // Rows that are not there are sent whole.
            Action::Upsert { .. } => tables[table].columns.len(),
            _ => tables[table].columns_of(action).len(),
        };
        let rows_per_chunk = match engine.max_parameters.checked_div(columns) {
            // Each parameter takes the values of all rows.
            _ if engine.binds_arrays() => engine.max_rows.max(1),
            Some(0) => {
                return Err(Error::plan(format!(
                    "table {} has {columns} columns, more than the {} parameters of a statement",
                    tables[table].name, engine.max_parameters
                )));
            }
            Some(rows) => rows.min(engine.max_rows.max(1)),
            None => engine.max_rows.max(1),
        };
        self.push_stretch(Stretch {
            action,
            table,
            rows,
            rows_per_chunk,
            first: 0,
            position: 0,
            number: 0,
            turn: self.stretches.len(),
        });
        Ok(())
    }

    /// Adds rows, and counts the rows and the chunks before them.
    fn push_stretch(&mut self, stretch: Stretch) {
        // Those of one action and table follow each other but for what lies between, and few
        // tables have more than one.
        let before = self.stretches.iter().rev();
        let before = before
            .take_while(|it| it.action == stretch.action)
            .find(|it| it.table == stretch.table);
        self.stretches.push(Stretch {
            first: self.rows(),
            position: self.len(),
            number: before.map_or(0, |it| it.number + it.chunks()),
            ..stretch
        });
    }

    /// Returns the tables in the order of their foreign keys, parents first, as positions in
    /// [`PendingRows::tables`](crate::PendingRows::tables). It is the same however they came in.
    pub fn tables(&self) -> impl Iterator<Item = usize> + '_ {
        self.tables.iter().copied()
    }

    /// Returns all chunks in the order in which they are sent.
    pub fn chunks(&self) -> impl Iterator<Item = Chunk> + '_ {
        self.stretches
            .iter()
            .flat_map(|it| (0..it.chunks()).map(|number| it.chunk(number)))
    }

    /// Returns the chunks before those of which rows are in `failed`, and these. What failed may be more
    /// than one chunk.
    pub fn towards(&self, failed: &Chunk) -> (Vec<Chunk>, Vec<Chunk>) {
        let is_suspected = |chunk: &Chunk| {
            chunk.is_like(failed)
                && chunk.rows.start < failed.rows.end
                && chunk.rows.end > failed.rows.start
        };
        let mut before: Vec<_> = self
            .chunks()
            .take_while(|chunk| !chunk.is_like(failed) || chunk.rows.start < failed.rows.end)
            .collect();
        // Chunks of other tables that follow are not sent: they may refer to rows that failed.
        let last = before.iter().rposition(is_suspected);
        before.truncate(last.map_or(0, |last| last + 1));
        let first = before.iter().position(is_suspected);
        let suspected = before.split_off(first.unwrap_or(before.len()));
        (before, suspected)
    }

    /// Returns what is done with rows of which table, in the order in which it is begun: the table
    /// as its position in [`PendingRows::tables`](crate::PendingRows::tables). One may come more than once.
    pub fn actions(&self) -> impl Iterator<Item = (Action, usize)> + '_ {
        self.stretches.iter().map(|it| (it.action, it.table))
    }

    /// Returns the number of chunks.
    pub fn len(&self) -> usize {
        self.stretches
            .last()
            .map_or(0, |last| last.position + last.chunks())
    }

    /// Returns the number of rows of all chunks: one that is inserted with NULL and fixed up counts twice.
    pub fn rows(&self) -> usize {
        self.stretches.last().map_or(0, |last| last.in_plan().end)
    }

    /// Returns whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// Returns whether the database has to be told to check constraints at COMMIT, those that were
    /// declared `DEFERRABLE`: before the first chunk.
    pub fn defers(&self) -> bool {
        !self.together.deferred.is_empty()
    }

    /// Returns the part of the plan that sends these rows, counted in the order of sending.
    pub(crate) fn part(&self, rows: Range<usize>) -> Self {
        let mut part = Self {
            tables: self.tables.clone(),
            ..Self::default()
        };
        for stretch in self.stretches_of(&rows) {
            let here = stretch.in_plan();
            let start = rows.start.max(here.start) - here.start;
            let end = rows.end.min(here.end) - here.start;
            if start >= end {
                continue;
            }
            let (first, position) = (part.rows(), part.len());
            part.stretches.push(Stretch {
                rows: stretch.rows.start + start..stretch.rows.start + end,
                first,
                position,
                number: stretch.number + start.div_ceil(stretch.rows_per_chunk),
                ..stretch.clone()
            });
        }
        let deferred = &self.together.deferred;
        let begin = deferred.partition_point(|it| it.rows.end <= rows.start);
        let deferred = deferred[begin..].iter();
        let deferred = deferred.take_while(|it| it.rows.start < rows.end);
        part.together.deferred = deferred.cloned().collect();
        part
    }

    /// Returns the stretches that have some of these rows, counted in the order of sending.
    fn stretches_of(&self, rows: &Range<usize>) -> impl Iterator<Item = &Stretch> {
        let begin = (self.stretches).partition_point(|it| it.in_plan().end <= rows.start);
        let end = rows.end;
        let from = self.stretches[begin..].iter();
        from.take_while(move |it| it.first < end)
    }

    /// Returns the rows that have to go in one transaction, each list by itself.
    pub(crate) fn deferred(&self) -> &[Inseparable] {
        &self.together.deferred
    }

    /// Returns the rows that would no longer go in one transaction if one ended before this row.
    pub(crate) fn inseparable(&self, row: usize) -> Option<&Inseparable> {
        let deferred = &self.together.deferred;
        let number = deferred.partition_point(|it| it.rows.end <= row);
        deferred.get(number).filter(|it| it.rows.start < row)
    }

    /// Returns the end of the last whole statement among these rows, the first of which begins a statement; the end of the
    /// rows if there is none.
    pub(crate) fn statement_end(&self, start: usize, end: usize) -> usize {
        let number = (self.stretches).partition_point(|it| it.in_plan().end <= end);
        let Some(stretch) = self.stretches.get(number) else {
            return end;
        };
        let first = stretch.first.max(start);
        let end_of_whole = end - (end - first) % stretch.rows_per_chunk;
        if end_of_whole > start {
            end_of_whole
        } else {
            end
        }
    }

    /// Returns whether nothing but new rows is written, so that any one of their keys tells whether
    /// the transaction was committed.
    pub fn only_inserts(&self) -> bool {
        self.actions()
            .all(|(action, _)| matches!(action, Action::Insert | Action::FixUp { .. }))
    }

    /// Returns the chunk at a position.
    pub(crate) fn chunk(&self, position: usize) -> Option<Chunk> {
        let stretch = self.stretches_from(position).first()?;
        let number = position - stretch.position;
        (number < stretch.chunks()).then(|| stretch.chunk(number))
    }

    /// Returns the stretch that has a position, and those after it.
    fn stretches_from(&self, position: usize) -> &[Stretch] {
        // Chunks are many: no list of them is kept.
        let after = self.stretches.partition_point(|it| it.position <= position);
        &self.stretches[after.saturating_sub(1)..]
    }

    /// Returns how many rows from the chunk at a position on are of its action and table, with no others in between.
    pub(crate) fn rows_together(&self, position: usize) -> usize {
        let Some(first) = self.chunk(position) else {
            return 0;
        };
        let mut end = first.rows.start;
        for (number, stretch) in self.stretches_from(position).iter().enumerate() {
            let follows = number == 0 || stretch.rows.start == end;
            if (stretch.action, stretch.table) != (first.action, first.table) || !follows {
                break;
            }
            end = stretch.rows.end;
        }
        end - first.rows.start
    }
}

/// Returns the tables with upserted rows: those whose rows go before the inserted ones, and those whose rows go behind.
///
/// In a circle the inserted rows may refer to the upserted ones, or these to the inserted ones. What is seen here is the second:
/// the first may also be a row that the database had before.
fn upserts_of(
    component: &[usize],
    tables: &[Table],
    rows: &[&mut dyn TypelessRows],
) -> (Vec<usize>, Vec<usize>) {
    let has_upserts = |table: &usize| tables[*table].upserts().next().is_some();
    let mut first: Vec<usize> = component.iter().copied().filter(has_upserts).collect();
    let refers_to_itself = |table: &usize| tables[*table].refers_to(&tables[*table]);
    if first.is_empty() || component.len() == 1 && !refers_to_itself(&component[0]) {
        return (Vec::new(), first);
    }
    let mut last = Vec::new();
    let inserted = component.iter().filter(|table| tables[**table].rows > 0);
    let inserted = inserted.map(|table| {
        let keys = rows[*table].keys(List::Inserts);
        let is_inserted: IsRow = Box::new(move |key| keys.find(key, &mut 0).is_some());
        (*table, is_inserted)
    });
    let mut behind: Vec<(usize, IsRow)> = inserted.collect();
    while !behind.is_empty() {
        let refers = |table: &usize| {
            let mut refers = false;
            rows[*table].upserted_parents(&mut |parent, key| {
                let parent = &tables[*table].parents[parent];
                refers |= behind.iter().any(|(target, is_row)| {
                    parent.is(tables[*target].entity, tables[*target].key) && is_row(&key)
                });
            });
            refers
        };
        let (moved, stay): (Vec<_>, Vec<_>) = first.into_iter().partition(refers);
        // A table that refers to upserted rows which go behind goes behind them.
        let upserted = moved.iter().map(|table| {
            let keys = rows[*table].upserted_keys();
            let is_upserted: IsRow = Box::new(move |key| keys.contains(key));
            (*table, is_upserted)
        });
        behind = upserted.collect();
        last.extend(moved);
        first = stay;
    }
    (
        parents_first(first, tables, rows),
        parents_first(last, tables, rows),
    )
}

/// Orders tables with upserted rows so that a table goes behind the others to whose upserted rows it refers. Those that refer to
/// each other stay as they are.
fn parents_first(of: Vec<usize>, tables: &[Table], rows: &[&mut dyn TypelessRows]) -> Vec<usize> {
    if of.len() < 2 {
        return of;
    }
    let keys: Vec<_> = of
        .iter()
        .map(|it| (*it, rows[*it].upserted_keys()))
        .collect();
    let parents_of = |table: usize| {
        let mut found = HashSet::new();
        rows[table].upserted_parents(&mut |parent, key| {
            let parent = &tables[table].parents[parent];
            let targets = keys.iter().filter(|(target, keys)| {
                *target != table
                    && parent.is(tables[*target].entity, tables[*target].key)
                    && keys.contains(&key)
            });
            found.extend(targets.map(|(target, _)| *target));
        });
        found
    };
    let parents: HashMap<_, _> = of.iter().map(|it| (*it, parents_of(*it))).collect();
    by_references(of, |from, to| parents[&from].contains(&to)).concat()
}

/// Says whether a key is that of a row of some rows.
type IsRow = Box<dyn Fn(&KeyBytes) -> bool>;

/// Returns the tables that `have` rows in the order of their foreign keys, parents first; those that
/// refer to each other in a circle together, by name.
fn components(
    tables: &[Table],
    by_name: &[usize],
    have: impl Fn(&Table) -> bool,
) -> Vec<Vec<usize>> {
    let found = by_name.iter().copied();
    let found = found.filter(|table| have(&tables[*table])).collect();
    by_references(found, |from, to| tables[from].refers_to(&tables[to]))
}

/// Returns tables in the order of these references, parents first; those that refer to each other in a circle together, in the
/// order that they had.
fn by_references(of: Vec<usize>, refers: impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let mut graph = DiGraph::<usize, ()>::new();
    let nodes: Vec<_> = of.into_iter().map(|table| graph.add_node(table)).collect();
    // Edges go from child to parent: Tarjan's components then come parents first.
    for from in &nodes {
        for to in &nodes {
            if from != to && refers(graph[*from], graph[*to]) {
                graph.add_edge(*from, *to, ());
            }
        }
    }
    tarjan_scc(&graph)
        .into_iter()
        .map(|mut component| {
            component.sort_unstable();
            component.into_iter().map(|node| graph[node]).collect()
        })
        .collect()
}

#[cfg(test)]
impl Plan {
    /// A plan of rows of one table, some of which are left out.
    pub(crate) fn with_a_gap(
        action: Action,
        rows: [Range<usize>; 2],
        rows_per_chunk: usize,
    ) -> Self {
        let mut plan = Self::default();
        for rows in rows {
            plan.push_stretch(Stretch {
                action,
                table: 0,
                rows,
                rows_per_chunk,
                first: 0,
                position: 0,
                number: 0,
                turn: 0,
            });
        }
        plan
    }

    /// A plan of these rows, in chunks of at most so many.
    pub(crate) fn of_rows(rows: &[(Action, usize, usize)], rows_per_chunk: usize) -> Self {
        let mut plan = Self::default();
        for (action, table, rows) in rows {
            plan.tables.push(*table);
            plan.push_stretch(Stretch {
                action: *action,
                table: *table,
                rows: 0..*rows,
                rows_per_chunk,
                first: 0,
                position: 0,
                number: 0,
                turn: plan.stretches.len(),
            });
        }
        plan
    }
}

pub(crate) mod tenants;

#[cfg(test)]
mod tests;
