//! Finds the version that a row has, after it was not found with the one that it was read with.

use super::locate::Search;
use crate::{
    Chunk, DriverError, PendingRows,
    flush_error::FoundVersion,
    spi::{Begin, FlushConnection, FlushTransaction, RowBinder, TransactionScope},
    text::Writer,
};

/// Returns what the database has in the place of a row, as it is committed now; `None` if it is the version that the row was
/// read with. The question is a transaction of its own, or a savepoint of the user's; where that would see the row as it
/// was before, nothing is asked.
pub(super) async fn found_version<C: FlushConnection>(
    rows: &PendingRows<C::Binder>,
    connection: &mut C,
    writer: Writer<'_>,
    chunk: &Chunk,
    row: usize,
    search: &mut Search,
) -> Option<FoundVersion> {
    if search.scope == TransactionScope::Savepoint && writer.engine.words.reads_snapshots {
        return Some(FoundVersion::Unknown);
    }
    let begin = Begin {
        statement: None,
        ..Begin::of(search.scope, writer.engine)
    };
    let mut open = match connection.begin(begin).await {
        Ok(open) => open,
        Err(error) => {
            search.not_begun(writer.engine, error.failure());
            return Some(FoundVersion::Unknown);
        }
    };
    let found = ask(rows, &mut open, writer, chunk, row).await;
    // The next flush begins on a connection that has a transaction open no more, or is closed.
    search.rolled_back(open.rollback(false).await);
    found.unwrap_or(Some(FoundVersion::Unknown))
}

async fn ask<T: FlushTransaction>(
    rows: &PendingRows<T::Binder>,
    open: &mut T,
    writer: Writer<'_>,
    chunk: &Chunk,
    row: usize,
) -> Result<Option<FoundVersion>, DriverError<T::Error>> {
    let (entity, table) = (rows.entity(chunk.table), rows.table(chunk.table));
    let names = T::Binder::names(entity, &table, writer.engine);
    let Some(query) = writer.version(&names) else {
        return Ok(Some(FoundVersion::Unknown));
    };
    let key = || {
        let mut key = T::Binder::with_room(entity, 1, names.keys.len());
        rows.write_key_of(chunk, row, &mut key);
        key
    };
    if let Some(found) = open.read(&query, key()).await?.into_iter().next() {
        // The server compares, as it did for the change: a time has another text there than here.
        let mut as_read = T::Binder::with_room(entity, 1, names.keys.len() + 1);
        rows.write_as_read(chunk, row, &mut as_read);
        let query = writer.exists_as_read(&names, &table);
        let is_as_read = open.exists(&query, as_read).await?;
        return Ok((!is_as_read).then_some(FoundVersion::Found(found.text)));
    }
    let is_locked = match writer.exists_or_is_locked(&names) {
        Some(query) => open.exists(&query, key()).await?,
        None => false,
    };
    Ok(Some(match is_locked {
        true => FoundVersion::Unknown,
        false => FoundVersion::NoRow,
    }))
}
