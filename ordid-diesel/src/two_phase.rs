//! What two-phase commits leave behind.

use std::time::Duration;

use diesel::connection::LoadConnection;
use ordid_sql::{PreparedOrphan, Recovered, spi::blocking};

use crate::{
    Error,
    backend::Backend,
    connection::{Blocking, Source},
};

#[doc = ordid_sql::documentation!(prepared_orphans)]
/// # Errors
///
/// Diesel's; a name that is none; databases in another order than that of the flush; and a transaction that is open.
pub fn prepared_orphans<C>(name: &str, connections: &mut [C]) -> Result<Vec<PreparedOrphan>, Error>
where
    C: LoadConnection<Backend: Backend> + Send + 'static,
{
    let sources = connections.iter_mut().map(Source::<Blocking, C>::one);
    blocking(ordid_sql::prepared_orphans(sources.collect(), name))
}

#[doc = ordid_sql::documentation!(recover_prepared)]
/// # Errors
///
/// As [`prepared_orphans`], and what the databases refuse, as a privilege: only the user that has prepared a transaction
/// and superusers may end it. What was recovered before stays so; do it again.
pub fn recover_prepared<C>(
    name: &str,
    connections: &mut [C],
    older_than: Duration,
) -> Result<Recovered, Error>
where
    C: LoadConnection<Backend: Backend> + Send + 'static,
{
    let sources = connections.iter_mut().map(Source::<Blocking, C>::one);
    blocking(ordid_sql::recover_prepared(
        sources.collect(),
        name,
        older_than,
    ))
}

/// As [`prepared_orphans`], over connections of diesel-async.
///
/// # Errors
///
/// As there.
#[cfg(feature = "async")]
pub async fn prepared_orphans_async<C>(
    name: &str,
    connections: &mut [C],
) -> Result<Vec<PreparedOrphan>, Error>
where
    C: diesel_async::AsyncConnection<Backend: Backend> + Send + 'static,
{
    let sources = connections.iter_mut();
    let sources = sources.map(Source::<crate::connection::Awaited, C>::one);
    ordid_sql::prepared_orphans(sources.collect(), name).await
}

/// As [`recover_prepared`], over connections of diesel-async.
///
/// # Errors
///
/// As there.
#[cfg(feature = "async")]
pub async fn recover_prepared_async<C>(
    name: &str,
    connections: &mut [C],
    older_than: Duration,
) -> Result<Recovered, Error>
where
    C: diesel_async::AsyncConnection<Backend: Backend> + Send + 'static,
{
    let sources = connections.iter_mut();
    let sources = sources.map(Source::<crate::connection::Awaited, C>::one);
    ordid_sql::recover_prepared(sources.collect(), name, older_than).await
}
