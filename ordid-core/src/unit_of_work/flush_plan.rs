//! What would be sent, without sending it.

use std::{ops::Range, sync::Arc};

use super::{Action, Chunk, Plan, Table};

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
    /// The statements, in order.
    pub statements: Vec<PlannedStatement>,
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

    /// Lists the statements of a plan over these tables: `text` writes a chunk's, which is sent for
    /// each row by itself where the action `is_for_each_row`. It is asked once for chunks that follow each
    /// other and have as many rows. For adapters.
    #[doc(hidden)]
    pub fn new<T: Into<Arc<str>>>(
        plan: &Plan,
        tables: &[Table],
        defers: Option<&'static str>,
        is_for_each_row: impl Fn(Action) -> bool,
        mut text: impl FnMut(&Chunk) -> T,
    ) -> Self {
        let mut last: Option<((Action, usize, usize), Arc<str>)> = None;
        Self::of_statements(plan, tables, defers, |chunk| {
            let rows = chunk.rows.len();
            let (count, in_each) = match is_for_each_row(chunk.action) {
                true => (rows, 1),
                false => (1, rows),
            };
            let turn = (chunk.action, chunk.table, in_each);
            let sql = match last.take() {
                Some((of, sql)) if of == turn => sql,
                _ => text(chunk).into(),
            };
            last = Some((turn, Arc::clone(&sql)));
            vec![(in_each, sql); count]
        })
    }

    /// As [`new`](Self::new), where a chunk goes by several statements, each of so many of its rows.
    #[doc(hidden)]
    pub fn of_statements(
        plan: &Plan,
        tables: &[Table],
        defers: Option<&'static str>,
        mut statements: impl FnMut(&Chunk) -> Vec<(usize, Arc<str>)>,
    ) -> Self {
        let mut planned = Vec::<PlannedTable>::new();
        let mut current = None;
        for chunk in plan.chunks() {
            let turn = (chunk.action, chunk.table);
            if current.replace(turn) != Some(turn) {
                planned.push(PlannedTable {
                    table: tables[chunk.table].name(),
                    action: chunk.action,
                    rows: 0,
                    statements: Vec::new(),
                });
            }
            let Some(table) = planned.last_mut() else {
                continue;
            };
            table.rows += chunk.rows.len();
            let mut start = chunk.rows.start;
            for (rows, sql) in statements(&chunk) {
                let rows = start..start + rows;
                start = rows.end;
                table.statements.push(PlannedStatement { rows, sql });
            }
        }
        Self {
            defers: defers.filter(|_| plan.defers()),
            tables: planned,
        }
    }
}
