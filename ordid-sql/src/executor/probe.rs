//! Looks for what a COMMIT has written whose answer was lost.

use std::time::Duration;

use super::{
    ProtectedTables, Run, no_values,
    read::read_committed,
    statements_of,
    two_phase::{is_committed, is_prepared},
};
use crate::{
    DriverError, FlushError, FlushRun, PendingRows, lock_waits, marker,
    profile::ServerFact,
    spi::{Begin, FlushConnection, FlushTransaction, RowBinder, Statement},
    text::Writer,
};

/// Finds out whether a COMMIT was carried out. Returns whether the connection must not be used again.
///
/// The question is a transaction of its own, so that it leaves none open where the server does not commit by itself,
/// and sees what was committed before it.
pub(super) async fn probe<C: FlushConnection>(
    rows: &PendingRows<C::Binder>,
    protected: &ProtectedTables,
    connection: &mut C,
    writer: Writer<'_>,
    gid: Option<&str>,
    within: Option<Duration>,
    run: &mut Run<C>,
) -> bool {
    run.probes();
    let mut open = match connection.begin(Begin::PLAIN).await {
        Ok(open) => open,
        Err(error) => {
            run.probed(Err(error));
            return false;
        }
    };
    // Somebody may wait to alter a table that the older transaction has locked, and then all others wait behind.
    let mut own_waits = None;
    if let Some(within) = within {
        match lock_waits::bound(&mut open, writer.engine, within, || no_values(rows)).await {
            Ok(own) => own_waits = own,
            Err(error) => {
                run.probed(Err(FlushError::probe(error)));
                return open.rollback(run.has_lost_connection()).await.is_err();
            }
        }
    }
    let found = is_there(rows, protected, &mut open, writer, gid, run).await;
    let mut found = found.map_err(FlushError::probe);
    if let Ok(true) = found
        && run.reads()
        && gid.is_none()
    {
        run.found();
        // The values that an attempt has read may differ from those that were committed, since several attempts may
        // have sent their COMMIT.
        let statements = statements_of(rows, writer);
        // The question behind a fence has ended the transaction that had the bound.
        let bound = match within.filter(|_| run.fence().is_some()) {
            Some(within) => {
                let bound = lock_waits::bound(&mut open, writer.engine, within, || no_values(rows));
                bound.await.map(drop)
            }
            None => Ok(()),
        };
        found = match bound {
            Ok(()) => {
                let read = read_committed(rows, &mut open, run.plan(), &statements).await;
                read.map(|read| {
                    read.fill();
                    true
                })
            }
            Err(error) => Err(FlushError::probe(error)),
        };
    }
    run.probed(found);
    let is_lost = run.has_lost_connection();
    let mut is_spoilt = false;
    if !is_lost {
        let own = own_waits.as_ref();
        let given_back = lock_waits::give_back(&mut open, own, || no_values(rows)).await;
        is_spoilt = given_back.is_err();
    }
    open.rollback(is_lost).await.is_err() || is_spoilt
}

/// Looks for the marker row of a flush and, if the flush only inserts, for one of its rows whose key nobody else writes.
/// If neither is found, the run asks what it has to know about the server before it sends the rows again.
///
/// If the flush wrote a marker row, only that row shows that it was committed, since somebody else may have written a
/// row with one of its keys. One of its rows is looked for only if the marker row is so old that it may have been
/// removed, and the program did not ask for it.
async fn is_there<T: FlushTransaction>(
    rows: &PendingRows<T::Binder>,
    protected: &ProtectedTables,
    open: &mut T,
    writer: Writer<'_>,
    gid: Option<&str>,
    run: &mut FlushRun<T::Error>,
) -> std::result::Result<bool, DriverError<T::Error>> {
    if run.is_found() {
        return Ok(true);
    }
    // Before the marker row: if it is committed in between, the marker row shows it.
    if let Some(gid) = gid
        && is_prepared(open, writer.engine.two_phase, gid, no_values(rows)).await?
    {
        return Ok(true);
    }
    let may_be_removed = run.records() && marker::may_be_removed(run.id());
    if run.records() {
        // The fence first: each question may see what was committed after the one before. So if the flush's own COMMIT shows
        // its fence, it shows its marker row, too.
        let is_fenced = match run.fence() {
            Some(fence) => marker::exists(open, writer, fence).await?,
            None => false,
        };
        if marker::exists(open, writer, run.id()).await? {
            return Ok(true);
        }
        // Both rows grow old together, and the marker row may have been removed first.
        if is_fenced && !may_be_removed {
            // A missing row counts here, so a standby must not be the one that answers.
            if is_committed(open, writer, run.id(), || no_values(rows)).await? {
                return Ok(true);
            }
            run.found_fence();
            return Ok(false);
        }
    }
    // If its marker row is missing, the flush is not committed, even if there is a row with one of its keys.
    let may_be_told_by_a_key =
        run.plan().only_inserts() && (!run.records() || may_be_removed && !run.has_shared_keys());
    if may_be_told_by_a_key && let Some(first) = protected.telling(rows, writer, run.plan()) {
        let entity = rows.entity(first.table);
        let names = T::Binder::names(entity, &rows.table(first.table), writer.engine);
        let mut key = T::Binder::with_room(entity, 1, 1);
        rows.write_key(first.table, first.rows.start, &mut key);
        if open.exists(&writer.exists(&names), key).await? {
            return Ok(true);
        }
    }
    if !run.knows_server() {
        let has_local_locks = has_local_locks(rows, open, writer).await?;
        let may_repeat = match run.records() {
            false => protected.is_one(rows, open, writer, run.plan()).await?,
            true => !may_be_removed,
        };
        run.learn(has_local_locks, may_repeat);
    }
    Ok(false)
}

/// Returns whether a lock on one server does not hold on all that take writes.
async fn has_local_locks<T: FlushTransaction>(
    rows: &PendingRows<T::Binder>,
    open: &mut T,
    writer: Writer<'_>,
) -> std::result::Result<bool, DriverError<T::Error>> {
    match writer.engine.local_locks {
        ServerFact::Known(fact) => Ok(fact),
        ServerFact::Asked(query) => open.exists(&Statement::query(query), no_values(rows)).await,
    }
}
