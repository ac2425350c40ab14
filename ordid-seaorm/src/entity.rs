//! What the unit of work needs of a model, and the sink that takes its rows.

use std::{
    any::{self, TypeId},
    collections::HashMap,
    fmt,
    sync::{Mutex, OnceLock, PoisonError},
};

use ordid_core::{
    Fields, KeyOf, KeyType, OrderedKey, RawKeyOf, Reads, Scheme, Version,
    entity::{AnyValue, SchemeOf},
    uuid::Uuid,
};
use ordid_sql::{
    Action, ColumnMask, Columns, EngineProfile, Registration, RowEnd, RowSink, Table, Take,
    spi::{BoxedError, ReadRow, RowBinder, RunOfRows, TableNames},
};
use sea_orm::{
    ActiveModelTrait, ActiveValue, ColumnDef, ColumnTrait, ColumnType, DbBackend, DbErr,
    EntityName as _, EntityTrait, IntoActiveModel, Iterable as _, PrimaryKeyTrait, QueryResult,
    TryGetable, Value,
    sea_query::{Expr, Query, SimpleExpr},
};

use crate::failure::backend_of;

/// What a unit of work can hold: the `ActiveModel` of every model with `#[derive(OrderedKey)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no ordered key",
    label = "not the `ActiveModel` of a model with an ordered key",
    note = "add `#[derive(ordid::OrderedKey)]` to the `Model` beside it, which has a \
            `#[sea_orm(table_name = \"...\")]`"
)]
pub trait Entity: ActiveModelTrait + OrderedKey + Fields<Binder> + Send + Sync + 'static {
    #[doc(hidden)]
    fn __register() -> Registration<Binder, RawKeyOf<Self>>;
}

#[diagnostic::do_not_recommend]
impl<A: ActiveModelTrait + OrderedKey + Fields<Binder> + Send + Sync + 'static> Entity for A {
    fn __register() -> Registration<Binder, RawKeyOf<Self>> {
        Registration {
            compare: <SchemeOf<A> as Scheme>::cmp,
            entity: EntityNames::of::<A>(),
        }
    }
}

/// Makes a model into what is inserted or deleted.
pub(crate) fn model<A: Entity>(model: impl IntoActiveModel<A>) -> A {
    model.into_active_model()
}

/// Makes a model into what is updated: all columns of a `Model`, which is unchanged throughout, and those of an
/// `ActiveModel` that are `Set`.
pub(crate) fn changed<A: Entity, M: IntoActiveModel<A>>(model: M) -> A {
    // An `ActiveModel` without a change looks like a `Model` that was made into one. `M` may borrow, so it has no
    // `TypeId`. Their names are enough, as no other type of this name turns into an `A`.
    let is_active = any::type_name::<M>() == any::type_name::<A>();
    let model = model.into_active_model();
    let mut columns = <A::Entity as EntityTrait>::Column::iter();
    let is_unchanged = columns.all(|column| matches!(model.get(column), ActiveValue::Unchanged(_)));
    match is_unchanged && !is_active {
        true => model.reset_all(),
        false => model,
    }
}

/// Returns the value of a column, if it has one.
#[doc(hidden)]
pub fn set<V: Into<Value>>(column: &ActiveValue<V>) -> Option<&V> {
    column.try_as_ref()
}

/// Returns the number of the version that a model was read with, if it has one.
#[doc(hidden)]
pub fn version_number<V: Version + Into<Value>>(version: &ActiveValue<V>) -> Option<i128> {
    version.try_as_ref().map(Version::to_number)
}

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
    note = "add it to the key type: `#[derive(ordid::KeyType)] #[ordid(sea_orm)] struct OrderId(uuid::Uuid);`, or say \
            which, `#[ordid(sea_orm(uuid))]`"
)]
#[doc(hidden)]
pub trait HasColumn {}

#[diagnostic::do_not_recommend]
impl<K: Into<Value>> HasColumn for K {}

/// The bound that derived code has on a key. [`KeyedModel`] reports what is missing, in better words than SeaORM's bounds.
#[doc(hidden)]
pub trait InModel: KeyType + Into<Value> {}

impl<K: KeyType + Into<Value>> InModel for K {}

/// Has its key demanded to be a key type, to have a column and to be the primary key: SeaORM's bounds would say that in
/// words of their own, or nothing would.
#[doc(hidden)]
pub trait KeyedModel: ActiveModelTrait {
    type Key: KeyType
        + HasColumn
        + IsPrimaryKey<<<Self::Entity as EntityTrait>::PrimaryKey as PrimaryKeyTrait>::ValueType>;
}

/// A column of any entity: a program has many column types, and what is generic over them is compiled for
/// each.
trait AnyColumn: Send + Sync {
    fn name(&self) -> &'static str;
    fn definition(&self) -> ColumnDef;
    fn save_as(&self, value: SimpleExpr) -> SimpleExpr;
    fn select_as(&self, column: SimpleExpr) -> SimpleExpr;
}

impl<C: ColumnTrait> AnyColumn for C {
    fn name(&self) -> &'static str {
        self.as_str()
    }

    fn definition(&self) -> ColumnDef {
        self.def()
    }

    fn save_as(&self, value: SimpleExpr) -> SimpleExpr {
        ColumnTrait::save_as(self, value)
    }

    fn select_as(&self, column: SimpleExpr) -> SimpleExpr {
        ColumnTrait::select_as(self, column)
    }
}

/// SeaORM's names of a table.
pub struct EntityNames {
    schema: Option<String>,
    table: &'static str,
    /// The positions of the key's columns.
    keys: Vec<usize>,
    /// Why the entity's columns are not SeaORM's.
    mistake: Option<String>,
    version: Option<usize>,
    /// The positions of the columns that the database fills.
    returning: Vec<usize>,
    columns: Vec<Box<dyn AnyColumn>>,
    /// Which columns are JSON: there SeaORM makes another value of an array. It looks a column's definition up
    /// for each value.
    json: Vec<bool>,
    /// For PostgreSQL, MySQL and SQLite, once it was asked for.
    names: [OnceLock<TableNames>; 3],
}

impl EntityNames {
    /// Returns the names of an entity, which are found once in a program.
    pub(crate) fn of<A: Entity>() -> &'static Self {
        static KNOWN: Mutex<Option<HashMap<TypeId, &'static EntityNames>>> = Mutex::new(None);

        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        known.entry(TypeId::of::<A>()).or_insert_with(|| {
            let mut columns: Vec<Box<dyn AnyColumn>> = Vec::new();
            for column in <A::Entity as EntityTrait>::Column::iter() {
                columns.push(Box::new(column));
            }
            let entity = A::Entity::default();
            let schema = entity.schema_name().map(str::to_owned);
            // A row's sink knows its entity by this: as many as the program has types.
            Box::leak(Box::new(Self::new(
                schema,
                entity.table_name(),
                columns,
                A::COLUMNS,
                A::KEY_COLUMNS,
                A::VERSION,
                A::RETURNING,
            )))
        })
    }

    fn new(
        schema: Option<String>,
        table: &'static str,
        columns: Vec<Box<dyn AnyColumn>>,
        own: &[&str],
        keys: &[&str],
        version: Option<usize>,
        returning: &[&str],
    ) -> Self {
        // By the entity's own names: a column that SeaORM calls otherwise is not lost.
        let positions = |names: &[&str]| {
            let positions = own.iter().enumerate();
            let positions = positions.filter(|(_, name)| names.contains(name));
            positions.map(|(position, _)| position).collect()
        };
        Self {
            schema,
            table,
            keys: positions(keys),
            mistake: mistake(table, own, &columns),
            version,
            returning: positions(returning),
            json: columns.iter().map(|it| is_json(&**it)).collect(),
            columns,
            names: Default::default(),
        }
    }

    /// Returns the names as an engine's statements write them.
    pub(crate) fn on(&self, engine: &EngineProfile) -> TableNames {
        let backend = backend_of(engine);
        let slot = match backend {
            Some(DbBackend::Postgres) => &self.names[0],
            Some(DbBackend::MySql) => &self.names[1],
            Some(DbBackend::Sqlite) => &self.names[2],
            // The profile of a database that SeaORM has no words for.
            _ => return self.written(engine, None),
        };
        slot.get_or_init(|| self.written(engine, backend)).clone()
    }

    fn written(&self, engine: &EngineProfile, backend: Option<DbBackend>) -> TableNames {
        let columns = self.columns.iter();
        let around = |column: &dyn AnyColumn| around(column, backend?, engine);
        TableNames {
            table: engine.quote_table(self.schema.as_deref(), self.table),
            columns: columns.clone().map(|it| engine.quote(it.name())).collect(),
            keys: self.keys.clone(),
            version: self.version,
            around: columns.map(|it| around(&**it)).collect(),
            returning: self
                .returning
                .iter()
                .filter_map(|position| self.columns.get(*position))
                .map(|column| read_as(&**column, backend, engine))
                .collect(),
        }
    }

    pub(crate) fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    pub(crate) const fn table(&self) -> &'static str {
        self.table
    }

    /// Returns the name of the key's column, or of the first of them, if the columns are SeaORM's.
    pub(crate) fn key(&self) -> Option<&'static str> {
        if self.mistake.is_some() {
            return None;
        }
        Some(self.columns.get(*self.keys.first()?)?.name())
    }

    /// Returns why nothing may be sent, if the entity's columns are not SeaORM's.
    pub(crate) fn mistake(&self) -> Option<DbErr> {
        self.mistake.clone().map(DbErr::Custom)
    }

    /// Returns all columns as SeaORM selects them, under their names.
    pub(crate) fn selected(&self, engine: &EngineProfile) -> String {
        let read = |column: &dyn AnyColumn| {
            let name = engine.quote(column.name());
            match read_as(column, backend_of(engine), engine) {
                read if read == name => name,
                read => format!("{read} AS {name}"),
            }
        };
        let columns: Vec<_> = self.columns.iter().map(|it| read(&**it)).collect();
        columns.join(", ")
    }

    fn is_json(&self, position: usize) -> bool {
        self.json.get(position) == Some(&true)
    }

    /// Returns the value that SeaORM makes of one for the column at this position.
    fn saved(&self, position: usize, value: Value) -> Value {
        if !self.is_json(position) {
            return value;
        }
        match self.columns[position].save_as(Expr::val(value.clone())) {
            SimpleExpr::Value(saved) => saved,
            _ => value,
        }
    }
}

impl fmt::Debug for EntityNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntityNames")
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}

/// Returns why the columns of an entity are not SeaORM's, which a position would then confuse. They are the same unless
/// `Column` is written by hand.
fn mistake(table: &str, own: &[&str], columns: &[Box<dyn AnyColumn>]) -> Option<String> {
    let theirs: Vec<_> = columns.iter().map(|it| it.name()).collect();
    if own == theirs {
        return None;
    }
    Some(format!(
        "the model of table {table} has the columns {}, and SeaORM's `Column` {}: declare the same columns in the same \
         order, under the same names (`#[sea_orm(column_name = \"..\")]` at the field)",
        own.join(", "),
        theirs.join(", ")
    ))
}

fn is_json(column: &dyn AnyColumn) -> bool {
    matches!(
        column.definition().get_column_type(),
        ColumnType::Json | ColumnType::JsonBinary
    )
}

/// Finds what SeaORM writes before and behind a value of a column, such as `CAST(` and ` AS "mood")`.
fn around(
    column: &dyn AnyColumn,
    backend: DbBackend,
    engine: &EngineProfile,
) -> Option<[String; 2]> {
    const VALUE: &str = "ordid_value";
    let select = Query::select()
        .expr(column.save_as(Expr::col(VALUE)))
        .to_owned();
    // The values that the expression has of its own are written into it.
    let text = backend.build(&select).to_string();
    let (before, behind) = text
        .strip_prefix("SELECT ")?
        .split_once(&engine.quote(VALUE))?;
    let is_bare = before.is_empty() && behind.is_empty();
    (!is_bare).then(|| [before.to_owned(), behind.to_owned()])
}

/// Returns the expression that SeaORM selects to read a column: its name, or a cast of it.
fn read_as(column: &dyn AnyColumn, backend: Option<DbBackend>, engine: &EngineProfile) -> String {
    let read = backend.and_then(|backend| {
        let select = Query::select()
            .expr(column.select_as(Expr::col(column.name())))
            .to_owned();
        let text = backend.build(&select).to_string();
        text.strip_prefix("SELECT ").map(str::to_owned)
    });
    read.unwrap_or_else(|| engine.quote(column.name()))
}

/// A function that reads the value of a column.
type ReadValue = fn(&QueryResult, usize) -> Result<AnyValue, DbErr>;

/// Collects the rows of a statement.
#[derive(Debug, Default)]
pub struct Binder {
    entity: Option<&'static EntityNames>,
    /// Of one row after the other. A row has no value for a column that is `NotSet`, so that the database's
    /// default holds.
    values: Vec<Value>,
    /// About how many bytes the values have.
    bytes: usize,
    /// Whether JSON is among them, whose size is a guess that may be too high.
    is_guess: bool,
    /// From how many on there is no room for more rows.
    limit: Option<usize>,
    runs: Vec<Run>,
    mask: ColumnMask,
    /// Whether it takes nothing but the key and what was changed.
    only_changes: bool,
    /// The position of the row's next column.
    next: usize,
    /// The columns that the row has values for; none of a row that is its key alone.
    columns: Vec<usize>,
    /// How many values a row of its key alone has: that, and perhaps a version.
    given: usize,
    /// The functions that read the columns that the database fills.
    readers: Vec<ReadValue>,
}

/// Rows that follow each other and have values for the same columns.
#[derive(Debug)]
struct Run {
    rows: usize,
    columns: Vec<usize>,
    /// How many values each row has.
    values: usize,
}

impl Run {
    fn values(&self) -> usize {
        self.rows * self.values
    }
}

impl Binder {
    /// Takes the columns of a model.
    #[doc(hidden)]
    pub fn put_all<A: ActiveModelTrait>(&mut self, model: &A) {
        for column in <A::Entity as EntityTrait>::Column::iter() {
            self.take(model.get(column));
        }
    }

    /// Takes the columns of a model that is updated, but another version, and then the version that it was read with.
    #[doc(hidden)]
    pub fn put_update<A, V>(&mut self, model: &A, at: usize, version: &ActiveValue<V>)
    where
        A: ActiveModelTrait,
        V: Version + Into<Value> + Clone,
    {
        let read = version.try_as_ref();
        let set = |version: Option<V>| match version {
            Some(version) => ActiveValue::Set(version.into()),
            None => ActiveValue::NotSet,
        };
        for (position, column) in <A::Entity as EntityTrait>::Column::iter().enumerate() {
            match position == at {
                true => self.take(set(read.map(Version::next))),
                false => self.take(model.get(column)),
            }
        }
        self.take(set(read.cloned()));
    }

    /// Takes a column of a key that has several.
    #[doc(hidden)]
    pub fn put_part<V: Into<Value>>(&mut self, part: V) {
        self.values.push(part.into());
    }

    /// Takes the version of a row that is deleted.
    #[doc(hidden)]
    pub fn put_version<V: Version + Into<Value>>(&mut self, number: i128) {
        self.values.push(V::from_number(number).into());
    }

    /// Takes what a model has in its next column.
    fn take(&mut self, value: ActiveValue<Value>) {
        let position = self.next;
        self.next += 1;
        let is_key = self.entity.is_some_and(|it| it.keys.contains(&position));
        let is_returned = self
            .entity
            .is_some_and(|it| it.returning.contains(&position));
        let value = match (self.mask.take(), value) {
            (Take::Skip, _) | (_, ActiveValue::NotSet) => return,
            // The field is the cell that the flush fills, and is not sent.
            _ if is_returned => return,
            (_, ActiveValue::Unchanged(_)) if self.only_changes && !is_key => return,
            (Take::Value, ActiveValue::Set(value) | ActiveValue::Unchanged(value)) => value,
            (Take::Null, ActiveValue::Set(value) | ActiveValue::Unchanged(value)) => {
                value.as_null()
            }
        };
        self.columns.push(position);
        let value = match self.entity {
            Some(entity) => entity.saved(position, value),
            None => value,
        };
        let is_json = self.entity.is_some_and(|it| it.is_json(position));
        self.bytes += match is_json {
            true => written(&value),
            false => bytes_of(&value),
        };
        self.is_guess |= is_json;
        self.values.push(value);
    }

    /// Takes a key alone.
    #[doc(hidden)]
    pub fn put_key<A>(&mut self, key: KeyOf<A>)
    where
        A: ActiveModelTrait + OrderedKey,
        KeyOf<A>: Into<Value>,
    {
        self.values.push(key.into());
    }

    /// Reads a row: its text, and then the columns that the database fills.
    pub(crate) fn read_row(readers: &[ReadValue], row: &QueryResult) -> Result<ReadRow, DbErr> {
        let mut values = Vec::with_capacity(readers.len());
        for (position, read) in readers.iter().enumerate() {
            values.push(read(row, position + 1)?);
        }
        Ok(ReadRow {
            text: row
                .try_get_by_index::<Option<String>>(0)?
                .unwrap_or_default(),
            values,
        })
    }

    /// Takes the functions that read the columns that the database fills.
    pub(crate) fn take_readers(&mut self) -> Vec<ReadValue> {
        std::mem::take(&mut self.readers)
    }

    /// Returns the values of one run in the order in which a statement has their columns.
    pub(crate) fn into_values(self, columns: &[usize]) -> Vec<Value> {
        if let [run] = &self.runs[..]
            && !run.columns.is_empty()
            && *run.columns != *columns
        {
            // The `UPDATE` of one row has the key behind the others.
            let place = |column: &usize| run.columns.iter().position(|it| it == column);
            let places: Vec<usize> = columns.iter().filter_map(place).collect();
            let rows = self.values.chunks(run.columns.len());
            return rows
                .flat_map(|row| places.iter().map(|place| row[*place].clone()))
                .collect();
        }
        self.values
    }
}

#[diagnostic::do_not_recommend]
impl<T: TryGetable + Send + Sync + 'static> Reads<T> for Binder {
    fn expect(&mut self) {
        self.readers
            .push(|row, at| Ok(Box::new(row.try_get_by_index::<T>(at)?)));
    }
}

impl RowSink for Binder {
    type Entity = &'static EntityNames;

    fn begin_row(&mut self, columns: Columns<'_>) {
        self.mask.begin(columns);
        self.next = 0;
        self.columns.clear();
        self.given = match columns {
            Columns::Given(given) => given.len(),
            Columns::All | Columns::Without(_) | Columns::Only(_) => 0,
        };
    }

    fn end_row(&mut self) -> RowEnd {
        if self.entity.is_some_and(|it| it.mistake.is_some()) {
            return RowEnd::Refused;
        }
        match self.runs.last_mut() {
            Some(run) if run.columns == self.columns => run.rows += 1,
            _ => self.runs.push(Run {
                rows: 1,
                columns: self.columns.clone(),
                values: self.columns.len().max(self.given),
            }),
        }
        match self.limit {
            Some(limit) if self.bytes >= limit => RowEnd::TakenLast,
            _ => RowEnd::Taken,
        }
    }
}

/// Returns about how many bytes JSON has, and not fewer. Only features that are the user's choice name its type.
fn written(value: &Value) -> usize {
    struct Count(usize);

    impl fmt::Write for Count {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 += text.len();
            Ok(())
        }
    }

    let mut count = Count(0);
    // A counter takes everything.
    let _ = fmt::write(&mut count, format_args!("{value:?}"));
    count.0
}

/// Returns about how many bytes a value has on its way to the server.
fn bytes_of(value: &Value) -> usize {
    match value {
        Value::String(Some(text)) => text.len(),
        Value::Bytes(Some(bytes)) => bytes.len(),
        _ => size_of::<i64>(),
    }
}

impl RowBinder for Binder {
    const BY_COLUMN: bool = true;
    const HAS_RUNS: bool = true;

    fn with_room(entity: &'static EntityNames, rows: usize, values: usize) -> Self {
        Self {
            entity: Some(entity),
            values: Vec::with_capacity(rows * values),
            ..Self::default()
        }
    }

    fn begin_rows(&mut self, action: Action) {
        self.only_changes = action == Action::Update;
    }

    fn limit(&mut self, bytes: usize) {
        self.limit = Some(bytes);
    }

    fn bytes(&self) -> usize {
        match self.is_guess {
            true => 0,
            false => self.bytes,
        }
    }

    fn take_error(&mut self) -> Option<BoxedError> {
        Some(self.entity?.mistake()?.into())
    }

    fn of_marker(id: Uuid) -> Self {
        Self {
            values: vec![id.into()],
            ..Self::default()
        }
    }

    fn names(entity: &'static EntityNames, _: &Table, engine: &EngineProfile) -> TableNames {
        entity.on(engine)
    }

    /// The columns are named also where a run has all of them: then one row is updated without a list.
    fn into_runs(self, _: usize) -> Vec<RunOfRows<Self>> {
        let Self {
            entity,
            mut values,
            runs,
            ..
        } = self;
        let mut divided = Vec::with_capacity(runs.len());
        // From the end, where values can be cut off.
        for run in runs.into_iter().rev() {
            let rest = values.len() - run.values();
            let values = match rest {
                0 => std::mem::take(&mut values),
                _ => values.split_off(rest),
            };
            divided.push(RunOfRows {
                rows: run.rows,
                columns: (!run.columns.is_empty()).then(|| run.columns.clone()),
                values: Self {
                    entity,
                    values,
                    runs: vec![run],
                    ..Self::default()
                },
            });
        }
        divided.reverse();
        divided
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
    fn what_sea_orm_writes_around_a_value_is_known() {
        let names = EntityNames::of::<ActiveModel>();
        let around = |engine| {
            let names = names.on(&engine);
            assert_eq!(names.around.len(), names.columns.len());
            let around = names.columns.into_iter().zip(names.around);
            let around = around.filter_map(|(column, around)| Some((column, around?)));
            around
                .map(|(column, [before, behind])| format!("{column} {before}?{behind}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            around(EngineProfile::POSTGRES),
            [
                r#""mood" CAST(? AS "mood")"#,
                r#""title" CAST(? AS citext)"#
            ]
        );
        assert_eq!(
            around(EngineProfile::SQLITE),
            [r#""title" CAST(? AS citext)"#]
        );
        let json: Vec<_> = names.json.iter().map(|it| u8::from(*it)).collect();
        assert_eq!(json, [0, 0, 1, 0, 0, 0]);
    }

    mod page {
        use sea_orm::entity::prelude::*;

        use super::NoteId;

        #[derive(Clone, Debug, PartialEq, DeriveEntityModel, ordid::OrderedKey)]
        #[sea_orm(table_name = "pages")]
        pub(super) struct Model {
            #[sea_orm(primary_key, auto_increment = false)]
            pub(super) id: NoteId,
            #[sea_orm(primary_key, auto_increment = false)]
            pub(super) number: i32,
            #[ordid(version)]
            pub(super) version: i64,
        }

        #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
        pub(super) enum Relation {}

        impl ActiveModelBehavior for ActiveModel {}
    }

    /// What is `NotSet` is known no sooner.
    #[test]
    fn a_row_without_its_version_or_a_part_of_its_key_is_refused() {
        let set = page::ActiveModel {
            id: ActiveValue::Set(NoteId::generate()),
            number: ActiveValue::Set(1),
            version: ActiveValue::Set(1),
        };
        let versionless = page::ActiveModel {
            version: ActiveValue::NotSet,
            ..set.clone()
        };
        let numberless = page::ActiveModel {
            number: ActiveValue::NotSet,
            ..set.clone()
        };
        let refused = |change: &dyn Fn(&mut crate::UnitOfWork)| {
            let mut work = crate::UnitOfWork::new();
            change(&mut work);
            let error = work.plan(DbBackend::Sqlite).err();
            error.map(|error| error.to_string()).unwrap_or_default()
        };
        for text in [
            refused(&|work| work.update(versionless.clone())),
            refused(&|work| work.delete(versionless.clone())),
        ] {
            assert!(text.contains("has no version"), "{text}");
        }
        for text in [
            refused(&|work| work.update(numberless.clone())),
            refused(&|work| work.delete(numberless.clone())),
        ] {
            assert!(text.contains("has no key"), "{text}");
        }
        assert_eq!(refused(&|work| work.update(set.clone())), "");
        let error = crate::UnitOfWork::new().try_add(numberless).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("the columns id, number of its key"), "{text}");
    }

    #[test]
    #[should_panic = "a row of pages has no value in the column number of its key: assign it"]
    fn add_panics_with_the_column_that_has_no_value() {
        crate::UnitOfWork::new().add(page::ActiveModel {
            id: ActiveValue::NotSet,
            number: ActiveValue::NotSet,
            version: ActiveValue::Set(1),
        });
    }

    #[test]
    fn rows_are_divided_by_the_columns_that_they_have() {
        let note = |text, count| ActiveModel {
            id: ActiveValue::Unchanged(NoteId::generate()),
            mood: ActiveValue::Unchanged(Mood::Glad),
            lines: ActiveValue::NotSet,
            title: ActiveValue::NotSet,
            text,
            count,
        };
        let (set, unset) = (|| ActiveValue::Set("a".to_owned()), ActiveValue::NotSet);
        let rows = [
            note(set(), ActiveValue::Set(1)),
            note(set(), ActiveValue::Set(2)),
            note(unset, ActiveValue::Set(3)),
        ];
        let divided = |action| {
            let mut binder = Binder::with_room(EntityNames::of::<ActiveModel>(), 3, 6);
            binder.begin_rows(action);
            for row in &rows {
                binder.begin_row(Columns::All);
                row.write(&mut binder);
                binder.end_row();
            }
            binder.into_runs(3)
        };
        let shape = |runs: &[RunOfRows<Binder>]| -> Vec<_> {
            let runs = runs.iter();
            runs.map(|run| (run.rows, run.columns.clone().unwrap_or_default()))
                .collect()
        };
        let inserts = divided(Action::Insert);
        assert_eq!(shape(&inserts), [(2, vec![0, 1, 4, 5]), (1, vec![0, 1, 5])]);
        let mut updates = divided(Action::Update);
        assert_eq!(shape(&updates), [(2, vec![0, 4, 5]), (1, vec![0, 5])]);
        // One row has its key last.
        let last = updates.pop().map(|run| run.values.into_values(&[5, 0]));
        let last = last.unwrap_or_default();
        assert_eq!((last.len(), &last[0]), (2, &Value::Int(Some(3))));
        let first = updates.pop().map(|run| run.values.into_values(&[0, 4, 5]));
        let counts = |values: Vec<Value>| [values[2].clone(), values[5].clone()];
        assert_eq!(
            first.map(counts),
            Some([Value::Int(Some(1)), Value::Int(Some(2))])
        );
    }
}
