//! Diesel: the columns of all tables are those of one `table!`, and the table's name is the entity's.

use diesel::{
    Connection as _,
    backend::Backend,
    connection::SimpleConnection as _,
    query_builder::{AstPass, QueryFragment},
    result::QueryResult,
};
use ordid::OrderedKey as _;
use ordid_diesel::{
    __private::{MakeValues, Takes},
    Columns, Flushed, UnitOfWork,
};
use ordid_tests::{
    faults::Failed,
    graphs::{Entities, GraphWork, NAMES, Row},
    numbered,
    servers::Client as _,
};
use sqlx::Pool;

use crate::RowId;

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

/// A table's name.
struct Named(&'static str);

impl<DB: Backend> QueryFragment<DB> for Named {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_identifier(self.0)
    }
}

/// Defines the unit of work for a database, whose key columns have this type in `table!`.
macro_rules! database {
    ($module:ident: $database:ident, $connection:ident, $backend:ty, $key:ident $(, $setup:literal)?) => {
        pub mod $module {
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

            impl<const KIND: usize, const TABLE: usize> Columns<$backend> for Numbered<KIND, TABLE> {
                const NAMES: &'static [&'static str] = Self::COLUMNS;

                fn table() -> Box<dyn QueryFragment<$backend> + Send + Sync> {
                    Box::new(Named(NAMES[TABLE]))
                }

                const VALUES: &'static [MakeValues<$backend>] = &[
                    <rows::a as Takes<Option<RowId>, $backend>>::VALUES,
                    <rows::b as Takes<Option<RowId>, $backend>>::VALUES,
                    <rows::id as Takes<RowId, $backend>>::VALUES,
                    <rows::c as Takes<Option<RowId>, $backend>>::VALUES,
                    <rows::d as Takes<Option<RowId>, $backend>>::VALUES,
                ];
            }

            pub struct Work(UnitOfWork<$backend>);

            impl GraphWork for Work {
                type Database = sqlx::$database;

                const PREFIX: &'static str = "diesel::";

                fn begin() -> Self {
                    Self(UnitOfWork::new())
                }

                fn add<const KIND: usize, const TABLE: usize>(&mut self, row: Row) {
                    self.0.add(Numbered::<KIND, TABLE>(row));
                }

                fn delete<const KIND: usize, const TABLE: usize>(&mut self, row: Row) {
                    self.0.delete(&Numbered::<KIND, TABLE>(row));
                }

                /// It has none.
                fn plan(&mut self) -> Result<Option<ordid_sqlx::FlushPlan>, Failed> {
                    Ok(None)
                }

                async fn flush(
                    &mut self,
                    pool: &Pool<sqlx::$database>,
                ) -> Result<Flushed, Failed> {
                    let url = sqlx::$database::client_url(&pool.connect_options());
                    let outcome = self.0.flush_with(|| {
                        #[allow(unused_mut, reason = "SQLite alone is told what it has to do")]
                        let mut connection = diesel::$connection::establish(&url)?;
                        $(connection
                            .batch_execute($setup)
                            .map_err(diesel::ConnectionError::CouldntSetupConfiguration)?;)?
                        Ok::<_, diesel::ConnectionError>(connection)
                    });
                    outcome.map_err(|error| Failed::from(&error))
                }
            }
        }
    };
}

database!(postgres: Postgres, PgConnection, diesel::pg::Pg, Uuid);
database!(
    sqlite: Sqlite, SqliteConnection, diesel::sqlite::Sqlite, Binary,
    "PRAGMA foreign_keys = ON; PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY"
);
