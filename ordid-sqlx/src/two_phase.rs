//! What two-phase commits leave behind.

use std::time::Duration;

use ordid_sql::{PreparedOrphan, Recovered};
use sqlx::Pool;

use crate::{Error, backend::Backend, connection::Source};

#[doc = ordid_sql::documentation!(prepared_orphans)]
/// # Errors
///
/// Returns SQLx's errors, and an error if the name is invalid or the databases are not in the order of the flush.
pub async fn prepared_orphans<DB: Backend>(
    name: &str,
    pools: &[Pool<DB>],
) -> Result<Vec<PreparedOrphan>, Error> {
    ordid_sql::prepared_orphans(pools.iter().map(Source::of).collect(), name).await
}

#[doc = ordid_sql::documentation!(recover_prepared)]
/// # Errors
///
/// Returns the errors of [`prepared_orphans`], and errors of the databases, such as a missing privilege: on PostgreSQL
/// only superusers and the user that has prepared a transaction may end it, and MySQL needs `XA_RECOVER_ADMIN`. The
/// transactions that were ended before the error stay ended; call this function again for the others.
pub async fn recover_prepared<DB: Backend>(
    name: &str,
    pools: &[Pool<DB>],
    older_than: Duration,
) -> Result<Recovered, Error> {
    let sources = pools.iter().map(Source::of).collect();
    ordid_sql::recover_prepared(sources, name, older_than).await
}
