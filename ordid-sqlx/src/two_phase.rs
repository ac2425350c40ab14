//! What two-phase commits leave behind.

use std::time::Duration;

use ordid_sql::{PreparedOrphan, Recovered};
use sqlx::Pool;

use crate::{Error, backend::Backend, connection::Source};

#[doc = ordid_sql::documentation!(prepared_orphans)]
/// # Errors
///
/// SQLx's; a name that is none; and databases in another order than that of the flush.
pub async fn prepared_orphans<DB: Backend>(
    name: &str,
    pools: &[Pool<DB>],
) -> Result<Vec<PreparedOrphan>, Error> {
    ordid_sql::prepared_orphans(pools.iter().map(Source::of).collect(), name).await
}

#[doc = ordid_sql::documentation!(recover_prepared)]
/// # Errors
///
/// As [`prepared_orphans`], and what the databases refuse, as a privilege: on PostgreSQL only the user that has prepared a
/// transaction and superusers may end it, and MySQL needs `XA_RECOVER_ADMIN`. What was recovered before stays so; do it again.
pub async fn recover_prepared<DB: Backend>(
    name: &str,
    pools: &[Pool<DB>],
    older_than: Duration,
) -> Result<Recovered, Error> {
    let sources = pools.iter().map(Source::of).collect();
    ordid_sql::recover_prepared(sources, name, older_than).await
}
