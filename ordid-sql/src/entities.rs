//! The rows of an entity type, as they were added: what is inserted, updated and deleted.
//!
//! Nothing here is generic over entity types, of which a program has many: orders are found by raw keys,
//! of which it has one type or two, and a row is seen as a [`list`](crate::list) shows it.
//! [`Rows`](crate::rows::Rows) has the orders.

use std::{any::Any, cmp::Ordering, ops::Range, sync::Arc};

use crate::{
    ColumnSet, RowSink, Table, Upsert,
    list::{AnyRow, List, TypeOf},
    rows::FindRow,
    upsert::Set,
};
use ordid_core::{
    entity::Cell,
    key::{KeyBytes, RawKey},
};

/// What is done with rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Inserts,
    Updates,
    Deletes,
}

impl Kept {
    pub(crate) const ALL: [Self; 3] = [Self::Inserts, Self::Updates, Self::Deletes];
}

/// In which order raw keys are sent.
pub(crate) type Compare<R> = fn(&R, &R) -> Ordering;

/// The places of a list's rows in their order of sending; `None` where they are in order as they are.
pub(crate) type Order = Option<Vec<usize>>;

/// The place of the row at a position of an order.
pub(crate) fn place(order: Option<&[usize]>, position: usize) -> usize {
    order.map_or(position, |order| order[position])
}

/// Why rows have no order, with the place of one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conflict {
    /// A row of the list has no key.
    Keyless(Kept),
    /// A row that is to be changed or deleted has no version, where its type has one.
    Versionless,
    /// A row that is to be upserted would write over a version that nobody has read.
    VersionUnread,
    /// A row that is to be upserted would write a column of the key.
    KeySet,
    /// A row that is to be upserted names no column that would be written.
    NothingSet,
    /// A row that is to be upserted names no column by which it would be found.
    NothingToFind,
    /// Two of a list have one key.
    Twice(Kept, usize),
    /// One has the key of a row in another list.
    Both(Kept, Kept, usize),
}

/// Entities of any type, which are written to sinks of type `S`. They are known by their place in the
/// order in which they were added to a list.
pub(crate) trait Entities<S>: Any + Send + Sync {
    /// Returns the rows that are inserted, and those that are updated: each a `Vec` of their type.
    fn rows(&self) -> [&dyn Any; 2];

    /// As [`rows`](Self::rows).
    fn rows_mut(&mut self) -> [&mut dyn Any; 2];

    fn table(&self) -> Table;

    /// Returns the order of each list by the stored keys.
    fn sorted(&self) -> Result<[Order; 3], Conflict>;

    /// Returns whether no row that is inserted refers to a later one, by the foreign keys that are
    /// `own`, that is of the same table. The inserts are in the order of the stored keys.
    fn are_parents_first(&self, order: Option<&[usize]>, own: &[bool]) -> bool;

    /// Returns the keys of a list in this order, which is that of the stored keys.
    fn keys(&self, list: Kept, order: Option<&[usize]>) -> Box<dyn FindRow>;

    /// Returns a row's key: there is none that has none, once they are sorted.
    fn key(&self, list: Kept, place: usize) -> KeyBytes;

    fn key_text(&self, list: Kept, place: usize) -> String;

    /// Returns whether a row to update is upserted.
    fn is_upserted(&self, place: usize) -> bool;

    /// Returns whether a row to update gets a value in this column, by its position.
    fn is_written(&self, place: usize, column: usize) -> bool;

    /// Shows the foreign keys of a row that is inserted or deleted.
    fn parents(&self, list: Kept, place: usize, visit: &mut dyn FnMut(usize, KeyBytes));

    /// Hands over all values of a row; of one that is deleted, the key.
    fn write(&self, list: Kept, place: usize, sink: &mut S);

    /// Hands over all values of a row that is upserted, as an insert takes them.
    fn write_upsert(&self, place: usize, sink: &mut S);

    /// Hands over a row's key, if it has one.
    fn write_key(&self, list: Kept, place: usize, sink: &mut S);

    /// Hands over the version that a row which is updated or deleted was read with, where its type has one.
    fn write_read_version(&self, list: Kept, place: usize, sink: &mut S);

    /// Returns the version that a row which is updated or deleted was read with, as text, where its type has one.
    fn version_text(&self, list: Kept, place: usize) -> Option<String>;

    /// Tells the sink the types of the columns that the database fills.
    fn expect(&self, sink: &mut S);

    /// Visits the cells that take the values of these columns, for a row that is inserted or updated.
    fn cells(&self, list: Kept, place: usize, visit: &mut dyn FnMut(usize, &dyn Cell));
}

/// Entities as they are sorted: by raw keys.
trait Keyed<R> {
    fn len(&self, list: Kept) -> usize;
    fn raw_key(&self, list: Kept, place: usize) -> Option<R>;
    /// Hands over the keys of rows, and returns whether each has one.
    fn raw_keys(&self, list: Kept, places: Range<usize>, keys: &mut Vec<R>) -> bool;
    /// Shows the foreign keys of a row that is inserted.
    fn inserted_parents(&self, place: usize, visit: &mut dyn FnMut(usize, KeyBytes));
}

/// Entities of one type, of which only the raw key's is known.
pub(crate) struct EntitiesOf<S: 'static, R: 'static> {
    inserts: Box<dyn List<S, R>>,
    updates: Box<dyn List<S, R>>,
    column_sets: ColumnSets,
    of: &'static TypeOf<S, R>,
    deletes: Vec<R>,
    /// The versions that they were read with; empty where the type has none.
    deleted_versions: Vec<i128>,
    links: Links,
    /// Why a row that was added cannot be deleted or upserted.
    refused: Option<Conflict>,
    compare: Compare<R>,
}

/// Says which columns of each row are updated.
#[derive(Debug, Default)]
struct ColumnSets {
    sets: Arc<Vec<ColumnSet>>,
    /// For each row the number of its set, counted from 1, or 0 where all columns are updated, as of those behind.
    of_rows: Vec<usize>,
}

impl ColumnSets {
    fn number(&self, place: usize) -> usize {
        self.of_rows.get(place).copied().unwrap_or_default()
    }

    /// Says of a row that only these columns are updated, or that it is upserted.
    fn only(&mut self, place: usize, of_row: ColumnSet) {
        let is_same = |it: &ColumnSet| {
            (&it.columns, &it.found_by, it.is_unreported)
                == (&of_row.columns, &of_row.found_by, of_row.is_unreported)
        };
        let number = self.sets.iter().position(is_same);
        let number = number.unwrap_or_else(|| {
            Arc::make_mut(&mut self.sets).push(of_row);
            self.sets.len() - 1
        });
        Arc::make_mut(&mut self.sets)[number].rows += 1;
        self.of_rows.resize(place, 0);
        self.of_rows.push(number + 1);
    }
}

/// The foreign keys of rows that will be deleted, of which nothing else is kept but the key.
#[derive(Debug, Default)]
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

    fn push(&mut self, parent: usize, key: KeyBytes) {
        let parent = u16::try_from(parent).expect("a table has fewer columns");
        self.links.push((parent, key));
    }

    fn end_row(&mut self) {
        self.ends.push(self.links.len());
    }
}

impl<S: 'static, R: RawKey> EntitiesOf<S, R> {
    pub(crate) fn new(of: &'static TypeOf<S, R>, compare: Compare<R>) -> Self {
        Self {
            inserts: of.list(),
            updates: of.list(),
            column_sets: ColumnSets::default(),
            of,
            deletes: Vec::new(),
            deleted_versions: Vec::new(),
            links: Links::default(),
            refused: None,
            compare,
        }
    }

    /// Says that of the row that was added last to those that are updated, only these columns are, in any order and
    /// however often; the key is none that is written, and the version always is.
    pub(crate) fn update_only(&mut self, mut columns: Vec<usize>) {
        let table = self.of.table();
        let keys = table.key_positions();
        columns.retain(|column| !keys.contains(column) && Some(*column) != table.version());
        columns.sort_unstable();
        columns.dedup();
        let set = ColumnSet {
            columns,
            ..ColumnSet::default()
        };
        self.column_sets.only(self.updates.len() - 1, set);
    }

    /// Says that the row that was added last to those that are updated is upserted.
    pub(crate) fn upsert(&mut self, upsert: Upsert) {
        let table = self.of.table();
        let sorted = |mut columns: Vec<usize>| {
            columns.sort_unstable();
            columns.dedup();
            columns
        };
        let keys = table.key_positions();
        let found_by = sorted(upsert.found_by.unwrap_or_else(|| keys.clone()));
        if found_by.is_empty() {
            self.refused = Some(Conflict::NothingToFind);
        }
        let columns = match upsert.set {
            Set::Only(columns) => {
                if columns.is_empty() {
                    self.refused = Some(Conflict::NothingSet);
                } else if columns.iter().any(|it| keys.contains(it)) {
                    self.refused = Some(Conflict::KeySet);
                }
                sorted(columns)
            }
            Set::Others => {
                let is_other = |it: &usize| !keys.contains(it) && !found_by.contains(it);
                (0..table.columns.len()).filter(is_other).collect()
            }
            Set::Nothing => Vec::new(),
        };
        let set = ColumnSet {
            columns,
            found_by: Some(found_by),
            is_unreported: upsert.is_unreported,
            rows: 0,
        };
        self.column_sets.only(self.updates.len() - 1, set);
    }

    /// Returns the columns of a row that are updated, if they are not all.
    #[cfg(feature = "journal")]
    pub(crate) fn updated_columns(&self, place: usize) -> Option<&ColumnSet> {
        let set = self.column_sets.number(place).checked_sub(1)?;
        Some(&self.column_sets.sets[set])
    }

    /// Returns whether a row of the updates is upserted, and if so which columns are written where it is there.
    fn upserted(&self, place: usize) -> Option<&[usize]> {
        let set = self.column_sets.number(place).checked_sub(1)?;
        let set = &self.column_sets.sets[set];
        set.found_by.is_some().then_some(&set.columns)
    }

    /// Takes a row that will be deleted, of which the key and the foreign keys are kept.
    pub(crate) fn delete(&mut self, row: &dyn AnyRow<S, R>) {
        let Some(key) = row.raw_key() else {
            self.refused = Some(Conflict::Keyless(Kept::Deletes));
            return;
        };
        if self.of.version.is_some() {
            match row.version() {
                Some(version) => self.deleted_versions.push(version),
                None => {
                    self.refused = Some(Conflict::Versionless);
                    return;
                }
            }
        }
        self.deletes.push(key);
        if !self.of.parents.is_empty() {
            let links = &mut self.links;
            row.parents(&mut |parent, key| links.push(parent, key));
            links.end_row();
        }
    }

    /// Returns the keys of the rows that will be deleted, in the order in which they were added, each with its
    /// version, and with the foreign keys that are set.
    #[cfg(feature = "journal")]
    pub(crate) fn deletes(&self) -> impl Iterator<Item = (R, Option<i128>, &[(u16, KeyBytes)])> {
        let keys = self.deletes.iter().copied().enumerate();
        keys.map(|(row, key)| {
            let version = self.deleted_versions.get(row).copied();
            (key, version, self.links.of(row))
        })
    }

    /// As [`delete`](Self::delete), of what [`deletes`](Self::deletes) returned of a row.
    #[cfg(feature = "journal")]
    pub(crate) fn delete_again(
        &mut self,
        key: R,
        version: Option<i128>,
        links: &[(u16, KeyBytes)],
    ) {
        if self.of.version.is_some() != version.is_some() {
            self.refused = Some(Conflict::Versionless);
        }
        self.deletes.push(key);
        self.deleted_versions.extend(version);
        if !self.of.parents.is_empty() {
            self.links.links.extend(links);
            self.links.end_row();
        }
    }

    /// Returns the number of the version that a row was read with.
    fn read_version(&self, list: Kept, place: usize) -> Option<i128> {
        match list {
            Kept::Inserts => None,
            Kept::Updates => self.updates.row(place).version(),
            Kept::Deletes => self.deleted_versions.get(place).copied(),
        }
    }
}

impl<S: 'static, R: RawKey> Keyed<R> for EntitiesOf<S, R> {
    fn len(&self, list: Kept) -> usize {
        match list {
            Kept::Inserts => self.inserts.len(),
            Kept::Updates => self.updates.len(),
            Kept::Deletes => self.deletes.len(),
        }
    }

    fn raw_key(&self, list: Kept, place: usize) -> Option<R> {
        match list {
            Kept::Inserts => self.inserts.row(place).raw_key(),
            Kept::Updates => self.updates.row(place).raw_key(),
            Kept::Deletes => Some(self.deletes[place]),
        }
    }

    fn raw_keys(&self, list: Kept, places: Range<usize>, keys: &mut Vec<R>) -> bool {
        match list {
            Kept::Inserts => self.inserts.raw_keys(places, keys),
            Kept::Updates => self.updates.raw_keys(places, keys),
            Kept::Deletes => {
                keys.extend_from_slice(&self.deletes[places]);
                true
            }
        }
    }

    fn inserted_parents(&self, place: usize, visit: &mut dyn FnMut(usize, KeyBytes)) {
        self.inserts.row(place).parents(visit);
    }
}

impl<S: RowSink + 'static, R: RawKey> Entities<S> for EntitiesOf<S, R> {
    fn rows(&self) -> [&dyn Any; 2] {
        [&*self.inserts, &*self.updates]
    }

    fn rows_mut(&mut self) -> [&mut dyn Any; 2] {
        [&mut *self.inserts, &mut *self.updates]
    }

    fn table(&self) -> Table {
        Table {
            rows: self.inserts.len(),
            updates: self.updates.len(),
            column_sets: Arc::clone(&self.column_sets.sets),
            deletes: self.deletes.len(),
            ..self.of.table()
        }
    }

    fn sorted(&self) -> Result<[Order; 3], Conflict> {
        if let Some(conflict) = self.refused {
            return Err(conflict);
        }
        let mut updates = 0..self.updates.len();
        if self.of.version.is_some() {
            let conflict = updates.find_map(|place| match self.upserted(place) {
                Some([]) => None,
                Some(_) => Some(Conflict::VersionUnread),
                None => match self.updates.row(place).version() {
                    None => Some(Conflict::Versionless),
                    Some(_) => None,
                },
            });
            conflict.map_or(Ok(()), Err)?;
        }
        let mut orders = sorted(self, self.compare)?;
        if !self.column_sets.sets.is_empty() {
            // Those of a set together, each in the order of the keys.
            let [_, updates, _] = &mut orders;
            let order = updates.get_or_insert_with(|| (0..self.updates.len()).collect());
            order.sort_by_key(|place| self.column_sets.number(*place));
        }
        Ok(orders)
    }

    fn are_parents_first(&self, order: Option<&[usize]>, own: &[bool]) -> bool {
        are_parents_first(self, order, own, self.compare)
    }

    fn keys(&self, list: Kept, order: Option<&[usize]>) -> Box<dyn FindRow> {
        Box::new(SortedKeys::of(self, list, order, self.compare))
    }

    fn key(&self, list: Kept, place: usize) -> KeyBytes {
        key_bytes(self, list, place)
    }

    fn key_text(&self, list: Kept, place: usize) -> String {
        match self.raw_key(list, place) {
            Some(key) => self.of.text(key),
            None => "none".to_owned(),
        }
    }

    fn is_written(&self, place: usize, column: usize) -> bool {
        let set = self.column_sets.number(place).checked_sub(1);
        set.is_none_or(|set| {
            let set = &self.column_sets.sets[set];
            set.found_by.is_some() || set.columns.contains(&column)
        })
    }

    fn is_upserted(&self, place: usize) -> bool {
        self.upserted(place).is_some()
    }

    fn parents(&self, list: Kept, place: usize, visit: &mut dyn FnMut(usize, KeyBytes)) {
        match list {
            Kept::Inserts => self.inserts.row(place).parents(visit),
            Kept::Deletes => {
                for (parent, key) in self.links.of(place) {
                    visit(usize::from(*parent), *key);
                }
            }
            Kept::Updates => self.updates.row(place).parents(visit),
        }
    }

    fn write(&self, list: Kept, place: usize, sink: &mut S) {
        match list {
            Kept::Inserts => self.inserts.row(place).write(sink),
            Kept::Updates => self.updates.row(place).write_update(sink),
            Kept::Deletes => self.inserts.write_key(self.deletes[place], sink),
        }
    }

    fn write_upsert(&self, place: usize, sink: &mut S) {
        self.updates.row(place).write(sink);
    }

    fn write_key(&self, list: Kept, place: usize, sink: &mut S) {
        if let Some(key) = self.raw_key(list, place) {
            self.inserts.write_key(key, sink);
        }
    }

    fn write_read_version(&self, list: Kept, place: usize, sink: &mut S) {
        if let Some(version) = self.read_version(list, place) {
            self.inserts.write_version(version, sink);
        }
    }

    fn version_text(&self, list: Kept, place: usize) -> Option<String> {
        self.read_version(list, place).map(self.of.version_text)
    }

    fn expect(&self, sink: &mut S) {
        if let Some(returned) = &self.of.returned {
            (returned.expect)(sink);
        }
    }

    fn cells(&self, list: Kept, place: usize, visit: &mut dyn FnMut(usize, &dyn Cell)) {
        let rows: &dyn Any = match list {
            Kept::Inserts => &*self.inserts,
            Kept::Updates => &*self.updates,
            Kept::Deletes => return,
        };
        if let Some(returned) = &self.of.returned {
            (returned.cells)(rows, place, visit);
        }
    }
}

/// The raw keys of a list in the order of the stored keys.
struct SortedKeys<R> {
    keys: Vec<R>,
    compare: Compare<R>,
}

impl<R: RawKey> SortedKeys<R> {
    fn of(rows: &dyn Keyed<R>, list: Kept, order: Option<&[usize]>, compare: Compare<R>) -> Self {
        let length = rows.len(list);
        let mut keys = Vec::with_capacity(length);
        let all = match order {
            None => rows.raw_keys(list, 0..length, &mut keys),
            Some(order) => order
                .iter()
                .all(|place| rows.raw_keys(list, *place..place + 1, &mut keys)),
        };
        assert!(all, "sorting began with looking for rows without");
        Self { keys, compare }
    }
}

impl<R: RawKey> FindRow for SortedKeys<R> {
    fn find(&self, key: &KeyBytes, near: &mut usize) -> Option<usize> {
        let wanted: R = key.to_raw()?;
        let is_wanted = |position: &usize| self.keys.get(*position) == Some(&wanted);
        let found = match [*near, *near + 1].into_iter().find(is_wanted) {
            Some(position) => position,
            // The keys of rows that the database had before are mostly below all of these.
            None if (self.compare)(&wanted, self.keys.first()?).is_lt() => return None,
            None => {
                let found = self.keys.binary_search_by(|it| (self.compare)(it, &wanted));
                found.ok()?
            }
        };
        *near = found;
        Some(found)
    }
}

fn key_bytes<R: RawKey>(rows: &dyn Keyed<R>, list: Kept, place: usize) -> KeyBytes {
    let key = rows.raw_key(list, place);
    KeyBytes::of_raw(key.expect("sorting began with looking for rows without"))
}

fn sorted<R: RawKey>(rows: &dyn Keyed<R>, compare: Compare<R>) -> Result<[Order; 3], Conflict> {
    let mut orders = [None, None, None];
    let mut twice = None;
    for (list, order) in Kept::ALL.into_iter().zip(&mut orders) {
        let (found, place) = sorted_list(rows, list, compare)?;
        *order = found;
        twice = twice.or_else(|| place.map(|place| Conflict::Twice(list, place)));
    }
    if let Some(twice) = twice {
        return Err(twice);
    }
    for (left, right) in [(0, 1), (0, 2), (1, 2)] {
        apart(rows, [left, right], &orders, compare)?;
    }
    Ok(orders)
}

/// Returns the order of a list, and the place of a key that comes twice.
fn sorted_list<R: RawKey>(
    rows: &dyn Keyed<R>,
    list: Kept,
    compare: Compare<R>,
) -> Result<(Order, Option<usize>), Conflict> {
    // Few calls of what is not known here, and no list of all keys where none is needed.
    const KEYS: usize = 64;
    let length = rows.len(list);
    let mut keys = Vec::with_capacity(KEYS.min(length));
    let mut next = |start: usize, visit: &mut dyn FnMut(&[R])| {
        keys.clear();
        let end = length.min(start + KEYS);
        let all = rows.raw_keys(list, start..end, &mut keys);
        visit(&keys);
        if all {
            Ok(())
        } else {
            Err(Conflict::Keyless(list))
        }
    };
    // Rising strictly, so that no key is there twice.
    let rises = |keys: &[R]| keys.is_sorted_by(|left, right| compare(left, right).is_lt());
    let mut is_sorted = true;
    let mut last = None;
    for start in (0..length).step_by(KEYS) {
        next(start, &mut |keys| {
            let follows = |last: &R| keys.first().is_none_or(|key| rises(&[*last, *key]));
            is_sorted = is_sorted && last.as_ref().is_none_or(follows) && rises(keys);
            last = keys.last().copied();
        })?;
    }
    if is_sorted {
        return Ok((None, None));
    }
    let mut keyed = Vec::with_capacity(length);
    for start in (0..length).step_by(KEYS) {
        next(start, &mut |keys| {
            keyed.extend(keys.iter().copied().zip(start..))
        })?;
    }
    keyed.sort_unstable_by(|left, right| compare(&left.0, &right.0));
    let twice = keyed
        .windows(2)
        .find(|pair| compare(&pair[0].0, &pair[1].0).is_eq());
    let twice = twice.map(|pair| pair[0].1);
    let order = keyed.into_iter().map(|(_, place)| place).collect();
    Ok((Some(order), twice))
}

/// Refuses a key in two lists.
fn apart<R: RawKey>(
    rows: &dyn Keyed<R>,
    lists: [usize; 2],
    orders: &[Order; 3],
    compare: Compare<R>,
) -> Result<(), Conflict> {
    let [left, right] = lists.map(|list| Kept::ALL[list]);
    let places = |list: usize, position| place(orders[list].as_deref(), position);
    let (mut before, mut after) = (0, 0);
    while before < rows.len(left) && after < rows.len(right) {
        let place = places(lists[0], before);
        let one = rows.raw_key(left, place).ok_or(Conflict::Keyless(left))?;
        let other = rows.raw_key(right, places(lists[1], after));
        match compare(&one, &other.ok_or(Conflict::Keyless(right))?) {
            Ordering::Less => before += 1,
            Ordering::Greater => after += 1,
            Ordering::Equal => return Err(Conflict::Both(left, right, place)),
        }
    }
    Ok(())
}

fn are_parents_first<R: RawKey>(
    rows: &dyn Keyed<R>,
    order: Option<&[usize]>,
    own: &[bool],
    compare: Compare<R>,
) -> bool {
    let key = |place| rows.raw_key(Kept::Inserts, place);
    let mut first = true;
    (0..rows.len(Kept::Inserts)).all(|position| {
        let place = place(order, position);
        let Some(child) = key(place) else {
            return true;
        };
        rows.inserted_parents(place, &mut |parent, bytes| {
            // What is no key of the type is no row's either.
            if first
                && own[parent]
                && let Some(parent) = bytes.to_raw()
            {
                first =
                    compare(&parent, &child).is_le() || !has_insert(rows, order, &parent, compare);
            }
        });
        first
    })
}

/// Whether a row with the key will be inserted.
fn has_insert<R: RawKey>(
    rows: &dyn Keyed<R>,
    order: Option<&[usize]>,
    wanted: &R,
    compare: Compare<R>,
) -> bool {
    let (mut start, mut end) = (0, rows.len(Kept::Inserts));
    while start < end {
        let middle = usize::midpoint(start, end);
        let key = rows.raw_key(Kept::Inserts, place(order, middle));
        match key.map_or(Ordering::Less, |key| compare(&key, wanted)) {
            Ordering::Less => start = middle + 1,
            Ordering::Greater => end = middle,
            Ordering::Equal => return true,
        }
    }
    false
}
