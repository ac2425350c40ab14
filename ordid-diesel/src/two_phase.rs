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
/// Returns Diesel's errors, and an error if the name is invalid, the databases are not in the order of the flush, or a
/// transaction is open.
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
/// Returns the errors of [`prepared_orphans`], and errors of the databases, such as a missing privilege: only
/// superusers and the user that has prepared a transaction may end it. The transactions that were ended before the
/// error stay ended; call this function again for the others.
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
