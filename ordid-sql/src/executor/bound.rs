//! Binds the rows of a chunk to statements, and sends them.

use std::{future::poll_fn, ops::Range, pin::pin, task::Poll};

use super::no_values;
use crate::{
    Action, Chunk, DriverError, EngineProfile, FlushError, MessageLimit, PendingRows, Place,
    Updates, UpsertStep,
    spi::{BoxedError, Changed, FlushTransaction, RowBinder, RunOfRows, StatementFailure},
    text::{Statement, Statements},
};

/// Rows of a chunk as they are sent: their statements in order, or why a row could not be bound.
pub(super) struct Bound<B> {
    statements: BoundStatements<B>,
    chunk: Chunk,
    /// The first row of the chunk that is in none of these statements.
    end: usize,
    place: Place,
    /// Whether each statement is for one row.
    is_for_each_row: bool,
    /// Whether the number of rows that the database changes says something.
    is_counted: bool,
    into: Into,
}

/// Where the rows of a chunk go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Into {
    /// Where their action says.
    Table,
    /// Into the temporary table.
    Staged,
}

struct BoundStatement<B> {
    statement: Statement,
    values: B,
    /// How many bytes the values of one row have; 0 for a statement of more rows, each of which is small.
    bytes: usize,
}

/// Binds the rows of a chunk, or as many of them as are large enough for a statement.
pub(super) fn bind<B: RowBinder>(
    rows: &PendingRows<B>,
    chunk: &Chunk,
    statements: &mut Statements<'_>,
) -> Bound<B> {
    bind_from(rows, chunk, chunk.rows.start, Into::Table, statements)
}

/// As [`bind`], for the statements that insert the rows into the temporary table.
pub(super) fn bind_staged<B: RowBinder>(
    rows: &PendingRows<B>,
    chunk: &Chunk,
    statements: &mut Statements<'_>,
) -> Bound<B> {
    bind_from(rows, chunk, chunk.rows.start, Into::Staged, statements)
}

/// As [`bind`], from this row of the chunk on.
fn bind_from<B: RowBinder>(
    rows: &PendingRows<B>,
    chunk: &Chunk,
    start: usize,
    into: Into,
    statements: &mut Statements<'_>,
) -> Bound<B> {
    let is_for_each_row = into == Into::Table && statements.writer().is_for_each_row(chunk.action);
    let place = Place::of(statements.table(chunk.table), chunk);
    let is_counted = into == Into::Staged || is_counted(chunk, statements);
    let bound = match is_for_each_row {
        true => bind_each(rows, chunk, statements).map(|bound| (bound, chunk.rows.end)),
        false => bind_all(rows, chunk, start, into, statements),
    };
    let (bound, end) = match bound {
        Ok((bound, end)) => (Ok(bound), end),
        Err(error) => (Err(error), chunk.rows.end),
    };
    Bound {
        statements: bound,
        chunk: chunk.clone(),
        end,
        place,
        is_for_each_row,
        is_counted,
        into,
    }
}

/// Returns whether the database says how many rows of a chunk it has changed.
fn is_counted(chunk: &Chunk, statements: &Statements<'_>) -> bool {
    let (engine, table) = (statements.writer().engine, statements.table(chunk.table));
    let counts_inserts = engine.counts_inserts && table.counts_inserts;
    match chunk.action {
        // MySQL counts a row that it updates twice, and perhaps not at all if it has these values already.
        Action::Upsert {
            step: UpsertStep::Write,
            ..
        } => counts_inserts && engine.updates != Updates::RowByRow,
        action => counts_inserts || !action.inserts(),
    }
}

/// Why a row could not be bound, and which.
type Unbound = (BoxedError, usize);
type BoundStatements<B> = Result<Vec<BoundStatement<B>>, Unbound>;

/// Returns the statements, and the first row that is in none of them.
fn bind_all<B: RowBinder>(
    rows: &PendingRows<B>,
    chunk: &Chunk,
    start: usize,
    into: Into,
    statements: &mut Statements<'_>,
) -> Result<(Vec<BoundStatement<B>>, usize), Unbound> {
    let entity = rows.entity(chunk.table);
    let columns = statements.table(chunk.table).columns_of(chunk.action).len();
    let max_bytes = statements.writer().engine.max_bytes;
    let write = |range: Range<usize>| {
        let mut values = B::with_room(entity, range.len(), columns);
        values.limit(max_bytes);
        values.begin_rows(chunk.action);
        let end = rows.write(chunk, range, &mut values);
        match values.take_error() {
            Some(error) => Err((error, end)),
            None => Ok((values, end)),
        }
    };
    let (mut values, mut end) = write(start..chunk.rows.end)?;
    if end == start {
        return Err(("the library took no value of the row".into(), start));
    }
    if end - start > 1 && values.bytes() > 2 * max_bytes {
        // The last row is large. It goes alone, so that the server need not take more than it.
        (values, end) = write(start..end - 1)?;
    }
    let bytes = match end - start {
        1 => values.bytes(),
        _ => 0,
    };
    let runs = values.into_runs(end - start).into_iter();
    let bound = runs.map(|run| of_run(run, bytes, chunk, into, statements));
    Ok((bound.collect(), end))
}

fn of_run<B>(
    run: RunOfRows<B>,
    bytes: usize,
    chunk: &Chunk,
    into: Into,
    statements: &mut Statements<'_>,
) -> BoundStatement<B> {
    let statement = match into {
        // All of them have values for all columns.
        Into::Staged => statements.staged(chunk, run.rows),
        Into::Table => statements.of(chunk, run.rows, run.columns.as_deref()),
    };
    BoundStatement {
        statement,
        values: run.values,
        bytes,
    }
}

fn bind_each<B: RowBinder>(
    rows: &PendingRows<B>,
    chunk: &Chunk,
    statements: &mut Statements<'_>,
) -> BoundStatements<B> {
    let entity = rows.entity(chunk.table);
    let columns = statements.table(chunk.table).columns_of(chunk.action);
    // What a row is found by comes last in the text.
    let (table, names) = (statements.table(chunk.table), statements.names(chunk.table));
    let [set, last] = statements.writer().of_row(table, names, chunk.action);
    let mut bound = Vec::with_capacity(chunk.rows.len());
    for row in chunk.rows.clone() {
        let mut values = B::with_room(entity, 1, columns.len());
        values.begin_rows(chunk.action);
        if B::BY_COLUMN {
            rows.write(chunk, row..row + 1, &mut values);
        } else {
            rows.write_only(chunk, row, &set, &mut values);
            rows.write_only(chunk, row, &last, &mut values);
        }
        if let Some(error) = values.take_error() {
            return Err((error, row));
        }
        let bytes = values.bytes();
        let runs = values.into_runs(1).into_iter();
        bound.extend(runs.map(|run| of_run(run, bytes, chunk, Into::Table, statements)));
    }
    Ok(bound)
}

/// Sends a chunk, of which the first rows are bound, and calls `meanwhile` when its last rows are on their way. Returns
/// how many statements it took.
pub(super) async fn send<T: FlushTransaction>(
    rows: &PendingRows<T::Binder>,
    open: &mut T,
    bound: Bound<T::Binder>,
    texts: &mut Statements<'_>,
    meanwhile: impl FnOnce(&mut Statements<'_>) + Send,
) -> Result<usize, FlushError<T::Error>> {
    let (chunk, place) = (bound.chunk.clone(), bound.place.clone());
    let key = |row: usize| rows.key_text(&chunk, row);
    let (is_for_each_row, is_counted, into) = (bound.is_for_each_row, bound.is_counted, bound.into);
    let engine = texts.writer().engine;
    let mut meanwhile = Some(meanwhile);
    let mut start = chunk.rows.start;
    let (mut count, mut changed, mut expected) = (0, 0, 0);
    let mut next = Some(bound);
    while let Some(Bound {
        statements, end, ..
    }) = next.take()
    {
        let statements = match statements {
            Ok(statements) => statements,
            Err((error, row)) => return Err(FlushError::bind(error, place.with_key(key(row)))),
        };
        count += statements.len();
        let mut is_bound = false;
        for BoundStatement {
            statement,
            values,
            bytes,
        } in statements
        {
            if bytes > engine.max_bytes {
                let of_row = || Place {
                    row: is_for_each_row.then_some(start),
                    ..place.clone().with_key(key(start))
                };
                check_size(rows, open, engine, bytes, of_row).await?;
            }
            let sending = open.execute(&statement, values);
            let answer = hand_over(sending, || {
                if is_bound {
                    return;
                }
                is_bound = true;
                if end < chunk.rows.end {
                    next = Some(bind_from(rows, &chunk, end, into, texts));
                } else if let Some(meanwhile) = meanwhile.take() {
                    meanwhile(texts);
                }
            });
            let of_row = || {
                let mut place = place.clone();
                place.row = is_for_each_row.then_some(start);
                place
            };
            let answer = match answer.await {
                Ok(answer) => answer,
                Err(failure) => return Err(refused(failure, of_row(), |row| key(start + row))),
            };
            if is_counted {
                match answer {
                    Changed::OfEach(found) => {
                        if let Some((row, found, more)) = other_than_one(&found, statement.rows) {
                            let place = Place {
                                more,
                                row: Some(start + row),
                                ..of_row().with_key(key(start + row))
                            };
                            return Err(FlushError::count(found, 1, place));
                        }
                    }
                    Changed::Rows(found) if is_for_each_row && found != 1 => {
                        return Err(FlushError::count(found, 1, of_row()));
                    }
                    Changed::Rows(found) => {
                        changed += found;
                        expected += statement.rows;
                    }
                }
            }
            start += statement.rows;
        }
    }
    match usize::try_from(changed) == Ok(expected) {
        true => Ok(count),
        false => Err(FlushError::count(changed, expected, place)),
    }
}

/// Asks which rows of an upsert's chunk are there. Returns that of each row, and how many statements it took.
pub(super) async fn found<T: FlushTransaction>(
    rows: &PendingRows<T::Binder>,
    open: &mut T,
    chunk: &Chunk,
    statements: &mut Statements<'_>,
) -> Result<(Vec<bool>, usize), FlushError<T::Error>> {
    let first = chunk.rows.start;
    let mut found = vec![false; chunk.rows.len()];
    let mut count = 0;
    let questions = match statements.writer().engine.binds_arrays() {
        // An array is no list of rows that a query could be asked about.
        true => chunk.singly().collect(),
        false => vec![chunk.clone()],
    };
    for question in questions {
        let mut start = question.rows.start;
        while start < question.rows.end {
            let bound = bind_from(rows, &question, start, Into::Table, statements);
            let place = bound.place;
            let keyed = |row: usize| place.clone().with_key(rows.key_text(chunk, row));
            let asked = match bound.statements {
                Ok(statements) => statements,
                Err((error, row)) => return Err(FlushError::bind(error, keyed(row))),
            };
            let looked_for = statements.table(chunk.table).columns_of(chunk.action).len();
            for BoundStatement {
                statement, values, ..
            } in asked
            {
                if statement.columns.len() < looked_for {
                    let error = "it has no value for a column by which rows are looked for";
                    return Err(FlushError::bind(error, keyed(start)));
                }
                let answer = open.read(&statement, values).await;
                let answer = answer.map_err(|it| FlushError::statement(it, place.clone()))?;
                for row in answer {
                    // An engine may answer with the numbers of all rows in one text, which is NULL if there are none.
                    for number in row.text.split(',').filter(|it| !it.is_empty()) {
                        let row = number_of(number, statement.rows);
                        let row = row.map_err(|error| FlushError::bind(error, place.clone()))?;
                        found[start - first + row] = true;
                    }
                }
                count += 1;
                start += statement.rows;
            }
        }
    }
    Ok((found, count))
}

/// Refuses a row that is larger than a message to the server may be. Sent, it would end the connection, as if that had
/// been lost.
async fn check_size<T: FlushTransaction>(
    rows: &PendingRows<T::Binder>,
    open: &mut T,
    engine: &EngineProfile,
    bytes: usize,
    place: impl FnOnce() -> Place,
) -> Result<(), FlushError<T::Error>> {
    let (limit, setting) = match engine.max_message {
        MessageLimit::None => return Ok(()),
        MessageLimit::Bytes(limit) => (limit, None),
        MessageLimit::Setting(name) => match setting(rows, open, engine, name).await {
            Ok(Some(limit)) => (limit, Some(name)),
            Ok(None) => return Ok(()),
            Err(error) => return Err(FlushError::statement(error, place())),
        },
    };
    match bytes <= limit {
        true => Ok(()),
        false => Err(FlushError::too_large(bytes, limit, setting, place())),
    }
}

/// Returns the number of a row among the `rows` rows that a query asked about.
pub(super) fn number_of(text: &str, rows: usize) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number < rows);
    number.ok_or_else(|| format!("the database answers {text:?} in place of the number of a row"))
}

/// Returns the value of a system variable that is a number.
async fn setting<T: FlushTransaction>(
    rows: &PendingRows<T::Binder>,
    open: &mut T,
    engine: &EngineProfile,
    name: &str,
) -> Result<Option<usize>, DriverError<T::Error>> {
    let [before, behind] = engine.words.as_text;
    let query = Statement::query(format!("SELECT {before}{name}{behind}"));
    let values = open.read(&query, no_values(rows)).await?;
    Ok(values.first().and_then(|value| value.text.parse().ok()))
}

/// Makes the error of a statement. `key` returns the key of a row, if the library names one.
fn refused<D>(
    failure: StatementFailure<D>,
    place: Place,
    key: impl FnOnce(usize) -> String,
) -> FlushError<D> {
    let place = match failure.row {
        Some((row, more)) => Place {
            more,
            ..place.with_key(key(row))
        },
        None => place,
    };
    match failure.is_binding {
        true => FlushError::bind_by_driver(failure.error, place),
        false => FlushError::statement(failure.error, place),
    }
}

/// Returns the first row of which another number was there than one, that number, and how many such rows
/// there are besides.
fn other_than_one(found: &[u64], rows: usize) -> Option<(usize, u64, usize)> {
    // Rows without a count were not found.
    let counts = found.iter().copied().chain(std::iter::repeat(0));
    let mut others = counts
        .take(rows)
        .enumerate()
        .filter(|(_, found)| *found != 1);
    let (row, found) = others.next()?;
    Some((row, found, others.count()))
}

/// Awaits a statement, and calls `meanwhile` when it is on its way.
async fn hand_over<T>(sending: impl Future<Output = T> + Send, meanwhile: impl FnOnce()) -> T {
    let mut sending = pin!(sending);
    // One poll hands the statement to the socket, or to SQLite's thread.
    let sent = poll_fn(|context| Poll::Ready(sending.as_mut().poll(context))).await;
    meanwhile();
    match sent {
        Poll::Ready(answer) => answer,
        Poll::Pending => sending.await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_to_find_one_row() {
        let found = |found: &[u64]| other_than_one(found, 3);
        assert_eq!(found(&[1, 1, 1]), None);
        assert_eq!(found(&[1, 0, 0]), Some((1, 0, 1)));
        assert_eq!(found(&[2, 1, 0]), Some((0, 2, 1)));
        assert_eq!(found(&[1, 1]), Some((2, 0, 0)));
    }
}
