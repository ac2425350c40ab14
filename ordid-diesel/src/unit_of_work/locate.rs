//! Which row it was.

use diesel::Connection;
use ordid_core::unit_of_work::{Batches, Chunk, Plan};

use super::{
    run::{begin, rollback},
    statement::{Shape, send},
};
use crate::{backend::Backend, entity::Binder};

/// Finds the row for which a chunk failed: sends everything before it again, then row by row, and rolls
/// back. `None` where this time no row fails.
pub(super) fn locate<DB: Backend, C: Connection<Backend = DB>>(
    batches: &Batches<Binder<DB>>,
    shapes: &[Shape<DB>],
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
    shapes: &[Shape<DB>],
    connection: &mut C,
    plan: &Plan,
    failed: &Chunk,
) -> Option<(Chunk, String)> {
    for chunk in plan.chunks() {
        let table = batches.table(chunk.table);
        let shape = &shapes[chunk.table];
        if chunk != *failed {
            send(batches, &table, shape, &chunk, connection).ok()?;
            continue;
        }
        for row in chunk.rows.clone() {
            let single = Chunk {
                rows: row..row + 1,
                ..chunk.clone()
            };
            if let Err(error) = send(batches, &table, shape, &single, connection) {
                let key = batches.key_text(&chunk, row);
                return error.refuses_a_row().then_some((chunk, key));
            }
        }
        break;
    }
    None
}
