//! Connections of tokio-postgres.

use ::tokio_postgres::{Client, Error, NoTls};

/// What the names of its tests begin with.
#[allow(dead_code, reason = "what the matrix does not need")]
pub const PREFIX: &str = "tokio_postgres::";

/// Connects. A task reads what the server sends until the client is dropped.
pub async fn connect(url: &str) -> Result<Client, Error> {
    let (client, connection) = ::tokio_postgres::connect(url, NoTls).await?;
    ::tokio::spawn(connection);
    Ok(client)
}
