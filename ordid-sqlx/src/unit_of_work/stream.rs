//! Rows through an engine's bulk command.

use std::{ops::Range, time::Instant};

use ordid_core::{
    storage::Dialect,
    unit_of_work::{Batches, Chunk, Place, Step, Table, copy::MAX_CHUNKS},
};

use super::{
    UnitOfWork,
    execute::Run,
    statement::{Statements, bind, send},
};
use crate::{
    Error,
    backend::{Backend, Binder},
    bulk::{Bulk, InStep},
    failure::judge,
};

/// Returns for each table how to encode its rows for the bulk command, where that is the way.
pub(super) async fn prepare<DB: Backend>(
    tables: &[Table],
    connection: &mut DB::Connection,
) -> Vec<Option<DB::Bulk>> {
    let mut bulks = Vec::with_capacity(tables.len());
    for table in tables {
        bulks.push(if table.rows() < DB::Bulk::MIN_ROWS {
            None
        } else {
            let name = DB::Dialect::quote_table(table.schema(), table.name());
            DB::Bulk::prepare(connection, &name, table.columns()).await
        });
    }
    bulks
}

impl<DB: Backend> UnitOfWork<DB> {
    /// Streams the table that the machine is at, up to its end or to the first row that is not for
    /// the bulk command: from there, statements take over. An error comes with all rows that the
    /// command had been sent.
    pub(super) async fn stream(
        &mut self,
        connection: &mut DB::Connection,
        bulk: DB::Bulk,
        run: &mut Run,
        in_step: &InStep,
    ) -> Result<(), (Error, Chunk)> {
        let Step::Send(Chunk { action, table, .. }) = run.step() else {
            return Ok(());
        };
        let mut binder = Binder::with_bulk(bulk);
        loop {
            let rest = self.command(connection, &mut binder, run, in_step).await?;
            let next = match run.step() {
                Step::Send(next) if (next.action, next.table) == (action, table) => next,
                _ => return Ok(()),
            };
            let Some(rest) = rest else { continue };
            if rest.start > next.rows.start {
                // The chunk began in the command, and is ended by a statement.
                let started = Instant::now();
                let rest = Chunk {
                    rows: rest,
                    ..next.clone()
                };
                let bound = bind(&self.batches, &rest, &mut Statements::new(&self.batches));
                if let Err(error) = send(connection, bound, || ()).await {
                    return Err((error, rest));
                }
                run.succeeded();
                let name = self.batches.table(next.table).name();
                run.count(name, &next, rest.rows.len(), 0, started.elapsed());
                run.report(name, &next, &mut self.observer);
            }
            return Ok(());
        }
    }

    /// Sends one command, and returns the rows of the current chunk that are not for it.
    async fn command(
        &mut self,
        connection: &mut DB::Connection,
        binder: &mut Binder<DB>,
        run: &mut Run,
        in_step: &InStep,
    ) -> Result<Option<Range<usize>>, (Error, Chunk)> {
        let Step::Send(mut chunk) = run.step() else {
            return Ok(None);
        };
        let started = Instant::now();
        let name = self.batches.table(chunk.table).name();
        // What the command has taken so far.
        let mut sent = chunk.clone();
        // The first piece is encoded before the command begins: perhaps no row is for it.
        let first = encode(&self.batches, &chunk, chunk.rows.start, binder);
        sent.rows.end = first.map_err(|error| (error, chunk.clone()))?;
        if sent.rows.is_empty() {
            return Ok(Some(chunk.rows));
        }
        let Some(bulk) = binder.bulk_mut() else {
            return Ok(None);
        };

        in_step.lose();
        let mut stream = match bulk.open(connection).await {
            Ok(stream) => stream,
            Err(error) => return Err(self.refused(error, sent, in_step)),
        };
        let mut chunks = 1;
        let rest = loop {
            if let Some(bulk) = binder.bulk_mut()
                && let Err(error) = bulk.send(&mut stream).await
            {
                return Err(self.refused(error, sent, in_step));
            }
            if sent.rows.end == chunk.rows.end {
                match run.upcoming() {
                    Some(next)
                        if (next.action, next.table) == (chunk.action, chunk.table)
                            && chunks < MAX_CHUNKS =>
                    {
                        run.succeeded();
                        run.report(name, &chunk, &mut self.observer);
                        chunk = next;
                        chunks += 1;
                    }
                    _ => break None,
                }
            }
            match encode(&self.batches, &chunk, sent.rows.end, binder) {
                Ok(next) if next == sent.rows.end => break Some(next..chunk.rows.end),
                Ok(next) => sent.rows.end = next,
                Err(error) => {
                    // Should the server have refused a row meanwhile, its answer is half read.
                    if DB::Bulk::abort(stream).await.is_ok() {
                        in_step.regain();
                    }
                    return Err((error, chunk));
                }
            }
        };
        if let Some(bulk) = binder.bulk_mut()
            && let Err(error) = bulk.finish(stream).await
        {
            return Err(self.refused(error, sent, in_step));
        }
        in_step.regain();
        let rows = sent.rows.len();
        run.count(name, &chunk, rows, rows, started.elapsed());
        if rest.is_none() {
            run.succeeded();
            run.report(name, &chunk, &mut self.observer);
        }
        Ok(rest)
    }

    fn refused(&self, error: sqlx::Error, sent: Chunk, in_step: &InStep) -> (Error, Chunk) {
        // Anything but an answer of the server leaves open how the command ended.
        if let sqlx::Error::Database(_) = error {
            in_step.regain();
        }
        let place = Place::of(&self.batches.table(sent.table), &sent);
        (Error::statement(judge(error), place), sent)
    }
}

/// Encodes a chunk from a row on, and returns where it stopped: at the first row that is not for the
/// command, or where the piece is full.
fn encode<DB: Backend>(
    batches: &Batches<Binder<DB>>,
    chunk: &Chunk,
    from: usize,
    binder: &mut Binder<DB>,
) -> Result<usize, Error> {
    let row = batches.write(chunk, from..chunk.rows.end, binder);
    match binder.take_error() {
        None => Ok(row),
        Some(error) => {
            let place = Place::of(&batches.table(chunk.table), chunk);
            Err(Error::bind(
                error,
                place.with_key(batches.key_text(chunk, row)),
            ))
        }
    }
}
