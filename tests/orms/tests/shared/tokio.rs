//! Connections of tokio-postgres, and its tests among those of a suite that has others for three databases.

use ::tokio_postgres::{Client, Error, NoTls};
use libtest_mimic::Trial;

/// What the names of its tests begin with.
#[allow(dead_code, reason = "what the matrix does not need")]
pub const PREFIX: &str = "tokio_postgres::";

/// Connects. A task reads what the server sends until the client is dropped.
pub async fn connect(url: &str) -> Result<Client, Error> {
    let (client, connection) = ::tokio_postgres::connect(url, NoTls).await?;
    ::tokio::spawn(connection);
    Ok(client)
}

/// Adds those of the trials that are tokio-postgres' own.
#[allow(dead_code, reason = "what the matrix does not need")]
pub fn only(trials: &mut Vec<Trial>, add: impl FnOnce(&mut Vec<Trial>)) {
    let mut all = Vec::new();
    add(&mut all);
    trials.extend(all.into_iter().filter(|it| it.name().contains(PREFIX)));
}
