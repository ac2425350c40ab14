//! Which row it was.

use futures_util::io::{AsyncRead, AsyncWrite};
use ordid_core::unit_of_work::{Batches, Chunk, Plan};
use tiberius::Client;

use super::{
    execute::Scope,
    statement::{Statements, send},
};
use crate::{binder::Binder, error::FlushError, flavour::Flavour};

/// Finds the row for which `failed` failed, and the chunk that it is of: sends everything before it
/// again, then row by row, and rolls back. `None` where this time no row fails.
///
/// What failed may have been more than one chunk of the plan. Then the chunk is found first. The
/// first failure ends a transaction each time, since the server may have ended it by itself, and
/// what was sent next would stay.
pub(super) async fn locate<D: Flavour, S>(
    batches: &Batches<Binder<D>>,
    client: &mut Client<S>,
    scope: Scope,
    plan: &Plan,
    failed: &Chunk,
) -> Option<(Chunk, String)>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let before = |end: &Chunk| {
        let end = end.clone();
        plan.chunks()
            .take_while(move |chunk| !is_same(chunk, &end) || chunk.rows.start < end.rows.start)
    };
    let suspects: Vec<_> = plan
        .chunks()
        .filter(|chunk| {
            is_same(chunk, failed)
                && chunk.rows.start >= failed.rows.start
                && chunk.rows.start < failed.rows.end
        })
        .collect();
    let chunk = match &suspects[..] {
        [only] => only.clone(),
        several => {
            let chunks: Vec<_> = before(failed).chain(several.iter().cloned()).collect();
            replay(batches, client, scope, &chunks).await?.0
        }
    };
    let rows = chunk.rows.clone().map(|row| Chunk {
        rows: row..row + 1,
        ..chunk.clone()
    });
    let singly: Vec<_> = before(&chunk).chain(rows).collect();
    let (row, error) = replay(batches, client, scope, &singly).await?;
    if !is_same(&row, &chunk) || row.rows.start < chunk.rows.start || !error.refuses_a_row() {
        return None;
    }
    let key = batches.key_text(&chunk, row.rows.start);
    Some((chunk, key))
}

/// Whether two chunks are of one action on one table.
fn is_same(left: &Chunk, right: &Chunk) -> bool {
    (left.action, left.table) == (right.action, right.table)
}

/// Sends chunks up to the first that fails, which it returns, and rolls back.
async fn replay<D: Flavour, S>(
    batches: &Batches<Binder<D>>,
    client: &mut Client<S>,
    scope: Scope,
    chunks: &[Chunk],
) -> Option<(Chunk, FlushError)>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    scope.begin(client).await.ok()?;
    let mut statements = Statements::new::<D>(batches);
    let mut failed = None;
    for chunk in chunks {
        if let Err(error) = send(batches, client, chunk, &mut statements).await {
            failed = Some((chunk.clone(), error));
            break;
        }
    }
    let _ = scope.roll_back(client).await;
    failed
}
