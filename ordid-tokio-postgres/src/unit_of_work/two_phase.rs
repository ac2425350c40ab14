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
/// tokio-postgres'; a name that is none; databases in another order than that of the flush; and a transaction that is open.
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
/// As [`prepared_orphans`], and what the databases refuse, as a privilege: only the user that has prepared a transaction
/// and superusers may end it. What was recovered before stays so; do it again.
pub async fn recover_prepared(
    name: &str,
    clients: &mut [Client],
    older_than: Duration,
) -> Result<Recovered, Error> {
    let sources = clients.iter_mut().map(|it| on(Borrowed::Client(it)));
    ordid_sql::recover_prepared(sources.collect(), name, older_than).await
}
