//! The rows of a unit of work: one box per entity type, none per row.

use std::{
    any::{Any, TypeId},
    cmp::Ordering,
    collections::{HashMap, HashSet},
    fmt,
    ops::Range,
};

use crate::{
    Action, Chunk, Columns, EngineProfile, Plan, Table, Upsert,
    entities::EntitiesOf,
    list::TypeOf,
    plan::Orders,
    rows::{Rows, TypelessRows},
};
use ordid_core::{
    Error,
    entity::{Cell, Fields, OrderedKey, RawKeyOf, SchemeOf},
    key::{KeyBytes, KeyField, KeyType, RawKey, Scheme},
    storage::Stores,
};

/// Takes whole rows: what an adapter's row binder implements beside
/// [`Sink`](ordid_core::entity::Sink), so that it sees where a row begins and ends.
pub trait RowSink {
    /// What an adapter knows about an entity type besides its rows, such as the names of its columns
    /// in the library's own terms. `()` if there is nothing.
    type Entity: Copy + Send + Sync + 'static;

    /// Begins a row. The values of its columns follow, and the sink keeps those that are in `columns`,
    /// which a [`ColumnMask`](crate::ColumnMask) counts.
    fn begin_row(&mut self, columns: Columns<'_>);

    /// Ends a row. The sink remembers whether one of its values failed.
    fn end_row(&mut self) -> RowEnd;

    /// Returns these columns of a row, which `write` hands over, as the library would send them: equal texts are equal
    /// values. `None` if that is not known before a statement, or a value failed.
    ///
    /// A journal compares a row with what would come back of it, because serde may leave out of a value what the
    /// database gets.
    fn sent(
        entity: Self::Entity,
        columns: Columns<'_>,
        write: &mut dyn FnMut(&mut Self),
    ) -> Option<String>
    where
        Self: Sized,
    {
        let _ = (entity, columns, write);
        None
    }
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

/// Entities of many types, to be inserted, updated and deleted, and written to sinks of type `S`.
///
/// The ability to be written is captured where a type comes in first, by
/// [`rows_mut`](Self::rows_mut), [`update`](Self::update) or [`delete`](Self::delete). Tables are
/// then known by their position in [`tables`](Self::tables), and rows by their position in the order
/// in which they are sent, one order for each [`Action`](crate::Action).
///
/// # Example: rows as text
///
/// ```
/// use ordid_core::{
///     Fields, KeyOf, OrderedKey, Sink,
///     entity::Parent,
///     key::KeyBytes,
///     uuid::Uuid,
/// };
/// use ordid_sql::{Columns, EngineProfile, PendingRows, RowEnd, RowSink};
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
///     fn parents(&self, _: &mut dyn FnMut(usize, KeyBytes)) {}
/// }
///
/// impl<S: Sink<Uuid> + Sink<&'static str>> Fields<S> for City {
///     fn write(&self, sink: &mut S) {
///         sink.put(&self.id);
///         sink.put(&self.name);
///     }
///
///     fn write_key(key: Uuid, sink: &mut S) { sink.put(&key); }
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
///     type Entity = ();
///
///     // A real one takes no more than these columns.
///     fn begin_row(&mut self, _: Columns<'_>) {}
///     fn end_row(&mut self) -> RowEnd { RowEnd::Taken }
/// }
///
/// let mut rows = PendingRows::<Names>::new();
/// rows.rows_mut().push(City { id: Uuid::from_u128(2), name: "Bergen" });
/// rows.rows_mut().push(City { id: Uuid::from_u128(1), name: "Aarhus" });
///
/// let mut names = Names::default();
/// for chunk in rows.plan(&EngineProfile::SQLITE)?.chunks() {
///     let written = rows.write(&chunk, chunk.rows.clone(), &mut names);
///     assert_eq!(written, chunk.rows.end);
/// }
/// assert_eq!(names.0, ["Aarhus", "Bergen"]);
/// # Ok::<(), ordid_core::Error>(())
/// ```
pub struct PendingRows<S: RowSink> {
    rows: Vec<Rows<S>>,
    entities: Vec<S::Entity>,
    positions: Positions,
}

/// Says how an entity type is registered with its first row.
pub struct Registration<S: RowSink, R> {
    /// The order in which its rows are sent, by their raw keys; zero for equal ones only. By law 1 it is
    /// the order of the keys; for a column that does not keep it, give
    /// [`Stores::compare`](ordid_core::storage::Stores::compare), so that inserts append to the index
    /// all the same.
    pub compare: fn(&R, &R) -> Ordering,
    /// What the adapter knows of it.
    pub entity: S::Entity,
}

impl<S: RowSink, R: RawKey> Registration<S, R> {
    /// Registers an entity with a key field `F` whose keys, or the first column of them, are stored in the column `C`:
    /// its rows are sent in the order in which the database keeps the stored keys.
    pub fn in_column<F, C>(entity: S::Entity) -> Self
    where
        F: KeyField<Key: KeyType<Raw = R>>,
        C: Stores<<F::Leading as KeyType>::Raw>,
    {
        Self {
            // Where the column keeps the keys' order, comparing the keys themselves is cheaper.
            compare: if C::UNORDERED {
                as_stored::<F, C>
            } else {
                <F::Key as KeyType>::Scheme::cmp
            },
            entity,
        }
    }
}

/// Compares keys as their first column is stored, and what is equal there by the others.
fn as_stored<F, C>(left: &RawOf<F>, right: &RawOf<F>) -> Ordering
where
    F: KeyField,
    C: Stores<<F::Leading as KeyType>::Raw>,
{
    C::compare(&F::leading(*left), &F::leading(*right)).then_with(|| left.cmp(right))
}

/// The raw key of a key field.
type RawOf<F> = <<F as KeyField>::Key as KeyType>::Raw;

impl<S: RowSink + 'static> PendingRows<S> {
    /// Makes an empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the rows of an entity type that will be inserted, to add to them: they are sent in the
    /// order of their keys.
    pub fn rows_mut<E: Row<S>>(&mut self) -> &mut Vec<E>
    where
        S::Entity: Default,
    {
        self.rows_mut_as(Registration::in_key_order::<E>)
    }

    /// As [`rows_mut`](Self::rows_mut), of a type that may come in only now: `register` is called for
    /// the first of its rows. What was said first of a type stays, also for the rows that will be updated
    /// and deleted.
    pub fn rows_mut_as<E: Row<S>>(
        &mut self,
        register: impl FnOnce() -> Registration<S, RawKeyOf<E>>,
    ) -> &mut Vec<E> {
        let [inserts, _] = self.rows_of::<E>(register);
        vec_mut(inserts)
    }

    /// Adds a row to those that will be updated: all its columns, where the key is this one's. The
    /// row of the database must be there.
    pub fn update<E: Row<S>>(
        &mut self,
        row: E,
        register: impl FnOnce() -> Registration<S, RawKeyOf<E>>,
    ) {
        let [_, updates] = self.rows_of::<E>(register);
        vec_mut(updates).push(row);
    }

    /// As [`update`](Self::update), of these columns alone: positions in
    /// [`OrderedKey::COLUMNS`](ordid_core::OrderedKey::COLUMNS), in any order. If there is no such column,
    /// [`plan`](Self::plan) or what follows it panics.
    pub fn update_columns<E: Row<S>>(
        &mut self,
        row: E,
        columns: Vec<usize>,
        register: impl FnOnce() -> Registration<S, RawKeyOf<E>>,
    ) {
        self.update(row, register);
        self.of_type::<E>().update_only(columns);
    }

    /// Adds a row that will be inserted, unless it is there.
    pub(crate) fn upsert<E: Row<S>>(
        &mut self,
        row: E,
        upsert: Upsert,
        register: impl FnOnce() -> Registration<S, RawKeyOf<E>>,
    ) {
        self.update(row, register);
        self.of_type::<E>().upsert(upsert);
    }

    /// Adds a row to those that will be deleted, of which the key and the foreign keys are kept.
    pub fn delete<E: Row<S>>(
        &mut self,
        row: &E,
        register: impl FnOnce() -> Registration<S, RawKeyOf<E>>,
    ) {
        self.rows_of::<E>(register);
        self.of_type::<E>().delete(row);
    }

    /// Returns whether rows of a type have come in, or room was made for them.
    pub(crate) fn has_type<E: Row<S>>(&self) -> bool {
        self.positions.get(TypeId::of::<E>()).is_some()
    }

    /// Returns the rows of a type that are inserted, and those that are updated: each [`vec_mut`].
    pub(crate) fn rows_of<E: Row<S>>(
        &mut self,
        register: impl FnOnce() -> Registration<S, RawKeyOf<E>>,
    ) -> [&mut dyn Any; 2] {
        let entity = TypeId::of::<E>();
        let position = match self.positions.get(entity) {
            Some(position) => position,
            None => self.push(entity, const { &TypeOf::entity::<E>() }, register()),
        };
        self.rows[position].entities_mut().rows_mut()
    }

    fn push<R: RawKey>(
        &mut self,
        entity: TypeId,
        of: &'static TypeOf<S, R>,
        registration: Registration<S, R>,
    ) -> usize {
        let position = self.rows.len();
        self.positions.insert(entity, position);
        let entities = Box::new(EntitiesOf::new(of, registration.compare));
        self.rows.push(Rows::new(entities));
        self.entities.push(registration.entity);
        position
    }

    /// Returns the entities of a type, which has come in.
    pub(crate) fn of_type<E: Row<S>>(&mut self) -> &mut EntitiesOf<S, RawKeyOf<E>> {
        let position = self.positions.get(TypeId::of::<E>());
        let position = position.expect("a type comes in before it is looked for");
        let entities: &mut dyn Any = self.rows[position].entities_mut();
        entities.downcast_mut().unwrap_or_else(|| not_of_type())
    }

    /// Returns the rows of an entity type that will be inserted, in the order in which they were
    /// added.
    pub fn get<E: Row<S>>(&self) -> &[E] {
        match self.position::<E>() {
            Some(position) => {
                let [inserts, _] = self.rows[position].entities().rows();
                vec(inserts)
            }
            None => &[],
        }
    }

    fn position<E: 'static>(&self) -> Option<usize> {
        self.positions.get(TypeId::of::<E>())
    }

    /// Returns what the adapter knows of a type.
    #[cfg(feature = "journal")]
    pub(crate) fn entity_of<E: 'static>(&self) -> Option<S::Entity> {
        self.entities.get(self.position::<E>()?).copied()
    }

    /// Returns the entities of a type, and of them the rows that are inserted and those that are updated.
    #[cfg(feature = "journal")]
    pub(crate) fn find<E: Row<S>>(&self) -> Option<Found<'_, S, E>> {
        let entities = self.rows[self.position::<E>()?].entities();
        let rows = entities.rows().map(|rows| vec(rows).as_slice());
        let entities: &dyn Any = entities;
        let entities = entities.downcast_ref();
        Some((entities.unwrap_or_else(|| not_of_type()), rows))
    }

    /// Returns the number of rows, of all types.
    pub fn len(&self) -> usize {
        self.rows.iter().map(|rows| rows.table().all_rows()).sum()
    }

    /// Returns whether there is no row of any type.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all rows and all types.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.entities.clear();
        self.positions = Positions::default();
    }

    /// Decides which rows are sent by which statements, in which order. Call it after the last row is
    /// added and before the first is written.
    ///
    /// # Errors
    ///
    /// All [`is_plan`](Error::is_plan), and name tables and keys: a row without a key, a key that
    /// comes twice, rows that refer to each other in a circle of foreign keys none of which can be
    /// NULL or deferred, and a row with more columns than a statement has parameters.
    pub fn plan(&mut self, engine: &EngineProfile) -> Result<Plan, Error> {
        self.plan_by(engine, Orders::ByAllTables)
    }

    /// As [`plan`](Self::plan), with an order that these tables decide.
    pub(crate) fn plan_by(
        &mut self,
        engine: &EngineProfile,
        orders: Orders,
    ) -> Result<Plan, Error> {
        let rows = self.rows.iter_mut();
        let mut rows: Vec<&mut dyn TypelessRows> = rows.map(|rows| rows as _).collect();
        rows.iter_mut().try_for_each(|rows| rows.sort())?;
        Plan::of(&mut rows, engine, orders)
    }

    /// Returns the tables, in the order in which their types were first added.
    pub fn tables(&self) -> Vec<Table> {
        self.rows.iter().map(Rows::table).collect()
    }

    /// Returns the table at a position of [`tables`](Self::tables).
    ///
    /// # Panics
    ///
    /// If there is no such table.
    pub fn table(&self, table: usize) -> Table {
        self.rows[table].table()
    }

    /// Writes rows of a chunk's action and table, one by one in the order of sending, and returns the
    /// position after the last that was taken: the end of `rows`, or where the sink said to stop.
    ///
    /// # Panics
    ///
    /// If there is no such table or row.
    pub fn write(&self, chunk: &Chunk, rows: Range<usize>, sink: &mut S) -> usize {
        self.rows[chunk.table].write(chunk.action, rows, sink)
    }

    /// As [`write`](Self::write), of one row, and of its columns these alone: positions in
    /// [`Table::columns`] that rise.
    ///
    /// # Panics
    ///
    /// If there is no such table or row.
    pub fn write_only(&self, chunk: &Chunk, row: usize, columns: &[usize], sink: &mut S) {
        self.rows[chunk.table].write_only(chunk.action, row, columns, sink);
    }

    /// Returns what the adapter said of the type of a table.
    ///
    /// # Panics
    ///
    /// If there is no such table.
    pub fn entity(&self, table: usize) -> S::Entity {
        self.entities[table]
    }

    /// Writes the key of a row that will be inserted, by itself: to ask whether it is there.
    ///
    /// # Panics
    ///
    /// If there is no such table or row.
    pub fn write_key(&self, table: usize, row: usize, sink: &mut S) {
        self.rows[table].write_key(row, sink);
    }

    /// As [`write_key`](Self::write_key), of a row of a chunk's action and table.
    pub(crate) fn write_key_of(&self, chunk: &Chunk, row: usize, sink: &mut S) {
        self.rows[chunk.table].write_key_of(chunk.action, row, sink);
    }

    /// Writes the key of a row of a chunk, and the version that it was read with.
    pub(crate) fn write_as_read(&self, chunk: &Chunk, row: usize, sink: &mut S) {
        self.rows[chunk.table].write_as_read(chunk.action, row, sink);
    }

    /// Puts the rows of an upsert's chunk that were not found before the others, and returns the first position of these.
    pub(crate) fn put_new_first(&mut self, chunk: &Chunk, found: &[bool]) -> usize {
        match chunk.action {
            Action::Upsert { set, .. } => {
                self.rows[chunk.table].put_new_first(set, chunk.rows.clone(), found)
            }
            _ => chunk.rows.end,
        }
    }

    /// Tells the sink the types of the columns of a table that the database fills.
    pub(crate) fn expect(&self, table: usize, sink: &mut S) {
        self.rows[table].entities().expect(sink);
    }

    /// Visits the cells that take the values of these columns, for a row of a chunk's action and table.
    pub(crate) fn cells(&self, chunk: &Chunk, row: usize, visit: &mut dyn FnMut(usize, &dyn Cell)) {
        self.rows[chunk.table].cells(chunk.action, row, visit);
    }

    /// Returns the keys of the rows of a chunk, each with its entity type.
    pub(crate) fn keys_of(
        &self,
        chunk: &Chunk,
    ) -> impl ExactSizeIterator<Item = (TypeId, KeyBytes)> {
        let rows = &self.rows[chunk.table];
        let (entity, action) = (rows.table().entity, chunk.action);
        chunk
            .rows
            .clone()
            .map(move |row| (entity, rows.key(action, row)))
    }

    /// Shows the foreign keys of all rows of a table that have them or get them: the row's key, the foreign key's position,
    /// and the parent's key.
    pub(crate) fn links(&self, table: usize, visit: &mut dyn FnMut(KeyBytes, usize, KeyBytes)) {
        self.rows[table].links(visit);
    }

    /// Returns the keys of the rows of a table that are inserted, upserted or deleted.
    pub(crate) fn written_keys(&self, table: usize) -> HashSet<KeyBytes> {
        self.rows[table].written_keys()
    }

    /// Returns the version that a row of a chunk's action and table was read with, as text, if it has one.
    pub(crate) fn version_text(&self, chunk: &Chunk, row: usize) -> Option<String> {
        self.rows[chunk.table].version_text(chunk.action, row)
    }

    /// Returns the key of a row of a chunk's action and table as text, for messages; the row is a
    /// position in the order of sending.
    ///
    /// # Panics
    ///
    /// If there is no such table or row.
    pub fn key_text(&self, chunk: &Chunk, row: usize) -> String {
        self.rows[chunk.table].key_text(chunk.action, row)
    }
}

impl<S: RowSink> Registration<S, ()> {
    /// Rows are sent in the order of their keys, and the adapter knows nothing else of the type.
    pub fn in_key_order<E: Row<S>>() -> Registration<S, RawKeyOf<E>>
    where
        S::Entity: Default,
    {
        Registration {
            compare: <SchemeOf<E> as Scheme>::cmp,
            entity: S::Entity::default(),
        }
    }
}

impl<S: RowSink> Default for PendingRows<S> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            entities: Vec::new(),
            positions: Positions::default(),
        }
    }
}

/// The positions of entity types. Its functions are not generic, so that they are compiled here and not
/// in each crate that has a unit of work.
#[derive(Default)]
struct Positions(HashMap<TypeId, usize>);

impl Positions {
    fn get(&self, entity: TypeId) -> Option<usize> {
        self.0.get(&entity).copied()
    }

    fn insert(&mut self, entity: TypeId, position: usize) {
        self.0.insert(entity, position);
    }
}

/// Entities, and their rows.
#[cfg(feature = "journal")]
type Found<'b, S, E> = (&'b EntitiesOf<S, RawKeyOf<E>>, [&'b [E]; 2]);

/// Rows of this type, of which nothing else is known.
pub(crate) fn vec<E: 'static>(rows: &dyn Any) -> &Vec<E> {
    match rows.downcast_ref() {
        Some(rows) => rows,
        None => not_of_type(),
    }
}

/// As [`vec`].
pub(crate) fn vec_mut<E: 'static>(rows: &mut dyn Any) -> &mut Vec<E> {
    match rows.downcast_mut() {
        Some(rows) => rows,
        None => not_of_type(),
    }
}

/// The panic message for a box whose rows are not of its entity type.
#[cold]
fn not_of_type() -> ! {
    unreachable!("positions lead to the rows of their type");
}

/// The tables and their numbers of rows.
impl<S: RowSink + 'static> fmt::Debug for PendingRows<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables = self
            .rows
            .iter()
            .map(|rows| rows.table())
            .map(|table| (table.name(), table.all_rows()));
        f.debug_map().entries(tables).finish()
    }
}

#[cfg(test)]
mod tests;
