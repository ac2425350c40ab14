//! Flushes over connections of rusqlite, for suites that are the same over other libraries.

use std::mem;

use ordid_rusqlite::{Error, Flushed, UnitOfWork};
use rusqlite::Connection;

/// What the names of its tests begin with.
#[allow(dead_code, reason = "what the matrix does not need")]
pub const PREFIX: &str = "rusqlite::";

/// Opens a file, with foreign keys. A lock that another connection has is waited for as long as the suite says.
pub fn open(path: &str) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.execute_batch("PRAGMA foreign_keys = ON")?;
    connection.busy_timeout(crate::SQLITE_WAIT)?;
    Ok(connection)
}

/// Flushes over a connection to this file, on a thread that may block.
#[allow(dead_code, reason = "what the matrix does itself")]
pub async fn flush(work: &mut UnitOfWork, path: String) -> Result<Flushed, Error> {
    let mut own = mem::take(work);
    let flush = tokio::task::spawn_blocking(move || {
        let outcome = own.flush_with(|| open(&path).map(Box::new));
        (own, outcome)
    });
    let (own, outcome) = flush.await.expect("a flush does not panic");
    *work = own;
    outcome
}
