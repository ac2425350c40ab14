//! Reads the values that the database has filled in rows that were sent.

use std::ops::Range;

use ordid_core::entity::{AnyValue, Filling};

use super::bound::number_of;
use crate::{
    Action, Chunk, Failure, FlushError, FlushRun, PendingRows, Place, Plan,
    spi::{BoxedError, FlushTransaction, ReadRow, RowBinder, RunOfRows},
    text::{Sees, Statements},
};

/// Values that were read. They are kept until COMMIT is known to have succeeded; if this is dropped, they are
/// discarded.
#[derive(Debug, Default)]
pub(super) struct Read {
    fillings: Vec<Filling>,
    /// The number of statements that read rows of each chunk.
    statements: Vec<(Chunk, usize)>,
}

impl Read {
    /// Adds the statements to the run's counts.
    pub(super) fn count<D>(&self, run: &mut FlushRun<D>) {
        for (chunk, statements) in &self.statements {
            run.count_reads(chunk, *statements);
        }
    }

    /// Puts the values into the fields of the program's rows.
    pub(super) fn fill(self) {
        self.fillings.into_iter().for_each(Filling::fill);
    }
}

/// Returns whether some rows of a plan have columns that are read back.
pub(super) fn reads<B: RowBinder>(rows: &PendingRows<B>, plan: &Plan) -> bool {
    let tables = rows.tables();
    tables.iter().any(|table| !table.returning().is_empty())
        && plan
            .chunks()
            .any(|chunk| tables[chunk.table].read_by(chunk.action).is_some())
}

/// Reads the columns that the database fills, in all rows of a plan. This comes after the last statement, since a
/// statement may change a row that an earlier one wrote.
pub(super) async fn read<T: FlushTransaction>(
    rows: &PendingRows<T::Binder>,
    open: &mut T,
    plan: &Plan,
    statements: &Statements<'_>,
    sees: Sees,
) -> Result<Read, FlushError<T::Error>> {
    let mut read = Read::default();
    for chunk in plan.chunks() {
        let table = statements.table(chunk.table);
        let Some(found_by) = table.read_by(chunk.action) else {
            continue;
        };
        let sees = match (sees, chunk.action) {
            // Somebody else may have inserted the row.
            (Sees::Own, Action::Upsert { .. }) => Sees::Others,
            _ => sees,
        };
        let mut reading = Reading {
            rows,
            chunk: &chunk,
            statements,
            sees,
            read: &mut read,
            missing: vec![true; chunk.rows.len()],
            count: 0,
        };
        reading.read(open, chunk.rows.clone(), &found_by).await?;
        // An upserted row with NULL in a column by which it is looked for was inserted with its own key.
        let key = table.key_positions();
        if found_by != key {
            for missing in reading.missing() {
                reading.read(open, missing, &key).await?;
            }
        }
        let count = reading.count;
        read.statements.push((chunk, count));
    }
    Ok(read)
}

/// The rows of a chunk, while they are read.
struct Reading<'a, B: RowBinder> {
    rows: &'a PendingRows<B>,
    chunk: &'a Chunk,
    statements: &'a Statements<'a>,
    sees: Sees,
    read: &'a mut Read,
    /// Whether each row has not been read.
    missing: Vec<bool>,
    /// How many statements were sent.
    count: usize,
}

impl<B: RowBinder> Reading<'_, B> {
    /// Reads rows that are found by these columns.
    async fn read<T: FlushTransaction<Binder = B>>(
        &mut self,
        open: &mut T,
        asked: Range<usize>,
        found_by: &[usize],
    ) -> Result<(), FlushError<T::Error>> {
        let (chunk, statements) = (self.chunk, self.statements);
        let table = statements.table(chunk.table);
        let place = || Place::of(table, chunk);
        let mut start = asked.start;
        while start < asked.end {
            let (runs, end) = bind(self.rows, chunk, start..asked.end, found_by, statements)?;
            for run in runs {
                let writer = statements.writer();
                let names = statements.names(chunk.table);
                let query = writer.read(names, found_by, run.rows, self.sees);
                let answer = open.read(&query, run.values).await;
                for row in answer.map_err(|error| FlushError::read(error, place()))? {
                    let filled = fillings(self.rows, chunk, start..start + run.rows, row);
                    let (row, fillings) =
                        filled.map_err(|error| FlushError::misread(error, place()))?;
                    self.missing[row - chunk.rows.start] = false;
                    self.read.fillings.extend(fillings);
                }
                self.count += 1;
                start += run.rows;
            }
            start = end;
        }
        Ok(())
    }

    /// Returns the rows that have not been read, as ranges.
    fn missing(&self) -> Vec<Range<usize>> {
        let mut end = self.chunk.rows.start;
        let runs = self.missing.chunk_by(|left, right| left == right);
        let runs = runs.filter_map(|run| {
            let start = end;
            end += run.len();
            run[0].then_some(start..end)
        });
        runs.collect()
    }
}

/// Binds the values by which rows of a chunk are found: as many of the rows that are asked for as one statement takes.
/// Returns them with the number of the first row that is not among them.
fn bind<B: RowBinder, D>(
    rows: &PendingRows<B>,
    chunk: &Chunk,
    asked: Range<usize>,
    found_by: &[usize],
    statements: &Statements<'_>,
) -> Result<(Vec<RunOfRows<B>>, usize), FlushError<D>> {
    let engine = statements.writer().engine;
    let most = match engine.binds_arrays() {
        // A binder of arrays cannot bind a list of rows for a query, so each row has its own.
        true => 1,
        false => asked.len(),
    };
    let start = asked.start;
    let mut values = B::with_room(rows.entity(chunk.table), most, found_by.len());
    let mut end = start;
    while end < start + most && (end == start || values.bytes() < engine.max_bytes) {
        rows.write_only(chunk, end, found_by, &mut values);
        end += 1;
        if let Some(error) = values.take_error() {
            let place = Place::of(statements.table(chunk.table), chunk);
            return Err(FlushError::bind(error, place));
        }
    }
    let mut runs = values.into_runs(end - start);
    for run in &mut runs {
        rows.expect(chunk.table, &mut run.values);
    }
    Ok((runs, end))
}

/// Returns the number of a row that was read, and its values, each paired with its cell. The query asked for the rows
/// `asked`.
fn fillings<B: RowBinder>(
    rows: &PendingRows<B>,
    chunk: &Chunk,
    asked: Range<usize>,
    read: ReadRow,
) -> Result<(usize, Vec<Filling>), BoxedError> {
    let row = asked.start + number_of(&read.text, asked.len())?;
    let mut values: Vec<Option<AnyValue>> = read.values.into_iter().map(Some).collect();
    let mut fillings = Vec::with_capacity(values.len());
    let mut has_others = false;
    rows.cells(chunk, row, &mut |position, cell| {
        let value = values.get_mut(position).and_then(Option::take);
        match value.and_then(|value| cell.prepare(value)) {
            Some(filling) => fillings.push(filling),
            None => has_others = true,
        }
    });
    match has_others {
        true => Err("the library returns other values than it was asked for".into()),
        false => Ok((row, fillings)),
    }
}

/// Reads rows that an earlier attempt has committed. If this fails, and would fail again, it returns no values: the
/// rows are committed in any case, and the program's fields stay as they were.
///
/// # Errors
///
/// Returns the error if another try may succeed.
pub(super) async fn read_committed<T: FlushTransaction>(
    rows: &PendingRows<T::Binder>,
    open: &mut T,
    plan: &Plan,
    statements: &Statements<'_>,
) -> Result<Read, FlushError<T::Error>> {
    match read(rows, open, plan, statements, Sees::Others).await {
        Err(error) if matches!(error.failure(), Failure::Refused | Failure::Duplicate) => {
            Ok(Read::default())
        }
        read => read,
    }
}
