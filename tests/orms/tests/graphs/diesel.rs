//! Diesel and diesel-async: the columns of all tables are those of one `table!`, and the table's name is
//! the entity's.

use diesel::{query_builder::QueryBuilder as _, result::QueryResult};
use ordid::OrderedKey as _;
use ordid_diesel::{
    __private::{AsKey, MakeValues, Takes},
    Columns, FlushPlan, Flushed, StoredAs, UnitOfWork,
};
use ordid_tests::{
    faults::Failed,
    graphs::{Engine, Entities, GraphWork, NAMES, Row},
    numbered,
    servers::Client as _,
};
use sqlx::Pool;

use crate::{RowId, establish::Known, over::Over};

/// The entities, whatever the database.
pub struct OfDiesel;

impl Entities for OfDiesel {
    type Key = RowId;
    type Of<const KIND: usize, const TABLE: usize> = Numbered<KIND, TABLE>;
}

numbered! {
    /// A row as an entity of the table's type.
    struct Numbered of OfDiesel
}

/// A database that has the columns.
pub trait Tables: Known<Database: Engine> {
    /// What a connection is told first.
    const SETUP: &'static str;

    /// What makes room for the columns' values.
    const VALUES: &'static [MakeValues<Self>];
}

/// Implements it for a database, whose key columns have this type in `table!`.
macro_rules! tables {
    ($module:ident: $backend:ty, $key:ident, $setup:literal) => {
        mod $module {
            use super::*;

            type Key = diesel::sql_types::$key;

            diesel::table! {
                use diesel::sql_types::Nullable;
                use super::Key;

                rows (id) {
                    a -> Nullable<Key>,
                    b -> Nullable<Key>,
                    id -> Key,
                    c -> Nullable<Key>,
                    d -> Nullable<Key>,
                }
            }

            impl Tables for $backend {
                const SETUP: &'static str = $setup;

                const VALUES: &'static [MakeValues<Self>] = &[
                    <rows::a as Takes<Option<RowId>, Self, AsKey>>::VALUES,
                    <rows::b as Takes<Option<RowId>, Self, AsKey>>::VALUES,
                    <rows::id as Takes<RowId, Self, AsKey>>::VALUES,
                    <rows::c as Takes<Option<RowId>, Self, AsKey>>::VALUES,
                    <rows::d as Takes<Option<RowId>, Self, AsKey>>::VALUES,
                ];
            }
        }
    };
}

tables!(postgres: diesel::pg::Pg, Uuid, "");
tables!(mysql: diesel::mysql::Mysql, Binary, "");
tables!(
    sqlite: diesel::sqlite::Sqlite, Binary,
    "PRAGMA foreign_keys = ON; PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY"
);

impl<DB: Tables, const KIND: usize, const TABLE: usize> Columns<DB> for Numbered<KIND, TABLE> {
    const NAMES: &'static [&'static str] = Self::COLUMNS;

    fn table(out: &mut DB::QueryBuilder) -> QueryResult<()> {
        out.push_identifier(NAMES[TABLE])
    }

    const VALUES: &'static [MakeValues<DB>] = DB::VALUES;
}

/// The unit of work, flushed over connections of a kind.
pub struct Work<O: Over>(UnitOfWork<O::Backend>);

impl<O> GraphWork for Work<O>
where
    O: Over<Backend: Tables>,
    RowId: StoredAs<O::Backend>,
{
    type Database = <O::Backend as Known>::Database;

    const PREFIX: &'static str = O::PREFIX;

    fn begin() -> Self {
        Self(UnitOfWork::new())
    }

    fn add<const KIND: usize, const TABLE: usize>(&mut self, row: Row) {
        self.0.add(Numbered::<KIND, TABLE>(row));
    }

    fn delete<const KIND: usize, const TABLE: usize>(&mut self, row: Row) {
        self.0.delete(&Numbered::<KIND, TABLE>(row));
    }

    fn plan(&mut self) -> Result<FlushPlan, Failed> {
        let plan = self.0.plan();
        plan.map_err(|error| Failed::from(&error))
    }

    async fn flush(&mut self, pool: &Pool<Self::Database>) -> Result<Flushed, Failed> {
        let url = Self::Database::client_url(&pool.connect_options());
        let outcome = O::flush(&mut self.0, url, O::Backend::SETUP).await;
        outcome.map_err(|error| Failed::from(&error))
    }
}
