//! The order of the rows of one entity type: what is inserted, updated and deleted.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Range,
};

use crate::{
    Action, Columns, RowEnd, RowSink, Table, UpsertStep,
    entities::{Conflict, Entities, Kept, Order, place},
    graph,
};
use ordid_core::{Error, entity::Cell, key::KeyBytes};

/// The lists of rows whose order depends on foreign keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    Inserts,
    Deletes,
}

impl List {
    const fn kept(self) -> Kept {
        match self {
            Self::Inserts => Kept::Inserts,
            Self::Deletes => Kept::Deletes,
        }
    }
}

/// The foreign keys of a table in which rows are cut off from their parents, by position, with the
/// rows, as positions in the order of sending.
pub(crate) type Cuts = BTreeMap<usize, Vec<usize>>;

/// Rows as planning sees them. They are known by their position: that of the stored key, until
/// [`arrange`](Self::arrange) has put them into another order.
pub(crate) trait TypelessRows {
    fn table(&self) -> Table;

    /// Puts each list into the order of the stored keys, and looks for keys that come twice.
    fn sort(&mut self) -> Result<(), Error>;

    /// Returns whether no row that is inserted refers to a later one of its own table.
    fn are_parents_first(&self) -> bool;

    /// Returns the keys of a list, to find its rows by them.
    fn keys(&self, list: List) -> Box<dyn FindRow>;

    /// Shows the foreign keys of a list: the row, the foreign key's position, and the parent's key.
    fn parents(&self, list: List, visit: &mut dyn FnMut(usize, usize, KeyBytes));

    /// Returns the keys of rows that are upserted.
    fn upserted_keys(&self) -> HashSet<KeyBytes>;

    /// Shows the foreign keys of rows that are upserted: the foreign key's position, and the parent's key.
    fn upserted_parents(&self, visit: &mut dyn FnMut(usize, KeyBytes));

    /// Puts a list into the order in which positions are given.
    fn arrange(&mut self, list: List, order: &[usize]);

    fn cut(&mut self, list: List, cuts: Cuts);

    fn key_text(&self, action: Action, row: usize) -> String;
}

/// The keys of rows in the order of the stored keys.
pub(crate) trait FindRow {
    /// Returns the position of the row that has this key. `near` is where the one before was found: rows often refer to
    /// rows that follow each other.
    fn find(&self, key: &KeyBytes, near: &mut usize) -> Option<usize>;
}

/// Rows of one entity type, with the order in which they are sent.
pub(crate) struct Rows<S> {
    entities: Box<dyn Entities<S>>,
    inserts: Order,
    /// For each foreign key, the rows that are inserted with NULL in it.
    fix_ups: Cuts,
    /// The columns of these foreign keys, rising, each with the foreign key.
    null_columns: Vec<(usize, usize)>,
    updates: Order,
    /// Where the rows of each column set begin among the updates.
    column_sets: Vec<usize>,
    deletes: Order,
    unlinks: Cuts,
}

impl<S: RowSink + 'static> Rows<S> {
    pub(crate) fn new(entities: Box<dyn Entities<S>>) -> Self {
        Self {
            entities,
            inserts: None,
            fix_ups: Cuts::new(),
            null_columns: Vec::new(),
            updates: None,
            column_sets: Vec::new(),
            deletes: None,
            unlinks: Cuts::new(),
        }
    }

    pub(crate) fn entities(&self) -> &dyn Entities<S> {
        &*self.entities
    }

    pub(crate) fn entities_mut(&mut self) -> &mut dyn Entities<S> {
        &mut *self.entities
    }

    /// Shows the foreign keys of all rows that have them or get them: the row's key, the foreign key's position, and the
    /// parent's key. If a foreign key has several columns and an update writes only some of them, it may be shown although
    /// it stays as it is.
    pub(crate) fn links(&self, visit: &mut dyn FnMut(KeyBytes, usize, KeyBytes)) {
        let table = self.entities.table();
        let column = |parent: usize| table.parents[parent].column();
        let updates = (0..table.updates).map(|place| (Kept::Updates, place));
        let not_upserted = updates.filter(|(_, place)| !self.entities.is_upserted(*place));
        for (list, place) in self.placed().chain(not_upserted) {
            let key = self.entities.key(list, place);
            let is_shown = |parent: usize| {
                list != Kept::Updates
                    || table.key_columns.contains(&column(parent))
                    || (self.entities).is_written(place, table.position_of(column(parent)))
            };
            let visit = &mut |parent, of| {
                if is_shown(parent) {
                    visit(key, parent, of);
                }
            };
            self.entities.parents(list, place, visit);
        }
    }

    /// Returns the keys of the rows that are inserted, upserted or deleted.
    pub(crate) fn written_keys(&self) -> HashSet<KeyBytes> {
        let placed = self.placed();
        placed
            .map(|(list, place)| self.entities.key(list, place))
            .collect()
    }

    /// Returns the rows that are there only before or behind the flush, or may be.
    fn placed(&self) -> impl Iterator<Item = (Kept, usize)> + '_ {
        let of = |list: List| (0..self.len(list)).map(move |place| (list.kept(), place));
        let upserted = self.upserted().map(|place| (Kept::Updates, place));
        of(List::Inserts).chain(upserted).chain(of(List::Deletes))
    }

    /// Returns the places of rows that are upserted.
    fn upserted(&self) -> impl Iterator<Item = usize> + '_ {
        let places = 0..self.entities.table().updates;
        places.filter(|place| self.entities.is_upserted(*place))
    }

    fn len(&self, list: List) -> usize {
        let table = self.entities.table();
        match list {
            List::Inserts => table.rows,
            List::Deletes => table.deletes,
        }
    }

    const fn order(&self, list: List) -> &Order {
        match list {
            List::Inserts => &self.inserts,
            List::Deletes => &self.deletes,
        }
    }

    fn place(&self, list: List, position: usize) -> usize {
        place(self.order(list).as_deref(), position)
    }

    /// Returns the list and the place of a row of an action.
    fn row(&self, action: Action, row: usize) -> (Kept, usize) {
        match action {
            Action::Insert => (Kept::Inserts, self.place(List::Inserts, row)),
            Action::FixUp { parent } => {
                let row = self.fix_ups[&parent][row];
                (Kept::Inserts, self.place(List::Inserts, row))
            }
            Action::Update => (Kept::Updates, place(self.updates.as_deref(), row)),
            Action::UpdateColumns { set } | Action::Upsert { set, .. } => {
                let row = self.column_sets[set] + row;
                (Kept::Updates, place(self.updates.as_deref(), row))
            }
            Action::Unlink { parent } => {
                let row = self.unlinks[&parent][row];
                (Kept::Deletes, self.place(List::Deletes, row))
            }
            Action::Delete => (Kept::Deletes, self.place(List::Deletes, row)),
        }
    }

    /// Sets `nulls` to the columns in which an insert writes NULL.
    fn nulls(&self, row: usize, nulls: &mut Vec<usize>) {
        nulls.clear();
        for (column, parent) in &self.null_columns {
            if self.fix_ups[parent].binary_search(&row).is_ok() {
                nulls.push(*column);
            }
        }
    }

    /// Writes the key of a row that will be inserted.
    pub(crate) fn write_key(&self, row: usize, sink: &mut S) {
        self.write_key_at(Kept::Inserts, self.place(List::Inserts, row), sink);
    }

    /// Writes rows of an action's list one by one, and returns the position after the last that was
    /// taken.
    pub(crate) fn write(&self, action: Action, rows: Range<usize>, sink: &mut S) -> usize {
        let mut columns = match action {
            Action::Insert | Action::Update => Vec::new(),
            _ => self.entities.table().columns_of(action),
        };
        for row in rows.clone() {
            if action == Action::Insert {
                self.nulls(row, &mut columns);
            }
            sink.begin_row(match action {
                Action::Insert if columns.is_empty() => Columns::All,
                Action::Insert => Columns::Without(&columns),
                Action::Update
                | Action::Upsert {
                    step: UpsertStep::Insert | UpsertStep::Write,
                    ..
                } => Columns::All,
                Action::FixUp { .. } | Action::UpdateColumns { .. } | Action::Upsert { .. } => {
                    Columns::Only(&columns)
                }
                Action::Unlink { .. } | Action::Delete => Columns::Given(&columns),
            });
            self.write_row(action, row, sink);
            match sink.end_row() {
                RowEnd::Taken => {}
                RowEnd::TakenLast => return row + 1,
                RowEnd::Refused => return row,
            }
        }
        rows.end
    }

    /// Puts those of the rows of an upsert that were not found before the others, otherwise in the order that they had.
    /// Returns the first position of the others.
    pub(crate) fn put_new_first(
        &mut self,
        set: usize,
        rows: Range<usize>,
        found: &[bool],
    ) -> usize {
        let new = found.iter().filter(|it| !**it).count();
        let first = self.column_sets[set];
        let all = self.entities.table().updates;
        let order = self.updates.get_or_insert_with(|| (0..all).collect());
        let places = &mut order[first + rows.start..first + rows.end];
        let of = |wanted: bool| {
            let kept = places.iter().zip(found);
            kept.filter_map(move |(place, found)| (*found == wanted).then_some(*place))
        };
        let sorted: Vec<usize> = of(false).chain(of(true)).collect();
        places.copy_from_slice(&sorted);
        rows.start + new
    }

    /// Puts upserted rows behind those of them that they refer to, in a table that refers to itself: by depth, and then by key.
    /// Rows that refer to each other in a circle come last.
    fn sort_upserts(&mut self, table: &Table) {
        let own = table.parents.iter();
        let own: Vec<bool> = own.map(|it| it.is(table.entity, table.key)).collect();
        if !own.contains(&true) {
            return;
        }
        for (set, start) in table.column_sets.iter().zip(&self.column_sets) {
            if set.found_by.is_none() || set.rows < 2 {
                continue;
            }
            let range = *start..start + set.rows;
            let updates = self.updates.as_deref();
            let places: Vec<usize> = range.clone().map(|it| place(updates, it)).collect();
            let key = |place: &usize| self.entities.key(Kept::Updates, *place);
            let positions: HashMap<_, _> = places.iter().map(key).zip(0..).collect();
            let mut references = Vec::new();
            for (child, place) in places.iter().enumerate() {
                let visit = &mut |parent: usize, key| {
                    if let (true, Some(parent)) = (own[parent], positions.get(&key)) {
                        references.push([child, *parent]);
                    }
                };
                self.entities.parents(Kept::Updates, *place, visit);
            }
            if references.iter().all(|[child, parent]| parent <= child) {
                continue;
            }
            let depths = graph::depths(places.len(), &references);
            let mut sorted: Vec<usize> = (0..places.len()).collect();
            sorted.sort_by_key(|row| depths[*row]);
            let order = self
                .updates
                .get_or_insert_with(|| (0..table.updates).collect());
            for (to, row) in order[range].iter_mut().zip(sorted) {
                *to = places[row];
            }
        }
    }

    /// Writes a row of an action's list, and of its columns these alone.
    pub(crate) fn write_only(&self, action: Action, row: usize, columns: &[usize], sink: &mut S) {
        sink.begin_row(Columns::Only(columns));
        self.write_row(action, row, sink);
        sink.end_row();
    }

    /// Hands over the values of a row: all columns, or what it is deleted by.
    fn write_row(&self, action: Action, row: usize, sink: &mut S) {
        let (list, place) = self.row(action, row);
        if let Action::Upsert { .. } = action {
            return self.entities.write_upsert(place, sink);
        }
        self.entities.write(list, place, sink);
        if list == Kept::Deletes {
            self.entities.write_read_version(list, place, sink);
        }
    }

    /// Returns the version that a row was read with, as text, if there is one.
    pub(crate) fn version_text(&self, action: Action, row: usize) -> Option<String> {
        let (list, place) = self.row(action, row);
        self.entities.version_text(list, place)
    }

    /// Visits the cells that take the values of the columns that the database fills, for a row of an action's list.
    pub(crate) fn cells(
        &self,
        action: Action,
        row: usize,
        visit: &mut dyn FnMut(usize, &dyn Cell),
    ) {
        let (list, place) = self.row(action, row);
        self.entities.cells(list, place, visit);
    }

    /// Writes the key of a row of an action's list.
    pub(crate) fn write_key_of(&self, action: Action, row: usize, sink: &mut S) {
        let (list, place) = self.row(action, row);
        self.write_key_at(list, place, sink);
    }

    /// Writes what a row of an action's list is found by, if its type has a version: the key, and the version that it was
    /// read with.
    pub(crate) fn write_as_read(&self, action: Action, row: usize, sink: &mut S) {
        let (list, place) = self.row(action, row);
        let columns = self.entities.table().columns_of(Action::Delete);
        sink.begin_row(Columns::Given(&columns));
        self.entities.write_key(list, place, sink);
        self.entities.write_read_version(list, place, sink);
        sink.end_row();
    }

    /// Returns the key of a row of an action's list.
    pub(crate) fn key(&self, action: Action, row: usize) -> KeyBytes {
        let (list, place) = self.row(action, row);
        self.entities.key(list, place)
    }

    fn write_key_at(&self, list: Kept, place: usize, sink: &mut S) {
        sink.begin_row(Columns::Given(&self.entities.table().key_positions()));
        self.entities.write_key(list, place, sink);
        sink.end_row();
    }
}

impl<S: RowSink + 'static> TypelessRows for Rows<S> {
    fn table(&self) -> Table {
        self.entities.table()
    }

    fn sort(&mut self) -> Result<(), Error> {
        self.cut(List::Inserts, Cuts::new());
        self.cut(List::Deletes, Cuts::new());
        let orders = self.entities.sorted();
        let orders = orders.map_err(|conflict| {
            let table = self.entities.table();
            refused(table.name(), conflict, &|list, place| {
                self.entities.key_text(list, place)
            })
        })?;
        [self.inserts, self.updates, self.deletes] = orders;
        let table = self.entities.table();
        self.column_sets.clear();
        let mut next = table.first_of_set(0);
        for set in table.column_sets.iter() {
            self.column_sets.push(next);
            next += set.rows;
        }
        self.sort_upserts(&table);
        Ok(())
    }

    fn are_parents_first(&self) -> bool {
        let table = self.entities.table();
        let own = table
            .parents
            .iter()
            .map(|it| it.is(table.entity, table.key));
        let own: Vec<bool> = own.collect();
        self.entities
            .are_parents_first(self.inserts.as_deref(), &own)
    }

    fn keys(&self, list: List) -> Box<dyn FindRow> {
        self.entities.keys(list.kept(), self.order(list).as_deref())
    }

    fn parents(&self, list: List, visit: &mut dyn FnMut(usize, usize, KeyBytes)) {
        for position in 0..self.len(list) {
            let place = self.place(list, position);
            let visit = &mut |parent, key| visit(position, parent, key);
            self.entities.parents(list.kept(), place, visit);
        }
    }

    fn upserted_keys(&self) -> HashSet<KeyBytes> {
        let key = |place| self.entities.key(Kept::Updates, place);
        self.upserted().map(key).collect()
    }

    fn upserted_parents(&self, visit: &mut dyn FnMut(usize, KeyBytes)) {
        for place in self.upserted() {
            self.entities.parents(Kept::Updates, place, visit);
        }
    }

    fn arrange(&mut self, list: List, order: &[usize]) {
        // Each position is there once, so they are as they were. Then no list of them is kept.
        if order.is_sorted() {
            return;
        }
        let order = order.iter().map(|&position| self.place(list, position));
        let order = Some(order.collect());
        match list {
            List::Inserts => self.inserts = order,
            List::Deletes => self.deletes = order,
        }
    }

    fn cut(&mut self, list: List, cuts: Cuts) {
        if list == List::Deletes {
            self.unlinks = cuts;
            return;
        }
        let table = self.entities.table();
        let column = |parent: &usize| table.position_of(table.parents[*parent].column());
        self.null_columns = cuts.keys().map(|it| (column(it), *it)).collect();
        self.null_columns.sort_unstable();
        self.fix_ups = cuts;
    }

    fn key_text(&self, action: Action, row: usize) -> String {
        let (list, place) = self.row(action, row);
        self.entities.key_text(list, place)
    }
}

/// Says why rows have no order.
fn refused(table: &str, conflict: Conflict, key_text: &dyn Fn(Kept, usize) -> String) -> Error {
    Error::plan(match conflict {
        Conflict::Keyless(Kept::Inserts) => format!("a row of {table} has no key"),
        Conflict::Keyless(Kept::Updates) => {
            format!("a row of {table} that is to be updated has no key")
        }
        Conflict::Keyless(Kept::Deletes) => {
            format!("a row of {table} that is to be deleted has no key")
        }
        Conflict::Versionless => format!(
            "a row of {table} that is to be changed or deleted has no version: read it with its version, which tells \
             whether somebody else has changed it since"
        ),
        Conflict::VersionUnread => format!(
            "a row of {table} is to be upserted, which has a version: an upsert would write over a change that nobody has \
             read; read the row and update it, or use `insert_or_ignore`"
        ),
        Conflict::KeySet => format!(
            "`OnConflict::set` names the key of {table}, but a row that is there keeps its key: leave the key out"
        ),
        Conflict::NothingSet => format!(
            "`OnConflict::set` names no column of {table}: use `ignore` to leave a row alone that is there"
        ),
        Conflict::NothingToFind => format!(
            "`OnConflict::of` names no column of {table}: use `OnConflict::key` to find a row by its key"
        ),
        Conflict::Twice(list, place) => {
            let what = match list {
                Kept::Inserts => "rows",
                Kept::Updates => "updates",
                Kept::Deletes => "deletes",
            };
            format!(
                "two {what} of {table} have the key {}; was an entity added twice?",
                key_text(list, place)
            )
        }
        Conflict::Both(left, right, place) => {
            let [what, and] = [left, right].map(|list| match list {
                Kept::Inserts => "inserted",
                Kept::Updates => "updated",
                Kept::Deletes => "deleted",
            });
            let or = match (left, right) {
                (Kept::Inserts, Kept::Updates) => ", or change the entity before you add it",
                _ => "",
            };
            format!(
                "the row of {table} with the key {} is to be {what} and {and} at once; flush one \
                 before the other{or}",
                key_text(left, place)
            )
        }
    })
}

#[cfg(test)]
mod tests;
