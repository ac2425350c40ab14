//! What a flush is known by after the answer to its commit was lost.

use futures_util::io::{AsyncRead, AsyncWrite};
use ordid_core::{
    storage::column,
    unit_of_work::{Batches, Plan},
    uuid::Uuid,
};
use tiberius::{Client, Query};

use crate::{binder::Binder, flavour::Flavour, stored::TiberiusColumn};

/// Returns the `CREATE TABLE` of `ordid_flushes`, into which a flush with updates or deletes writes a row
/// in its own transaction: whether that row is there tells what became of a commit whose answer was
/// lost. A flush that only inserts does without.
///
/// Run it once, as a migration, on SQL Server or Babelfish; it does nothing where the table is there.
/// Rows are only looked for while their flush is under way: delete those of more than a day at any time,
/// by `flushed_at`, which is UTC.
///
/// # Example
///
/// ```
/// let sql = ordid_tiberius::flushes_table();
/// assert!(sql.contains("CREATE TABLE [ordid_flushes]"));
/// ```
pub const fn flushes_table() -> &'static str {
    "IF OBJECT_ID(N'ordid_flushes') IS NULL CREATE TABLE [ordid_flushes] ([id] BINARY(16) NOT NULL \
     PRIMARY KEY, [flushed_at] DATETIME2(3) NOT NULL DEFAULT SYSUTCDATETIME())"
}

/// Inserts the row of a flush.
pub(super) async fn record<S>(client: &mut Client<S>, id: Uuid) -> tiberius::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let mut query = Query::new("INSERT INTO [ordid_flushes] ([id]) VALUES (@P1)");
    query.bind(column::Binary16::to_data(id));
    query.execute(client).await.map(drop)
}

/// Looks for the row of a flush where one `is_recorded`, otherwise for the first of its rows.
pub(super) async fn is_there<D: Flavour, S>(
    batches: &Batches<Binder<D>>,
    client: &mut Client<S>,
    plan: &Plan,
    is_recorded: bool,
    id: Uuid,
) -> tiberius::Result<bool>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let first = plan.chunks().next().filter(|_| !is_recorded);
    let query = if let Some(first) = first {
        let mut binder = Binder::with_capacity(1);
        batches.write_key(first.table, first.rows.start, &mut binder);
        let table = batches.table(first.table);
        let name = D::quote_table(table.schema(), table.name());
        let key = D::quote(table.key_column());
        let mut query = Query::new(format!("SELECT 1 FROM {name} WHERE {key} = @P1"));
        query.bind_iter(binder.into_values());
        query
    } else {
        let mut query = Query::new("SELECT 1 FROM [ordid_flushes] WHERE [id] = @P1");
        query.bind(column::Binary16::to_data(id));
        query
    };
    let row = query.query(client).await?.into_row().await?;
    Ok(row.is_some())
}
