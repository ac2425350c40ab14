//! What differs between the engines: where the tables are, how they are made anew, and calls that
//! only a concrete connection can execute.

use std::error::Error;

use ordid_sqlx::Backend;
use sqlx::{Pool, SqlStr, error::BoxDynError};

use crate::{
    form::{FormOn, Summary, Types},
    handwritten::Bound,
};

mod mariadb;
mod postgres;
mod sqlite;

/// Any error: a bench only reports it.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// An engine under test.
pub(crate) trait Engine: Backend {
    /// The name, as the harness knows it.
    const SERVER: &'static str;
    /// The parameters that one statement can have.
    const MAX_PARAMETERS: usize;
    /// Whether the engine has `COPY`.
    const COPY: bool;
    const TYPES: Types;
    /// Asks for the server's version.
    const VERSION: &'static str;
    /// Where the database is: a folder, a server. What is private goes when it is dropped.
    type Place;

    /// Finds or starts what the database is in. An `Err` inside says why the engine is left out.
    fn place() -> Result<std::result::Result<Self::Place, String>>;

    /// Makes the database anew, empty, and connects to it once.
    async fn create(place: &Self::Place) -> Result<Pool<Self>>;

    /// Removes the database.
    async fn remove(place: &Self::Place) -> Result<()>;

    fn placeholder(number: usize) -> String;

    /// Returns what brings the statistics of these tables up to date, and the disk to rest.
    fn settle(tables: &[&str]) -> String;

    /// Inserts these rows by `COPY`.
    async fn copy<R: FormOn<Self>>(
        _: &mut Self::Connection,
        _: &[R],
    ) -> std::result::Result<(), sqlx::Error> {
        unreachable!("COPY is false")
    }

    // The rest is the same for all of them.

    /// Inserts these rows with a `QueryBuilder`.
    async fn push_values<R: FormOn<Self>>(
        connection: &mut Self::Connection,
        rows: &[R],
    ) -> std::result::Result<(), sqlx::Error>;

    /// Inserts these rows by a statement that has a placeholder for each value.
    async fn insert<R: FormOn<Self>>(
        connection: &mut Self::Connection,
        sql: SqlStr,
        rows: &[R],
    ) -> std::result::Result<(), sqlx::Error> {
        let values = R::COLUMNS.len();
        Self::bound(connection, sql, rows, values, |row, bound| row.bind(bound)).await
    }

    /// Executes a statement that has placeholders for so many values of each row.
    async fn bound<R>(
        connection: &mut Self::Connection,
        sql: SqlStr,
        rows: &[R],
        values: usize,
        bind: fn(&R, &mut Bound<Self>) -> std::result::Result<(), BoxDynError>,
    ) -> std::result::Result<(), sqlx::Error>;

    async fn execute_raw(
        connection: &mut Self::Connection,
        sql: String,
    ) -> std::result::Result<(), sqlx::Error>;

    async fn run(pool: &Pool<Self>, sql: String) -> Result<()>;

    async fn version(pool: &Pool<Self>) -> Result<String>;

    async fn summary(pool: &Pool<Self>, sql: &'static str) -> Result<Summary>;
}

/// Implements the methods of [`Engine`] that are the same everywhere.
macro_rules! through_sqlx {
    () => {
        async fn push_values<R: crate::form::FormOn<Self>>(
            connection: &mut Self::Connection,
            rows: &[R],
        ) -> Result<(), sqlx::Error> {
            let mut query = sqlx::QueryBuilder::<Self>::new(crate::handwritten::insert::<R>());
            let mut bound = Ok(());
            query.push_values(rows, |values, row| {
                if bound.is_ok() {
                    bound = row.bind(&mut crate::handwritten::Pushed(values));
                }
            });
            bound.map_err(sqlx::Error::Encode)?;
            query.build().execute(connection).await.map(drop)
        }

        async fn bound<R>(
            connection: &mut Self::Connection,
            sql: sqlx::SqlStr,
            rows: &[R],
            values: usize,
            bind: fn(
                &R,
                &mut crate::handwritten::Bound<Self>,
            ) -> Result<(), sqlx::error::BoxDynError>,
        ) -> Result<(), sqlx::Error> {
            use sqlx::Arguments as _;
            let mut arguments = <Self as sqlx::Database>::Arguments::default();
            let values = rows.len() * values;
            arguments.reserve(values, values * 10);
            let mut arguments = crate::handwritten::Bound::<Self>(arguments);
            for row in rows {
                bind(row, &mut arguments).map_err(sqlx::Error::Encode)?;
            }
            let query = sqlx::query_with::<Self, _>(sql, arguments.0);
            query.execute(connection).await.map(drop)
        }

        async fn execute_raw(
            connection: &mut Self::Connection,
            sql: String,
        ) -> Result<(), sqlx::Error> {
            let sql = sqlx::AssertSqlSafe(sql);
            sqlx::raw_sql(sql).execute(connection).await.map(drop)
        }

        async fn run(pool: &sqlx::Pool<Self>, sql: String) -> crate::engine::Result<()> {
            sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
                .execute(pool)
                .await?;
            Ok(())
        }

        async fn version(pool: &sqlx::Pool<Self>) -> crate::engine::Result<String> {
            Ok(sqlx::query_scalar(Self::VERSION).fetch_one(pool).await?)
        }

        async fn summary(
            pool: &sqlx::Pool<Self>,
            sql: &'static str,
        ) -> crate::engine::Result<crate::form::Summary> {
            Ok(sqlx::query_as(sql).fetch_one(pool).await?)
        }
    };
}

use through_sqlx;

/// Implements the methods of [`Engine`] that are the same for servers.
macro_rules! through_server {
    () => {
        type Place = ordid_harness::Access;

        fn place() -> crate::engine::Result<Result<Self::Place, String>> {
            Ok(match ordid_harness::access(Self::SERVER)? {
                ordid_harness::Access::Skip(reason) => Err(reason),
                access => Ok(access),
            })
        }

        async fn create(place: &Self::Place) -> crate::engine::Result<sqlx::Pool<Self>> {
            Self::remove(place).await?;
            let url = place.url().expect("not skipped");
            let name = crate::engine::database();
            let mut server = <Self as sqlx::Database>::Connection::connect(&url).await?;
            let sql = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"));
            sqlx::raw_sql(sql).execute(&mut server).await?;
            server.close().await?;
            let options = url.parse::<Options>()?.database(&name);
            let pool = sqlx::pool::PoolOptions::new().max_connections(1);
            Ok(pool.connect_with(options).await?)
        }

        async fn remove(place: &Self::Place) -> crate::engine::Result<()> {
            let url = place.url().expect("not skipped");
            let name = crate::engine::database();
            let mut server = <Self as sqlx::Database>::Connection::connect(&url).await?;
            let sql = sqlx::AssertSqlSafe(format!("DROP DATABASE IF EXISTS {name}"));
            sqlx::raw_sql(sql).execute(&mut server).await?;
            Ok(server.close().await?)
        }
    };
}

use through_server;

/// Returns the name of the database on a server: nobody else has it.
fn database() -> String {
    format!("ordid_bench_{}", std::process::id())
}
