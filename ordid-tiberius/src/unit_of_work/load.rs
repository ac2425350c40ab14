//! Rows by `INSERT BULK`.

use ordid_sql::{
    Action, Chunk, NotBulk, PendingRows,
    spi::{BulkFailure, BulkRows, Fed},
};
use tiberius::{Client, SortOrder, SqlBulkCopyOption, SqlBulkCopyOptions, error::Error};

use crate::{binder::Binder, failure::classify, fit::Fit, flavour::Flavour, lease::Stream};

/// The statements that a load must save. It takes five round trips: one for what leaves rows out, two for the columns, one for
/// the command and one for the rows. Its rows are smaller than those of statements.
const STATEMENTS: usize = 4;

/// A table whose rows go by bulk load.
#[derive(Debug)]
pub(crate) struct Load {
    /// Its name, quoted.
    table: String,
    /// Its columns, quoted.
    columns: Vec<String>,
    /// The key's column, quoted, where the rows rise by it.
    rises_by: Option<String>,
}

/// Says whether rows that would take so many statements are offered to a load.
pub(crate) fn offers(statements: usize) -> Result<(), NotBulk> {
    match statements <= STATEMENTS {
        true => Err(NotBulk::FewRows),
        false => Ok(()),
    }
}

/// Returns how to load the rows of a table, or why they go by statements.
///
/// It is called before the transaction begins, which a question that fails could spoil.
pub(super) async fn prepare<D: Flavour, S: Stream>(
    client: &mut Client<S>,
    pending: &PendingRows<Binder<D>>,
    position: usize,
) -> Result<Load, NotBulk> {
    let table = pending.table(position);
    let name = D::quote_table(table.schema(), table.name());
    match leaves_rows_out(client, &name).await {
        Ok(None) => {}
        Ok(Some(reason)) => return Err(reason),
        Err(_) => return Err(NotBulk::Unanswered),
    }
    let columns: Vec<_> = table.columns().iter().map(|name| D::quote(name)).collect();
    let quoted: Vec<_> = columns.iter().map(String::as_str).collect();
    // It fails for names that tiberius refuses, and for tables that may not be read.
    let described = client.column_metadata(&name, &quoted).await;
    let described = described.map_err(|_| NotBulk::Unanswered)?;
    let fit = Fit::new(&described, table.columns(), table.key_columns()[0])?;
    let mut binder = Binder::looking(fit);
    let all = Chunk {
        action: Action::Insert,
        table: position,
        number: 0,
        rows: 0..table.rows(),
    };
    let end = pending.write(&all, all.rows.clone(), &mut binder);
    let fit = binder.into_fit().ok_or(NotBulk::Value(None))?;
    if end != table.rows() {
        let column = fit.misfit().and_then(|column| table.columns().get(column));
        return Err(NotBulk::Value(column.copied()));
    }
    Ok(Load {
        table: name,
        rises_by: fit.rises().then(|| D::quote(table.key_columns()[0])),
        columns,
    })
}

/// Returns why rows of a table, by its quoted name, may be left out, if they may.
async fn leaves_rows_out<S: Stream>(
    client: &mut Client<S>,
    table: &str,
) -> tiberius::Result<Option<NotBulk>> {
    let query = NotBulk::sql_server_query(table);
    let row = client.simple_query(query).await?.into_row().await?;
    let Some(row) = row else { return Ok(None) };
    let text: Option<&str> = row.try_get(0)?;
    Ok(text.map(NotBulk::of_sql_server))
}

impl Load {
    /// Sends rows, as many as there are.
    pub(super) async fn send<D: Flavour, S: Stream>(
        &self,
        client: &mut Client<S>,
        rows: &mut BulkRows<'_, Binder<D>, Error>,
    ) -> Result<(), BulkFailure<Error>> {
        let columns: Vec<_> = self.columns.iter().map(String::as_str).collect();
        let rises_by = self.rises_by.iter();
        let hints: Vec<_> = rises_by
            .map(|column| (column.as_str(), SortOrder::Ascending))
            .collect();
        let request = client.bulk_insert_with_options(&self.table, &columns, as_insert(), &hints);
        let mut request = request.await.map_err(classify)?;
        let mut binder = Binder::of_one_row(columns.len());
        let mut fed = Fed::More;
        while fed == Fed::More {
            fed = rows.feed(&mut binder)?;
            let row = binder.take_row();
            if row.is_empty() {
                continue;
            }
            if let Err(error) = request.send(row).await {
                // The server waits for the end of the rows; what it then says of them is rolled back.
                let _ = request.finalize().await;
                return Err(BulkFailure::LastRow(classify(error)));
            }
        }
        request.finalize().await.map_err(classify)?;
        Ok(())
    }
}

/// The options that make a load an `INSERT`: constraints and triggers, and NULL where NULL is given,
/// not the column's default.
fn as_insert() -> SqlBulkCopyOptions {
    SqlBulkCopyOption::CheckConstraints
        | SqlBulkCopyOption::FireTriggers
        | SqlBulkCopyOption::KeepNulls
}
