//! A pool of `SQLx`'s as a connection of `SeaORM`'s: a function for each database.

use sea_orm::{DatabaseConnection, SqlxMySqlConnector, SqlxPostgresConnector, SqlxSqliteConnector};
use sqlx::{MySql, Pool, Postgres, Sqlite};

/// A database that `SeaORM` takes a pool of.
pub trait Connect: sqlx::Database {
    fn connect(pool: Pool<Self>) -> DatabaseConnection;
}

impl Connect for Postgres {
    fn connect(pool: Pool<Self>) -> DatabaseConnection {
        SqlxPostgresConnector::from_sqlx_postgres_pool(pool)
    }
}

impl Connect for MySql {
    fn connect(pool: Pool<Self>) -> DatabaseConnection {
        SqlxMySqlConnector::from_sqlx_mysql_pool(pool)
    }
}

impl Connect for Sqlite {
    fn connect(pool: Pool<Self>) -> DatabaseConnection {
        SqlxSqliteConnector::from_sqlx_sqlite_pool(pool)
    }
}
