//! The texts of one flush.

use super::{Statement, TableNames, Writer};
use crate::{Action, Chunk, Table};

/// The statements of a flush. Each is written once, since all chunks of an action but the last have the same text.
#[derive(Debug)]
pub(crate) struct Statements<'a> {
    writer: Writer<'a>,
    tables: Vec<(Table, TableNames)>,
    /// The last statement of each table. Upserts have one for each step, and rows that go through a temporary table have
    /// another one.
    last: Vec<[Option<Written>; 6]>,
}

/// A statement, with the action and the columns that it was written for.
#[derive(Debug)]
struct Written {
    action: Action,
    set: Option<Vec<usize>>,
    statement: Statement,
}

impl<'a> Statements<'a> {
    pub(crate) fn new(writer: Writer<'a>, tables: Vec<(Table, TableNames)>) -> Self {
        Self {
            writer,
            last: tables.iter().map(|_| [const { None }; 6]).collect(),
            tables,
        }
    }

    pub(crate) const fn writer(&self) -> Writer<'a> {
        self.writer
    }

    pub(crate) fn table(&self, table: usize) -> &Table {
        &self.tables[table].0
    }

    pub(crate) fn names(&self, table: usize) -> &TableNames {
        &self.tables[table].1
    }

    /// Returns the statement for this number of rows of a chunk. If the rows do not have values for all columns, they
    /// have values for the columns of `set`.
    pub(crate) fn of(&mut self, chunk: &Chunk, rows: usize, set: Option<&[usize]>) -> Statement {
        let slot = match chunk.action {
            Action::Upsert { step, .. } => step as usize,
            _ => 0,
        };
        self.written(slot, chunk, rows, set, Writer::statement)
    }

    /// Returns the statement that inserts this number of rows of a chunk into the temporary table. The rows have values for
    /// all columns of the chunk's action.
    pub(crate) fn staged(&mut self, chunk: &Chunk, rows: usize) -> Statement {
        self.written(
            5,
            chunk,
            rows,
            None,
            |writer, table, names, action, rows, _| writer.fill(table, names, action, rows),
        )
    }

    fn written(
        &mut self,
        slot: usize,
        chunk: &Chunk,
        rows: usize,
        set: Option<&[usize]>,
        write: impl FnOnce(
            Writer<'a>,
            &Table,
            &TableNames,
            Action,
            usize,
            Option<&[usize]>,
        ) -> Statement,
    ) -> Statement {
        let (table, names) = &self.tables[chunk.table];
        let slot = &mut self.last[chunk.table][slot];
        if let Some(last) = slot
            && (last.action, last.set.as_deref(), last.statement.rows) == (chunk.action, set, rows)
        {
            return last.statement.clone();
        }
        // The rows of a circle, for which a table has no number, are few.
        let of_action = table.rows_of(chunk.action).unwrap_or(chunk.rows.end);
        let mut statement = write(self.writer, table, names, chunk.action, rows, set);
        // The last chunk may be shorter.
        let is_full = rows == 1 || chunk.rows.start == chunk.number * rows;
        let recurs = set.is_none() && is_full && of_action >= 2 * rows;
        statement.is_kept = self.writer.keeps(&statement.sql, recurs);
        *slot = Some(Written {
            action: chunk.action,
            set: set.map(<[_]>::to_vec),
            statement: statement.clone(),
        });
        statement
    }
}
