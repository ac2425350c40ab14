//! Rows by `INSERT BULK`.

use std::time::Instant;

use futures_util::io::{AsyncRead, AsyncWrite};
use ordid_core::unit_of_work::{Action, Batches, Chunk, Place, Plan, Step};
use tiberius::{Client, SortOrder, SqlBulkCopyOption, SqlBulkCopyOptions};

use super::{UnitOfWork, execute::Run};
use crate::{binder::Binder, error::FlushError, failure::judge, fit::Fit, flavour::Flavour};

/// The statements that a load must save: it takes as many round trips, two for the columns, one for
/// the command and one for the rows.
const STATEMENTS: usize = 4;

/// A table whose rows go by bulk load.
#[derive(Debug)]
pub(super) struct Load {
    /// Its name, quoted.
    table: String,
    /// Its columns, quoted.
    columns: Vec<String>,
    /// The key's column, quoted, where the rows rise by it.
    rises_by: Option<String>,
}

/// Returns for each table how to load its rows, where that is the way.
///
/// It is called before the transaction begins, which a question that fails could spoil.
pub(super) async fn prepare<D: Flavour, S>(
    batches: &Batches<Binder<D>>,
    plan: &Plan,
    client: &mut Client<S>,
) -> Vec<Option<Load>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let tables = batches.tables();
    let mut statements = vec![0; tables.len()];
    for chunk in plan.chunks() {
        statements[chunk.table] += usize::from(chunk.action == Action::Insert);
    }
    let mut loads = Vec::with_capacity(tables.len());
    for (position, table) in tables.iter().enumerate() {
        if statements[position] <= STATEMENTS {
            loads.push(None);
            continue;
        }
        let name = D::quote_table(table.schema(), table.name());
        let columns: Vec<_> = table.columns().iter().map(|name| D::quote(name)).collect();
        let quoted: Vec<_> = columns.iter().map(String::as_str).collect();
        // It fails for names that tiberius refuses, and for tables that may not be read.
        let described = client.column_metadata(&name, &quoted).await;
        let fit = described
            .ok()
            .and_then(|found| Fit::new(&found, table.columns(), table.key_column()))
            .and_then(|fit| {
                let mut binder = Binder::looking(fit);
                let all = Chunk {
                    action: Action::Insert,
                    table: position,
                    number: 0,
                    rows: 0..table.rows(),
                };
                let end = batches.write(&all, all.rows.clone(), &mut binder);
                binder.into_fit().filter(|_| end == table.rows())
            });
        loads.push(fit.map(|fit| Load {
            table: name,
            rises_by: fit.rises().then(|| D::quote(table.key_column())),
            columns,
        }));
    }
    loads
}

impl<D: Flavour> UnitOfWork<D> {
    /// Loads the table that the machine is at, up to its last chunk, whose outcome is left to the
    /// caller to report. An error comes with all rows that the load had been sent.
    pub(super) async fn load<S>(
        &mut self,
        client: &mut Client<S>,
        load: &Load,
        run: &mut Run,
    ) -> Result<(), (FlushError, Chunk)>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let Step::Send(mut chunk) = run.step() else {
            return Ok(());
        };
        let started = Instant::now();
        let table = self.batches.table(chunk.table);
        let refused = |error, sent: Chunk| {
            let place = Place::of(&table, &sent);
            (FlushError::statement(judge(error), place), sent)
        };
        let columns: Vec<_> = load.columns.iter().map(String::as_str).collect();
        let hints: Vec<_> = load
            .rises_by
            .iter()
            .map(|column| (column.as_str(), SortOrder::Ascending))
            .collect();
        let request = client.bulk_insert_with_options(&load.table, &columns, as_insert(), &hints);
        let mut request = match request.await {
            Ok(request) => request,
            Err(error) => return Err(refused(error, chunk)),
        };
        let mut sent = chunk.clone();
        let mut binder = Binder::with_capacity(columns.len());
        loop {
            for row in chunk.rows.clone() {
                self.batches.write(&chunk, row..row + 1, &mut binder);
                if let Err(error) = request.send(binder.take_row()).await {
                    // The server waits for the end of the rows; what it then says of them is rolled
                    // back.
                    let _ = request.finalize().await;
                    let key = self.batches.key_text(&chunk, row);
                    let place = Place::of(&table, &chunk).with_key(key);
                    return Err((FlushError::statement(judge(error), place), chunk));
                }
            }
            sent.rows.end = chunk.rows.end;
            match run.upcoming() {
                Some(next) if (next.action, next.table) == (chunk.action, chunk.table) => {
                    run.succeeded();
                    run.report(table.name(), &chunk, &mut self.observer);
                    chunk = next;
                }
                _ => break,
            }
        }
        if let Err(error) = request.finalize().await {
            return Err(refused(error, sent));
        }
        let rows = sent.rows.len();
        run.count(table.name(), &chunk, rows, rows, started.elapsed());
        run.report(table.name(), &chunk, &mut self.observer);
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
