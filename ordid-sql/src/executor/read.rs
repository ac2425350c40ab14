//! Reads what the database fills in rows that were sent.

use std::ops::Range;

use ordid_core::entity::{AnyValue, Filling};

use super::bound::number_of;
use crate::{
    Action, Chunk, Failure, FlushError, FlushRun, PendingRows, Place, Plan,
    spi::{BoxedError, FlushTransaction, ReadRow, RowBinder, RunOfRows},
    text::{Sees, Statements},
};

/// Values that were read, until COMMIT is known to have succeeded: dropped, they are thrown away.
#[derive(Debug, Default)]
pub(super) struct Read {
    fillings: Vec<Filling>,
    /// How many statements read rows of each chunk.
    statements: Vec<(Chunk, usize)>,
}

impl Read {
    /// Counts the statements.
    pub(super) fn count<D>(&self, run: &mut FlushRun<D>) {
        for (chunk, statements) in &self.statements {
            run.count_reads(chunk, *statements);
        }
    }

    /// Puts the values where the program finds them.
    pub(super) fn fill(self) {
        self.fillings.into_iter().for_each(Filling::fill);
    }
}

/// Returns whether rows of a plan have columns that the database fills.
pub(super) fn reads<B: RowBinder>(rows: &PendingRows<B>, plan: &Plan) -> bool {
    let tables = rows.tables();
    tables.iter().any(|table| !table.returning().is_empty())
        && plan
            .chunks()
            .any(|chunk| tables[chunk.table].read_by(chunk.action).is_some())
}

/// Reads the columns that the database fills, in all rows of a plan. It is done behind the last statement, since one may
/// change a row that an earlier one wrote.
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
        let mut count = 0;
        let mut start = chunk.rows.start;
        while start < chunk.rows.end {
            let (runs, end) = bind(rows, &chunk, start, &found_by, statements)?;
            for run in runs {
                let place = || Place::of(table, &chunk);
                let writer = statements.writer();
                let query = writer.read(statements.names(chunk.table), &found_by, run.rows, sees);
                let answer = open.read(&query, run.values).await;
                for row in answer.map_err(|error| FlushError::read(error, place()))? {
                    let fillings = fillings(rows, &chunk, start..start + run.rows, row);
                    let fillings = fillings.map_err(|error| FlushError::misread(error, place()))?;
                    read.fillings.extend(fillings);
                }
                count += 1;
                start += run.rows;
            }
            start = end;
        }
        read.statements.push((chunk, count));
    }
    Ok(read)
}

/// Binds what rows of a chunk are found by, from this row on. Returns the first row that is not among them.
fn bind<B: RowBinder, D>(
    rows: &PendingRows<B>,
    chunk: &Chunk,
    start: usize,
    found_by: &[usize],
    statements: &Statements<'_>,
) -> Result<(Vec<RunOfRows<B>>, usize), FlushError<D>> {
    let engine = statements.writer().engine;
    let most = match engine.binds_arrays() {
        // An array is no list of rows that a query could be asked about.
        true => 1,
        false => chunk.rows.end - start,
    };
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

/// Returns the values of a row, each beside its cell. `asked` are the rows that were asked for.
fn fillings<B: RowBinder>(
    rows: &PendingRows<B>,
    chunk: &Chunk,
    asked: Range<usize>,
    read: ReadRow,
) -> Result<Vec<Filling>, BoxedError> {
    let row = asked.start + number_of(&read, asked.len())?;
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
        false => Ok(fillings),
    }
}

/// Reads rows that an earlier attempt has committed. If that fails, and would fail another time, the rows are committed all
/// the same, and the program finds the values as they were.
///
/// # Errors
///
/// Those that another time may not be there.
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
