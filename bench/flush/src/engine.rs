//! What differs between the engines: where the tables are, how they are made anew, and calls that
//! only a concrete connection can execute.

use std::error::Error;

use ordid_sqlx::Backend;
use sqlx::{Pool, SqlStr};

use crate::rows::{Flight, Summary, Types};

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
    /// Whether the engine has `UNNEST` and `COPY`.
    const UNNEST_AND_COPY: bool;
    const TYPES: Types;
    /// Brings the statistics of the parents up to date, and the disk to rest.
    const SETTLE: &'static str;
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

    /// Inserts these rows by an array for each column.
    async fn unnest(
        _: &mut Self::Connection,
        _: &[Flight],
    ) -> std::result::Result<(), sqlx::Error> {
        unreachable!("UNNEST_AND_COPY is false")
    }

    /// Inserts these rows by `COPY`.
    async fn copy(_: &mut Self::Connection, _: &[Flight]) -> std::result::Result<(), sqlx::Error> {
        unreachable!("UNNEST_AND_COPY is false")
    }

    // The rest is the same for all of them.

    /// Inserts these rows with a `QueryBuilder`.
    async fn push_values(
        connection: &mut Self::Connection,
        flights: &[Flight],
    ) -> std::result::Result<(), sqlx::Error>;

    /// Inserts these rows by a statement that has a placeholder for each value.
    async fn insert(
        connection: &mut Self::Connection,
        sql: SqlStr,
        flights: &[Flight],
    ) -> std::result::Result<(), sqlx::Error>;

    async fn execute_raw(
        connection: &mut Self::Connection,
        sql: String,
    ) -> std::result::Result<(), sqlx::Error>;

    async fn run(pool: &Pool<Self>, sql: String) -> Result<()>;

    async fn version(pool: &Pool<Self>) -> Result<String>;

    async fn summary(pool: &Pool<Self>) -> Result<Summary>;
}

/// Implements the methods of [`Engine`] that are the same everywhere.
macro_rules! through_sqlx {
    () => {
        async fn push_values(
            connection: &mut Self::Connection,
            flights: &[crate::rows::Flight],
        ) -> Result<(), sqlx::Error> {
            let mut query = sqlx::QueryBuilder::<Self>::new(crate::handwritten::insert());
            query.push_values(flights, |mut row, flight| {
                crate::handwritten::for_each_value!(flight, value => row.push_bind(value));
            });
            query.build().execute(connection).await.map(drop)
        }

        async fn insert(
            connection: &mut Self::Connection,
            sql: sqlx::SqlStr,
            flights: &[crate::rows::Flight],
        ) -> Result<(), sqlx::Error> {
            use sqlx::Arguments as _;
            let mut arguments = <Self as sqlx::Database>::Arguments::default();
            let values = flights.len() * crate::handwritten::COLUMNS.len();
            arguments.reserve(values, values * 10);
            for flight in flights {
                crate::handwritten::for_each_value!(
                    flight, value => arguments.add(value).map_err(sqlx::Error::Encode)?
                );
            }
            let query = sqlx::query_with::<Self, _>(sql, arguments);
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
            sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(pool).await?;
            Ok(())
        }

        async fn version(pool: &sqlx::Pool<Self>) -> crate::engine::Result<String> {
            Ok(sqlx::query_scalar(Self::VERSION).fetch_one(pool).await?)
        }

        async fn summary(pool: &sqlx::Pool<Self>) -> crate::engine::Result<crate::rows::Summary> {
            Ok(sqlx::query_as(crate::rows::SUMMARY).fetch_one(pool).await?)
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
