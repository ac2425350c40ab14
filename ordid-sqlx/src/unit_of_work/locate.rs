//! Which row it was.

use ordid_core::unit_of_work::{Batches, Chunk, Plan};
use sqlx::{Connection as _, Transaction};

use super::{
    begin::Beginning,
    statement::{Statements, bind, send},
};
use crate::backend::{Backend, Binder};

/// Finds the row for which `failed` failed, and the chunk that it is of: sends everything before it
/// again, then row by row, and rolls back. `None` where this time no row fails.
///
/// What failed may have been more than one chunk of the plan. Then each is sent as a whole, and row
/// by row only if it fails.
pub(super) async fn locate<DB: Backend>(
    batches: &Batches<Binder<DB>>,
    connection: &mut DB::Connection,
    begin: Option<&'static str>,
    plan: &Plan,
    failed: &Chunk,
) -> Option<(Chunk, String)> {
    let mut connection = Beginning::<DB>::on(connection);
    let mut transaction = connection.begin(begin, plan.defers()).await.ok()?;
    let found = replay(batches, &mut transaction, plan, failed).await;
    let _ = transaction.rollback().await;
    found
}

async fn replay<DB: Backend>(
    batches: &Batches<Binder<DB>>,
    transaction: &mut Transaction<'_, DB>,
    plan: &Plan,
    failed: &Chunk,
) -> Option<(Chunk, String)> {
    let mut statements = Statements::new(batches);
    for (chunk, is_suspected) in plan.towards(failed) {
        if !is_suspected {
            let bound = bind(batches, &chunk, &mut statements);
            send(&mut **transaction, bound, || ()).await.ok()?;
            continue;
        }
        let several = failed.rows.len() > chunk.rows.len();
        if several {
            // A savepoint, so that the transaction can go on after the failure.
            let mut savepoint = transaction.begin().await.ok()?;
            let bound = bind(batches, &chunk, &mut statements);
            match send(&mut *savepoint, bound, || ()).await {
                Ok(_) => {
                    savepoint.commit().await.ok()?;
                    continue;
                }
                Err(_) => savepoint.rollback().await.ok()?,
            }
        }
        for single in chunk.singly() {
            let bound = bind(batches, &single, &mut statements);
            if let Err(error) = send(&mut **transaction, bound, || ()).await {
                let key = batches.key_text(&chunk, single.rows.start);
                return error.refuses_a_row().then(|| (chunk.clone(), key));
            }
        }
    }
    None
}
