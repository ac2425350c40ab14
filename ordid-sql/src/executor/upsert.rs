//! Writes rows that may be there already.
//!
//! The database is asked which of them are there. Those that are not are inserted, the others are updated or left alone.
//! The engines' own statements for that do not say which rows they have inserted, or take any unique index for the one that
//! was meant. Many rows on PostgreSQL go by one statement all the same: see `staged.rs`.
//!
//! Another transaction may insert or delete a row between the question and the change. Then the key is taken, or a row is
//! missing, and the flush is begun anew, which finds the row as it is now.

use super::bound::{bind, found, send};
use crate::{
    Action, Chunk, FlushError, PendingRows, Place, UpsertStep, Upserted, spi::FlushTransaction,
    text::Statements,
};

/// What was sent of a chunk.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) statements: usize,
    /// The rows that were inserted.
    pub(crate) inserted: Chunk,
    /// The others, and what became of them.
    pub(crate) others: Chunk,
    pub(crate) outcome: Upserted,
}

impl Sent {
    pub(super) const fn new(statements: usize, inserted: Chunk, others: Chunk) -> Self {
        let outcome = match others.action {
            Action::Upsert {
                step: UpsertStep::Confirm,
                ..
            } => Upserted::LeftAlone,
            _ => Upserted::Updated,
        };
        Self {
            statements,
            inserted,
            others,
            outcome,
        }
    }
}

/// Writes the rows of a chunk of upserts, which it puts into another order.
///
/// # Errors
///
/// Why it failed. Where another transaction may be the cause, also which rows were there.
pub(super) async fn upsert<T: FlushTransaction>(
    rows: &mut PendingRows<T::Binder>,
    open: &mut T,
    chunk: &Chunk,
    statements: &mut Statements<'_>,
) -> Result<Sent, (FlushError<T::Error>, Option<Vec<bool>>)> {
    let Action::Upsert { set, .. } = chunk.action else {
        unreachable!("it is an upsert");
    };
    let part = |step, rows| Chunk {
        action: Action::Upsert { set, step },
        rows,
        ..chunk.clone()
    };
    let columns = &statements.table(chunk.table).column_sets()[set].columns;
    let is_ignored = columns.is_empty();
    let (found, mut count) = found(rows, open, chunk, statements)
        .await
        .map_err(|error| (error, None))?;
    let middle = rows.put_new_first(chunk, &found);
    let inserted = part(UpsertStep::Insert, chunk.rows.start..middle);
    let others = match is_ignored {
        false => part(UpsertStep::Update, middle..chunk.rows.end),
        true => part(UpsertStep::Confirm, middle..chunk.rows.end),
    };
    let failed = |error| (error, Some(found.clone()));
    let is_bound = !is_ignored && !others.rows.is_empty();
    let mut updates = None;
    if !inserted.rows.is_empty() {
        let bound = bind(rows, &inserted, statements);
        // While the database inserts, what it updates is bound.
        let sent = send(rows, open, bound, statements, |statements| {
            updates = is_bound.then(|| bind(rows, &others, statements));
        });
        count += sent.await.map_err(failed)?;
    }
    count += match updates {
        Some(bound) => send(rows, open, bound, statements, |_| ()).await,
        None if is_bound => {
            let bound = bind(rows, &others, statements);
            send(rows, open, bound, statements, |_| ()).await
        }
        None if others.rows.is_empty() => Ok(0),
        None => confirm(rows, open, &others, statements).await,
    }
    .map_err(failed)?;
    Ok(Sent::new(count, inserted, others))
}

/// Makes sure that rows which are left alone are committed, where the question which of them are there may have read
/// others.
async fn confirm<T: FlushTransaction>(
    rows: &PendingRows<T::Binder>,
    open: &mut T,
    others: &Chunk,
    statements: &mut Statements<'_>,
) -> Result<usize, FlushError<T::Error>> {
    if statements.writer().engine.words.confirms.is_none() {
        return Ok(0);
    }
    let (found, count) = found(rows, open, others, statements).await?;
    let there = found.iter().filter(|it| **it).count();
    if there < found.len() {
        let place = Place::of(statements.table(others.table), others);
        return Err(FlushError::count(there as u64, found.len(), place));
    }
    Ok(count)
}
