//! What would be sent, without sending it.

use std::{ops::Range, sync::Arc};

use crate::{
    Action, Chunk, EngineProfile, NotBulk, PendingRows, Plan, UpsertStep,
    not_bulk::offered,
    spi::{RowBinder, TransactionScope},
    text::Statements,
};

/// What a flush would send: what an adapter's `UnitOfWork::plan` returns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlushPlan {
    /// The statement that is sent first, where constraints have to be checked at COMMIT.
    pub defers: Option<&'static str>,
    /// The tables, in the order in which they are written: one comes as often as it is its turn.
    pub tables: Vec<PlannedTable>,
}

/// What a flush would do with rows of one table, with nothing in between.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedTable {
    /// The table's name.
    pub table: &'static str,
    /// What is done with the rows.
    pub action: Action,
    /// How many rows there are.
    pub rows: usize,
    /// The statements, in order. Rows that go by the engine's bulk command are sent without them. Those of an upsert are
    /// the question which rows are there, and an insert and an update of all rows: each row goes by one of the two.
    pub statements: Vec<PlannedStatement>,
    /// Why `flush` will send the rows by these statements. `None` if it offers them to the bulk command, `COPY` or a bulk
    /// load: whether that takes them depends on the table and the values, which
    /// [`FlushedTable::not_bulk`](crate::FlushedTable::not_bulk) tells afterwards. `flush_in` always sends statements.
    pub not_bulk: Option<NotBulk>,
}

/// One statement of a flush.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedStatement {
    /// Which rows of those that the action is done with, counted from 0 in the order in which they are
    /// sent: as in the adapter's `Error::rows`.
    pub rows: Range<usize>,
    /// The text, with a placeholder for each value. Statements of as many rows share it.
    pub sql: Arc<str>,
}

impl FlushPlan {
    /// Returns the number of rows that are inserted, over all tables.
    pub fn rows(&self) -> usize {
        let inserts = self.tables.iter().filter(|it| it.action == Action::Insert);
        inserts.map(|table| table.rows).sum()
    }

    /// Lists the statements of a plan over these rows.
    pub(crate) fn of<B: RowBinder>(
        plan: &Plan,
        rows: &PendingRows<B>,
        engine: &EngineProfile,
        statements: &mut Statements<'_>,
    ) -> Self {
        let scope = TransactionScope::Transaction;
        let offered = offered::<B>(plan, &rows.tables(), engine, scope);
        let mut planned = Vec::<PlannedTable>::new();
        let mut current = None;
        for chunk in plan.chunks() {
            let turn = (chunk.action, chunk.table);
            if current.replace(turn) != Some(turn) {
                planned.push(PlannedTable {
                    table: statements.table(chunk.table).name(),
                    action: chunk.action,
                    rows: 0,
                    statements: Vec::new(),
                    not_bulk: match chunk.action {
                        Action::Insert => offered[chunk.table].err(),
                        Action::Upsert { .. } => Some(NotBulk::Upserted),
                        _ => Some(NotBulk::NotInserted),
                    },
                });
            }
            let Some(table) = planned.last_mut() else {
                continue;
            };
            table.rows += chunk.rows.len();
            for part in parts(&chunk, statements) {
                let mut start = part.rows.start;
                for (count, columns) in runs(rows, &part, statements) {
                    let sql = statements.of(&part, count, columns.as_deref()).sql;
                    let rows = start..start + count;
                    start = rows.end;
                    table.statements.push(PlannedStatement { rows, sql });
                }
            }
        }
        Self {
            defers: engine.defer.filter(|_| plan.defers()),
            tables: planned,
        }
    }
}

/// What may be sent of a chunk.
fn parts(chunk: &Chunk, statements: &Statements<'_>) -> Vec<Chunk> {
    let Action::Upsert { set, .. } = chunk.action else {
        return vec![chunk.clone()];
    };
    let is_ignored = statements.table(chunk.table).column_sets()[set]
        .columns
        .is_empty();
    let last = match statements.writer().engine.words.confirms {
        _ if !is_ignored => Some(UpsertStep::Update),
        confirms => confirms.map(|_| UpsertStep::Confirm),
    };
    let steps = [UpsertStep::Find, UpsertStep::Insert]
        .into_iter()
        .chain(last);
    let parts = steps.map(|step| Chunk {
        action: Action::Upsert { set, step },
        ..chunk.clone()
    });
    parts.collect()
}

/// How many rows of a chunk go by a statement, and the columns that they have values for, where those are not all.
fn runs<B: RowBinder>(
    rows: &PendingRows<B>,
    chunk: &Chunk,
    statements: &Statements<'_>,
) -> Vec<(usize, Option<Vec<usize>>)> {
    let each = statements.writer().is_for_each_row(chunk.action);
    if !B::HAS_RUNS {
        return match each {
            true => vec![(1, None); chunk.rows.len()],
            false => vec![(chunk.rows.len(), None)],
        };
    }
    let columns = statements.table(chunk.table).columns_of(chunk.action).len();
    let mut values = B::with_room(rows.entity(chunk.table), chunk.rows.len(), columns);
    values.begin_rows(chunk.action);
    rows.write(chunk, chunk.rows.clone(), &mut values);
    let runs = values.into_runs(chunk.rows.len()).into_iter();
    runs.flat_map(|run| match each {
        true => vec![(1, run.columns); run.rows],
        false => vec![(run.rows, run.columns)],
    })
    .collect()
}
