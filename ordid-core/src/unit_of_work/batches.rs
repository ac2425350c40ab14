//! The rows of a unit of work: one `Vec` and one box per entity type, none per row.

use std::{
    any::{Any, TypeId},
    cmp::Ordering,
    collections::HashMap,
    fmt,
    ops::Range,
};

use super::{Table, row_order_by};
use crate::{
    entity::{Fields, KeyOf, OrderedKey},
    error::Error,
};

/// Takes whole rows: what an adapter's row binder implements beside
/// [`Sink`](crate::entity::Sink), so that it sees where a row begins and ends.
pub trait RowSink {
    /// A row begins: the values of its columns follow.
    fn begin_row(&mut self) {}

    /// The row has handed over its values. What failed in between is kept by the sink.
    fn end_row(&mut self) -> RowEnd;
}

/// What became of a row, and whether another may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowEnd {
    /// The row was taken; the next may come.
    Taken,
    /// The row was taken, and the sink is full.
    TakenLast,
    /// The row was not taken: a value failed, or is not for this sink.
    Refused,
}

/// What a unit of work with sink `S` can hold: every `#[derive(OrderedKey)]` whose fields the sink
/// takes.
pub trait Row<S>: OrderedKey + Fields<S> + Send + Sync + 'static {}

impl<S, E: OrderedKey + Fields<S> + Send + Sync + 'static> Row<S> for E {}

/// New entities of many types, to be written to sinks of type `S`.
///
/// The ability to be written is captured where a type's rows are first asked for, by
/// [`rows_mut`](Self::rows_mut). Tables are then known by their position in
/// [`tables`](Self::tables), as in a [`Plan`](super::Plan) of these, and rows by their position in
/// the order in which they are sent.
///
/// # Example: rows as text
///
/// ```
/// use ordid_core::{
///     Fields, KeyOf, OrderedKey, Sink,
///     entity::Parent,
///     unit_of_work::{Batches, Plan, RowEnd, RowSink},
///     uuid::Uuid,
/// };
///
/// // What `#[derive(OrderedKey)]` makes.
/// struct City { id: Uuid, name: &'static str }
///
/// impl OrderedKey for City {
///     type Field = Uuid;
///     const SCHEMA: Option<&'static str> = None;
///     const TABLE: &'static str = "cities";
///     const KEY_COLUMN: &'static str = "id";
///     const COLUMNS: &'static [&'static str] = &["id", "name"];
///     const PARENTS: &'static [Parent] = &[];
///
///     fn key(&self) -> Option<Uuid> { Some(self.id) }
///     fn assign_key(&mut self, key: Uuid) { self.id = key; }
///     fn self_parents(&self, _: &mut dyn FnMut(Uuid)) {}
/// }
///
/// impl<S: Sink<Uuid> + Sink<&'static str>> Fields<S> for City {
///     fn write(&self, sink: &mut S) {
///         sink.put(&self.id);
///         sink.put(&self.name);
///     }
/// }
///
/// // What an adapter has: a sink of its library's values.
/// #[derive(Default)]
/// struct Names(Vec<String>);
///
/// impl Sink<Uuid> for Names {
///     fn put(&mut self, _: &Uuid) {}
/// }
///
/// impl Sink<&'static str> for Names {
///     fn put(&mut self, value: &&'static str) { self.0.push(value.to_string()); }
/// }
///
/// impl RowSink for Names {
///     fn end_row(&mut self) -> RowEnd { RowEnd::Taken }
/// }
///
/// let mut batches = Batches::<Names>::new();
/// batches.rows_mut().push(City { id: Uuid::from_u128(2), name: "Bergen" });
/// batches.rows_mut().push(City { id: Uuid::from_u128(1), name: "Aarhus" });
/// batches.sort()?;
///
/// let mut names = Names::default();
/// for chunk in Plan::new(&batches.tables(), 1000)?.chunks() {
///     let written = batches.write(chunk.table, chunk.rows.clone(), &mut names);
///     assert_eq!(written, chunk.rows.end);
/// }
/// assert_eq!(names.0, ["Aarhus", "Bergen"]);
/// # Ok::<(), ordid_core::Error>(())
/// ```
pub struct Batches<S> {
    batches: Vec<Box<dyn Batch<S>>>,
    positions: HashMap<TypeId, usize>,
}

impl<S: RowSink + 'static> Batches<S> {
    /// Makes an empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the rows of an entity type, to add to them: they are sent in the order of their keys.
    pub fn rows_mut<E: Row<S>>(&mut self) -> &mut Vec<E> {
        self.rows_mut_by(Ord::cmp)
    }

    /// As [`rows_mut`](Self::rows_mut); rows are sent in the order of `compare`, which must be zero
    /// for equal keys only. It is for columns that do not keep the keys' order: give it the order of
    /// the stored form, [`Stores::sort_key`](crate::storage::Stores::sort_key), so that the insert
    /// appends to the index all the same.
    ///
    /// The comparison that was given first for a type stays.
    pub fn rows_mut_by<E: Row<S>>(
        &mut self,
        compare: fn(&KeyOf<E>, &KeyOf<E>) -> Ordering,
    ) -> &mut Vec<E> {
        let position = *self.positions.entry(TypeId::of::<E>()).or_insert_with(|| {
            self.batches.push(Box::new(Rows::<E> {
                rows: Vec::new(),
                order: None,
                compare,
            }));
            self.batches.len() - 1
        });
        let batch: &mut dyn Any = &mut *self.batches[position];
        let rows = batch.downcast_mut::<Rows<E>>();
        &mut rows
            .expect("positions lead to the batch of their type")
            .rows
    }

    /// Returns the rows of an entity type, in the order in which they were added.
    pub fn get<E: Row<S>>(&self) -> &[E] {
        let position = self.positions.get(&TypeId::of::<E>());
        let batch = position.map(|position| -> &dyn Any { &*self.batches[*position] });
        batch
            .and_then(|batch| batch.downcast_ref::<Rows<E>>())
            .map_or(&[], |rows| &rows.rows)
    }

    /// Returns the number of rows, of all types.
    pub fn len(&self) -> usize {
        self.batches.iter().map(|batch| batch.len()).sum()
    }

    /// Returns whether there is no row of any type.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all rows and all types.
    pub fn clear(&mut self) {
        self.batches.clear();
        self.positions.clear();
    }

    /// Finds the order in which the rows of each table are sent. To be called after the last row is
    /// added and before the first is written.
    ///
    /// # Errors
    ///
    /// As [`row_order_by`].
    pub fn sort(&mut self) -> Result<(), Error> {
        self.batches.iter_mut().try_for_each(|batch| batch.sort())
    }

    /// Returns the tables, in the order in which their types were first added.
    pub fn tables(&self) -> Vec<Table> {
        self.batches.iter().map(|batch| batch.table()).collect()
    }

    /// Returns the table at a position of [`tables`](Self::tables).
    ///
    /// # Panics
    ///
    /// If there is no such table.
    pub fn table(&self, table: usize) -> Table {
        self.batches[table].table()
    }

    /// Writes rows of a table, one by one in the order of sending, and returns the position after
    /// the last that was taken: the end of `rows`, or where the sink said to stop.
    ///
    /// # Panics
    ///
    /// If there is no such table or row.
    pub fn write(&self, table: usize, rows: Range<usize>, sink: &mut S) -> usize {
        self.batches[table].write(rows, sink)
    }

    /// Returns the key of a row as text, for messages; the row is a position in the order of
    /// sending.
    ///
    /// # Panics
    ///
    /// If there is no such table or row.
    pub fn key_text(&self, table: usize, row: usize) -> String {
        self.batches[table].key_text(row)
    }
}

impl<S> Default for Batches<S> {
    fn default() -> Self {
        Self {
            batches: Vec::new(),
            positions: HashMap::new(),
        }
    }
}

/// The tables and their numbers of rows.
impl<S: 'static> fmt::Debug for Batches<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables = self.batches.iter().map(|batch| {
            let table = batch.table();
            (table.name(), table.rows())
        });
        f.debug_map().entries(tables).finish()
    }
}

trait Batch<S>: Any + Send + Sync {
    fn len(&self) -> usize;
    fn table(&self) -> Table;
    fn sort(&mut self) -> Result<(), Error>;
    fn write(&self, rows: Range<usize>, sink: &mut S) -> usize;
    fn key_text(&self, row: usize) -> String;
}

struct Rows<E: OrderedKey> {
    rows: Vec<E>,
    /// `None` where the rows are in order as they are.
    order: Option<Vec<usize>>,
    compare: fn(&KeyOf<E>, &KeyOf<E>) -> Ordering,
}

impl<E: OrderedKey> Rows<E> {
    fn at(&self, position: usize) -> &E {
        match &self.order {
            Some(order) => &self.rows[order[position]],
            None => &self.rows[position],
        }
    }
}

impl<S: RowSink, E: Row<S>> Batch<S> for Rows<E> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn table(&self) -> Table {
        Table::of::<E>(self.rows.len())
    }

    fn sort(&mut self) -> Result<(), Error> {
        self.order = row_order_by(&self.rows, self.compare)?;
        Ok(())
    }

    fn write(&self, rows: Range<usize>, sink: &mut S) -> usize {
        for row in rows.clone() {
            sink.begin_row();
            self.at(row).write(sink);
            match sink.end_row() {
                RowEnd::Taken => {}
                RowEnd::TakenLast => return row + 1,
                RowEnd::Refused => return row,
            }
        }
        rows.end
    }

    fn key_text(&self, row: usize) -> String {
        match self.at(row).key() {
            Some(key) => key.to_string(),
            None => "none".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
