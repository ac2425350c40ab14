//! Entities: rows that know their table, their key and their parents.
//!
//! `#[derive(OrderedKey)]` implements these traits for a struct, independent of any database library. [`Fields`]
//! passes the values of the columns to a [`Sink`], so one entity serves every database.

use alloc::{
    string::{String, ToString as _},
    vec::Vec,
};
use core::{any::TypeId, fmt, marker::PhantomData};

use crate::{
    error::Error,
    generator::Generator,
    key::{EnsuredFields, KeyBytes, KeyField, KeyFields, KeyType, PartField, StaticScheme},
};

mod assigned;
mod tracked;
mod version;

#[cfg(feature = "std")]
pub use assigned::Assigned;
pub use assigned::{AnyValue, AssignedField, Cell, Filling, Reads};
pub use tracked::{Tracked, Values};
pub use version::Version;

/// The key type of an entity.
pub type KeyOf<E> = <<E as OrderedKey>::Field as KeyField>::Key;

/// The raw key of an entity's key type.
pub type RawKeyOf<E> = <KeyOf<E> as KeyType>::Raw;

/// The scheme of an entity's keys.
pub type SchemeOf<E> = <KeyOf<E> as KeyType>::Scheme;

/// A row with an ordered key, which a unit of work can hold.
///
/// `#[derive(OrderedKey)]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no ordered key",
    label = "not an entity",
    note = "add `#[derive(ordid::OrderedKey)]` to `{Self}` and mark its key with `#[ordid(key)]`"
)]
#[doc(alias("primary key", "entity"))]
pub trait OrderedKey {
    /// The type of the key field: a key type `K`, or `Option<K>` if the key may be unassigned. Then
    /// [`key`](Self::key) may return `None`.
    type Field: KeyField;

    /// The schema of the table, if one was given.
    const SCHEMA: Option<&'static str>;
    /// The table's name, unquoted.
    const TABLE: &'static str;
    /// The key column's name, unquoted. If the key has several columns, the name of the first.
    const KEY_COLUMN: &'static str;
    /// The names of the key's columns, unquoted, in the order of [`COLUMNS`](Self::COLUMNS).
    const KEY_COLUMNS: &'static [&'static str] = &[Self::KEY_COLUMN];
    /// The names of all columns, unquoted, in the order in which [`Fields`] passes their values.
    const COLUMNS: &'static [&'static str];
    /// The foreign keys.
    const PARENTS: &'static [Parent];
    /// Whether each inserted row has to count as one affected row. `#[ordid(uncounted)]` makes it `false`, for a
    /// view, a rule or a trigger that inserts other rows, or none.
    const COUNTS_INSERTS: bool = true;
    /// The position of the row's [`Version`] in [`COLUMNS`](Self::COLUMNS), if it has one.
    const VERSION: Option<usize> = None;
    /// Whether the row's version [reads a clock](Version::READS_CLOCK).
    const VERSION_READS_CLOCK: bool = false;
    /// The names of the columns under `#[ordid(returning)]`, which the database fills, unquoted. In a derived entity
    /// they are not in [`COLUMNS`](Self::COLUMNS); in a model of SeaORM they are.
    const RETURNING: &'static [&'static str] = &[];

    /// Returns the key, if it is assigned.
    fn key(&self) -> Option<KeyOf<Self>>;

    /// Assigns the key, and replaces one that was there.
    fn assign_key(&mut self, key: KeyOf<Self>);

    /// Returns the fields of a key of several columns.
    #[doc(hidden)]
    fn key_fields(&self) -> Option<Self::Field>
    where
        Self::Field: Sized,
    {
        None
    }

    /// Calls `visit` for each foreign key of the row that is set, in the order of [`PARENTS`](Self::PARENTS), with
    /// its position there and the parent's key.
    fn parents(&self, visit: &mut dyn FnMut(usize, KeyBytes));

    /// Returns the version that the row was read with, as a number ([`Version::to_number`]); `None` if the entity has
    /// no version.
    fn version(&self) -> Option<i128> {
        None
    }

    /// Returns the text of the version that has this number, for messages.
    fn version_text(number: i128) -> String {
        number.to_string()
    }

    /// Calls `visit` for each cell that takes a value of [`RETURNING`](Self::RETURNING), with its position there.
    fn returned(&self, _visit: &mut dyn FnMut(usize, &dyn Cell)) {}

    /// Returns the key, and assigns a new one first if there is none. Calling it again changes nothing, so a retry
    /// carries the same key.
    ///
    /// # Panics
    ///
    /// As [`KeyType::generate`], if a key has to be made. Also if a column of a key of several columns is an integer
    /// without a value: nothing makes one.
    #[track_caller]
    fn ensure_key(&mut self) -> KeyOf<Self>
    where
        Self: Sized,
        Self::Field: EnsuredKey,
    {
        Self::Field::ensure(self)
    }

    /// As [`ensure_key`](Self::ensure_key), with a generator of your own.
    ///
    /// # Errors
    ///
    /// As [`Generator::try_generate`].
    fn ensure_key_with<G>(&mut self, generator: &G) -> Result<KeyOf<Self>, Error>
    where
        G: Generator<Scheme = SchemeOf<Self>>,
    {
        if let Some(key) = self.key() {
            return Ok(key);
        }
        let key = KeyOf::<Self>::from_generated(generator.try_generate()?);
        self.assign_key(key);
        Ok(key)
    }
}

/// A key field that can always get a key: a key type `K`, which always has one, or an `Option<K>` whose scheme has a
/// generator for the process ([`StaticScheme`]).
///
/// Generic code that adds entities to a unit of work without passing a generator needs this bound:
/// `E: OrderedKey<Field: EnsuredKey>`.
#[diagnostic::on_unimplemented(
    message = "nothing makes the key of an entity with the key field `{Self}`: its scheme has no \
               generator for the process",
    label = "the key may be unassigned, and takes a generator with a node of your own to make",
    note = "make one, `let generator = OrderedGenerator::with_node(...)`, and give it: \
            `work.add_with(&generator, order)?` to a unit of work, or \
            `order.ensure_key_with(&generator)?`",
    note = "if the key is always set before, its field is no `Option`; where it has to be one, as in SeaORM, call \
            `try_add` or `try_upsert`",
    note = "where nodes come from: https://github.com/ordid/ordid/blob/main/docs/src/coordinated-ids.md"
)]
pub trait EnsuredKey: KeyField {
    /// Returns the entity's key, and assigns a new one first if there is none.
    ///
    /// # Panics
    ///
    /// As [`KeyType::generate`]; for `K` also if a hand-written [`OrderedKey::key`] returns `None`.
    #[track_caller]
    fn ensure<E: OrderedKey<Field = Self>>(entity: &mut E) -> Self::Key;
}

#[diagnostic::do_not_recommend]
impl<K: KeyType> EnsuredKey for K {
    fn ensure<E: OrderedKey<Field = K>>(entity: &mut E) -> K {
        match entity.key() {
            Some(key) => key,
            None => no_key(),
        }
    }
}

/// Not in a function that is compiled for each key type.
#[cold]
#[track_caller]
fn no_part(table: &str, columns: &[&str]) -> ! {
    let (which, names) = match columns {
        [column] => ("the column", (*column).to_string()),
        columns => ("one of the columns", columns.join(", ")),
    };
    panic!(
        "a row of {table} has no value in {which} {names} of its key: assign it before the row is added"
    )
}

/// Not in a function that is compiled for each key type.
#[cold]
fn no_key() -> ! {
    unreachable!("a field of a key type has a key")
}

#[diagnostic::do_not_recommend]
impl<K: KeyType<Scheme: StaticScheme>> EnsuredKey for Option<K> {
    fn ensure<E: OrderedKey<Field = Self>>(entity: &mut E) -> K {
        entity.key().unwrap_or_else(|| {
            let key = K::generate();
            entity.assign_key(key);
            key
        })
    }
}

/// Each field without a value gets a new one.
///
/// # Panics
///
/// If a field without a value is an integer, for which no value can be made. This happens if an `ActiveModel` of
/// SeaORM leaves it out.
#[diagnostic::do_not_recommend]
impl<F> EnsuredKey for KeyFields<F>
where
    Self: EnsuredFields,
{
    fn ensure<E: OrderedKey<Field = Self>>(entity: &mut E) -> Self::Key {
        if let Some(key) = entity.key() {
            return key;
        }
        match entity.key_fields().map(|it| it.ensured()) {
            Some(Ok(key)) => {
                entity.assign_key(key);
                key
            }
            Some(Err(part)) => no_part(
                E::TABLE,
                E::KEY_COLUMNS.get(part..=part).unwrap_or(E::KEY_COLUMNS),
            ),
            None => no_part(E::TABLE, E::KEY_COLUMNS),
        }
    }
}

/// A foreign key of an entity: its column, and the entity that it refers to.
#[derive(Clone, Copy)]
pub struct Parent {
    column: &'static str,
    target: Target,
    nullable: bool,
    deferrable: bool,
}

#[derive(Clone, Copy)]
enum Target {
    Key {
        type_id: fn() -> TypeId,
        name: &'static str,
    },
    Entity {
        type_id: fn() -> TypeId,
        name: fn() -> &'static str,
    },
}

impl Parent {
    /// Makes a foreign key to the entity that has the key type of this field.
    pub const fn by_key<F: KeyField>(column: &'static str) -> Self {
        Self {
            column,
            target: Target::Key {
                type_id: TypeId::of::<F::Key>,
                name: <F::Key as KeyType>::NAME,
            },
            nullable: F::OPTIONAL,
            deferrable: false,
        }
    }

    /// Makes a foreign key to the entity `P`.
    pub const fn by_entity<F: KeyField, P: 'static>(column: &'static str) -> Self {
        Self::of_entity::<P>(column, F::OPTIONAL)
    }

    /// The parent is this entity, and the column is one of several that hold its key.
    #[doc(hidden)]
    pub const fn by_part<F: PartField, P: 'static>(column: &'static str) -> Self {
        Self::of_entity::<P>(column, F::OPTIONAL)
    }

    const fn of_entity<P: 'static>(column: &'static str, nullable: bool) -> Self {
        Self {
            column,
            target: Target::Entity {
                type_id: TypeId::of::<P>,
                name: core::any::type_name::<P>,
            },
            nullable,
            deferrable: false,
        }
    }

    /// Declares that the constraint is `DEFERRABLE`, so that the database can check it at COMMIT.
    #[must_use]
    pub const fn deferrable(mut self) -> Self {
        self.deferrable = true;
        self
    }

    /// Returns the foreign key's column.
    pub const fn column(&self) -> &'static str {
        self.column
    }

    /// Returns whether the foreign key may be NULL.
    pub const fn is_nullable(&self) -> bool {
        self.nullable
    }

    /// Returns whether the constraint was declared `DEFERRABLE`.
    pub const fn is_deferrable(&self) -> bool {
        self.deferrable
    }

    /// Returns whether the parent is the entity of this type or of this key type.
    pub fn is(&self, entity: TypeId, key: TypeId) -> bool {
        match self.target {
            Target::Key { type_id, .. } => type_id() == key,
            Target::Entity { type_id, .. } => type_id() == entity,
        }
    }
}

impl fmt::Debug for Parent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = match self.target {
            Target::Key { name, .. } => name,
            Target::Entity { name, .. } => name(),
        };
        f.debug_struct("Parent")
            .field("column", &self.column)
            .field("target", &target)
            .finish()
    }
}

/// A column of an entity, named as its field: `Issue::title`, if the struct has `#[ordid(columns)]`.
///
/// # Example
///
/// ```
/// use ordid_core::entity::{ColumnList, ColumnOf};
/// # use ordid_core::{KeyOf, OrderedKey, entity::Parent, key::KeyBytes, uuid::Uuid};
/// # struct Issue { id: Uuid, title: String }
/// # #[allow(non_upper_case_globals)]
/// # impl Issue {
/// #     const id: ColumnOf<Self> = ColumnOf::at(0);
/// #     const title: ColumnOf<Self> = ColumnOf::at(1);
/// # }
/// # impl OrderedKey for Issue {
/// #     type Field = Uuid;
/// #     const SCHEMA: Option<&'static str> = None;
/// #     const TABLE: &'static str = "issues";
/// #     const KEY_COLUMN: &'static str = "id";
/// #     const COLUMNS: &'static [&'static str] = &["id", "title"];
/// #     const PARENTS: &'static [Parent] = &[];
/// #     fn key(&self) -> Option<KeyOf<Self>> { Some(self.id) }
/// #     fn assign_key(&mut self, key: KeyOf<Self>) { self.id = key; }
/// #     fn parents(&self, _: &mut dyn FnMut(usize, KeyBytes)) {}
/// # }
///
/// // #[derive(OrderedKey)]
/// // #[ordid(table = "issues", columns)]
/// // struct Issue { #[ordid(key)] id: IssueId, title: String }
/// assert_eq!(Issue::title.name(), "title");
/// assert_eq!((Issue::title, Issue::id).positions(), [1, 0]);
/// ```
pub struct ColumnOf<E: ?Sized> {
    position: usize,
    entity: PhantomData<fn(&E)>,
}

impl<E: ?Sized> ColumnOf<E> {
    /// The column at a position of [`OrderedKey::COLUMNS`]. Derived code calls it.
    #[doc(hidden)]
    pub const fn at(position: usize) -> Self {
        Self {
            position,
            entity: PhantomData,
        }
    }

    /// Returns the position in [`OrderedKey::COLUMNS`].
    pub const fn position(self) -> usize {
        self.position
    }
}

impl<E: OrderedKey + ?Sized> ColumnOf<E> {
    /// Returns the column's name, unquoted.
    pub fn name(self) -> &'static str {
        E::COLUMNS[self.position]
    }
}

impl<E: ?Sized> Clone for ColumnOf<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E: ?Sized> Copy for ColumnOf<E> {}

impl<E: ?Sized> PartialEq for ColumnOf<E> {
    fn eq(&self, other: &Self) -> bool {
        self.position == other.position
    }
}

impl<E: ?Sized> Eq for ColumnOf<E> {}

impl<E: OrderedKey + ?Sized> fmt::Debug for ColumnOf<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ColumnOf({}.{})", E::TABLE, self.name())
    }
}

/// Some columns of an entity: one column, a tuple of up to eight, an array or a slice.
#[diagnostic::on_unimplemented(
    message = "`{Self}` names no columns of `{E}`",
    label = "not columns of this entity",
    note = "with `#[ordid(columns)]` at the struct, `(Issue::title, Issue::state)` are columns of `Issue`"
)]
pub trait ColumnList<E: ?Sized> {
    /// Returns the positions of the columns in [`OrderedKey::COLUMNS`].
    fn positions(&self) -> Vec<usize>;
}

impl<E: ?Sized> ColumnList<E> for ColumnOf<E> {
    fn positions(&self) -> Vec<usize> {
        Vec::from([self.position])
    }
}

impl<E: ?Sized> ColumnList<E> for [ColumnOf<E>] {
    fn positions(&self) -> Vec<usize> {
        self.iter().map(|column| column.position).collect()
    }
}

impl<E: ?Sized, const N: usize> ColumnList<E> for [ColumnOf<E>; N] {
    fn positions(&self) -> Vec<usize> {
        self.as_slice().positions()
    }
}

impl<E: ?Sized, L: ColumnList<E> + ?Sized> ColumnList<E> for &L {
    fn positions(&self) -> Vec<usize> {
        (**self).positions()
    }
}

macro_rules! tuples_of_columns {
    ($column:ident $($others:ident)*) => {
        impl<E: ?Sized> ColumnList<E> for (ColumnOf<E>, $(tuples_of_columns!(@ $others E),)*) {
            fn positions(&self) -> Vec<usize> {
                #[allow(non_snake_case)]
                let ($column, $($others,)*) = self;
                Vec::from([$column.position, $($others.position),*])
            }
        }

        tuples_of_columns!($($others)*);
    };
    (@ $other:ident $entity:ident) => { ColumnOf<$entity> };
    () => {};
}

tuples_of_columns!(a b c d e f g h);

/// An entity that can pass the values of its columns to a sink.
///
/// `#[derive(OrderedKey)]` implements it for every sink that takes the types of all fields.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written here: it has no ordered key, or a field of a type that \
               this database cannot store",
    label = "cannot be written to this database",
    note = "add `#[derive(ordid::OrderedKey)]` to `{Self}`; leave out a field that is no column \
            with `#[ordid(skip)]`"
)]
pub trait Fields<S: ?Sized> {
    /// Passes the value of each of [`OrderedKey::COLUMNS`] to the sink, in that order.
    fn write(&self, sink: &mut S);

    /// Passes only a key, as the value of [`OrderedKey::KEY_COLUMN`], for a row that is not available any more.
    fn write_key(key: KeyOf<Self>, sink: &mut S)
    where
        Self: OrderedKey;

    /// Passes the values of an update. These are the values of [`write`](Self::write), with the next [`Version`] in
    /// the version's column, and after all columns the version that the row was read with. Without a version, the
    /// same as `write`.
    fn write_update(&self, sink: &mut S) {
        self.write(sink);
    }

    /// Passes only the version that has this number, for a row that is not available any more.
    fn write_version(_number: i128, _sink: &mut S) {}

    /// Tells the sink the types of the values of [`OrderedKey::RETURNING`], in that order.
    fn expect_returned(_sink: &mut S) {}
}

/// Takes values of one type. An adapter implements it for the type that binds values in its database library.
#[diagnostic::on_unimplemented(
    message = "a field of type `{T}` cannot be written to this database",
    label = "`{T}` has no column type here",
    note = "for a key type, name its column, `#[ordid(sqlx(postgres = uuid, mysql = binary16, \
            sqlite = blob))]`, and turn on the database's feature of the adapter, such as `sqlite` of \
            ordid-sqlx; for a type of another crate, turn on the database library's feature for it, such as \
            `chrono` of sqlx"
)]
pub trait Sink<T: ?Sized> {
    /// Takes the value of the next column.
    fn put(&mut self, value: &T);
}

#[cfg(test)]
#[cfg(all(feature = "std", not(loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use uuid::Uuid;

    struct Line {
        id: Option<Uuid>,
        number: Option<i32>,
        part: Option<i16>,
    }

    impl OrderedKey for Line {
        type Field = KeyFields<(Option<Uuid>, Option<i32>, Option<i16>)>;
        const SCHEMA: Option<&'static str> = None;
        const TABLE: &'static str = "lines";
        const KEY_COLUMN: &'static str = "id";
        const KEY_COLUMNS: &'static [&'static str] = &["id", "number", "part"];
        const COLUMNS: &'static [&'static str] = Self::KEY_COLUMNS;
        const PARENTS: &'static [Parent] = &[];

        fn key(&self) -> Option<KeyOf<Self>> {
            KeyField::get(&KeyFields((self.id, self.number, self.part)))
        }

        fn assign_key(&mut self, key: KeyOf<Self>) {
            (self.id, self.number, self.part) = (Some(key.0.0), Some(key.0.1), Some(key.0.2));
        }

        fn key_fields(&self) -> Option<Self::Field> {
            Some(KeyFields((self.id, self.number, self.part)))
        }

        fn parents(&self, _: &mut dyn FnMut(usize, KeyBytes)) {}
    }

    #[test]
    fn the_panic_names_the_part_of_a_key_that_nothing_makes() {
        let line = |number, part| Line {
            id: None,
            number,
            part,
        };
        for (mut line, column) in [
            (line(None, Some(1)), "number"),
            (line(Some(1), None), "part"),
            (line(None, None), "number"),
        ] {
            let panicked = catch_unwind(AssertUnwindSafe(|| line.ensure_key())).unwrap_err();
            assert_eq!(
                panicked.downcast_ref::<String>().unwrap(),
                &alloc::format!(
                    "a row of lines has no value in the column {column} of its key: assign it before the row is added"
                )
            );
            assert_eq!(line.id, None);
        }
        let mut whole = line(Some(1), Some(2));
        let key = whole.ensure_key();
        assert_eq!((whole.key(), key.0.1, key.0.2), (Some(key), 1, 2));
    }
}
