//! Which row it was.
//!
//! A statement of many rows that the database refuses says which chunk failed, not which row. So after the
//! rollback everything before it is sent again, then the chunk row by row, and rolled back.

use super::bound::{bind, send};
use crate::{
    Chunk, FlushError, Plan, Work,
    spi::{Begin, FlushConnection, FlushTransaction, RowBinder, TransactionScope},
    text::Writer,
};

impl<B: RowBinder> Work<B> {
    /// Finds the row for which `failed` failed, and the chunk that it is of. `None` where this time no row
    /// fails.
    ///
    /// What failed may have been more than one chunk of the plan. Then the chunk is found first. The first
    /// failure ends a transaction each time: some servers end it by themselves, and what was sent next would
    /// stay.
    pub(super) async fn locate<C>(
        &mut self,
        connection: &mut C,
        scope: TransactionScope,
        writer: Writer<'_>,
        plan: &Plan,
        failed: &Chunk,
    ) -> Option<(Chunk, String)>
    where
        C: FlushConnection<Binder = B>,
    {
        let begin = Begin {
            scope,
            statement: writer.engine.begin,
            defer: writer.engine.defer.filter(|_| plan.defers()),
            uses_bulk: false,
        };
        let (mut before, suspected) = plan.towards(failed);
        let chunk = match &suspected[..] {
            [only] => only.clone(),
            _ => {
                let chunks = [before.as_slice(), &suspected].concat();
                let (chunk, _) = self.replay(connection, begin, writer, &chunks).await?;
                let (until, _) = plan.towards(&chunk);
                before = until;
                chunk
            }
        };
        let known = before.len();
        before.extend(chunk.singly());
        let (row, error) = self.replay(connection, begin, writer, &before).await?;
        if before[..known].contains(&row) || !error.refuses_a_row() {
            return None;
        }
        let key = self.rows.key_text(&chunk, row.rows.start);
        Some((chunk, key))
    }

    /// Sends chunks up to the first that fails, which it returns, and rolls back.
    async fn replay<C>(
        &mut self,
        connection: &mut C,
        begin: Begin,
        writer: Writer<'_>,
        chunks: &[Chunk],
    ) -> Option<(Chunk, FlushError<C::Error>)>
    where
        C: FlushConnection<Binder = B>,
    {
        let mut open = connection.begin(begin).await.ok()?;
        let mut statements = self.statements(writer);
        let mut failed = None;
        for chunk in chunks {
            let bound = bind(&self.rows, chunk, &mut statements);
            if let Err(error) = send(&self.rows, &mut open, bound, || ()).await {
                failed = Some((chunk.clone(), error));
                break;
            }
        }
        let is_lost = failed
            .as_ref()
            .is_some_and(|(_, it)| it.is_connection_lost());
        let _ = open.rollback(is_lost).await;
        failed
    }
}
