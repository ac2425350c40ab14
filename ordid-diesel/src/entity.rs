//! Entities: rows whose columns are those of a `table!`, and their values on the way into a statement.
//!
//! # Why not `Insertable`
//!
//! Diesel's own `values(&rows)` writes `INSERT` alone, takes a row as it is, and on SQLite sends a
//! statement for each row of a struct that leaves `None` to the column's default. A unit of work also
//! inserts a row with NULL in the place of a foreign key, completes it, updates many rows by one
//! statement and deletes by keys. So its statements are query fragments of this crate, whose parameters
//! come from [`Fields`]. The SQL type of each is that of its column in `table!`: the derive hands over
//! the column's path, and a field that the column does not take does not compile.
//!
//! A statement is walked more than once, for its text and for its parameters, which it lends to Diesel.
//! So the values are kept until it was sent, column by column, in one `Vec` each: fields have to be
//! `Clone`. Of keys the raw keys are kept, so that a program with many key types has few such `Vec`s.

use std::{any::Any, borrow::Cow, fmt, marker::PhantomData};

use diesel::{
    Expression,
    backend::Backend as DieselBackend,
    query_builder::{AstPass, QueryBuilder as _},
    query_source::Column,
    result::QueryResult,
    serialize::{self, IsNull, Output, ToSql},
    sql_types::{HasSqlType, IntoNullable, Nullable, SqlType, is_nullable},
};
use ordid_core::{
    Fields, KeyType, OrderedKey, RawKey, Sink, entity::RawKeyOf, key::KeyField, uuid::Uuid,
};
use ordid_sql::{
    ColumnMask, Columns as Taken, EngineProfile, Registration, RowEnd, RowSink, Table, Take,
    spi::{RowBinder, TableNames},
};

#[cfg(feature = "copy")]
use crate::postgres::copy::{CopyBuffer, SendRows};
use crate::{
    backend::Backend,
    returned::ReadValue,
    stored::{InColumn, StoredAs},
};

/// An entity that a database can take: every type with `#[derive(OrderedKey)]` and `#[ordid(diesel)]`
/// whose fields fit the columns of its `table!`.
#[diagnostic::on_unimplemented(
    message = "a unit of work of Diesel does not take `{Self}`",
    label = "cannot be written to this database",
    note = "`{Self}` needs `#[derive(ordid::OrderedKey)]`, `#[diesel(table_name = ...)]` and \
            `#[ordid(diesel)]`, and its key type a column of this database"
)]
pub trait Entity<DB: Backend>:
    OrderedKey<Field: KeyField<Leading: StoredAs<DB>>>
    + Columns<DB>
    + Fields<Binder<DB>>
    + Send
    + Sync
    + 'static
{
    /// Says in which order its rows are sent, and what the binder knows of it.
    #[doc(hidden)]
    fn __register() -> Registration<Binder<DB>, RawKeyOf<Self>>;
}

impl<DB: Backend, E> Entity<DB> for E
where
    E: OrderedKey<Field: KeyField<Leading: StoredAs<DB>>>
        + Columns<DB>
        + Fields<Binder<DB>>
        + Send
        + Sync
        + 'static,
{
    fn __register() -> Registration<Binder<DB>, RawKeyOf<E>> {
        let entity = const { &TableOf::entity::<E>() };
        Registration::in_column::<E::Field, LeadingColumn<E::Field, DB>>(entity)
    }
}

/// The table of an entity, as far as it is known to the compiler.
#[doc(hidden)]
#[derive(Debug)]
pub struct TableOf<DB: Backend> {
    pub(crate) name: fn(&mut DB::QueryBuilder) -> QueryResult<()>,
    pub(crate) names: &'static [&'static str],
    version: Option<usize>,
    values: &'static [MakeValues<DB>],
    /// The names of the columns that the database fills, and the functions that read their values.
    returning: &'static [&'static str],
    readers: &'static [ReadValue<DB>],
    #[cfg(feature = "copy")]
    pub(crate) send: fn() -> Option<SendRows>,
}

impl<DB: Backend> TableOf<DB> {
    const fn entity<E: OrderedKey + Columns<DB>>() -> Self {
        Self {
            name: E::table,
            names: E::NAMES,
            version: E::VERSION,
            values: E::VALUES,
            returning: E::RETURNING_NAMES,
            readers: E::READERS,
            #[cfg(feature = "copy")]
            send: DB::send_rows::<E>,
        }
    }
}

/// The columns of an entity's `table!`. `#[derive(OrderedKey)]` implements it where the struct says
/// `#[ordid(diesel)]`.
///
/// # Example: a field of another type than its column
///
#[cfg_attr(feature = "sqlite", doc = "```compile_fail,E0277")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
/// use ordid::{KeyType, OrderedKey};
///
/// #[derive(KeyType)]
/// #[ordid(diesel)]
/// struct OrderId(uuid::Uuid);
///
/// diesel::table! {
///     orders (id) { id -> Binary, total -> BigInt, }
/// }
///
/// #[derive(OrderedKey)]
/// #[diesel(table_name = orders)]
/// #[ordid(diesel)]
/// struct Order { id: OrderId, total: i32 }
///
/// fn add(work: &mut ordid_diesel::UnitOfWork<diesel::sqlite::Sqlite>, order: Order) {
///     work.add(order);
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "the columns of `{Self}` are not known, or do not take its fields in this database",
    label = "cannot be written to this database",
    note = "say `#[ordid(diesel)]` at `{Self}`, beside its `#[diesel(table_name = ...)]`"
)]
pub trait Columns<DB: Backend> {
    /// Writes what stands for the table in a statement.
    #[doc(hidden)]
    fn table(out: &mut DB::QueryBuilder) -> QueryResult<()>;

    /// The columns' names, in the order of [`OrderedKey::COLUMNS`].
    #[doc(hidden)]
    const NAMES: &'static [&'static str];

    /// What makes room for their values, in the same order.
    #[doc(hidden)]
    const VALUES: &'static [MakeValues<DB>];

    /// The names of the columns that the database fills, in the order of [`OrderedKey::RETURNING`].
    #[doc(hidden)]
    const RETURNING_NAMES: &'static [&'static str] = &[];

    /// The functions that read their values, in the same order.
    #[doc(hidden)]
    const READERS: &'static [ReadValue<DB>] = &[];
}

/// A column of `table!` that takes values of a type in a database, each as `H` says: [`AsValue`], or
/// [`AsKey`].
#[diagnostic::on_unimplemented(
    message = "the column `{Self}` does not take a field of type `{T}` in this database",
    label = "of another type than the column in `table!`"
)]
pub trait Takes<T, DB: Backend, H>: Column {
    /// What makes room for its values.
    #[doc(hidden)]
    const VALUES: MakeValues<DB>;
}

/// A field's own values are kept.
#[doc(hidden)]
#[derive(Debug)]
pub enum AsValue {}

/// Of a field with keys the raw keys are kept. A program has a key type for each entity, and of raw keys
/// and their columns one or two.
#[doc(hidden)]
#[derive(Debug)]
pub enum AsKey {}

#[diagnostic::do_not_recommend]
impl<C, T, DB, N> Takes<T, DB, AsValue> for C
where
    C: Column + Expression<SqlType: IntoNullable<Nullable = N>>,
    T: ToSql<N, DB> + Clone + Send + Sync + 'static,
    DB: Backend + HasSqlType<N>,
    N: 'static,
    Null: ToSql<N, DB>,
{
    // Not a function of its own: a program has many columns of a few types.
    const VALUES: MakeValues<DB> = Typed::<N, T>::boxed;
}

#[diagnostic::do_not_recommend]
impl<C, F, DB, N> Takes<F, DB, AsKey> for C
where
    C: Column + Expression<SqlType: IntoNullable<Nullable = N>>,
    F: KeyField<Key: StoredAs<DB>>,
    InColumn<RawOf<F>, ColumnOf<F, DB>>: ToSql<N, DB>,
    DB: Backend + HasSqlType<N>,
    N: 'static,
    Null: ToSql<N, DB>,
{
    const VALUES: MakeValues<DB> = Keys::<N, RawOf<F>, ColumnOf<F, DB>>::boxed::<DB, F>;
}

type RawOf<F> = <<F as KeyField>::Key as KeyType>::Raw;
/// The column of the first column of a key.
type LeadingColumn<F, DB> = <<F as KeyField>::Leading as StoredAs<DB>>::Column;
type ColumnOf<F, DB> = <<F as KeyField>::Key as StoredAs<DB>>::Column;

/// Makes room for the values of a column.
#[doc(hidden)]
pub type MakeValues<DB> = fn() -> Box<dyn Values<DB>>;

/// The values of one column, row by row.
#[doc(hidden)]
pub trait Values<DB: Backend>: Send + Sync {
    /// Takes a value of the column, or NULL in its place.
    fn add(&mut self, value: Option<&dyn Any>);

    /// Binds the value of a row.
    fn push<'b>(&'b self, row: usize, out: &mut AstPass<'_, 'b, DB>) -> QueryResult<()>;

    /// The number under which the engine of the bulk command knows the column's type.
    #[cfg(feature = "copy")]
    fn type_number(&self) -> Option<u32>;

    /// Returns what would be sent for all of them, where Diesel says it: equal texts are equal values.
    #[cfg(feature = "journal")]
    fn sent(&self) -> Option<String>;

    /// Writes a value of the column, or NULL in its place, into the bulk command.
    #[cfg(feature = "copy")]
    fn copy(&self, value: Option<&dyn Any>, copy: &mut CopyBuffer);
}

/// Values that are bound under a SQL type, which may be NULL: an `Option` in the key's field is bound
/// like any other, and so is NULL in its place.
pub(crate) struct Typed<N, T> {
    values: Vec<Option<T>>,
    sql_type: PhantomData<fn() -> N>,
}

impl<N, T> Typed<N, T> {
    const fn new() -> Self {
        Self {
            values: Vec::new(),
            sql_type: PhantomData,
        }
    }

    fn boxed<DB>() -> Box<dyn Values<DB>>
    where
        DB: Backend + HasSqlType<N>,
        N: 'static,
        T: ToSql<N, DB> + Clone + Send + Sync + 'static,
        Null: ToSql<N, DB>,
    {
        Box::new(Self::new())
    }

    /// One value.
    #[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
    pub(crate) fn of(value: T) -> Self {
        Self {
            values: vec![Some(value)],
            sql_type: PhantomData,
        }
    }
}

impl<DB, N, T> Values<DB> for Typed<N, T>
where
    DB: Backend + HasSqlType<N>,
    N: 'static,
    T: ToSql<N, DB> + Clone + Send + Sync + 'static,
    Null: ToSql<N, DB>,
{
    // This is compiled for each type of a field, so no closure and no more of the standard library is in
    // it than has to be.
    fn add(&mut self, value: Option<&dyn Any>) {
        let value = match value {
            Some(value) => match value.downcast_ref::<T>() {
                Some(value) => Some(value.clone()),
                None => not_the_columns(),
            },
            None => None,
        };
        self.values.push(value);
    }

    fn push<'b>(&'b self, row: usize, out: &mut AstPass<'_, 'b, DB>) -> QueryResult<()> {
        // What Diesel does with it is then compiled for each SQL type, and not for each key type.
        let value: &'b dyn ToSql<N, DB> = match &self.values.as_slice()[row] {
            Some(value) => value,
            None => &Null,
        };
        out.push_bind_param::<N, _>(value)
    }

    #[cfg(feature = "journal")]
    fn sent(&self) -> Option<String> {
        let mut text = String::new();
        for value in &self.values {
            let value: &dyn ToSql<N, DB> = match value {
                Some(value) => value,
                None => &Null,
            };
            text.push_str(&DB::sent::<N>(value)?);
        }
        Some(text)
    }

    #[cfg(feature = "copy")]
    fn type_number(&self) -> Option<u32> {
        DB::type_number::<N>()
    }

    #[cfg(feature = "copy")]
    fn copy(&self, value: Option<&dyn Any>, copy: &mut CopyBuffer) {
        let value = match value {
            Some(value) => match value.downcast_ref::<T>() {
                Some(value) => Some(value),
                None => not_the_columns(),
            },
            None => None,
        };
        DB::copy::<N, T>(value, copy);
    }
}

/// The keys of a column, by their raw keys.
struct Keys<N, R, C> {
    keys: Typed<N, InColumn<R, C>>,
    /// Returns the raw key of a field, if it has one.
    raw_key: fn(&dyn Any) -> Option<R>,
}

impl<N: 'static, R: RawKey, C: 'static> Keys<N, R, C> {
    fn boxed<DB, F>() -> Box<dyn Values<DB>>
    where
        DB: Backend + HasSqlType<N>,
        F: KeyField<Key: KeyType<Raw = R>>,
        InColumn<R, C>: ToSql<N, DB>,
        Null: ToSql<N, DB>,
    {
        Box::new(Self {
            keys: Typed::new(),
            raw_key: raw_key::<F>,
        })
    }
}

/// Returns the raw key of a field of this type, if it has one.
#[expect(
    clippy::manual_map,
    reason = "`map` and its closure would be compiled for each type"
)]
fn raw_key<F: KeyField>(field: &dyn Any) -> Option<RawOf<F>> {
    let Some(field) = field.downcast_ref::<F>() else {
        not_the_columns()
    };
    match field.get() {
        Some(key) => Some(key.to_raw()),
        None => None,
    }
}

impl<DB, N, R, C> Values<DB> for Keys<N, R, C>
where
    DB: Backend + HasSqlType<N>,
    N: 'static,
    R: RawKey,
    C: 'static,
    InColumn<R, C>: ToSql<N, DB>,
    Null: ToSql<N, DB>,
{
    fn add(&mut self, value: Option<&dyn Any>) {
        let raw = value.and_then(self.raw_key);
        self.keys.values.push(raw.map(InColumn::new));
    }

    fn push<'b>(&'b self, row: usize, out: &mut AstPass<'_, 'b, DB>) -> QueryResult<()> {
        self.keys.push(row, out)
    }

    #[cfg(feature = "journal")]
    fn sent(&self) -> Option<String> {
        self.keys.sent()
    }

    #[cfg(feature = "copy")]
    fn type_number(&self) -> Option<u32> {
        DB::type_number::<N>()
    }

    #[cfg(feature = "copy")]
    fn copy(&self, value: Option<&dyn Any>, copy: &mut CopyBuffer) {
        let raw = value.and_then(self.raw_key).map(InColumn::new);
        DB::copy::<N, InColumn<R, C>>(raw.as_ref(), copy);
    }
}

/// That a value is not of its column's type.
#[cold]
fn not_the_columns() -> ! {
    unreachable!("the derive names fields and columns in one order");
}

/// NULL, of any type.
#[doc(hidden)]
#[derive(Debug)]
pub struct Null;

impl<ST, DB> ToSql<Nullable<ST>, DB> for Null
where
    DB: DieselBackend,
    ST: SqlType<IsNull = is_nullable::NotNull>,
{
    fn to_sql<'b>(&'b self, _: &mut Output<'b, '_, DB>) -> serialize::Result {
        Ok(IsNull::Yes)
    }
}

/// Takes the fields of entities, as parameters of one statement.
pub struct Binder<DB: Backend> {
    /// The functions that read the values of the columns that the database fills.
    readers: &'static [ReadValue<DB>],
    columns: Vec<Box<dyn Values<DB>>>,
    /// The columns of the row, where it is not all of them.
    given: Vec<usize>,
    /// The column that comes next in the row, or in these.
    next: usize,
    mask: ColumnMask,
    /// About how many bytes the values have, and from how many on there is no room for more rows.
    bytes: usize,
    limit: usize,
    /// Where the rows go at once, in place of being kept.
    #[cfg(feature = "copy")]
    copy: Option<CopyBuffer>,
}

impl<DB: Backend> Binder<DB> {
    fn new(columns: Vec<Box<dyn Values<DB>>>) -> Self {
        Self {
            readers: &[],
            columns,
            given: Vec::new(),
            next: 0,
            mask: ColumnMask::default(),
            bytes: 0,
            limit: usize::MAX,
            #[cfg(feature = "copy")]
            copy: None,
        }
    }

    /// Makes one for a query without parameters.
    pub(crate) fn without_columns() -> Self {
        Self::new(Vec::new())
    }

    /// Makes the rows go into the bulk command.
    #[cfg(feature = "copy")]
    pub(crate) fn into_copy(mut self, copy: CopyBuffer) -> Self {
        self.copy = Some(copy);
        self
    }

    #[cfg(feature = "copy")]
    pub(crate) fn copy_mut(&mut self) -> Option<&mut CopyBuffer> {
        self.copy.as_mut()
    }

    pub(crate) const fn readers(&self) -> &'static [ReadValue<DB>] {
        self.readers
    }

    pub(crate) fn columns(&self) -> &[Box<dyn Values<DB>>] {
        &self.columns
    }

    /// Takes a value of the column that comes next.
    fn take(&mut self, value: &dyn Any) {
        let value = match self.mask.take() {
            Take::Value => Some(value),
            Take::Null => None,
            Take::Skip => {
                self.next += 1;
                return;
            }
        };
        let column = self.given.get(self.next).copied();
        let column = &mut self.columns[column.unwrap_or(self.next)];
        self.next += 1;
        #[cfg(feature = "copy")]
        if let Some(copy) = &mut self.copy {
            column.copy(value, copy);
            return;
        }
        self.bytes += value.map_or(0, bytes_of);
        column.add(value);
    }
}

/// Returns about how many bytes a value has on its way to the server. A type that is not known here counts by its size in
/// memory: Diesel writes values when the statement is sent, and not before.
fn bytes_of(value: &dyn Any) -> usize {
    let in_memory = size_of_val(value);
    // All of these have one size, and few other values do.
    if in_memory != size_of::<String>() {
        return in_memory;
    }
    if let Some(text) = value.downcast_ref::<String>() {
        text.len()
    } else if let Some(bytes) = value.downcast_ref::<Vec<u8>>() {
        bytes.len()
    } else if let Some(text) = value.downcast_ref::<Option<String>>() {
        text.as_ref().map_or(0, String::len)
    } else if let Some(bytes) = value.downcast_ref::<Option<Vec<u8>>>() {
        bytes.as_ref().map_or(0, Vec::len)
    } else if let Some(text) = value.downcast_ref::<Cow<'static, str>>() {
        text.len()
    } else {
        in_memory
    }
}

impl<DB: Backend> fmt::Debug for Binder<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Binder")
            .field("columns", &self.columns.len())
            .finish_non_exhaustive()
    }
}

#[diagnostic::do_not_recommend]
impl<DB: Backend, T: Clone + 'static> Sink<T> for Binder<DB> {
    fn put(&mut self, value: &T) {
        self.take(value);
    }
}

impl<DB: Backend> RowSink for Binder<DB> {
    type Entity = &'static TableOf<DB>;

    fn begin_row(&mut self, columns: Taken<'_>) {
        self.next = 0;
        self.given.clear();
        if let Taken::Given(given) = columns {
            self.given.extend_from_slice(given);
        }
        self.mask.begin(columns);
        #[cfg(feature = "copy")]
        if let Some(copy) = &mut self.copy {
            copy.begin_row();
        }
    }

    fn end_row(&mut self) -> RowEnd {
        #[cfg(feature = "copy")]
        if let Some(copy) = &self.copy {
            return copy.end_row();
        }
        match self.bytes >= self.limit {
            true => RowEnd::TakenLast,
            false => RowEnd::Taken,
        }
    }

    #[cfg(feature = "journal")]
    fn sent(
        entity: &'static TableOf<DB>,
        columns: Taken<'_>,
        write: &mut dyn FnMut(&mut Self),
    ) -> Option<String> {
        let mut binder = Self::with_room(entity, 1, 1);
        binder.begin_row(columns);
        write(&mut binder);
        // Columns that are left out have no value.
        binder.columns.iter().map(|column| column.sent()).collect()
    }
}

impl<DB: Backend> RowBinder for Binder<DB> {
    /// Diesel writes the placeholders, and no name of its own has a NUL.
    const PLACEHOLDER: Option<char> = Some('\0');
    const BY_COLUMN: bool = true;
    const BEGINS_XA: bool = true;

    fn with_room(entity: &'static TableOf<DB>, _: usize, _: usize) -> Self {
        // Behind all columns, the version that a row was read with.
        let version = entity.version.map(|version| &entity.values[version]);
        let columns = entity.values.iter().chain(version).map(|make| make());
        Self {
            readers: entity.readers,
            ..Self::new(columns.collect())
        }
    }

    fn limit(&mut self, bytes: usize) {
        self.limit = bytes;
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    #[cfg(feature = "copy")]
    fn offers_bulk(rows: usize, _: usize) -> Result<(), ordid_sql::NotBulk> {
        match crate::connection::engine::<DB>().bulk {
            true => ordid_sql::copy::offers(rows),
            false => Err(ordid_sql::NotBulk::NoCommand),
        }
    }

    fn of_marker(id: Uuid) -> Self {
        Self::new(vec![DB::flush_id(id)])
    }

    #[cfg(feature = "copy")]
    fn take_error(&mut self) -> Option<ordid_sql::spi::BoxedError> {
        Some(self.copy.as_mut()?.take_error()?.into())
    }

    /// Diesel's own, which a `table!` may give other names than the entity has.
    fn names(entity: &'static TableOf<DB>, table: &Table, _: &EngineProfile) -> TableNames {
        let quoted = |names: &[&str]| {
            let names = names.iter();
            names
                .map(|name| text::<DB>(|out| out.push_identifier(name)))
                .collect()
        };
        TableNames::new(text::<DB>(entity.name), quoted(entity.names), table)
            .returning(quoted(entity.returning))
    }
}

/// Returns what is written.
pub(crate) fn text<DB: Backend>(
    write: impl FnOnce(&mut DB::QueryBuilder) -> QueryResult<()>,
) -> String {
    let mut text = DB::QueryBuilder::default();
    write(&mut text).expect("names are text, which a query builder takes");
    text.finish()
}

/// `#[derive(OrderedKey)]` calls this if the struct says `#[ordid(diesel)]`. It gets the entity, its table, and its
/// columns with the fields' types, each [`AsKey`] or [`AsValue`], and then the columns that the database fills.
#[doc(hidden)]
#[macro_export]
macro_rules! __entity {
    (
        $entity:ty, $table:ty $(, $column:ty: $how:ident $field:ty)+ $(,)?
        $(; $returned:ty: $assigned:ty)*
    ) => {
        #[automatically_derived]
        impl<__DB> $crate::Columns<__DB> for $entity
        where
            __DB: $crate::Backend,
            <$table as $crate::__private::diesel::query_source::QuerySource>::FromClause:
                $crate::__private::diesel::query_builder::QueryFragment<__DB>,
            $($column: $crate::__private::Takes<$field, __DB, $crate::__private::$how>,)+
            $(
                $returned: $crate::__private::ReadAs<
                    <$assigned as $crate::__private::AssignedField>::Value, __DB,
                >,
            )*
        {
            const NAMES: &'static [&'static $crate::__private::str] = &[
                $(<$column as $crate::__private::diesel::query_source::Column>::NAME),+
            ];

            fn table(
                __out: &mut <__DB as $crate::__private::diesel::backend::Backend>::QueryBuilder,
            ) -> $crate::__private::diesel::QueryResult<()> {
                let __table = <$table as $crate::__private::Default>::default();
                $crate::__private::diesel::query_builder::QueryFragment::<__DB>::to_sql(
                    &$crate::__private::diesel::query_source::QuerySource::from_clause(&__table),
                    __out,
                    &<__DB as $crate::__private::Default>::default(),
                )
            }

            const VALUES: &'static [$crate::__private::MakeValues<__DB>] = &[
                $(
                    <$column as $crate::__private::Takes<$field, __DB, $crate::__private::$how>>::VALUES
                ),+
            ];

            const RETURNING_NAMES: &'static [&'static $crate::__private::str] = &[
                $(<$returned as $crate::__private::diesel::query_source::Column>::NAME),*
            ];

            const READERS: &'static [$crate::__private::ReadValue<__DB>] = &[
                $(
                    <$returned as $crate::__private::ReadAs<
                        <$assigned as $crate::__private::AssignedField>::Value, __DB,
                    >>::READ
                ),*
            ];
        }
    };
}

#[cfg(all(test, feature = "journal", feature = "postgres", feature = "mysql"))]
mod tests {
    use diesel::{mysql::Mysql, pg::Pg, sql_types::Text};

    use super::*;

    /// A journal compares these texts. They differ if a value differs in a byte, or is NULL.
    fn sent_values_differ_as_the_values_do<DB>()
    where
        DB: Backend + HasSqlType<Nullable<Text>>,
        String: ToSql<Nullable<Text>, DB>,
    {
        let sent = |values: &[Option<&str>]| {
            let values = values.iter().map(|it| it.map(str::to_owned)).collect();
            let typed = Typed::<Nullable<Text>, String> {
                values,
                sql_type: PhantomData,
            };
            Values::<DB>::sent(&typed).expect("it is known")
        };
        let text = sent(&[Some("ada")]);
        assert_eq!(text, sent(&[Some("ada")]));
        for other in [
            &[Some("adb")][..],
            &[Some("")],
            &[None],
            &[],
            &[Some("ada"), None],
        ] {
            assert_ne!(text, sent(other), "{other:?}");
        }
    }

    #[test]
    fn sent_values_differ_on_each_engine() {
        sent_values_differ_as_the_values_do::<Pg>();
        sent_values_differ_as_the_values_do::<Mysql>();
    }
}
