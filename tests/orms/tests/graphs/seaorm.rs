//! `SeaORM`: an entity for each table, which are all of one model but for the table's name.

use std::{borrow::Cow, marker::PhantomData};

use ordid::{Fields, KeyOf, KeyType as _, OrderedKey, entity::Parent, key::KeyBytes};
use ordid_seaorm::{Binder, FlushPlan, Flushed, UnitOfWork};
use ordid_tests::{
    faults::Failed,
    graphs::{Engine, Entities, GraphWork, NAMES, Row, parents, typed},
};
use sea_orm::{
    ActiveModelBehavior, ActiveModelTrait, ActiveValue,
    ActiveValue::Set,
    DbBackend, DbErr, EntityName, EntityTrait, FromQueryResult, IdenStatic, ModelTrait,
    QueryResult, Value,
    sea_query::{ArrayType, Iden},
};
use sqlx::{MySql, Pool, Postgres, Sqlite};

use crate::{RowId, connect::Connect};

/// The columns of all tables.
mod row {
    use sea_orm::entity::prelude::*;

    use crate::RowId;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "rows")]
    pub struct Model {
        pub a: Option<RowId>,
        pub b: Option<RowId>,
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: RowId,
        pub c: Option<RowId>,
        pub d: Option<RowId>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

use row::Column;

/// The entity of a table.
#[derive(Debug, Default, Clone, Copy)]
pub struct Table<const KIND: usize, const TABLE: usize>;

impl<const KIND: usize, const TABLE: usize> Iden for Table<KIND, TABLE> {
    fn quoted(&self) -> Cow<'static, str> {
        NAMES[TABLE].into()
    }

    fn unquoted(&self) -> &str {
        NAMES[TABLE]
    }
}

impl<const KIND: usize, const TABLE: usize> IdenStatic for Table<KIND, TABLE> {
    fn as_str(&self) -> &'static str {
        NAMES[TABLE]
    }
}

impl<const KIND: usize, const TABLE: usize> EntityName for Table<KIND, TABLE> {
    fn table_name(&self) -> &'static str {
        NAMES[TABLE]
    }
}

impl<const KIND: usize, const TABLE: usize> EntityTrait for Table<KIND, TABLE> {
    type Model = Model<KIND, TABLE>;
    type ModelEx = Model<KIND, TABLE>;
    type ActiveModel = Numbered<KIND, TABLE>;
    type ActiveModelEx = Numbered<KIND, TABLE>;
    type Column = Column;
    type Relation = row::Relation;
    type PrimaryKey = row::PrimaryKey;
}

#[derive(Debug, Clone)]
pub struct Model<const KIND: usize, const TABLE: usize>(row::Model);

impl<const KIND: usize, const TABLE: usize> ModelTrait for Model<KIND, TABLE> {
    type Entity = Table<KIND, TABLE>;

    fn get(&self, column: Column) -> Value {
        self.0.get(column)
    }

    fn get_value_type(column: Column) -> ArrayType {
        row::Model::get_value_type(column)
    }

    fn try_set(&mut self, column: Column, value: Value) -> Result<(), DbErr> {
        self.0.try_set(column, value)
    }
}

impl<const KIND: usize, const TABLE: usize> FromQueryResult for Model<KIND, TABLE> {
    fn from_query_result(row: &QueryResult, prefix: &str) -> Result<Self, DbErr> {
        row::Model::from_query_result(row, prefix).map(Self)
    }
}

/// A row as the active model of the table's entity.
#[derive(Debug, Clone)]
pub struct Numbered<const KIND: usize, const TABLE: usize>(row::ActiveModel);

impl<const KIND: usize, const TABLE: usize> Numbered<KIND, TABLE> {
    fn of(row: Row) -> Self {
        let [a, b, c, d] = row.up.map(|up| Set(up.map(typed)));
        let id = Set(typed(row.id));
        Self(row::ActiveModel { a, b, id, c, d })
    }
}

impl<const KIND: usize, const TABLE: usize> ActiveModelTrait for Numbered<KIND, TABLE> {
    type Entity = Table<KIND, TABLE>;

    fn take(&mut self, column: Column) -> ActiveValue<Value> {
        self.0.take(column)
    }

    fn get(&self, column: Column) -> ActiveValue<Value> {
        self.0.get(column)
    }

    fn set_if_not_equals(&mut self, column: Column, value: Value) {
        self.0.set_if_not_equals(column, value);
    }

    fn try_set(&mut self, column: Column, value: Value) -> Result<(), DbErr> {
        self.0.try_set(column, value)
    }

    fn not_set(&mut self, column: Column) {
        self.0.not_set(column);
    }

    fn is_not_set(&self, column: Column) -> bool {
        self.0.is_not_set(column)
    }

    fn default() -> Self {
        Self(<row::ActiveModel as ActiveModelTrait>::default())
    }

    fn default_values() -> Self {
        Self(<row::ActiveModel as ActiveModelTrait>::default_values())
    }

    fn reset(&mut self, column: Column) {
        self.0.reset(column);
    }
}

impl<const KIND: usize, const TABLE: usize> ActiveModelBehavior for Numbered<KIND, TABLE> {}

/// What `#[derive(OrderedKey)]` makes of a model, but for the parents.
impl<const KIND: usize, const TABLE: usize> OrderedKey for Numbered<KIND, TABLE> {
    type Field = Option<RowId>;
    const SCHEMA: Option<&'static str> = None;
    const TABLE: &'static str = NAMES[TABLE];
    const KEY_COLUMN: &'static str = "id";
    const COLUMNS: &'static [&'static str] = &["a", "b", "id", "c", "d"];
    const PARENTS: &'static [Parent] = &parents::<OfSeaOrm, KIND, TABLE>();

    fn key(&self) -> Option<RowId> {
        self.0.id.try_as_ref().copied()
    }

    fn assign_key(&mut self, key: RowId) {
        self.0.id = Set(key);
    }

    fn parents(&self, visit: &mut dyn FnMut(usize, KeyBytes)) {
        let up = [&self.0.a, &self.0.b, &self.0.c, &self.0.d];
        for (column, up) in up.into_iter().enumerate() {
            if let Some(Some(up)) = up.try_as_ref() {
                visit(column, KeyBytes::of(up.to_raw()));
            }
        }
    }
}

impl<const KIND: usize, const TABLE: usize> Fields<Binder> for Numbered<KIND, TABLE> {
    fn write(&self, binder: &mut Binder) {
        binder.put_all(self);
    }

    fn write_key(key: KeyOf<Self>, binder: &mut Binder) {
        binder.put_key::<Self>(key);
    }
}

/// The entities.
struct OfSeaOrm;

impl Entities for OfSeaOrm {
    type Key = RowId;
    type Of<const KIND: usize, const TABLE: usize> = Numbered<KIND, TABLE>;
}

/// A database as `SeaORM` knows it without a connection.
pub trait Known: Connect + Engine {
    const BACKEND: DbBackend;
}

impl Known for Sqlite {
    const BACKEND: DbBackend = DbBackend::Sqlite;
}

impl Known for Postgres {
    const BACKEND: DbBackend = DbBackend::Postgres;
}

impl Known for MySql {
    const BACKEND: DbBackend = DbBackend::MySql;
}

pub struct Work<DB> {
    work: UnitOfWork,
    database: PhantomData<fn() -> DB>,
}

impl<DB: Known> GraphWork for Work<DB> {
    type Database = DB;

    const PREFIX: &'static str = "seaorm::";

    fn begin() -> Self {
        Self {
            work: UnitOfWork::new(),
            database: PhantomData,
        }
    }

    fn add<const KIND: usize, const TABLE: usize>(&mut self, row: Row) {
        self.work.add(Numbered::<KIND, TABLE>::of(row));
    }

    fn delete<const KIND: usize, const TABLE: usize>(&mut self, row: Row) {
        self.work.delete(Numbered::<KIND, TABLE>::of(row));
    }

    fn plan(&mut self) -> Result<FlushPlan, Failed> {
        let plan = self.work.plan(DB::BACKEND);
        plan.map_err(|error| Failed::from(&error))
    }

    async fn flush(&mut self, pool: &Pool<DB>) -> Result<Flushed, Failed> {
        let outcome = self.work.flush(&DB::connect(pool.clone())).await;
        outcome.map_err(|error| Failed::from(&error))
    }
}
