//! What two-phase commits leave behind.

use std::time::Duration;

use ordid_sql::{PreparedOrphan, Recovered};
use sea_orm::DatabaseConnection;

use crate::{Error, connection::Source};

#[doc = ordid_sql::documentation!(prepared_orphans)]
/// # Errors
///
/// SeaORM's; a name that is none; and databases in another order than that of the flush.
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
/// As [`prepared_orphans`], and what the databases refuse, as a privilege: only the user that has prepared a transaction
/// and superusers may end it. What was recovered before stays so; do it again.
pub async fn recover_prepared(
    name: &str,
    databases: &[DatabaseConnection],
    older_than: Duration,
) -> Result<Recovered, Error> {
    let sources = databases.iter().map(Source::of);
    ordid_sql::recover_prepared(sources.collect::<Result<_, _>>()?, name, older_than).await
}
