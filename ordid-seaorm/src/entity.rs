//! What the unit of work needs of a model, and the sink that takes its rows.

use std::any::TypeId;

use ordid_core::{
    Fields, KeyOf, OrderedKey,
    unit_of_work::{ColumnMask, Columns, RowEnd, RowSink, Take},
};
use sea_orm::{
    ActiveModelTrait, ActiveValue, ColumnDef, ColumnTrait, ColumnType, EntityName as _,
    EntityTrait, IdenStatic as _, Iterable as _, PrimaryKeyToColumn as _, PrimaryKeyTrait, Value,
    sea_query::{DynIden, Expr, IntoIden as _, SimpleExpr, TableRef},
};

/// What a unit of work can hold: the `ActiveModel` of every model with `#[derive(OrderedKey)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no ordered key",
    label = "not the `ActiveModel` of a model with an ordered key",
    note = "add `#[derive(ordid::OrderedKey)]` to the `Model` beside it, which has a \
            `#[sea_orm(table_name = \"...\")]`"
)]
pub trait Entity: ActiveModelTrait + OrderedKey + Fields<Binder> + Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<A: ActiveModelTrait + OrderedKey + Fields<Binder> + Send + Sync + 'static> Entity for A {}

/// A key type that SeaORM takes for that of the primary key. An entity that is written by hand says it a
/// second time.
#[diagnostic::on_unimplemented(
    message = "the ordered key is of type `{Self}`, and SeaORM's primary key of type `{V}`",
    label = "of another type than the primary key",
    note = "write `type ValueType = {Self};` where `PrimaryKeyTrait` is implemented for this model's \
            `PrimaryKey`"
)]
#[doc(hidden)]
pub trait IsPrimaryKey<V> {}

impl<K> IsPrimaryKey<K> for K {}

/// A key type that has a column in SeaORM: one that was told to, or a raw key that SeaORM knows.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no column for SeaORM",
    label = "no column declared",
    note = "add it to the key type: `#[ordid(sea_orm)]`, or which, `#[ordid(sea_orm(uuid))]`"
)]
#[doc(hidden)]
pub trait HasColumn {}

#[diagnostic::do_not_recommend]
impl<K: Into<Value>> HasColumn for K {}

/// Has its key demanded to have a column and to be the primary key: SeaORM's bounds would say that in
/// words of their own, or nothing would.
#[doc(hidden)]
pub trait KeyedModel: ActiveModelTrait {
    type Key: HasColumn
        + IsPrimaryKey<<<Self::Entity as EntityTrait>::PrimaryKey as PrimaryKeyTrait>::ValueType>;
}

/// A column of any entity: a program has many column types, and what is generic over them is compiled for
/// each.
trait AnyColumn: Send + Sync {
    fn name(&self) -> &'static str;
    fn iden(&self) -> DynIden;
    fn definition(&self) -> ColumnDef;
    fn save_as(&self, value: SimpleExpr) -> SimpleExpr;
}

impl<C: ColumnTrait> AnyColumn for C {
    fn name(&self) -> &'static str {
        self.as_str()
    }

    fn iden(&self) -> DynIden {
        self.into_iden()
    }

    fn definition(&self) -> ColumnDef {
        self.def()
    }

    fn save_as(&self, value: SimpleExpr) -> SimpleExpr {
        ColumnTrait::save_as(self, value)
    }
}

/// SeaORM's names of a table, kept beside its rows, which do not know them.
pub(crate) struct Names {
    pub(crate) entity: TypeId,
    pub(crate) table: TableRef,
    pub(crate) columns: Vec<DynIden>,
    /// The key's position among the columns.
    pub(crate) key: usize,
    defined: Vec<Box<dyn AnyColumn>>,
    /// Of which columns SeaORM casts the values. It looks the column's definition up for each value.
    casts: Vec<bool>,
}

impl Names {
    pub(crate) fn of<A: Entity>() -> Self {
        let mut columns: Vec<Box<dyn AnyColumn>> = Vec::new();
        for column in <A::Entity as EntityTrait>::Column::iter() {
            columns.push(Box::new(column));
        }
        let key = <A::Entity as EntityTrait>::PrimaryKey::iter().next();
        let key = key.map(|key| key.into_column().as_str());
        let table = A::Entity::default().table_ref();
        Self::new(TypeId::of::<A>(), table, columns, key)
    }

    fn new(
        entity: TypeId,
        table: TableRef,
        defined: Vec<Box<dyn AnyColumn>>,
        key: Option<&str>,
    ) -> Self {
        let key = defined.iter().position(|it| Some(it.name()) == key);
        Self {
            entity,
            table,
            columns: defined.iter().map(|it| it.iden()).collect(),
            key: key.unwrap_or_default(),
            casts: defined.iter().map(|it| is_cast(&**it)).collect(),
            defined,
        }
    }

    /// Casts what goes into the column at this position, where its type asks for that: `CAST($1 AS mood)`.
    pub(crate) fn saved(&self, position: usize, value: SimpleExpr) -> SimpleExpr {
        match self.defined.get(position) {
            Some(column) if self.casts(position) => column.save_as(value),
            _ => value,
        }
    }

    /// Whether what goes into the column at this position is cast.
    pub(crate) fn casts(&self, position: usize) -> bool {
        self.casts.get(position) != Some(&false)
    }

    pub(crate) fn key(&self) -> DynIden {
        self.columns[self.key].clone()
    }
}

/// Whether SeaORM casts what goes into a column: by the column's type alone, but for JSON, of which it looks
/// at the value, too.
fn is_cast(column: &dyn AnyColumn) -> bool {
    let value = || Expr::cust("value");
    let definition = column.definition();
    let is_json = matches!(
        definition.get_column_type(),
        ColumnType::Json | ColumnType::JsonBinary
    );
    is_json || column.save_as(value()) != value()
}

/// A row's values: `None` where it has none, so that the database's default holds.
pub(crate) type Row = Vec<Option<Value>>;

/// Collects the rows of a statement.
#[derive(Debug, Default)]
pub struct Binder {
    rows: Vec<Row>,
    mask: ColumnMask,
    /// Whether it takes nothing but the key, at this position, and what was changed.
    only_changes: Option<usize>,
}

impl Binder {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Takes the key, which is the column at this position, and of the others those that were set.
    pub(crate) fn of_changes(key: usize) -> Self {
        Self {
            only_changes: Some(key),
            ..Self::default()
        }
    }

    pub(crate) fn into_rows(self) -> Vec<Row> {
        self.rows
    }

    fn put(&mut self, value: Option<Value>) {
        if let Some(row) = self.rows.last_mut() {
            row.push(value);
        }
    }

    /// Takes the columns of a model.
    #[doc(hidden)]
    pub fn put_all<A: ActiveModelTrait>(&mut self, model: &A) {
        for column in <A::Entity as EntityTrait>::Column::iter() {
            self.take(model.get(column));
        }
    }

    /// Takes what a model has in its next column.
    fn take(&mut self, value: ActiveValue<Value>) {
        let position = self.rows.last().map_or(0, Vec::len);
        let value = match (self.mask.take(), value) {
            (Take::Skip, _) | (_, ActiveValue::NotSet) => None,
            (_, ActiveValue::Unchanged(_))
                if self.only_changes.is_some_and(|key| key != position) =>
            {
                None
            }
            (Take::Value, ActiveValue::Set(value) | ActiveValue::Unchanged(value)) => Some(value),
            (Take::Null, ActiveValue::Set(value) | ActiveValue::Unchanged(value)) => {
                Some(value.as_null())
            }
        };
        self.put(value);
    }

    /// Takes a key alone.
    #[doc(hidden)]
    pub fn put_key<A>(&mut self, key: KeyOf<A>)
    where
        A: ActiveModelTrait + OrderedKey,
        KeyOf<A>: Into<Value>,
    {
        self.put(Some(key.into()));
    }
}

impl RowSink for Binder {
    fn begin_row(&mut self, columns: Columns<'_>) {
        self.mask.begin(columns);
        // As many values as the row before, most often.
        let values = self.rows.last().map_or(0, Vec::len);
        self.rows.push(Vec::with_capacity(values));
    }

    fn end_row(&mut self) -> RowEnd {
        RowEnd::Taken
    }
}

#[cfg(test)]
mod tests {
    use ordid::{KeyType, uuid::Uuid};
    use sea_orm::entity::prelude::*;

    use super::*;

    #[derive(KeyType)]
    #[ordid(sea_orm)]
    struct NoteId(Uuid);

    #[derive(Clone, Debug, PartialEq, Eq, EnumIter, DeriveActiveEnum)]
    #[sea_orm(rs_type = "String", db_type = "Enum", enum_name = "mood")]
    enum Mood {
        #[sea_orm(string_value = "glad")]
        Glad,
    }

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel, ordid::OrderedKey)]
    #[sea_orm(table_name = "notes")]
    struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        id: NoteId,
        mood: Mood,
        #[sea_orm(column_type = "JsonBinary")]
        lines: String,
        #[sea_orm(save_as = "citext")]
        title: String,
        text: String,
        count: i32,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}

    #[test]
    fn what_sea_orm_changes_on_its_way_is_known() {
        let names = Names::of::<ActiveModel>();
        let casts = Column::iter().enumerate();
        let casts: Vec<_> = casts.filter(|(at, _)| names.casts(*at)).collect();
        let columns: Vec<_> = casts.iter().map(|(_, column)| column.as_str()).collect();
        assert_eq!(columns, ["mood", "lines", "title"]);
    }
}
