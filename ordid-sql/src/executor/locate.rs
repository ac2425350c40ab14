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
    Action, Chunk, DriverError, EngineProfile, Failure, FlushError, PendingRows, Plan, Updates,
    flush_error::Rest,
    lock_waits,
    spi::{Begin, FlushConnection, FlushTransaction, TransactionScope},
    text::Writer,
};

/// The search for the row of an error, and what it leaves behind.
#[derive(Debug)]
pub(super) struct Search {
    /// Its own transactions, or savepoints of the user's.
    pub(super) scope: TransactionScope,
    /// What the error says about it.
    pub(super) rest: Rest,
    /// Whether a transaction may be open, so that the connection must not be used again.
    pub(super) is_spoilt: bool,
}

impl Search {
    pub(super) const fn within(scope: TransactionScope) -> Self {
        Self {
            scope,
            rest: Rest::None,
            is_spoilt: false,
        }
    }

    /// Notes that a transaction or a savepoint could not be begun.
    pub(super) fn not_begun(&mut self, engine: &EngineProfile, failure: Failure) {
        if ends_the_users(self.scope, engine, failure) {
            self.rest = Rest::Over;
        }
    }

    /// Notes whether it could be rolled back. A savepoint cannot if its transaction has ended, as at a deadlock on MySQL.
    pub(super) fn rolled_back<D>(&mut self, rolled_back: Result<(), DriverError<D>>) {
        let Err(error) = rolled_back else { return };
        self.is_spoilt = true;
        self.rest = match self.scope {
            TransactionScope::Savepoint => Rest::Over,
            // Nobody can roll back there any more but the server.
            TransactionScope::Transaction if error.failure == Failure::Lost => Rest::None,
            TransactionScope::Transaction => Rest::Open,
        };
    }
}

/// Returns whether the user's transaction is over if a savepoint could not be made or released in it: a cluster of MySQL or
/// MariaDB can end it between two statements, and says so to the next one.
pub(super) fn ends_the_users(
    scope: TransactionScope,
    engine: &EngineProfile,
    failure: Failure,
) -> bool {
    scope == TransactionScope::Savepoint
        && engine.updates == Updates::RowByRow
        && failure == Failure::Transient
}

/// Finds the row of `failed` that the database refuses, and its chunk. Returns `None` if no row fails this
/// time.
///
/// What failed may have been more than one chunk of the plan. Then the chunk is found first. The first
/// failure ends a transaction each time: some servers end it by themselves, and what was sent next would
/// stay.
pub(super) async fn locate<C: FlushConnection>(
    rows: &mut PendingRows<C::Binder>,
    connection: &mut C,
    writer: Writer<'_>,
    within: Option<Duration>,
    plan: &Plan,
    failed: &Chunk,
    search: &mut Search,
) -> Option<(Chunk, usize)> {
    let begin = Begin {
        defer: writer.engine.defer.filter(|_| plan.defers()),
        ..Begin::of(search.scope, writer.engine)
    };
    let (mut before, suspected) = plan.towards(failed);
    let chunk = match &suspected[..] {
        [only] => only.clone(),
        _ => {
            let chunks = [before.as_slice(), &suspected].concat();
            let (chunk, _) =
                replay(rows, connection, begin, writer, within, &chunks, search).await?;
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
    let (row, error) = replay(rows, connection, begin, writer, within, &before, search).await?;
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
    search: &mut Search,
) -> Option<(Chunk, FlushError<C::Error>)> {
    let mut open = match connection.begin(begin).await {
        Ok(open) => open,
        Err(error) => {
            search.not_begun(writer.engine, error.failure());
            return None;
        }
    };
    let mut own_waits = None;
    if let (Some(within), TransactionScope::Transaction) = (within, begin.scope) {
        match lock_waits::bound(&mut open, writer.engine, within, || no_values(rows)).await {
            Ok(own) => own_waits = own,
            Err(_) => {
                search.rolled_back(open.rollback(false).await);
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
    let _ = lock_waits::give_back(&mut open, own_waits.as_ref(), || no_values(rows)).await;
    // Also where the connection counts as lost: the server may keep it open, with the transaction.
    search.rolled_back(open.rollback(false).await);
    failed
}
