//! The table of marker rows.

use ordid_sql::FlushDialect as _;
use sqlx::{Pool, SqlStr};

use crate::{
    Error,
    backend::{Backend, BoxFuture},
    connection::Source,
};

#[doc = ordid_sql::documentation!(flushes_table)]
/// # Example
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), sqlx::Error> {
/// let pool = sqlx::SqlitePool::connect("sqlite::memory:").await?;
/// sqlx::raw_sql(ordid_sqlx::flushes_table::<sqlx::Sqlite>()).execute(&pool).await?;
/// # Ok(())
/// # }
/// ```
pub const fn flushes_table<DB: Backend>() -> &'static str {
    DB::Dialect::FLUSHES_TABLE
}

#[doc = ordid_sql::documentation!(create_flushes_table)]
/// # Errors
///
/// SQLx's, such as a privilege that is missing.
///
/// # Example
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = sqlx::pool::PoolOptions::<sqlx::Sqlite>::new().max_connections(1).connect("sqlite::memory:").await?;
/// ordid_sqlx::create_flushes_table(&pool).await?;
/// ordid_sqlx::create_flushes_table(&pool).await?; // does nothing
/// assert_eq!(ordid_sqlx::remove_old_markers(&pool).await?, 0);
/// # Ok(())
/// # }
/// ```
pub async fn create_flushes_table<DB: Backend>(pool: &Pool<DB>) -> Result<(), sqlx::Error> {
    let acquire: BoxFuture<'_, _> = Box::pin(pool.acquire());
    let mut connection = acquire.await?;
    let statement = || SqlStr::from_static(flushes_table::<DB>());
    match DB::run_script(&mut connection, statement()).await {
        Ok(()) => Ok(()),
        // PostgreSQL's `IF NOT EXISTS` does not see a table that another session is about to commit.
        Err(error) => {
            let again = DB::run_script(&mut connection, statement()).await;
            again.map_err(|_| error)
        }
    }
}

#[doc = ordid_sql::documentation!(remove_old_markers)]
/// # Errors
///
/// SQLx's, and a table that [is missing](Error::is_flushes_table_missing).
pub async fn remove_old_markers<DB: Backend>(pool: &Pool<DB>) -> Result<u64, Error> {
    ordid_sql::remove_old_markers(Source::of(pool)).await
}
