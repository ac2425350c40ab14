//! Connections of Diesel's own and of diesel-async's.

use diesel::{ConnectionError, ConnectionResult, mysql::Mysql, pg::Pg, sqlite::Sqlite};
use diesel_async::AsyncConnection;
use ordid_diesel::Backend;
use ordid_tests::servers::Client;

/// A backend of Diesel's whose database `SQLx` knows, too.
pub trait Known: Backend {
    /// The database, as `SQLx` looks into it.
    type Database: Client;

    /// What stands behind an address for diesel-async.
    const ASYNC: &'static str = "";
}

impl Known for Pg {
    type Database = sqlx::Postgres;
}

impl Known for Mysql {
    type Database = sqlx::MySql;

    /// Otherwise its client goes on over the socket of a server on this machine, past any proxy.
    const ASYNC: &'static str = "?prefer_socket=false";
}

impl Known for Sqlite {
    type Database = sqlx::Sqlite;
}

/// Connects, and says this first.
pub fn connect<C: diesel::Connection>(url: &str, setup: &str) -> ConnectionResult<C> {
    let mut connection = C::establish(url)?;
    if !setup.is_empty() {
        let told = connection.batch_execute(setup);
        told.map_err(ConnectionError::CouldntSetupConfiguration)?;
    }
    Ok(connection)
}

/// As [`connect`].
pub async fn connect_async<C>(url: &str, setup: &str) -> ConnectionResult<C>
where
    C: AsyncConnection<Backend: Known>,
{
    let url = format!("{url}{}", C::Backend::ASYNC);
    let mut connection = C::establish(&url).await?;
    if !setup.is_empty() {
        let told = connection.batch_execute(setup).await;
        told.map_err(ConnectionError::CouldntSetupConfiguration)?;
    }
    Ok(connection)
}
