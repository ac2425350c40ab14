//! What a flush is known by after the answer to its COMMIT was lost.

use oracle::{Connection, sql_type::ToSql};
use ordid_core::{
    storage::{Dialect as _, column::Raw16, dialect::Oracle},
    unit_of_work::{Batches, Plan},
    uuid::Uuid,
};

use crate::{binder::Binder, stored::Stored};

/// Returns the `CREATE TABLE` of `ordid_flushes`, into which a flush with updates or deletes writes a row
/// in its own transaction: whether that row is there tells what became of a COMMIT whose answer was
/// lost. A flush that only inserts does without.
///
/// Run it once, as a migration: Oracle knows `IF NOT EXISTS` only from 23ai on, so it is not in it.
/// Rows are only looked for while their flush is under way: delete those of more than a day at any
/// time, by `flushed_at`.
pub const fn flushes_table() -> &'static str {
    "CREATE TABLE ordid_flushes (id RAW(16) NOT NULL PRIMARY KEY, \
     flushed_at TIMESTAMP WITH TIME ZONE DEFAULT SYSTIMESTAMP NOT NULL)"
}

/// The row's key, as a parameter.
fn flush_id(id: Uuid) -> Stored<Uuid, Raw16> {
    id.into()
}

/// Inserts the row of a flush.
pub(super) fn record(connection: &Connection, id: Uuid) -> Result<(), oracle::Error> {
    let sql = "INSERT INTO ordid_flushes (id) VALUES (:1)";
    connection.execute(sql, &[&flush_id(id)]).map(drop)
}

/// Looks for the row of a flush where one `is_recorded`, otherwise for the first of its rows.
pub(super) fn is_there(
    batches: &Batches<Binder>,
    connection: &Connection,
    plan: &Plan,
    is_recorded: bool,
    id: Uuid,
) -> Result<bool, oracle::Error> {
    let first = plan.chunks().next().filter(|_| !is_recorded);
    let found = if let Some(first) = first {
        let mut binder = Binder::with_capacity(1);
        batches.write_key(first.table, first.rows.start, &mut binder);
        let table = batches.table(first.table);
        let name = Oracle::quote_table(table.schema(), table.name());
        let key = Oracle::quote(table.key_column());
        let sql = format!("SELECT 1 FROM {name} WHERE {key} = :1");
        exists(connection, &sql, &binder.row(0))
    } else {
        let sql = "SELECT 1 FROM ordid_flushes WHERE id = :1";
        exists(connection, sql, &[&flush_id(id)])
    };
    // In a serializable session the next attempt would otherwise see what this one saw.
    let rolled_back = connection.rollback();
    let found = found?;
    rolled_back.map(|()| found)
}

fn exists(
    connection: &Connection,
    sql: &str,
    parameters: &[&dyn ToSql],
) -> Result<bool, oracle::Error> {
    let mut statement = connection.statement(sql).fetch_array_size(1).build()?;
    let row = statement.query(parameters)?.next();
    Ok(row.transpose()?.is_some())
}
