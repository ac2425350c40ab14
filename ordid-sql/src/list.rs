//! A list of one entity type, and its rows as the rest of a unit of work sees them.
//!
//! A program has many entity types, and what is generic over them is compiled for each. So this is all
//! that is, and it is short, also in what it calls of the standard library.

use std::{
    any::{Any, TypeId},
    fmt,
    ops::Range,
};

use crate::{
    Table,
    pending_rows::{Row, vec},
};
use ordid_core::{
    entity::{Cell, Fields, KeyOf, OrderedKey, Parent, RawKeyOf, SchemeOf},
    key::{Generated, KeyBytes, KeyField, KeyType, RawKey, Scheme},
    layout::Comparison,
};

/// A row of any type that has such raw keys, and is written to sinks of type `S`.
pub(crate) trait AnyRow<S, R> {
    fn raw_key(&self) -> Option<R>;

    /// Shows the foreign keys.
    fn parents(&self, visit: &mut dyn FnMut(usize, KeyBytes));

    /// Hands over all values.
    fn write(&self, sink: &mut S);

    /// Hands over what an update takes.
    fn write_update(&self, sink: &mut S);

    /// Returns the number of the version.
    fn version(&self) -> Option<i128>;
}

impl<S, E: Row<S>> AnyRow<S, RawKeyOf<E>> for E {
    #[expect(
        clippy::manual_map,
        reason = "`map` and its closure would be compiled for each type"
    )]
    fn raw_key(&self) -> Option<RawKeyOf<E>> {
        match self.key() {
            Some(key) => Some(key.to_raw()),
            None => None,
        }
    }

    fn parents(&self, visit: &mut dyn FnMut(usize, KeyBytes)) {
        OrderedKey::parents(self, visit);
    }

    fn write(&self, sink: &mut S) {
        Fields::write(self, sink);
    }

    fn write_update(&self, sink: &mut S) {
        Fields::write_update(self, sink);
    }

    fn version(&self) -> Option<i128> {
        OrderedKey::version(self)
    }
}

/// Rows of one type: a `Vec` of them.
pub(crate) trait List<S, R>: Any + Send + Sync {
    fn len(&self) -> usize;

    fn row(&self, place: usize) -> &dyn AnyRow<S, R>;

    /// Hands over the keys of rows, and returns whether each has one: one call for many rows.
    fn raw_keys(&self, places: Range<usize>, keys: &mut Vec<R>) -> bool;

    /// Hands over a key of the type.
    fn write_key(&self, raw: R, sink: &mut S);

    /// Hands over a version of the type, of which this is the number.
    fn write_version(&self, number: i128, sink: &mut S);
}

impl<S, E: Row<S>> List<S, RawKeyOf<E>> for Vec<E> {
    fn len(&self) -> usize {
        self.len()
    }

    fn row(&self, place: usize) -> &dyn AnyRow<S, RawKeyOf<E>> {
        &self.as_slice()[place]
    }

    fn raw_keys(&self, places: Range<usize>, keys: &mut Vec<RawKeyOf<E>>) -> bool {
        let rows = self.as_slice();
        let mut place = places.start;
        while place < places.end {
            match rows[place].key() {
                Some(key) => keys.push(key.to_raw()),
                None => return false,
            }
            place += 1;
        }
        true
    }

    fn write_key(&self, raw: RawKeyOf<E>, sink: &mut S) {
        E::write_key(key_of_raw::<E>(raw), sink);
    }

    fn write_version(&self, number: i128, sink: &mut S) {
        E::write_version(number, sink);
    }
}

/// Returns the key of which this is the raw key: it was one, and need not be checked.
pub(crate) fn key_of_raw<E: OrderedKey>(raw: RawKeyOf<E>) -> KeyOf<E> {
    KeyType::from_generated(Generated::new(raw))
}

/// The bytes of the first column of a key.
type LeadingBytes<F> = <<<F as KeyField>::Leading as KeyType>::Raw as RawKey>::Bytes;

/// What is known to the compiler of an entity type that has such raw keys, and is written to sinks of
/// type `S`.
pub(crate) struct TypeOf<S, R> {
    list: fn() -> Box<dyn List<S, R>>,
    entity: fn() -> TypeId,
    key: fn() -> TypeId,
    schema: Option<&'static str>,
    name: &'static str,
    key_columns: &'static [&'static str],
    leading: fn() -> TypeId,
    leading_raw: fn() -> TypeId,
    leading_bytes: usize,
    columns: &'static [&'static str],
    pub(crate) parents: &'static [Parent],
    pub(crate) version: Option<usize>,
    pub(crate) version_text: fn(i128) -> String,
    pub(crate) returning: &'static [&'static str],
    /// The functions for the columns that the database fills, if there are some. Nothing is compiled for types without
    /// such columns.
    pub(crate) returned: Option<Returned<S>>,
    counts_inserts: bool,
    is_named: bool,
    rises: bool,
    prefix: Option<&'static str>,
    /// Makes the raw key that may be shown of one with a mask.
    outside: Option<fn(R) -> R>,
    text: fn(R, Option<&str>) -> String,
}

impl<S: 'static, R: RawKey> TypeOf<S, R> {
    pub(crate) const fn entity<E>() -> Self
    where
        E: Row<S> + OrderedKey<Field: KeyField<Key: KeyType<Raw = R>>>,
    {
        Self {
            list: list::<S, E>,
            entity: TypeId::of::<E>,
            key: TypeId::of::<KeyOf<E>>,
            schema: E::SCHEMA,
            name: E::TABLE,
            key_columns: E::KEY_COLUMNS,
            leading: TypeId::of::<<E::Field as KeyField>::Leading>,
            leading_raw: TypeId::of::<<<E::Field as KeyField>::Leading as KeyType>::Raw>,
            leading_bytes: size_of::<LeadingBytes<E::Field>>(),
            columns: E::COLUMNS,
            parents: E::PARENTS,
            version: E::VERSION,
            version_text: E::version_text,
            returning: E::RETURNING,
            returned: match E::RETURNING {
                [] => None,
                _ => Some(Returned {
                    expect: E::expect_returned,
                    cells: cells::<E>,
                }),
            },
            counts_inserts: E::COUNTS_INSERTS,
            is_named: SchemeOf::<E>::IS_NAMED,
            rises: SchemeOf::<E>::ORDERS.contains(Comparison::Bytes) && SchemeOf::<E>::BUCKETS == 1,
            prefix: KeyOf::<E>::PREFIX,
            outside: match KeyOf::<E>::IS_MASKED {
                true => Some(outside::<KeyOf<E>>),
                false => None,
            },
            text: text::<SchemeOf<E>>,
        }
    }

    /// Makes an empty list.
    pub(crate) fn list(&self) -> Box<dyn List<S, R>> {
        (self.list)()
    }

    /// Describes the table, to which nothing is written yet.
    pub(crate) fn table(&self) -> Table {
        Table {
            entity: (self.entity)(),
            key: (self.key)(),
            schema: self.schema,
            name: self.name,
            key_columns: self.key_columns,
            leading: (self.leading)(),
            is_raw: (self.leading)() == (self.leading_raw)(),
            leading_bytes: self.leading_bytes,
            columns: self.columns,
            parents: self.parents,
            version: self.version,
            returning: self.returning,
            counts_inserts: self.counts_inserts,
            is_named: self.is_named,
            rises: self.rises,
            rows: 0,
            updates: 0,
            column_sets: std::sync::Arc::default(),
            deletes: 0,
        }
    }

    /// Returns a key's text: that of its scheme, of which a program has fewer than key types.
    pub(crate) fn text(&self, raw: R) -> String {
        let raw = self.outside.map_or(raw, |outside| outside(raw));
        (self.text)(raw, self.prefix)
    }
}

/// The functions for the columns of an entity type that the database fills.
pub(crate) struct Returned<S> {
    /// Tells the sink the types of their values.
    pub(crate) expect: fn(&mut S),
    /// Visits the cells that take the values of a row.
    pub(crate) cells: ShowCells,
}

/// Visits the cells of the row at one place of a list, which is a `Vec` of the entity type.
type ShowCells = fn(&dyn Any, usize, &mut dyn FnMut(usize, &dyn Cell));

fn cells<E: OrderedKey + 'static>(
    list: &dyn Any,
    place: usize,
    visit: &mut dyn FnMut(usize, &dyn Cell),
) {
    vec::<E>(list)[place].returned(visit);
}

fn outside<K: KeyType>(raw: K::Raw) -> K::Raw {
    K::from_generated(Generated::new(raw)).to_outside()
}

fn list<S: 'static, E: Row<S>>() -> Box<dyn List<S, RawKeyOf<E>>> {
    Box::new(Vec::<E>::new())
}

fn text<C: Scheme>(raw: C::Raw, prefix: Option<&str>) -> String {
    struct Text<'p, C: Scheme>(C::Raw, Option<&'p str>);

    impl<C: Scheme> fmt::Display for Text<'_, C> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            C::write_text(self.0, self.1, f)
        }
    }

    Text::<C>(raw, prefix).to_string()
}
