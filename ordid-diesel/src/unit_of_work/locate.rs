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
    for (chunk, is_suspected) in towards(plan, failed) {
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
        for single in rows_of(&chunk) {
            if let Err(error) = send(&bind(batches, &table, shape, &single), connection) {
                let key = batches.key_text(&chunk, single.rows.start);
                return error.refuses_a_row().then(|| (chunk.clone(), key));
            }
        }
    }
    None
}

/// The chunks up to those that failed, and whether they did.
pub(super) fn towards<'a>(
    plan: &'a Plan,
    failed: &'a Chunk,
) -> impl Iterator<Item = (Chunk, bool)> + 'a {
    let is_same = |chunk: &Chunk| (chunk.action, chunk.table) == (failed.action, failed.table);
    plan.chunks()
        .take_while(move |chunk| !is_same(chunk) || chunk.rows.start < failed.rows.end)
        .map(move |chunk| {
            let is_suspected = is_same(&chunk) && chunk.rows.end > failed.rows.start;
            (chunk, is_suspected)
        })
}

/// The rows of a chunk, each in a chunk of its own.
pub(super) fn rows_of(chunk: &Chunk) -> impl Iterator<Item = Chunk> + '_ {
    chunk.rows.clone().map(|row| Chunk {
        rows: row..row + 1,
        ..chunk.clone()
    })
}
