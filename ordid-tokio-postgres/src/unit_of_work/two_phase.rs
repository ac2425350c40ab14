//! What two-phase commits leave behind.

use std::time::Duration;

use ordid_sql::{PreparedOrphan, Recovered};
use tokio_postgres::Client;

use crate::{
    Error,
    connection::{Borrowed, on},
};

#[doc = ordid_sql::documentation!(prepared_orphans)]
/// # Errors
///
/// Returns tokio-postgres' errors, and an error if the name is invalid, the databases are not in the order of the
/// flush, or a transaction is open.
pub async fn prepared_orphans(
    name: &str,
    clients: &mut [Client],
) -> Result<Vec<PreparedOrphan>, Error> {
    let sources = clients.iter_mut().map(|it| on(Borrowed::Client(it)));
    ordid_sql::prepared_orphans(sources.collect(), name).await
}

#[doc = ordid_sql::documentation!(recover_prepared)]
/// # Errors
///
/// Returns the errors of [`prepared_orphans`], and errors of the databases, such as a missing privilege: only
/// superusers and the user that has prepared a transaction may end it. The transactions that were ended before the
/// error stay ended; call this function again for the others.
pub async fn recover_prepared(
    name: &str,
    clients: &mut [Client],
    older_than: Duration,
) -> Result<Recovered, Error> {
    let sources = clients.iter_mut().map(|it| on(Borrowed::Client(it)));
    ordid_sql::recover_prepared(sources.collect(), name, older_than).await
}
