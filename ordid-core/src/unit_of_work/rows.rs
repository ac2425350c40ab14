//! The rows of one entity type: what is inserted, updated and deleted, in which order.

use std::{cmp::Ordering, collections::BTreeMap, ops::Range};

use super::{Action, Columns, RowEnd, RowSink, Table, batches::Row};
use crate::{
    entity::{KeyOf, OrderedKey},
    error::Error,
    key::KeyBytes,
};

/// The lists of rows whose order depends on foreign keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    Inserts,
    Deletes,
}

/// The foreign keys of a table in which rows are cut off from their parents, by position, with the
/// rows, as positions in the order of sending.
pub(super) type Cuts = BTreeMap<usize, Vec<usize>>;

/// Rows as planning sees them. They are known by their position: that of the stored key, until
/// [`arrange`](Self::arrange) has put them into another order.
pub(super) trait TypelessRows {
    fn table(&self) -> Table;

    /// Puts each list into the order of the stored keys, and looks for keys that come twice.
    fn sort(&mut self) -> Result<(), Error>;

    /// Returns whether no row that is inserted refers to a later one of its own table.
    fn are_parents_first(&self) -> bool;

    /// Shows the keys of a list.
    fn keys(&self, list: List, visit: &mut dyn FnMut(KeyBytes));

    /// Shows the foreign keys of a list: the row, the foreign key's position, and the parent's key.
    fn parents(&self, list: List, visit: &mut dyn FnMut(usize, usize, KeyBytes));

    /// Puts a list into the order in which positions are given.
    fn arrange(&mut self, list: List, order: &[usize]);

    fn cut(&mut self, list: List, cuts: Cuts);

    fn key_text(&self, action: Action, row: usize) -> String;
}

/// A list in its order of sending.
#[derive(Debug)]
struct Ordered<T> {
    items: Vec<T>,
    /// `None` where they are in order as they are.
    order: Option<Vec<usize>>,
}

impl<T> Ordered<T> {
    const fn new() -> Self {
        Self {
            items: Vec::new(),
            order: None,
        }
    }

    fn place(&self, position: usize) -> usize {
        match &self.order {
            Some(order) => order[position],
            None => position,
        }
    }

    fn at(&self, position: usize) -> &T {
        &self.items[self.place(position)]
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.items.len()).map(|position| self.at(position))
    }

    fn arrange(&mut self, positions: &[usize]) {
        let order = positions.iter().map(|&position| self.place(position));
        self.order = Some(order.collect());
    }

    /// Sorts by a key that each item has, and returns one that comes twice.
    fn sort<K: Copy>(
        &mut self,
        key: impl Fn(&T) -> K,
        compare: impl Fn(&K, &K) -> Ordering,
    ) -> Option<K> {
        self.order = None;
        // Rising strictly, so that no key is there twice.
        if self
            .items
            .is_sorted_by(|left, right| compare(&key(left), &key(right)).is_lt())
        {
            return None;
        }
        let mut keyed: Vec<(K, usize)> = self.items.iter().map(key).zip(0..).collect();
        keyed.sort_unstable_by(|left, right| compare(&left.0, &right.0));
        let twice = keyed
            .windows(2)
            .find(|pair| compare(&pair[0].0, &pair[1].0).is_eq());
        let twice = twice.map(|pair| pair[0].0);
        self.order = Some(keyed.into_iter().map(|(_, place)| place).collect());
        twice
    }
}

/// The foreign keys of rows that will be deleted, of which nothing else is kept but the key.
#[derive(Debug)]
struct Links {
    /// The foreign key's position and the parent's key, of all rows as they were added.
    links: Vec<(u16, KeyBytes)>,
    /// Where the links of each row end; empty where the entity has none.
    ends: Vec<usize>,
}

impl Links {
    fn of(&self, row: usize) -> &[(u16, KeyBytes)] {
        match self.ends.get(row) {
            Some(end) => &self.links[row.checked_sub(1).map_or(0, |row| self.ends[row])..*end],
            None => &[],
        }
    }
}

pub(super) struct Rows<E: OrderedKey> {
    inserts: Ordered<E>,
    /// For each foreign key, the rows that are inserted with NULL in it.
    fix_ups: Cuts,
    /// The same by rows, for each row with NULLs and each of its columns.
    null_rows: Vec<usize>,
    null_columns: Vec<usize>,
    updates: Ordered<E>,
    deletes: Ordered<KeyOf<E>>,
    links: Links,
    unlinks: Cuts,
    /// Whether a row that has no key was to be deleted.
    keyless: bool,
    compare: fn(&KeyOf<E>, &KeyOf<E>) -> Ordering,
}

impl<E: OrderedKey> Rows<E> {
    pub(super) fn new(compare: fn(&KeyOf<E>, &KeyOf<E>) -> Ordering) -> Self {
        Self {
            inserts: Ordered::new(),
            fix_ups: Cuts::new(),
            null_rows: Vec::new(),
            null_columns: Vec::new(),
            updates: Ordered::new(),
            deletes: Ordered::new(),
            links: Links {
                links: Vec::new(),
                ends: Vec::new(),
            },
            unlinks: Cuts::new(),
            keyless: false,
            compare,
        }
    }

    pub(super) fn inserts(&self) -> &[E] {
        &self.inserts.items
    }

    pub(super) const fn inserts_mut(&mut self) -> &mut Vec<E> {
        &mut self.inserts.items
    }

    pub(super) fn update(&mut self, row: E) {
        self.updates.items.push(row);
    }

    pub(super) fn delete(&mut self, row: &E) {
        let Some(key) = row.key() else {
            self.keyless = true;
            return;
        };
        self.deletes.items.push(key);
        if !E::PARENTS.is_empty() {
            let Links { links, ends } = &mut self.links;
            row.parents(&mut |parent, key| {
                let parent = u16::try_from(parent).expect("a table has fewer columns");
                links.push((parent, key));
            });
            ends.push(links.len());
        }
    }

    pub(super) fn len(&self) -> usize {
        self.inserts.items.len() + self.updates.items.len() + self.deletes.items.len()
    }

    fn key(row: &E) -> KeyOf<E> {
        row.key()
            .expect("sorting began with looking for rows without")
    }

    fn twice(list: &str, key: Option<KeyOf<E>>) -> Result<(), Error> {
        match key {
            None => Ok(()),
            Some(key) => Err(Error::plan(format!(
                "two {list} of {} have the key {key}; was an entity added twice?",
                E::TABLE
            ))),
        }
    }

    /// Refuses a key in two lists.
    fn apart<'a>(
        &self,
        (what, left): (&str, impl Iterator<Item = KeyOf<E>> + 'a),
        (and, right): (&str, impl Iterator<Item = KeyOf<E>> + 'a),
    ) -> Result<(), Error> {
        let (mut left, mut right) = (left.peekable(), right.peekable());
        while let (Some(one), Some(other)) = (left.peek(), right.peek()) {
            match (self.compare)(one, other) {
                Ordering::Less => left.next(),
                Ordering::Greater => right.next(),
                Ordering::Equal => {
                    return Err(Error::plan(format!(
                        "the row of {} with the key {one} is to be {what} and {and} at once; flush \
                         one before the other",
                        E::TABLE
                    )));
                }
            };
        }
        Ok(())
    }

    fn has_insert(&self, key: &KeyOf<E>) -> bool {
        let compare = |row: &E| (self.compare)(&Self::key(row), key);
        match &self.inserts.order {
            None => self.inserts.items.binary_search_by(compare).is_ok(),
            Some(order) => order
                .binary_search_by(|&place| compare(&self.inserts.items[place]))
                .is_ok(),
        }
    }

    /// Returns the columns in which an insert writes NULL.
    fn nulls(&self, row: usize) -> Columns<'_> {
        if self.null_rows.is_empty() {
            return Columns::All;
        }
        let start = self.null_rows.partition_point(|it| *it < row);
        let length = self.null_rows[start..].partition_point(|it| *it == row);
        match length {
            0 => Columns::All,
            _ => Columns::Without(&self.null_columns[start..start + length]),
        }
    }
}

impl<E: OrderedKey + 'static> TypelessRows for Rows<E> {
    fn table(&self) -> Table {
        Table {
            rows: self.inserts.items.len(),
            updates: self.updates.items.len(),
            deletes: self.deletes.items.len(),
            ..Table::of::<E>()
        }
    }

    fn sort(&mut self) -> Result<(), Error> {
        self.cut(List::Inserts, Cuts::new());
        self.cut(List::Deletes, Cuts::new());
        let mut written = self.inserts.items.iter().chain(&self.updates.items);
        if self.keyless || written.any(|row| row.key().is_none()) {
            return Err(Error::plan(format!("a row of {} has no key", E::TABLE)));
        }
        let compare = self.compare;
        Self::twice("rows", self.inserts.sort(Self::key, compare))?;
        Self::twice("updates", self.updates.sort(Self::key, compare))?;
        Self::twice("deletes", self.deletes.sort(|key| *key, compare))?;
        let inserted = || ("inserted", self.inserts.iter().map(Self::key));
        let updated = || ("updated", self.updates.iter().map(Self::key));
        let deleted = || ("deleted", self.deletes.iter().copied());
        self.apart(inserted(), updated())?;
        self.apart(inserted(), deleted())?;
        self.apart(updated(), deleted())
    }

    fn are_parents_first(&self) -> bool {
        let table = Table::of::<E>();
        let own = E::PARENTS.iter().map(|it| it.is(table.entity, table.key));
        let own: Vec<bool> = own.collect();
        let mut first = true;
        self.inserts.iter().all(|row| {
            let key = Self::key(row);
            row.parents(&mut |parent, bytes| {
                // Bytes that are no key of the type are not of this table.
                if first
                    && own[parent]
                    && let Some(parent) = bytes.to_key()
                {
                    first = (self.compare)(&parent, &key).is_le() || !self.has_insert(&parent);
                }
            });
            first
        })
    }

    fn keys(&self, list: List, visit: &mut dyn FnMut(KeyBytes)) {
        match list {
            List::Inserts => {
                let keys = self.inserts.iter().map(Self::key);
                keys.map(KeyBytes::of).for_each(visit);
            }
            List::Deletes => self
                .deletes
                .iter()
                .copied()
                .map(KeyBytes::of)
                .for_each(visit),
        }
    }

    fn parents(&self, list: List, visit: &mut dyn FnMut(usize, usize, KeyBytes)) {
        match list {
            List::Inserts => {
                for (position, row) in self.inserts.iter().enumerate() {
                    row.parents(&mut |parent, key| visit(position, parent, key));
                }
            }
            List::Deletes => {
                for position in 0..self.deletes.items.len() {
                    for (parent, key) in self.links.of(self.deletes.place(position)) {
                        visit(position, usize::from(*parent), *key);
                    }
                }
            }
        }
    }

    fn arrange(&mut self, list: List, order: &[usize]) {
        match list {
            List::Inserts => self.inserts.arrange(order),
            List::Deletes => self.deletes.arrange(order),
        }
    }

    fn cut(&mut self, list: List, cuts: Cuts) {
        if list == List::Deletes {
            self.unlinks = cuts;
            return;
        }
        let mut nulls = Vec::new();
        for (parent, rows) in &cuts {
            let name = E::PARENTS[*parent].column();
            let column = E::COLUMNS.iter().position(|column| *column == name);
            let column = column.expect("a foreign key is a column");
            nulls.extend(rows.iter().map(|row| (*row, column)));
        }
        nulls.sort_unstable();
        (self.null_rows, self.null_columns) = nulls.into_iter().unzip();
        self.fix_ups = cuts;
    }

    fn key_text(&self, action: Action, row: usize) -> String {
        let key = match action {
            Action::Insert => self.inserts.at(row).key(),
            Action::FixUp { parent } => self.inserts.at(self.fix_ups[&parent][row]).key(),
            Action::Update => self.updates.at(row).key(),
            Action::Unlink { parent } => Some(*self.deletes.at(self.unlinks[&parent][row])),
            Action::Delete => Some(*self.deletes.at(row)),
        };
        match key {
            Some(key) => key.to_string(),
            None => "none".to_owned(),
        }
    }
}

impl<E: OrderedKey + 'static> Rows<E> {
    /// Writes the key of a row that will be inserted.
    pub(super) fn write_key<S: RowSink>(&self, row: usize, sink: &mut S)
    where
        E: Row<S>,
    {
        if let Some(key) = self.inserts.at(row).key() {
            sink.begin_row(Columns::Key);
            E::write_key(key, sink);
            sink.end_row();
        }
    }

    /// Writes rows of an action's list one by one, and returns the position after the last that was
    /// taken.
    pub(super) fn write<S: RowSink>(
        &self,
        action: Action,
        rows: Range<usize>,
        sink: &mut S,
    ) -> usize
    where
        E: Row<S>,
    {
        let columns = match action {
            Action::FixUp { .. } => Table::of::<E>().columns_of(action),
            _ => Vec::new(),
        };
        for row in rows.clone() {
            match action {
                Action::Insert => {
                    sink.begin_row(self.nulls(row));
                    self.inserts.at(row).write(sink);
                }
                Action::FixUp { parent } => {
                    sink.begin_row(Columns::Only(&columns));
                    self.inserts.at(self.fix_ups[&parent][row]).write(sink);
                }
                Action::Update => {
                    sink.begin_row(Columns::All);
                    self.updates.at(row).write(sink);
                }
                Action::Unlink { parent } => {
                    sink.begin_row(Columns::Key);
                    E::write_key(*self.deletes.at(self.unlinks[&parent][row]), sink);
                }
                Action::Delete => {
                    sink.begin_row(Columns::Key);
                    E::write_key(*self.deletes.at(row), sink);
                }
            }
            match sink.end_row() {
                RowEnd::Taken => {}
                RowEnd::TakenLast => return row + 1,
                RowEnd::Refused => return row,
            }
        }
        rows.end
    }
}

#[cfg(test)]
mod tests;
