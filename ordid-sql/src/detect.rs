//! Finds out which engine is behind a connection.

use ordid_core::uuid::Uuid;

use crate::{
    DriverError, EngineProfile, Failure, FlushError,
    spi::{
        Begin, ConnectionSource, ErrorOf, FlushConnection, FlushTransaction, RowBinder, Statement,
        TransactionScope,
    },
};

/// Engines that have the version of another one, each with the text that the protocol's question answers there.
const UNNAMED: [(&str, EngineProfile); 4] = [
    ("iam_pg_role_mappings", EngineProfile::AURORA_DSQL),
    ("pg_dist_partition", EngineProfile::CITUS),
    ("wsrep_on", EngineProfile::GALERA),
    (
        "group_replication_group_name",
        EngineProfile::GROUP_REPLICATION,
    ),
];

/// Asks a server which engine it is, and returns its profile: the source's own if none fits better. For adapters.
///
/// # Errors
///
/// The library's, and a transaction that is open.
#[expect(
    clippy::manual_async_fn,
    reason = "it is found to be `Send` here, for any source, as a flush is"
)]
pub fn detect_engine<S: ConnectionSource>(
    mut source: S,
) -> impl Future<Output = Result<EngineProfile, FlushError<ErrorOf<S::Connection>>>> + Send + use<S>
{
    async move {
        let own = source.engine();
        // No other engine speaks the other protocols.
        let Some(question) = own.words.engine else {
            return Ok(own);
        };
        let (connection, _) = source.get(false).await?;
        let scope = connection.check(TransactionScope::Transaction).await?;
        let begin = Begin {
            scope,
            ..Begin::PLAIN
        };
        let mut open = connection.begin(begin).await?;
        let found = ask(&mut open, question).await;
        let is_lost = matches!(&found, Err(error) if error.failure == Failure::Lost);
        let rolled_back = open.rollback(is_lost).await;
        if is_lost || rolled_back.is_err() {
            source.discard();
        }
        Ok(found.map_err(FlushError::other)?.unwrap_or(own))
    }
}

async fn ask<T: FlushTransaction>(
    open: &mut T,
    question: &str,
) -> Result<Option<EngineProfile>, DriverError<T::Error>> {
    let version = answer(open, "SELECT version()").await?;
    let named = version.and_then(|version| EngineProfile::of_version(&version));
    if named.is_some() {
        return Ok(named);
    }
    let unnamed = answer(open, question).await?;
    Ok(unnamed.and_then(|text| {
        let engine = UNNAMED.iter().find(|(name, _)| *name == text);
        engine.map(|(_, engine)| *engine)
    }))
}

/// Returns the text of a query's only row.
async fn answer<T: FlushTransaction>(
    open: &mut T,
    sql: &str,
) -> Result<Option<String>, DriverError<T::Error>> {
    let query = Statement::query(sql);
    // A query without parameters takes no values.
    let values = T::Binder::of_marker(Uuid::nil());
    let rows = open.read(&query, values).await?;
    Ok(rows.into_iter().next().map(|row| row.text))
}
