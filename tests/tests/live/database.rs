//! The databases that the suites run on, behind traits that the suites are generic over: `SQLx`'s bounds on
//! executors, rows and arguments hold for concrete databases only.

use std::{
    future::Future,
    ops::{Deref, DerefMut},
    pin::Pin,
};

use ordid::{ColumnList, EnsuredKey, Error, KeyOf, OrderedKey};
use ordid_sqlx::{EngineProfile, Entity, OnConflict, Retry, ShardedUnitOfWork, UnitOfWork};
use ordid_tests::graphs::Engine;
use sqlx::{
    Arguments as _, AssertSqlSafe, Decode, Encode, FromRow, MySql, Pool, Postgres, Row as _,
    Sqlite, Type, query_as, query_scalar, query_with, raw_sql,
};

use crate::Outcome;

/// A test of a suite, with an empty database.
pub type Test<DB> = fn(Pool<DB>) -> Pin<Box<dyn Future<Output = Outcome>>>;

/// Lists functions as tests, by their own names or these.
macro_rules! tests {
    ($($name:literal: $test:ident),+ $(,)?) => {
        [$(($name, (|pool| Box::pin($test(pool))) as $crate::database::Test<DB>)),+]
    };
    ($($test:ident),+ $(,)?) => {
        [$((stringify!($test), (|pool| Box::pin($test(pool))) as $crate::database::Test<DB>)),+]
    };
}

/// Defines a trait that all have that have these.
macro_rules! all_of {
    ($(#[$attribute:meta])* pub trait $name:ident: $($bounds:tt)+) => {
        $(#[$attribute])*
        pub trait $name: $($bounds)+ {}

        impl<DB> $name for DB where DB: $($bounds)+ {}
    };
}

pub(crate) use {all_of, tests};

/// A database that the suites run on.
pub trait Live:
    Engine
    + Executes
    + Reads<(i64,)>
    + Reads<(i32,)>
    + Reads<(String,)>
    + Binds<i32>
    + Gets<i32>
    + Gets<String>
{
    /// What stands behind the columns of a table.
    const OPTIONS: &'static str;

    /// Whether a flush sends many rows by `COPY`.
    const COPIES: bool = false;

    /// What refers to a table that is made later.
    fn forward(table: &str) -> String {
        let _ = table;
        String::new()
    }

    /// Has a column refer to a table that was made later than its own, where [`forward`](Self::forward) did
    /// not.
    fn backward(table: &str, column: &str, other: &str) -> String {
        format!("ALTER TABLE {table} ADD FOREIGN KEY ({column}) REFERENCES {other} (id)")
    }

    /// Executes SQL without parameters.
    async fn script(pool: &Pool<Self>, sql: &str) -> Result<(), sqlx::Error> {
        Self::execute_sql(pool, sql.to_owned()).await
    }

    /// Makes the table in which flushes are recorded.
    async fn create_flushes(pool: &Pool<Self>) -> Result<(), sqlx::Error> {
        Self::script(pool, ordid_sqlx::flushes_table::<Self>()).await
    }

    /// Counts the rows of a table, or those for which the rest of the statement asks.
    async fn count(pool: &Pool<Self>, table: &str) -> Result<i64, sqlx::Error> {
        let sql = format!("SELECT COUNT(*) FROM {table}");
        let counts: Vec<(i64,)> = read(pool, &sql).await?;
        Ok(counts[0].0)
    }

    /// Reads a column of text.
    async fn texts(pool: &Pool<Self>, sql: &str) -> Result<Vec<String>, sqlx::Error> {
        let rows: Vec<(String,)> = read(pool, sql).await?;
        Ok(rows.into_iter().map(|row| row.0).collect())
    }
}

impl Live for Postgres {
    const OPTIONS: &'static str = "";
    const COPIES: bool = true;
}

impl Live for MySql {
    const OPTIONS: &'static str = "ENGINE = InnoDB";
}

impl Live for Sqlite {
    const OPTIONS: &'static str = "WITHOUT ROWID";

    fn forward(table: &str) -> String {
        format!("REFERENCES {table} (id)")
    }

    fn backward(_: &str, _: &str, _: &str) -> String {
        String::new()
    }
}

/// A database whose connections execute SQL.
pub trait Executes: sqlx::Database {
    /// Executes SQL over a connection.
    fn execute_in(
        connection: &mut Self::Connection,
        sql: &str,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Asks for a number over a connection.
    async fn number_in(connection: &mut Self::Connection, sql: &str) -> Result<i64, sqlx::Error>;

    /// Returns the rows of a statement that the server prepares.
    async fn prepared(
        pool: &Pool<Self>,
        sql: String,
        arguments: Self::Arguments,
        is_kept: bool,
    ) -> Result<Vec<Self::Row>, sqlx::Error>;

    /// Returns the rows of a statement that the server does not prepare.
    async fn unprepared(pool: &Pool<Self>, sql: String) -> Result<Vec<Self::Row>, sqlx::Error>;
}

/// A database whose statements take values of this type.
pub trait Binds<T>: Executes {
    fn bind(arguments: &mut Self::Arguments, value: T);
}

/// A database whose columns can be read as this type.
pub trait Gets<T>: Executes {
    fn column(row: &Self::Row, column: usize) -> Result<T, sqlx::Error>;

    /// Without a look at the column's type.
    fn unchecked(row: &Self::Row, column: usize) -> Result<T, sqlx::Error>;
}

/// Returns a column, of the type that is expected.
pub fn get<DB: Gets<T>, T>(row: &DB::Row, column: usize) -> Result<T, sqlx::Error> {
    DB::column(row, column)
}

/// As [`Gets::unchecked`].
pub fn get_unchecked<DB: Gets<T>, T>(row: &DB::Row, column: usize) -> Result<T, sqlx::Error> {
    DB::unchecked(row, column)
}

/// A prepared statement and its parameters.
pub struct Question<DB: Executes> {
    sql: String,
    arguments: DB::Arguments,
    is_kept: bool,
}

impl<DB: Executes> Question<DB> {
    pub fn new(sql: String) -> Self {
        Self {
            sql,
            arguments: DB::Arguments::default(),
            is_kept: true,
        }
    }

    /// Binds the next parameter.
    pub fn bind<T>(mut self, value: T) -> Self
    where
        DB: Binds<T>,
    {
        DB::bind(&mut self.arguments, value);
        self
    }

    /// Does not have the connection keep the statement.
    pub fn not_kept(mut self) -> Self {
        self.is_kept = false;
        self
    }

    pub async fn ask(self, pool: &Pool<DB>) -> Result<Vec<DB::Row>, sqlx::Error> {
        DB::prepared(pool, self.sql, self.arguments, self.is_kept).await
    }
}

/// A database whose rows can be read as this type.
pub trait Reads<T>: sqlx::Database {
    /// Returns all rows.
    async fn select(pool: &Pool<Self>, sql: &str) -> Result<Vec<T>, sqlx::Error>;
}

/// Returns all rows, of the type that is expected.
pub async fn read<DB: Reads<T>, T>(pool: &Pool<DB>, sql: &str) -> Result<Vec<T>, sqlx::Error> {
    DB::select(pool, sql).await
}

/// Returns the value that a statement selects.
pub async fn one<T>(pool: &Pool<impl Reads<(T,)>>, sql: &str) -> Result<T, sqlx::Error> {
    let row = read(pool, sql).await?.into_iter().next();
    row.map(|(value,)| value).ok_or(sqlx::Error::RowNotFound)
}

/// A database that keeps rows of this entity.
pub trait Keeps<E: OrderedKey<Field: EnsuredKey>>: Engine {
    /// As [`UnitOfWork::add`].
    fn add(work: &mut UnitOfWork<Self>, entity: E) -> KeyOf<E>;
    /// As [`UnitOfWork::update`].
    fn update(work: &mut UnitOfWork<Self>, entity: E);
    /// As [`UnitOfWork::update_columns`].
    fn update_columns(work: &mut UnitOfWork<Self>, entity: E, columns: impl ColumnList<E>);
    /// As [`UnitOfWork::delete`].
    fn delete(work: &mut UnitOfWork<Self>, entity: &E);
    /// As [`UnitOfWork::get`].
    fn get(work: &UnitOfWork<Self>) -> &[E];
    /// As [`ShardedUnitOfWork::add`].
    fn place(work: &mut ShardedUnitOfWork<Self>, entity: E) -> Result<KeyOf<E>, Error>;
    /// As [`ShardedUnitOfWork::update`].
    fn update_placed(work: &mut ShardedUnitOfWork<Self>, entity: E) -> Result<(), Error>;
    /// As [`ShardedUnitOfWork::update_columns`].
    fn update_columns_placed(
        work: &mut ShardedUnitOfWork<Self>,
        entity: E,
        columns: impl ColumnList<E>,
    ) -> Result<(), Error>;
    /// As [`ShardedUnitOfWork::try_upsert`], by the key, for all columns.
    fn upsert_placed(work: &mut ShardedUnitOfWork<Self>, entity: E) -> Result<KeyOf<E>, Error>;
    /// As [`ShardedUnitOfWork::delete`].
    fn delete_placed(work: &mut ShardedUnitOfWork<Self>, entity: &E) -> Result<(), Error>;
}

macro_rules! database {
    ($($database:ident),+) => {$(
        impl Executes for $database {
            async fn execute_in(
                connection: &mut Self::Connection,
                sql: &str,
            ) -> Result<(), sqlx::Error> {
                raw_sql(AssertSqlSafe(sql)).execute(connection).await.map(drop)
            }

            async fn number_in(
                connection: &mut Self::Connection,
                sql: &str,
            ) -> Result<i64, sqlx::Error> {
                query_scalar(AssertSqlSafe(sql)).fetch_one(connection).await
            }

            async fn prepared(
                pool: &Pool<Self>,
                sql: String,
                arguments: Self::Arguments,
                is_kept: bool,
            ) -> Result<Vec<Self::Row>, sqlx::Error> {
                let query = query_with::<Self, _>(AssertSqlSafe(sql), arguments);
                query.persistent(is_kept).fetch_all(pool).await
            }

            async fn unprepared(
                pool: &Pool<Self>,
                sql: String,
            ) -> Result<Vec<Self::Row>, sqlx::Error> {
                raw_sql(AssertSqlSafe(sql)).fetch_all(pool).await
            }
        }

        impl<T: for<'q> Encode<'q, $database> + Type<$database>> Binds<T> for $database {
            fn bind(arguments: &mut Self::Arguments, value: T) {
                arguments.add(value).expect("it can be encoded");
            }
        }

        impl<T: for<'r> Decode<'r, $database> + Type<$database>> Gets<T> for $database {
            fn column(row: &Self::Row, column: usize) -> Result<T, sqlx::Error> {
                row.try_get(column)
            }

            fn unchecked(row: &Self::Row, column: usize) -> Result<T, sqlx::Error> {
                row.try_get_unchecked(column)
            }
        }

        impl<T> Reads<T> for $database
        where
            T: for<'r> FromRow<'r, <$database as sqlx::Database>::Row> + Send + Unpin,
        {
            async fn select(pool: &Pool<Self>, sql: &str) -> Result<Vec<T>, sqlx::Error> {
                query_as(AssertSqlSafe(sql)).fetch_all(pool).await
            }
        }

        impl<E: Entity<$database> + OrderedKey<Field: EnsuredKey>> Keeps<E> for $database {
            fn add(work: &mut UnitOfWork<Self>, entity: E) -> KeyOf<E> {
                work.add(entity)
            }

            fn update(work: &mut UnitOfWork<Self>, entity: E) {
                work.update(entity);
            }

            fn update_columns(
                work: &mut UnitOfWork<Self>,
                entity: E,
                columns: impl ColumnList<E>,
            ) {
                work.update_columns(entity, columns);
            }

            fn delete(work: &mut UnitOfWork<Self>, entity: &E) {
                work.delete(entity);
            }

            fn get(work: &UnitOfWork<Self>) -> &[E] {
                work.get()
            }

            fn place(
                work: &mut ShardedUnitOfWork<Self>,
                entity: E,
            ) -> Result<KeyOf<E>, Error> {
                work.add(entity)
            }

            fn update_placed(
                work: &mut ShardedUnitOfWork<Self>,
                entity: E,
            ) -> Result<(), Error> {
                work.update(entity)
            }

            fn update_columns_placed(
                work: &mut ShardedUnitOfWork<Self>,
                entity: E,
                columns: impl ColumnList<E>,
            ) -> Result<(), Error> {
                work.update_columns(entity, columns)
            }

            fn upsert_placed(
                work: &mut ShardedUnitOfWork<Self>,
                entity: E,
            ) -> Result<KeyOf<E>, Error> {
                work.try_upsert(entity, OnConflict::key())
            }

            fn delete_placed(
                work: &mut ShardedUnitOfWork<Self>,
                entity: &E,
            ) -> Result<(), Error> {
                work.delete(entity)
            }
        }
    )+};
}

database!(Postgres, MySql, Sqlite);

/// A unit of work of any of the databases, or one over shards, which a suite fills.
#[derive(Default)]
pub struct Work<U>(U);

impl<U> Deref for Work<U> {
    type Target = U;

    fn deref(&self) -> &U {
        &self.0
    }
}

impl<U> DerefMut for Work<U> {
    fn deref_mut(&mut self) -> &mut U {
        &mut self.0
    }
}

/// Returns an empty unit of work.
pub fn begin<DB: Live>() -> Work<UnitOfWork<DB>> {
    Work(UnitOfWork::new())
}

impl<DB: Live> Work<UnitOfWork<DB>> {
    pub fn with_retry(self, retry: Retry) -> Self {
        Self(self.0.with_retry(retry))
    }

    pub fn with_engine(self, engine: EngineProfile) -> Self {
        Self(self.0.with_engine(engine))
    }

    pub fn with_new_memory(self) -> Self {
        Self(self.0.with_new_memory())
    }

    pub fn add<E: OrderedKey<Field: EnsuredKey>>(&mut self, entity: E) -> KeyOf<E>
    where
        DB: Keeps<E>,
    {
        DB::add(&mut self.0, entity)
    }

    pub fn update<E: OrderedKey<Field: EnsuredKey>>(&mut self, entity: E)
    where
        DB: Keeps<E>,
    {
        DB::update(&mut self.0, entity);
    }

    pub fn update_columns<E: OrderedKey<Field: EnsuredKey>>(
        &mut self,
        entity: E,
        columns: impl ColumnList<E>,
    ) where
        DB: Keeps<E>,
    {
        DB::update_columns(&mut self.0, entity, columns);
    }

    pub fn delete<E: OrderedKey<Field: EnsuredKey>>(&mut self, entity: &E)
    where
        DB: Keeps<E>,
    {
        DB::delete(&mut self.0, entity);
    }

    pub fn get<E: OrderedKey<Field: EnsuredKey>>(&self) -> &[E]
    where
        DB: Keeps<E>,
    {
        DB::get(&self.0)
    }
}

/// Returns an empty unit of work over shards.
pub fn begin_sharded<DB: Live>(sharding: ordid_sqlx::Sharding) -> Work<ShardedUnitOfWork<DB>> {
    Work(ShardedUnitOfWork::new(sharding))
}

impl<DB: Live> Work<ShardedUnitOfWork<DB>> {
    pub fn add<E: OrderedKey<Field: EnsuredKey>>(&mut self, entity: E) -> Result<KeyOf<E>, Error>
    where
        DB: Keeps<E>,
    {
        DB::place(&mut self.0, entity)
    }

    pub fn update<E: OrderedKey<Field: EnsuredKey>>(&mut self, entity: E) -> Result<(), Error>
    where
        DB: Keeps<E>,
    {
        DB::update_placed(&mut self.0, entity)
    }

    pub fn update_columns<E: OrderedKey<Field: EnsuredKey>>(
        &mut self,
        entity: E,
        columns: impl ColumnList<E>,
    ) -> Result<(), Error>
    where
        DB: Keeps<E>,
    {
        DB::update_columns_placed(&mut self.0, entity, columns)
    }

    pub fn upsert<E: OrderedKey<Field: EnsuredKey>>(&mut self, entity: E) -> Result<KeyOf<E>, Error>
    where
        DB: Keeps<E>,
    {
        DB::upsert_placed(&mut self.0, entity)
    }

    pub fn delete<E: OrderedKey<Field: EnsuredKey>>(&mut self, entity: &E) -> Result<(), Error>
    where
        DB: Keeps<E>,
    {
        DB::delete_placed(&mut self.0, entity)
    }
}
