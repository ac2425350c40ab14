//! What two-phase commits leave behind.

use std::time::Duration;

use ordid_sql::{PreparedOrphan, Recovered};
use sea_orm::DatabaseConnection;

use crate::{Error, connection::Source};

#[doc = ordid_sql::documentation!(prepared_orphans)]
/// # Errors
///
/// Returns SeaORM's errors, and an error if the name is invalid or the databases are not in the order of the flush.
pub async fn prepared_orphans(
    name: &str,
    databases: &[DatabaseConnection],
) -> Result<Vec<PreparedOrphan>, Error> {
    let sources = databases.iter().map(Source::of);
    ordid_sql::prepared_orphans(sources.collect::<Result<_, _>>()?, name).await
}

#[doc = ordid_sql::documentation!(recover_prepared)]
/// # Errors
///
/// Returns the errors of [`prepared_orphans`], and errors of the databases, such as a missing privilege: only
/// superusers and the user that has prepared a transaction may end it. The transactions that were ended before the
/// error stay ended; call this function again for the others.
pub async fn recover_prepared(
    name: &str,
    databases: &[DatabaseConnection],
    older_than: Duration,
) -> Result<Recovered, Error> {
    let sources = databases.iter().map(Source::of);
    ordid_sql::recover_prepared(sources.collect::<Result<_, _>>()?, name, older_than).await
}
