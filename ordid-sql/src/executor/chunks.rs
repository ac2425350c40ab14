//! Writes a unit of work by several transactions: see [`in_chunks`](crate::in_chunks) for what a chunk is.

use std::time::Instant;

use ordid_core::{Error, uuid::Uuid};

use super::{Link, Result, deadline::Deadline};
use crate::{
    Attempt, ChunkLimits, EngineProfile, Flushed, Marks, Plan, Work,
    in_chunks::{ChunkedFlush, check_chunks, check_transaction, outline},
    plan::Orders,
    spi::{ConnectionSource, FlushConnection, RowBinder, TransactionScope},
    text::Writer,
};

/// The rows that one transaction of a flush writes.
pub(super) struct OneTransaction {
    pub(super) plan: Plan,
    pub(super) wanted: TransactionScope,
    /// Whether it writes a marker row, if the flush begins it itself.
    pub(super) marks: Marks,
    /// The attempt as the journal has it, if there is one.
    pub(super) attempt: Option<Attempt>,
    /// The chunk that these rows are, if the unit of work goes in chunks.
    pub(super) chunk: Option<ChunkOf>,
}

/// A chunk of a unit of work.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkOf {
    /// The key of its marker row.
    pub(super) marker: Uuid,
    /// How many rows are committed before it, of how many.
    pub(super) before: usize,
    pub(super) total: usize,
}

impl<B: RowBinder> Work<B> {
    /// Refuses rows of which some are committed in chunks.
    pub(super) fn check_whole(&mut self, plan: &Plan) -> std::result::Result<(), Error> {
        let is_in_doubt = self.is_in_doubt();
        match &mut self.chunked {
            Some(chunked) if chunked.is_under_way(is_in_doubt) => {
                // The error says how many.
                chunked.count_earlier(plan, &self.rows.tables());
                Err(Error::plan(
                    "the unit of work is written in chunks, of which some are committed, or may be: flush `in_chunks` to \
                     write the others",
                ))
            }
            _ => Ok(()),
        }
    }

    /// Writes all rows by several transactions, one after the other.
    pub(super) async fn flush_chunks<S>(
        &mut self,
        source: &mut S,
        plan: &Plan,
        limits: ChunkLimits,
        writer: Writer<'_>,
    ) -> Result<Flushed, S::Connection>
    where
        S: ConnectionSource<Connection: FlushConnection<Binder = B>>,
    {
        let started = Instant::now();
        let outline = outline(plan, &self.rows);
        self.check_begun(plan, outline)?;
        let deadline = Deadline::new(self.deadline);
        let mut link = Link::default();
        loop {
            let is_in_doubt = self.is_in_doubt();
            let begun = self
                .chunked
                .get_or_insert_with(|| ChunkedFlush::new(outline));
            let Some(chunk) = begun.next(plan, &self.rows, limits)? else {
                break;
            };
            // A journal that came later takes the id by which a chunk in doubt is found.
            let id = begun.is_under_way(is_in_doubt).then_some(begun.id);
            let attempt = self.keeper.begin_chunk(&self.rows, &chunk, id)?;
            if let Some(attempt) = &attempt {
                begun.id = attempt.id;
            }
            let marker = begun.marker();
            let transaction = OneTransaction {
                plan: plan.transaction(chunk.rows.clone()),
                wanted: TransactionScope::Transaction,
                marks: Marks::Yes,
                attempt: attempt.map(|it| Attempt { id: marker, ..it }),
                chunk: Some(ChunkOf {
                    marker,
                    before: chunk.rows.start,
                    total: plan.rows(),
                }),
            };
            let flushed = self.flush_once(source, transaction, writer, deadline, &mut link);
            let flushed = Box::pin(flushed).await;
            let is_in_doubt = self.is_in_doubt();
            if let Some(chunked) = &mut self.chunked {
                match &flushed {
                    Ok(flushed) => chunked.committed(flushed.clone()),
                    // The same rows are looked for by the next flush.
                    Err(_) if is_in_doubt => {}
                    Err(_) => chunked.failed(),
                }
            }
            flushed?;
            if !limits.pause().is_zero() && chunk.rows.end < plan.rows() {
                source.release();
                source.pause(deadline.shorten(limits.pause())).await;
            }
        }
        let flushed = self.chunked.take().map(ChunkedFlush::into_flushed);
        // Inside the transaction of a test, a chunk in doubt stays in the journal.
        if !self.keeper.is_in_doubt() {
            self.keeper.complete();
        }
        self.clear();
        let flushed = Flushed {
            elapsed: started.elapsed(),
            ..flushed.unwrap_or_default()
        };
        Ok(flushed)
    }

    /// Decides which rows are sent in which order, if they go by such transactions.
    ///
    /// # Errors
    ///
    /// As [`PendingRows::plan`](crate::PendingRows::plan), and if chunks cannot keep tenants together.
    pub(crate) fn planned(
        &mut self,
        engine: &EngineProfile,
        wanted: TransactionScope,
    ) -> std::result::Result<Plan, Error> {
        let (Some(limits), TransactionScope::Transaction) = (self.limits, wanted) else {
            return self.rows.plan(engine);
        };
        let plan = self.rows.plan_by(engine, Orders::ByTablesWithRows)?;
        match limits.keeps_tenants() {
            true => plan.by_tenant(&self.rows),
            false => Ok(plan),
        }
    }

    /// Refuses rows that are too many for the transactions by which they would go.
    pub(crate) fn check_size(
        &self,
        plan: &Plan,
        engine: &EngineProfile,
        wanted: TransactionScope,
    ) -> std::result::Result<(), Error> {
        if let (Some(limits), TransactionScope::Transaction) = (self.limits, wanted) {
            let tables = self.rows.tables();
            return check_chunks(plan, &tables, limits.on(engine), self.markers);
        }
        // Rows that may be there already are looked for before they are sent.
        if self.is_in_doubt() {
            return Ok(());
        }
        let marks = self.marks(Writer::of::<B>(engine), plan, wanted);
        check_transaction(plan, engine, wanted, marks)
    }

    /// Returns whether a COMMIT of this unit of work, or of a chunk of it, may have been carried out.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.unresolved.is_some() || self.keeper.is_in_doubt()
    }

    /// Refuses to go on with chunks of other rows than those that were begun.
    fn check_begun(&mut self, plan: &Plan, outline: u64) -> std::result::Result<(), Error> {
        let is_in_doubt = self.is_in_doubt();
        let Some(chunked) = &mut self.chunked else {
            return match is_in_doubt {
                true => Err(Error::plan(
                    "the unit of work may be in the database already, as a whole: flush it without `in_chunks`, to find out",
                )),
                false => Ok(()),
            };
        };
        chunked.count_earlier(plan, &self.rows.tables());
        let checked = chunked.check(outline);
        match checked {
            Err(_) if !chunked.is_under_way(is_in_doubt) => {
                self.chunked = None;
                Ok(())
            }
            checked => checked,
        }
    }
}
