//! Finds the row that failed.
//!
//! An error of a statement for many rows names the chunk, not the row. So after the rollback, all chunks before
//! it are sent again, then this chunk row by row, and everything is rolled back.

use std::time::Duration;

use super::{
    bound::{bind, send},
    no_values, statements_of,
    upsert::upsert,
};
use crate::{
    Action, Chunk, FlushError, PendingRows, Plan, lock_waits,
    spi::{Begin, FlushConnection, FlushTransaction, TransactionScope},
    text::Writer,
};

/// Finds the row of `failed` that the database refuses, and its chunk. Returns `None` if no row fails this
/// time.
///
/// What failed may have been more than one chunk of the plan. Then the chunk is found first. The first
/// failure ends a transaction each time: some servers end it by themselves, and what was sent next would
/// stay.
pub(super) async fn locate<C: FlushConnection>(
    rows: &mut PendingRows<C::Binder>,
    connection: &mut C,
    scope: TransactionScope,
    writer: Writer<'_>,
    within: Option<Duration>,
    plan: &Plan,
    failed: &Chunk,
) -> Option<(Chunk, usize)> {
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
            let (chunk, _) = replay(rows, connection, begin, writer, within, &chunks).await?;
            // What failed now is not what failed then.
            if !suspected.contains(&chunk) {
                return None;
            }
            let (until, _) = plan.towards(&chunk);
            before = until;
            chunk
        }
    };
    let known = before.len();
    before.extend(chunk.singly());
    let (row, error) = replay(rows, connection, begin, writer, within, &before).await?;
    if before[..known].contains(&row) || !error.refuses_a_row() {
        return None;
    }
    Some((chunk, row.rows.start))
}

/// Sends chunks up to the first that fails, which it returns, and rolls back.
async fn replay<C: FlushConnection>(
    rows: &mut PendingRows<C::Binder>,
    connection: &mut C,
    begin: Begin<'_>,
    writer: Writer<'_>,
    within: Option<Duration>,
    chunks: &[Chunk],
) -> Option<(Chunk, FlushError<C::Error>)> {
    let mut open = connection.begin(begin).await.ok()?;
    let mut own_waits = None;
    if let (Some(within), TransactionScope::Transaction) = (within, begin.scope) {
        match lock_waits::bound(&mut open, writer.engine, within, || no_values(rows)).await {
            Ok(own) => own_waits = own,
            Err(_) => {
                let _ = open.rollback(false).await;
                return None;
            }
        }
    }
    let mut statements = statements_of(rows, writer);
    let mut failed = None;
    for chunk in chunks {
        let sent = match chunk.action {
            Action::Upsert { .. } => {
                let sent = upsert(rows, &mut open, chunk, &mut statements).await;
                sent.map(drop).map_err(|(error, _)| error)
            }
            _ => {
                let bound = bind(rows, chunk, &mut statements);
                let sent = send(rows, &mut open, bound, &mut statements, |_| ()).await;
                sent.map(drop)
            }
        };
        if let Err(error) = sent {
            failed = Some((chunk.clone(), error));
            break;
        }
    }
    let _ = lock_waits::give_back(&mut open, own_waits, || no_values(rows)).await;
    // Also where the connection counts as lost: the server may keep it open, with the transaction.
    let _ = open.rollback(false).await;
    failed
}
