//! Finds the version that a row has, after it was not found with the one that it was read with.

use super::locate::Search;
use crate::{
    Chunk, PendingRows,
    flush_error::FoundVersion,
    spi::{Begin, FlushConnection, FlushTransaction, RowBinder, TransactionScope},
    text::Writer,
};

/// Returns what the database has in the place of a row, as it is committed now. The question is a transaction of its
/// own, or a savepoint of the user's; where that would see the row as it was before, nothing is asked.
pub(super) async fn found_version<C: FlushConnection>(
    rows: &PendingRows<C::Binder>,
    connection: &mut C,
    writer: Writer<'_>,
    chunk: &Chunk,
    row: usize,
    search: &mut Search,
) -> FoundVersion {
    if search.scope == TransactionScope::Savepoint && writer.engine.words.reads_snapshots {
        return FoundVersion::Unknown;
    }
    let entity = rows.entity(chunk.table);
    let names = C::Binder::names(entity, &rows.table(chunk.table), writer.engine);
    let Some(query) = writer.version(&names) else {
        return FoundVersion::Unknown;
    };
    let begin = Begin {
        statement: None,
        ..Begin::of(search.scope, writer.engine)
    };
    let mut open = match connection.begin(begin).await {
        Ok(open) => open,
        Err(error) => {
            search.not_begun(writer.engine, error.failure());
            return FoundVersion::Unknown;
        }
    };
    let mut key = C::Binder::with_room(entity, 1, names.keys.len());
    rows.write_key_of(chunk, row, &mut key);
    let mut found = match open.read(&query, key).await {
        Ok(rows) => match rows.into_iter().next() {
            Some(row) => FoundVersion::Found(row.text),
            None => FoundVersion::NoRow,
        },
        Err(_) => FoundVersion::Unknown,
    };
    if let (FoundVersion::NoRow, Some(query)) = (&found, writer.exists_or_is_locked(&names)) {
        let mut key = C::Binder::with_room(entity, 1, names.keys.len());
        rows.write_key_of(chunk, row, &mut key);
        if !matches!(open.exists(&query, key).await, Ok(false)) {
            found = FoundVersion::Unknown;
        }
    }
    // The next flush begins on a connection that has a transaction open no more, or is closed.
    search.rolled_back(open.rollback(false).await);
    found
}
