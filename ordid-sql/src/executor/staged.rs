//! Sends many rows that are updated or upserted through a temporary table.
//!
//! Chunks of an action that follow each other are inserted there, and then taken over together.
//!
//! What fails there, also a change of another number of rows, may succeed by other statements: the temporary table takes
//! more values of an upsert than an update sends, has none of the table's triggers, and may not be allowed. So the
//! transaction is rolled back, and the flush begins anew without it. If these statements fail, too, they say which row.
//!
//! This holds on MySQL, too, where a refused statement leaves the transaction open: the error of the statement that makes
//! the table may be the only one to say that a group of MySQL has ended the transaction. Each statement that followed
//! would be committed by itself. A savepoint cannot find that out: if it is the first statement after the end, MySQL 9.7
//! forgets that there was one.

use std::{collections::BTreeSet, mem, time::Instant};

use super::{
    bound::{Bound, bind_staged, send},
    deadline::Deadline,
    no_values,
    upsert::Sent,
};
use crate::{
    Action, Chunk, EngineProfile, FlushError, FlushRun, PendingRows, Place, Plan, Progress, Step,
    Table, UpsertStep,
    bulk::BulkRows,
    flush_plan::is_whole,
    not_bulk::offer,
    spi::{FlushConnection, FlushTransaction, Statement, TransactionScope},
    text::{Statements, Writer, can_be_staged, staged_action},
};

/// After how many statements the temporary table takes no further chunk: such rows are large.
const MAX_STATEMENTS: usize = 100;

/// Which tables' rows go through a temporary table, as far as an attempt has found out.
#[derive(Debug, Default)]
pub(super) struct Staging {
    /// Each table that was asked about.
    possible: Vec<(usize, bool)>,
}

/// What became of rows that may go through a temporary table.
#[derive(Debug)]
pub(super) enum Staged<D> {
    /// They were sent.
    Sent,
    /// Nothing of them was sent, and they go by other statements.
    Not,
    /// The time of the flush is over.
    Stopped,
    /// Some of these rows were refused, or another number was changed.
    Failed(FlushError<D>, Chunk),
}

impl Staging {
    /// Returns whether rows of this action may go through a temporary table, of which so many follow each other.
    pub(super) fn may_take(
        &self,
        chunk: &Chunk,
        least: Option<usize>,
        rows_together: impl FnOnce() -> usize,
    ) -> bool {
        can_be_staged(chunk.action)
            && !self.possible.contains(&(chunk.table, false))
            && least.is_some_and(|least| rows_together() >= least)
    }

    /// Sends the rows that the run is at, by the bulk command as far as that takes them.
    #[expect(clippy::too_many_arguments, reason = "they are what an attempt has")]
    pub(super) async fn send<T: FlushTransaction>(
        &mut self,
        rows: &mut PendingRows<T::Binder>,
        open: &mut T,
        bulk: Option<&mut T::Bulk>,
        run: &mut FlushRun<T::Error>,
        deadline: Deadline,
        observer: &mut Option<Box<dyn FnMut(Progress) + Send>>,
        statements: &mut Statements<'_>,
    ) -> Staged<T::Error> {
        let Step::Send(first) = run.step() else {
            return Staged::Not;
        };
        if !is_whole(rows, &first, statements) {
            return Staged::Not;
        }
        let started = Instant::now();
        let made = match self.begin(rows, open, &first, statements).await {
            Ok(Some(made)) => made,
            Ok(None) => {
                self.possible.push((first.table, false));
                return Staged::Not;
            }
            Err(error) => return Staged::Failed(error, first),
        };
        let filled = fill(rows, open, bulk, run, deadline, observer, statements);
        let filled = match filled.await {
            Ok(Some(filled)) => filled,
            Ok(None) => return Staged::Stopped,
            Err((error, chunk)) => return Staged::Failed(error, chunk),
        };
        let Filled {
            chunks,
            group,
            count,
        } = filled;
        let taken = match group.action {
            Action::Upsert { .. } => upsert(rows, open, &group, statements).await,
            _ => {
                let writer = statements.writer();
                let (table, names) = (statements.table(group.table), statements.names(group.table));
                let update = writer.update_staged(table, names, group.action, group.rows.len());
                let taken = take(rows, open, &update, &group, statements, true).await;
                taken.map(|()| (1, None))
            }
        };
        let (taken, sent) = match taken {
            Ok(taken) => taken,
            Err(error) => return Staged::Failed(error, group),
        };
        let removed = open
            .execute(&statements.writer().unstage(), no_values(rows))
            .await;
        if let Err(failed) = removed {
            let place = place(&group, statements);
            return Staged::Failed(FlushError::statement(failed.error, place), group);
        }
        // The last one has removed the table.
        let count = made + count + taken + 1;
        let name = statements.table(group.table).name();
        match sent {
            Some(sent) => {
                let sent = Sent {
                    statements: count,
                    ..sent
                };
                run.upserted(rows, &group, sent, started.elapsed());
            }
            None => run.count_all(name, &group, count, started.elapsed()),
        }
        for chunk in &chunks {
            run.report(name, chunk, observer);
        }
        run.succeeded();
        Staged::Sent
    }

    /// Returns for each table whether the bulk command may put rows of it into the temporary table: so many of them are
    /// updated or upserted by values for all columns.
    pub(super) fn offered<C: FlushConnection>(
        plan: &Plan,
        tables: &[Table],
        engine: &EngineProfile,
        scope: TransactionScope,
    ) -> Vec<bool> {
        let least = engine.stages_from();
        let mut rows = vec![(0, 0); tables.len()];
        for chunk in plan.chunks() {
            if takes_bulk::<C>(&tables[chunk.table], chunk.action) {
                rows[chunk.table].0 += chunk.rows.len();
                rows[chunk.table].1 += 1;
            }
        }
        let offered = rows.into_iter().map(|(rows, chunks)| {
            least.is_some_and(|least| rows >= least)
                && offer::<C::Binder>(rows, chunks, engine, scope).is_ok()
        });
        offered.collect()
    }

    /// Makes the temporary table, and returns how many statements that took; `None` if the server does not let it.
    async fn begin<T: FlushTransaction>(
        &mut self,
        rows: &PendingRows<T::Binder>,
        open: &mut T,
        chunk: &Chunk,
        statements: &Statements<'_>,
    ) -> Result<Option<usize>, FlushError<T::Error>> {
        let (writer, place) = (statements.writer(), || place(chunk, statements));
        let (table, names) = (statements.table(chunk.table), statements.names(chunk.table));
        if !self.possible.contains(&(chunk.table, true)) {
            let Some(question) = writer.engine.words.can_stage else {
                return Ok(None);
            };
            let question = Statement::query(question(names));
            let answer = open.exists(&question, no_values(rows)).await;
            if !answer.map_err(|error| FlushError::statement(error, place()))? {
                return Ok(None);
            }
            self.possible.push((chunk.table, true));
        }
        let made = writer.stage(table, names, staged_action(chunk.action));
        for statement in &made {
            let made = open.execute(statement, no_values(rows)).await;
            made.map_err(|failed| FlushError::statement(failed.error, place()))?;
        }
        Ok(Some(made.len()))
    }
}

/// Returns whether the bulk command can put rows of an action into the temporary table: they have values for all columns and
/// no others.
pub(super) fn takes_bulk<C: FlushConnection>(table: &Table, action: Action) -> bool {
    C::STAGES_BULK
        && match action {
            Action::Upsert { .. } => true,
            Action::Update => table.version().is_none(),
            _ => false,
        }
}

/// Removes the temporary table before a rollback, which removes it only on PostgreSQL.
pub(super) async fn clear<T: FlushTransaction>(
    rows: &PendingRows<T::Binder>,
    open: &mut T,
    writer: Writer<'_>,
) {
    if let Some(clear) = writer.clear_staged() {
        // The next flush that makes the table removes it, too.
        let _ = open.execute(&clear, no_values(rows)).await;
    }
}

/// The chunks that were inserted into the temporary table, all of them as one, and how many statements that took.
struct Filled {
    chunks: Vec<Chunk>,
    group: Chunk,
    count: usize,
}

impl Filled {
    fn of(chunks: Vec<Chunk>, count: usize) -> Self {
        debug_assert!(
            chunks.is_sorted_by(|one, next| one.rows.end == next.rows.start),
            "rows in between would be written, too"
        );
        let mut group = chunks[0].clone();
        group.rows.end = chunks[chunks.len() - 1].rows.end;
        Self {
            chunks,
            group,
            count,
        }
    }
}

/// Puts the rows of the run's chunk, and of those that follow it, into the temporary table: by the bulk command, and from
/// the first row on that this does not take by inserts. The run is at the last of the chunks then. Returns `None` if the
/// time of the flush is over.
async fn fill<T: FlushTransaction>(
    rows: &PendingRows<T::Binder>,
    open: &mut T,
    bulk: Option<&mut T::Bulk>,
    run: &mut FlushRun<T::Error>,
    deadline: Deadline,
    observer: &mut Option<Box<dyn FnMut(Progress) + Send>>,
    statements: &mut Statements<'_>,
) -> Result<Option<Filled>, (FlushError<T::Error>, Chunk)> {
    let (mut chunks, mut count) = (Vec::<Chunk>::new(), 0);
    let (mut bound, mut from) = (None, None);
    let most = statements.writer().max_staged_chunks();
    if let (Some(bulk), Step::Send(first)) = (bulk, run.step()) {
        let (staged, first_row) = (statements.writer().staged_table(), first.rows.start);
        let command = BulkRows::new(rows, run, observer, first.clone(), most);
        let mut command = command.staged(staged);
        let outcome = open.send_bulk(bulk, &mut command).await;
        let ended = command.ended_staged(outcome);
        let (taken, rest) = ended.map_err(|(error, chunk)| (error, chunk.unwrap_or(first)))?;
        count = usize::from(rest != Some(first_row));
        chunks = taken;
        if rest.is_none() {
            return Ok(Some(Filled::of(chunks, count)));
        }
        from = rest;
    }
    while let Step::Send(chunk) = run.step() {
        if !chunks.is_empty() && deadline.is_over() {
            return Ok(None);
        }
        let next = run.upcoming().filter(|next| {
            (next.action, next.table, next.rows.start)
                == (chunk.action, chunk.table, chunk.rows.end)
                && chunks.len() + 1 < most
                && count < MAX_STATEMENTS
                && is_whole(rows, next, statements)
        });
        let now: Bound<T::Binder> = bound.take().unwrap_or_else(|| {
            let mut part = of(&chunk);
            part.rows.start = from.take().unwrap_or(part.rows.start);
            bind_staged(rows, &part, statements)
        });
        let sent = send(rows, open, now, statements, |statements| {
            let next = next.as_ref();
            bound = next.map(|next| bind_staged(rows, &of(next), statements));
        });
        match sent.await {
            Ok(sent) => count += sent,
            Err(error) => return Err((error, chunk)),
        }
        chunks.push(chunk);
        match next {
            Some(_) => run.succeeded(),
            None => break,
        }
    }
    Ok(Some(Filled::of(chunks, count)))
}

/// Inserts the rows of the temporary table that are not there, and updates the others. Returns how many statements it
/// took and what was done with which rows, which it puts into another order.
async fn upsert<T: FlushTransaction>(
    rows: &mut PendingRows<T::Binder>,
    open: &mut T,
    group: &Chunk,
    statements: &Statements<'_>,
) -> Result<(usize, Option<Sent>), FlushError<T::Error>> {
    let Action::Upsert { set, .. } = group.action else {
        unreachable!("it is an upsert");
    };
    let (writer, table) = (statements.writer(), statements.table(group.table));
    let names = statements.names(group.table);
    let part = |step, rows| Chunk {
        rows,
        ..group.with_step(step)
    };
    let is_ignored = table.column_sets()[set].columns.is_empty();
    let is_counted = writer.engine.counts_inserts && table.counts_inserts;
    let merge = writer.merge(table, names, group.action, group.rows.len());
    let (found, merged, mut count) = match &merge {
        Some(merge) => {
            let (found, inserted) = merged(rows, open, merge, group, statements).await?;
            (found, Some(inserted), 1)
        }
        None => {
            let (found, count) = found(rows, open, group, statements).await?;
            (found, None, count)
        }
    };
    let middle = rows.put_new_first(group, &found);
    let inserted = part(UpsertStep::Insert, group.rows.start..middle);
    let others = match is_ignored {
        false => part(UpsertStep::Update, middle..group.rows.end),
        true => part(UpsertStep::Confirm, middle..group.rows.end),
    };
    if let Some(changed) = merged {
        check(changed, &inserted, statements, is_counted)?;
        return Ok((count, Some(Sent::new(count, inserted, others))));
    }
    if !inserted.rows.is_empty() {
        let columns = table.columns_of(inserted.action);
        let insert = writer.insert_staged(names, &columns, inserted.rows.len());
        let taken = take(rows, open, &insert, &inserted, statements, is_counted).await;
        taken?;
        count += 1;
    }
    if !others.rows.is_empty() {
        if !is_ignored {
            let update = writer.update_staged(table, names, others.action, others.rows.len());
            let taken = take(rows, open, &update, &others, statements, true).await;
            taken?;
            count += 1;
        } else if let Some(query) =
            writer.confirm_staged(names, &found_by(statements, group), others.rows.len())
        {
            let there = open.read(&query, no_values(rows)).await;
            let there =
                there.map_err(|it| FlushError::statement(it, place(&others, statements)))?;
            // Without a unique index, more than one row may be found by the same values.
            let there: BTreeSet<_> = there.iter().map(|row| &row.text).collect();
            check(there.len() as u64, &others, statements, true)?;
            count += 1;
        }
    }
    Ok((count, Some(Sent::new(count, inserted, others))))
}

/// Writes all rows by one statement. Returns which of them were there, and how many it has inserted.
async fn merged<T: FlushTransaction>(
    rows: &PendingRows<T::Binder>,
    open: &mut T,
    merge: &Statement,
    group: &Chunk,
    statements: &Statements<'_>,
) -> Result<(Vec<bool>, u64), FlushError<T::Error>> {
    let place = || place(group, statements);
    let answer = open.read(merge, no_values(rows)).await;
    let answer = answer.map_err(|it| FlushError::statement(it, place()))?;
    let mut found = vec![false; group.rows.len()];
    let mut numbers = answer.iter().flat_map(|row| row.text.split(','));
    let mut next = || numbers.next().and_then(|it| it.parse::<u64>().ok());
    let (inserted, kept) = (next(), next());
    let mut mark = |number: &str| {
        let number: usize = number.parse().ok()?;
        let there = found.get_mut(number.checked_sub(1)?)?;
        // Without a unique index, more than one row may be found by the same values.
        (!mem::replace(there, true)).then_some(())
    };
    match (inserted, kept) {
        (Some(inserted), Some(0)) if numbers.all(|number| mark(number).is_some()) => {
            Ok((found, inserted))
        }
        _ => Err(FlushError::bind(NOT_ASKED, place())),
    }
}

const NOT_ASKED: &str = "the database has found other rows than it was sent";

/// Finds out which rows of the temporary table are there, and marks them. Returns that of each row, and how many
/// statements it took.
async fn found<T: FlushTransaction>(
    rows: &PendingRows<T::Binder>,
    open: &mut T,
    group: &Chunk,
    statements: &Statements<'_>,
) -> Result<(Vec<bool>, usize), FlushError<T::Error>> {
    let (writer, names) = (statements.writer(), statements.names(group.table));
    let (found_by, place) = (found_by(statements, group), || place(group, statements));
    let query = writer.staged_found(names, &found_by, group.rows.len());
    let answer = open.read(&query, no_values(rows)).await;
    let answer = answer.map_err(|it| FlushError::statement(it, place()))?;
    let numbers: Result<Vec<i64>, _> = answer.iter().map(|row| row.text.parse()).collect();
    let numbers = numbers.map_err(|error| FlushError::bind(error, place()))?;
    if numbers.len() != group.rows.len() {
        return Err(FlushError::bind(NOT_ASKED, place()));
    }
    let mut count = 1;
    let there: Vec<i64> = numbers.iter().copied().filter(|it| *it > 0).collect();
    if !there.is_empty() {
        let some = (there.len() < numbers.len()).then_some(&there[..]);
        let columns = statements
            .table(group.table)
            .columns_of(staged_action(group.action));
        for mark in writer.mark(names, &columns, some) {
            let marked = open.execute(&mark, no_values(rows)).await;
            marked.map_err(|it| FlushError::statement(it.error, place()))?;
            count += 1;
        }
    }
    let found = numbers.into_iter().map(|number| number > 0);
    Ok((found.collect(), count))
}

/// Sends a statement that takes over rows, and compares the number of rows that it changed.
async fn take<T: FlushTransaction>(
    rows: &PendingRows<T::Binder>,
    open: &mut T,
    statement: &Statement,
    chunk: &Chunk,
    statements: &Statements<'_>,
    is_counted: bool,
) -> Result<(), FlushError<T::Error>> {
    let changed = open.execute(statement, no_values(rows)).await;
    let changed =
        changed.map_err(|it| FlushError::statement(it.error, place(chunk, statements)))?;
    check(changed.total(), chunk, statements, is_counted)
}

/// Compares how many rows changed with how many were sent, where that is counted.
fn check<D>(
    changed: u64,
    chunk: &Chunk,
    statements: &Statements<'_>,
    is_counted: bool,
) -> Result<(), FlushError<D>> {
    let sent = chunk.rows.len();
    match !is_counted || usize::try_from(changed) == Ok(sent) {
        true => Ok(()),
        false => Err(FlushError::count(changed, sent, place(chunk, statements))),
    }
}

/// Returns the columns by which the rows of an upsert are found, each with the position of its value.
fn found_by(statements: &Statements<'_>, chunk: &Chunk) -> Vec<(usize, usize)> {
    let (table, names) = (statements.table(chunk.table), statements.names(chunk.table));
    names.found_by(table, chunk.action)
}

fn place(chunk: &Chunk, statements: &Statements<'_>) -> Place {
    Place::of(statements.table(chunk.table), chunk)
}

/// Returns the rows of a chunk with the action whose values the temporary table takes.
fn of(chunk: &Chunk) -> Chunk {
    Chunk {
        action: staged_action(chunk.action),
        ..chunk.clone()
    }
}
