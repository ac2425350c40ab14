//! The type of a model's field whose column the database fills.

use std::{fmt, ops::Deref};

use ordid_core::entity::{AnyValue, AssignedField, Cell, Filling};
use sea_orm::{
    ActiveValue, ColIdx, QueryResult, TryGetError, TryGetable, Value,
    sea_query::{ArrayType, ColumnType, Nullable, ValueType, ValueTypeErr},
};

/// The value of a column that the database fills, as a field of a model. It dereferences to an
/// [`ordid_core::Assigned`], and has the traits of SeaORM that `T` has.
///
/// A flush neither inserts nor updates the column, and fills the value after its COMMIT. All clones share the value,
/// and so do a `Model` and the `ActiveModel` made of it. If the column of an `ActiveModel` is `NotSet`, the value is
/// dropped.
///
/// Outside a unit of work SeaORM writes the column like any other, so leave it `NotSet` there.
///
/// # Example
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
/// # mod order {
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// use ordid_seaorm::Assigned;
/// use sea_orm::entity::prelude::*;
///
/// #[derive(KeyType)]
/// #[ordid(sea_orm)]
/// pub struct OrderId(Uuid);
///
/// #[derive(Clone, Debug, PartialEq, Eq, OrderedKey, DeriveEntityModel)]
/// #[sea_orm(table_name = "orders")]
/// pub struct Model {
///     #[sea_orm(primary_key, auto_increment = false)]
///     pub id: OrderId,
///     pub total: i64,
///     #[ordid(returning)]
///     pub tax: Assigned<i64>,
/// }
/// # #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
/// # pub enum Relation {}
/// # impl ActiveModelBehavior for ActiveModel {}
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use ordid::KeyType as _;
/// # use ordid_seaorm::{Assigned, UnitOfWork};
/// # use sea_orm::{ConnectionTrait, Database, EntityTrait};
/// let db = Database::connect("sqlite::memory:").await?;
/// db.execute_unprepared(
///     "CREATE TABLE orders (id BLOB PRIMARY KEY, total INTEGER NOT NULL, tax INTEGER AS (total / 5))",
/// ).await?;
///
/// let tax = Assigned::new();
/// let mut work = UnitOfWork::new();
/// let id = work.add(order::Model { id: order::OrderId::generate(), total: 50, tax: tax.clone() });
/// assert_eq!(tax.get(), None);
/// work.flush(&db).await?;
/// assert_eq!(tax.get(), Some(10));
///
/// let read = order::Entity::find_by_id(id).one(&db).await?.expect("it is there");
/// assert_eq!(read.tax.get(), Some(10));
/// # Ok(())
/// # }
/// ```
pub struct Assigned<T>(ordid_core::Assigned<T>);

impl<T> Assigned<T> {
    /// Makes an empty value.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<T> Deref for Assigned<T> {
    type Target = ordid_core::Assigned<T>;

    fn deref(&self) -> &ordid_core::Assigned<T> {
        &self.0
    }
}

impl<T> From<T> for Assigned<T> {
    fn from(value: T) -> Self {
        Self(value.into())
    }
}

/// A clone shares the value with the original.
impl<T> Clone for Assigned<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for Assigned<T> {
    fn default() -> Self {
        Self(ordid_core::Assigned::new())
    }
}

impl<T: PartialEq> PartialEq for Assigned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T: Eq> Eq for Assigned<T> {}

impl<T: fmt::Debug> fmt::Debug for Assigned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Send + Sync + 'static> AssignedField for Assigned<T> {
    type Value = T;

    fn cell(&self) -> &dyn Cell {
        &self.0
    }
}

/// Converts the value to one of SeaORM, which is NULL if nothing is assigned yet.
impl<T: Clone + ValueType + Into<Value>> From<Assigned<T>> for Value {
    fn from(assigned: Assigned<T>) -> Self {
        assigned
            .get()
            .map_or_else(|| null(&T::array_type()), Into::into)
    }
}

/// Returns the NULL of a type. `Nullable` has it for a `T`, but not for an `Option<T>`. A flush never sends this value,
/// and SeaORM should not either: SeaORM's optional features add types of times, whose NULL is that of a text here.
const fn null(of: &ArrayType) -> Value {
    match of {
        ArrayType::Bool => Value::Bool(None),
        ArrayType::TinyInt => Value::TinyInt(None),
        ArrayType::SmallInt => Value::SmallInt(None),
        ArrayType::Int => Value::Int(None),
        ArrayType::BigInt => Value::BigInt(None),
        ArrayType::TinyUnsigned => Value::TinyUnsigned(None),
        ArrayType::SmallUnsigned => Value::SmallUnsigned(None),
        ArrayType::Unsigned => Value::Unsigned(None),
        ArrayType::BigUnsigned => Value::BigUnsigned(None),
        ArrayType::Float => Value::Float(None),
        ArrayType::Double => Value::Double(None),
        ArrayType::Bytes => Value::Bytes(None),
        ArrayType::Uuid => Value::Uuid(None),
        _ => Value::String(None),
    }
}

impl<T: TryGetable> TryGetable for Assigned<T> {
    fn try_get_by<I: ColIdx>(row: &QueryResult, index: I) -> Result<Self, TryGetError> {
        Ok(T::try_get_by(row, index)?.into())
    }
}

impl<T: ValueType> ValueType for Assigned<T> {
    fn try_from(value: Value) -> Result<Self, ValueTypeErr> {
        Ok(<T as ValueType>::try_from(value)?.into())
    }

    fn is_option() -> bool {
        T::is_option()
    }

    fn type_name() -> String {
        T::type_name()
    }

    fn array_type() -> ArrayType {
        T::array_type()
    }

    fn column_type() -> ColumnType {
        T::column_type()
    }

    fn enum_type_name() -> Option<&'static str> {
        T::enum_type_name()
    }
}

impl<T: Nullable> Nullable for Assigned<T> {
    fn null() -> Value {
        T::null()
    }
}

/// Returns the cell that takes the value of a column of an `ActiveModel`.
#[doc(hidden)]
pub fn cell<F: AssignedField + Into<Value>>(field: &ActiveValue<F>) -> &dyn Cell {
    match field.try_as_ref() {
        Some(field) => field.cell(),
        None => &NoCell,
    }
}

/// The cell of a column that is `NotSet`, which drops the value.
struct NoCell;

impl Cell for NoCell {
    fn prepare(&self, _: AnyValue) -> Option<Filling> {
        Some(Filling::new(|| ()))
    }
}
