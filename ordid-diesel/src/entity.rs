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
//! `Clone`.

use std::{any::Any, fmt, marker::PhantomData};

use diesel::{
    Expression,
    backend::Backend as DieselBackend,
    query_builder::{AstPass, QueryFragment},
    query_source::Column,
    result::QueryResult,
    serialize::{self, IsNull, Output, ToSql},
    sql_types::{HasSqlType, IntoNullable, Nullable, SqlType, is_nullable},
};
use ordid_core::{
    Fields, OrderedKey, Sink,
    key::KeyField,
    unit_of_work::{ColumnMask, Columns as Taken, RowEnd, RowSink, Take},
};

#[cfg(feature = "copy")]
use crate::postgres::copy::Copy;
use crate::{backend::Backend, stored::StoredAs};

/// An entity that a database can take: every type with `#[derive(OrderedKey)]` and `#[ordid(diesel)]`
/// whose fields fit the columns of its `table!`.
#[diagnostic::on_unimplemented(
    message = "a unit of work of Diesel does not take `{Self}`",
    label = "cannot be written to this database",
    note = "`{Self}` needs `#[derive(ordid::OrderedKey)]`, `#[diesel(table_name = ...)]` and \
            `#[ordid(diesel)]`, and its key type a column of this database"
)]
pub trait Entity<DB: Backend>:
    OrderedKey<Field: KeyField<Key: StoredAs<DB>>>
    + Columns<DB>
    + Fields<Binder<DB>>
    + Send
    + Sync
    + 'static
{
}

impl<DB: Backend, E> Entity<DB> for E where
    E: OrderedKey<Field: KeyField<Key: StoredAs<DB>>>
        + Columns<DB>
        + Fields<Binder<DB>>
        + Send
        + Sync
        + 'static
{
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
    /// What stands for the table in a statement.
    #[doc(hidden)]
    fn table() -> Box<dyn QueryFragment<DB> + Send + Sync>;

    /// The columns' names, in the order of [`OrderedKey::COLUMNS`].
    #[doc(hidden)]
    const NAMES: &'static [&'static str];

    /// What makes room for their values, in the same order.
    #[doc(hidden)]
    const VALUES: &'static [MakeValues<DB>];
}

/// A column of `table!` that takes values of a type in a database.
#[diagnostic::on_unimplemented(
    message = "the column `{Self}` does not take a field of type `{T}` in this database",
    label = "of another type than the column in `table!`"
)]
pub trait Takes<T, DB: Backend>: Column {
    /// What makes room for its values.
    #[doc(hidden)]
    const VALUES: MakeValues<DB>;
}

#[diagnostic::do_not_recommend]
impl<C, T, DB, N> Takes<T, DB> for C
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

    /// Writes a value of the column, or NULL in its place, into the bulk command.
    #[cfg(feature = "copy")]
    fn copy(&self, value: Option<&dyn Any>, copy: &mut Copy);
}

/// Values that are bound under a SQL type, which may be NULL: an `Option` in the key's field is bound
/// like any other, and so is NULL in its place.
pub(crate) struct Typed<N, T> {
    values: Vec<Option<T>>,
    sql_type: PhantomData<fn() -> N>,
}

impl<N: 'static, T: Clone + Send + Sync + 'static> Typed<N, T> {
    fn boxed<DB>() -> Box<dyn Values<DB>>
    where
        DB: Backend + HasSqlType<N>,
        T: ToSql<N, DB>,
        Null: ToSql<N, DB>,
    {
        Box::new(Self {
            values: Vec::new(),
            sql_type: PhantomData,
        })
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
    fn add(&mut self, value: Option<&dyn Any>) {
        let value = value.map(|it| it.downcast_ref::<T>().expect(SAME_ORDER));
        self.values.push(value.cloned());
    }

    fn push<'b>(&'b self, row: usize, out: &mut AstPass<'_, 'b, DB>) -> QueryResult<()> {
        // What Diesel does with it is then compiled for each SQL type, and not for each key type.
        let value: &'b dyn ToSql<N, DB> = match &self.values[row] {
            Some(value) => value,
            None => &Null,
        };
        out.push_bind_param::<N, _>(value)
    }

    #[cfg(feature = "copy")]
    fn type_number(&self) -> Option<u32> {
        DB::type_number::<N>()
    }

    #[cfg(feature = "copy")]
    fn copy(&self, value: Option<&dyn Any>, copy: &mut Copy) {
        let value = value.map(|it| it.downcast_ref::<T>().expect(SAME_ORDER));
        DB::copy::<N, T>(value, copy);
    }
}

/// Why a value is of its column's type.
const SAME_ORDER: &str = "the derive names fields and columns in one order";

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
    columns: Vec<Box<dyn Values<DB>>>,
    /// Which of them is the key's.
    key: usize,
    /// The column that comes next in the row.
    next: usize,
    rows: usize,
    mask: ColumnMask,
    /// Where the rows go at once, in place of being kept.
    #[cfg(feature = "copy")]
    copy: Option<Copy>,
}

impl<DB: Backend> Binder<DB> {
    pub(crate) fn new(columns: Vec<Box<dyn Values<DB>>>, key: usize) -> Self {
        Self {
            columns,
            key,
            next: 0,
            rows: 0,
            mask: ColumnMask::default(),
            #[cfg(feature = "copy")]
            copy: None,
        }
    }

    /// Has the rows go into the bulk command.
    #[cfg(feature = "copy")]
    pub(crate) fn into_copy(mut self, copy: Copy) -> Self {
        self.copy = Some(copy);
        self
    }

    #[cfg(feature = "copy")]
    pub(crate) fn copy_mut(&mut self) -> Option<&mut Copy> {
        self.copy.as_mut()
    }

    pub(crate) fn columns(&self) -> &[Box<dyn Values<DB>>] {
        &self.columns
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
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
        let column = &mut self.columns[self.next];
        self.next += 1;
        #[cfg(feature = "copy")]
        if let Some(copy) = &mut self.copy {
            column.copy(value, copy);
            return;
        }
        column.add(value);
    }

    /// A key was written by itself.
    pub(crate) fn begin_key(&mut self) {
        self.begin_row(Taken::Key);
        self.rows += 1;
    }
}

impl<DB: Backend> fmt::Debug for Binder<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Binder")
            .field("columns", &self.columns.len())
            .field("rows", &self.rows)
            .finish()
    }
}

#[diagnostic::do_not_recommend]
impl<DB: Backend, T: Clone + 'static> Sink<T> for Binder<DB> {
    fn put(&mut self, value: &T) {
        self.take(value);
    }
}

impl<DB: Backend> RowSink for Binder<DB> {
    fn begin_row(&mut self, columns: Taken<'_>) {
        self.next = match columns {
            Taken::Key => self.key,
            Taken::All | Taken::Without(_) | Taken::Only(_) => 0,
        };
        self.mask.begin(columns);
        #[cfg(feature = "copy")]
        if let Some(copy) = &mut self.copy {
            copy.begin_row();
        }
    }

    fn end_row(&mut self) -> RowEnd {
        self.rows += 1;
        #[cfg(feature = "copy")]
        if let Some(copy) = &self.copy {
            return match (copy.has_failed(), copy.is_full()) {
                (true, _) => RowEnd::Refused,
                (false, true) => RowEnd::TakenLast,
                (false, false) => RowEnd::Taken,
            };
        }
        RowEnd::Taken
    }
}

/// What `#[derive(OrderedKey)]` calls where the struct says `#[ordid(diesel)]`: the entity, its table,
/// and its columns with the fields' types.
#[doc(hidden)]
#[macro_export]
macro_rules! __entity {
    ($entity:ty, $table:ty $(, $column:ty: $field:ty)+ $(,)?) => {
        #[automatically_derived]
        impl<__DB> $crate::Columns<__DB> for $entity
        where
            __DB: $crate::Backend,
            <$table as $crate::__private::diesel::query_source::QuerySource>::FromClause:
                $crate::__private::diesel::query_builder::QueryFragment<__DB>,
            $($column: $crate::__private::Takes<$field, __DB>,)+
        {
            const NAMES: &'static [&'static $crate::__private::str] = &[
                $(<$column as $crate::__private::diesel::query_source::Column>::NAME),+
            ];

            fn table() -> $crate::__private::Box<
                dyn $crate::__private::diesel::query_builder::QueryFragment<__DB>
                    + ::core::marker::Send
                    + ::core::marker::Sync,
            > {
                let table = <$table as $crate::__private::Default>::default();
                $crate::__private::Box::new(
                    $crate::__private::diesel::query_source::QuerySource::from_clause(&table),
                )
            }

            const VALUES: &'static [$crate::__private::MakeValues<__DB>] = &[
                $(<$column as $crate::__private::Takes<$field, __DB>>::VALUES),+
            ];
        }
    };
}
