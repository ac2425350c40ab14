//! The tracker's database on PostgreSQL.

#[path = "queries.rs"]
#[allow(clippy::duplicate_mod, reason = "for each database")]
mod queries;

use sqlx::postgres::PgPoolOptions;

pub(super) use queries::Database;

use crate::error::Error;

type Db = sqlx::Postgres;

const SCHEMA: &str = include_str!("postgres.sql");

pub(super) async fn open(address: &str) -> Result<Database, Error> {
    let pool = PgPoolOptions::new()
        .max_connections(8)
        .connect(address)
        .await?;
    Database::new(pool, SCHEMA).await
}
