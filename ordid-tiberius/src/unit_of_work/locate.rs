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
    let (before, suspects) = split(plan, failed);
    let chunk = match &suspects[..] {
        [only] => only.clone(),
        _ => {
            let chunks = [before, suspects].concat();
            replay(batches, client, scope, &chunks).await?.0
        }
    };
    let (mut singly, _) = split(plan, &chunk);
    let known = singly.len();
    singly.extend(chunk.singly());
    let (row, error) = replay(batches, client, scope, &singly).await?;
    if singly[..known].contains(&row) || !error.refuses_a_row() {
        return None;
    }
    let key = batches.key_text(&chunk, row.rows.start);
    Some((chunk, key))
}

/// The chunks before those that failed, and these.
fn split(plan: &Plan, failed: &Chunk) -> (Vec<Chunk>, Vec<Chunk>) {
    let towards = plan.towards(failed);
    let (before, suspects): (Vec<_>, Vec<_>) = towards.partition(|(_, is_suspected)| !is_suspected);
    let chunks = |list: Vec<(Chunk, bool)>| list.into_iter().map(|(chunk, _)| chunk).collect();
    (chunks(before), chunks(suspects))
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
