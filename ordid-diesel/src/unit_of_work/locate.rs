//! Which row it was.

use diesel::Connection;
use ordid_core::unit_of_work::{Batches, Chunk, Plan};

use super::{
    run::{begin, commit, rollback},
    statement::{Shapes, bind, send},
};
use crate::{backend::Backend, entity::Binder};

/// Finds the row for which a chunk failed: sends everything before it again, then row by row, and rolls
/// back. `None` where this time no row fails.
pub(super) fn locate<DB: Backend, C: Connection<Backend = DB>>(
    batches: &Batches<Binder<DB>>,
    shapes: &Shapes<DB>,
    connection: &mut C,
    plan: &Plan,
    failed: &Chunk,
) -> Option<(Chunk, String)> {
    begin(connection, plan.defers()).ok()?;
    let found = replay(batches, shapes, connection, plan, failed);
    let _ = rollback(connection);
    found
}

fn replay<DB: Backend, C: Connection<Backend = DB>>(
    batches: &Batches<Binder<DB>>,
    shapes: &Shapes<DB>,
    connection: &mut C,
    plan: &Plan,
    failed: &Chunk,
) -> Option<(Chunk, String)> {
    for (chunk, is_suspected) in plan.towards(failed) {
        let table = batches.table(chunk.table);
        let shape = &shapes[chunk.table];
        if !is_suspected {
            send(&bind(batches, &table, shape, &chunk), connection).ok()?;
            continue;
        }
        // A command took several: a savepoint, so that the transaction can go on where one fails.
        if failed.rows.len() > chunk.rows.len() {
            begin(connection, false).ok()?;
            if send(&bind(batches, &table, shape, &chunk), connection).is_ok() {
                commit(connection).ok()?;
                continue;
            }
            rollback(connection).ok()?;
        }
        for single in chunk.singly() {
            if let Err(error) = send(&bind(batches, &table, shape, &single), connection) {
                let key = batches.key_text(&chunk, single.rows.start);
                return error.refuses_a_row().then(|| (chunk.clone(), key));
            }
        }
    }
    None
}
