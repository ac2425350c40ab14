//! Writes rows that may be there already.
//!
//! The database is asked which of them are there. Those that are not are inserted, the others are updated or left alone.
//! The engines' own statements for that do not say which rows they have inserted, or take any unique index for the one that
//! was meant. Many rows on PostgreSQL go by one statement all the same: see `staged.rs`. Many rows of which nobody wants to
//! know what became of them go by the engine's own statement, if it can only take the index that was meant.
//!
//! Another transaction may insert or delete a row between the question and the change. Then the key is taken, or a row is
//! missing, and the flush is begun anew, which finds the row as it is now.

use super::{
    bound::{bind, found, send},
    no_values,
};
use crate::{
    Action, Chunk, FlushError, PendingRows, Place, UpsertStep, Upserted,
    flush_plan::is_whole,
    spi::{FlushTransaction, RowBinder, Statement},
    text::Statements,
};

/// Says which upserts the engine's own statement writes, as far as an attempt has found out.
#[derive(Debug, Default)]
pub(super) struct Writes {
    /// Each table and column set that was asked about.
    possible: Vec<((usize, usize), bool)>,
}

impl Writes {
    /// Asks whether the engine's own statement does what is asked for, if the rows of a chunk may go by it, of which so many
    /// follow each other.
    pub(super) async fn ask<T: FlushTransaction>(
        &mut self,
        rows: &PendingRows<T::Binder>,
        open: &mut T,
        chunk: &Chunk,
        statements: &Statements<'_>,
        rows_together: impl FnOnce() -> usize,
    ) -> Result<(), FlushError<T::Error>> {
        let engine = statements.writer().engine;
        let (Action::Upsert { set, .. }, Some(question), Some(least)) =
            (chunk.action, engine.words.can_write, engine.writes_from())
        else {
            return Ok(());
        };
        let table = statements.table(chunk.table);
        let is_known = self.possible.iter().any(|it| it.0 == (chunk.table, set));
        if is_known || !table.column_sets()[set].may_be_written() || rows_together() < least {
            return Ok(());
        }
        let names = statements.names(chunk.table);
        let question = Statement::query(question(names, table.upserted_by(set)));
        let answer = open.exists(&question, no_values(rows)).await;
        let answer = answer.map_err(|it| FlushError::statement(it, Place::of(table, chunk)))?;
        self.possible.push(((chunk.table, set), answer));
        Ok(())
    }

    /// Returns a chunk as the engine's own statement writes it; `None` if other statements have to.
    pub(super) fn of<B: RowBinder>(
        &self,
        rows: &PendingRows<B>,
        chunk: &Chunk,
        statements: &Statements<'_>,
    ) -> Option<Chunk> {
        let Action::Upsert { set, .. } = chunk.action else {
            return None;
        };
        let may_write = self.possible.contains(&((chunk.table, set), true))
            && is_whole(rows, chunk, statements);
        may_write.then(|| chunk.with_step(UpsertStep::Write))
    }
}

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
    let part = |of, rows| Chunk {
        rows,
        ..chunk.with_step(of)
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
