//! Sends rows by the command of a library that takes them in bulk.

use std::time::Instant;

use super::{Run, Staging, bind, send};
use crate::{
    Chunk, EngineProfile, Failure, NotBulk, PendingRows, Step, Work,
    bulk::{self, BulkEnd, BulkFailure, BulkRows},
    not_bulk::{Ways, offered},
    spi::{FlushConnection, FlushTransaction, RowBinder, TransactionScope},
    text::Statements,
};

impl<B: RowBinder> Work<B> {
    /// Sends the rows of the current table by the bulk command, until they end or one is not for the command.
    /// Statements take over from there.
    ///
    /// # Errors
    ///
    /// Why the command did not take them all. What failed is reported to the run, unless the server does not have the
    /// command: after [`NotBulk::Refused`] the flush starts over.
    pub(super) async fn send_bulk<C>(
        &mut self,
        open: &mut C::Transaction<'_>,
        bulk: &mut C::Bulk,
        statements: &mut Statements<'_>,
        run: &mut Run<C>,
    ) -> std::result::Result<(), NotBulk>
    where
        C: FlushConnection<Binder = B>,
    {
        let failed = Err(NotBulk::Value(None));
        let Step::Send(Chunk { table, .. }) = run.step() else {
            return failed;
        };
        let engine = statements.writer().engine;
        let is_counted = engine.counts_inserts && statements.table(table).counts_inserts;
        while bulk::is_at(run, table)
            && let Step::Send(chunk) = run.step()
        {
            let mut command = BulkRows::new(
                &self.rows,
                run,
                &mut self.observer,
                chunk,
                C::MAX_BULK_CHUNKS,
            );
            let outcome = open.send_bulk(bulk, &mut command).await;
            let outcome = outcome.map(|taken| taken.filter(|_| is_counted));
            let is_unsupported =
                matches!(&outcome, Err(BulkFailure::Driver(error)) if error.is_unsupported);
            let ended = command.ended(outcome);
            if is_unsupported {
                run.bulks_no_more();
            }
            let (rest, reason) = match ended {
                Ok(BulkEnd::Done) => continue,
                Ok(BulkEnd::Rest(rest, reason)) => (rest, reason),
                Err((error, _)) if is_unsupported && error.failure() == Failure::Refused => {
                    return Err(NotBulk::Refused);
                }
                Err((error, rows)) => {
                    run.failed(error, rows);
                    return failed;
                }
            };
            let Step::Send(whole) = run.step() else {
                return failed;
            };
            if rest.rows.start > whole.rows.start {
                // The chunk began in the command, and is ended by a statement.
                let started = Instant::now();
                let bound = bind(&self.rows, &rest, statements);
                match send(&self.rows, open, bound, statements, |_| ()).await {
                    Ok(_) => {
                        run.succeeded();
                        let name = self.rows.table(table).name();
                        run.count(name, &whole, rest.rows.len(), 0, started.elapsed());
                        run.not_bulk(&whole, reason);
                        run.report(name, &whole, &mut self.observer);
                    }
                    Err(error) => run.failed(error, Some(rest)),
                }
            }
            return Err(reason);
        }
        Ok(())
    }
}

/// Finds out which tables' rows go by the bulk command, and what it needs to know of them.
pub(super) async fn bulks<C: FlushConnection>(
    rows: &PendingRows<C::Binder>,
    connection: &mut C,
    scope: TransactionScope,
    engine: &EngineProfile,
    run: &Run<C>,
) -> (Vec<Option<C::Bulk>>, Ways) {
    let plan = run.plan();
    let mut ways = Vec::new();
    let mut bulks = Vec::new();
    let tables = rows.tables();
    let offered = offered::<C::Binder>(plan, &tables, engine, scope);
    let staged = Staging::offered::<C>(plan, &tables, engine, scope);
    for (table, (offered, staged)) in offered.into_iter().zip(staged).enumerate() {
        let bulk = match offered {
            _ if !run.may_bulk() => Err(NotBulk::Refused),
            Err(reason) if !staged => Err(reason),
            _ => connection.bulk(rows, table).await,
        };
        let way = bulk.as_ref().map(|_| 0).map_err(|reason| *reason);
        ways.push(offered.and(way));
        bulks.push(bulk.ok());
    }
    (bulks, Ways(ways))
}
