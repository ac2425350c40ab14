//! The table of marker rows.

use diesel::{connection::LoadConnection, result::QueryResult};
use ordid_sql::spi::blocking;

use crate::{
    Error,
    backend::Backend,
    connection::{Blocking, Source},
};

#[doc = ordid_sql::documentation!(flushes_table)]
pub const fn flushes_table<DB: Backend>() -> &'static str {
    <DB::Dialect as ordid_sql::FlushDialect>::FLUSHES_TABLE
}

#[doc = ordid_sql::documentation!(create_flushes_table)]
/// # Errors
///
/// Diesel's, such as a privilege that is missing.
///
/// # Example
///
#[cfg_attr(feature = "sqlite", doc = "```no_run")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
/// use diesel::{Connection, SqliteConnection};
///
/// let mut connection = SqliteConnection::establish("shop.db")?;
/// ordid_diesel::create_flushes_table(&mut connection)?;
/// ordid_diesel::create_flushes_table(&mut connection)?; // does nothing
/// let removed = ordid_diesel::remove_old_markers(&mut connection)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn create_flushes_table<C>(connection: &mut C) -> QueryResult<()>
where
    C: LoadConnection<Backend: Backend>,
{
    let statement = flushes_table::<C::Backend>();
    // PostgreSQL's `IF NOT EXISTS` does not see a table that another session is about to commit.
    connection
        .batch_execute(statement)
        .or_else(|error| connection.batch_execute(statement).map_err(|_| error))
}

/// As [`create_flushes_table`], over a connection of diesel-async.
///
/// # Errors
///
/// As [`create_flushes_table`].
#[cfg(feature = "async")]
pub async fn create_flushes_table_async<C>(connection: &mut C) -> QueryResult<()>
where
    C: diesel_async::AsyncConnection<Backend: Backend>,
{
    let statement = flushes_table::<C::Backend>();
    match connection.batch_execute(statement).await {
        Ok(()) => Ok(()),
        Err(error) => {
            let again = connection.batch_execute(statement).await;
            again.map_err(|_| error)
        }
    }
}

#[doc = ordid_sql::documentation!(remove_old_markers)]
/// # Errors
///
/// Diesel's, a table that [is missing](Error::is_flushes_table_missing), and a transaction that is open.
pub fn remove_old_markers<C>(connection: &mut C) -> Result<u64, Error>
where
    C: LoadConnection<Backend: Backend> + Send + 'static,
{
    let source = Source::<Blocking, C>::one(connection);
    blocking(ordid_sql::remove_old_markers(source))
}

/// As [`remove_old_markers`], over a connection of diesel-async.
///
/// # Errors
///
/// As there.
#[cfg(feature = "async")]
pub async fn remove_old_markers_async<C>(connection: &mut C) -> Result<u64, Error>
where
    C: diesel_async::AsyncConnection<Backend: Backend> + Send + 'static,
{
    let source = Source::<crate::connection::Awaited, C>::one(connection);
    ordid_sql::remove_old_markers(source).await
}
