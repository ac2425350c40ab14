//! The text of queries about many rows, each of which has a number.

use std::fmt::Write as _;

use super::{NUMBER, ROWS, TARGET, TableNames, Writer, joined, list, names::pairs};
use crate::{Updates, UpsertStep};

impl Writer<'_> {
    /// ```text
    /// PostgreSQL    SELECT string_agg(ordid_number, ',')
    ///               FROM (VALUES ($1, '0'), ($2, '1')) AS ordid_rows ("mail", ordid_number)
    ///               WHERE EXISTS (SELECT 1 FROM "people" AS ordid_target WHERE ordid_target."mail" = ordid_rows."mail")
    /// SQL Server    SELECT ordid_number FROM (VALUES (@P1, '0'), (@P2, '1')) AS ordid_rows ([mail], ordid_number)
    ///               WHERE EXISTS (..)
    /// SQLite        WITH ordid_rows ("mail", ordid_number) AS (VALUES (?, '0'), (?, '1'))
    ///               SELECT group_concat(ordid_number) FROM ordid_rows WHERE EXISTS (..)
    /// MySQL         (SELECT '0' FROM `people` WHERE `mail` = ?) UNION ALL (SELECT '1' FROM `people` WHERE `mail` = ?)
    /// Oracle        SELECT '0' FROM "people" WHERE "mail" = :1
    /// ```
    ///
    /// MySQL is not asked with a list of rows, since it would compare a text in the list by the collation of the
    /// connection, or refuse to compare it. It would also lock the gaps in which rows are missing, so that two flushes
    /// would wait for each other's inserts. Therefore a second query, about the rows that exist, asks for the lock.
    pub(super) fn find(
        self,
        out: &mut String,
        names: &TableNames,
        columns: &[usize],
        rows: usize,
        step: UpsertStep,
    ) {
        let locks = match (step, self.engine.words.confirms) {
            (UpsertStep::Find, Some(_)) => ["", ""],
            _ => self.waits_for_committed(),
        };
        let [join, behind] = self.engine.words.joins_texts.unwrap_or_default();
        let number = format!("{join}{NUMBER}{behind}");
        if self.numbered_rows(out, names, columns, rows, [&number, ""], locks) {
            return;
        }
        let ([before, behind], found_by) = (locks, pairs(columns));
        let _ = write!(
            out,
            " WHERE EXISTS (SELECT 1 FROM {} AS {TARGET}{before} WHERE ",
            names.table
        );
        joined(out, names, &found_by, "");
        let _ = write!(out, "){behind}");
    }

    /// Returns the words before and after a `WHERE` that make a query wait for other transactions that have written its
    /// rows.
    pub(super) fn waits_for_committed(self) -> [&'static str; 2] {
        match self.engine.words.confirms {
            Some(waits) => ["", waits],
            None => self.engine.words.reads_committed,
        }
    }

    /// Begins a query about rows. It selects their numbers by the expression `number`, followed by `selected`, which begins
    /// with a comma if it is not empty.
    ///
    /// Returns whether the query is complete, because it has a separate `SELECT` for each row. Otherwise the query
    /// selects from the list of rows, and the caller adds the text that joins the table with it.
    pub(super) fn numbered_rows(
        self,
        out: &mut String,
        names: &TableNames,
        columns: &[usize],
        rows: usize,
        [number, selected]: [&str; 2],
        [before, behind]: [&str; 2],
    ) -> bool {
        let updates = self.engine.updates;
        if matches!(updates, Updates::RowByRow | Updates::Arrays) {
            let (found_by, table) = (pairs(columns), &names.table);
            for row in 0..rows {
                let [open, close] = match (row, rows) {
                    (_, 1) => ["", ""],
                    (0, _) => ["(", ")"],
                    _ => [" UNION ALL (", ")"],
                };
                let _ = write!(
                    out,
                    "{open}SELECT '{row}'{selected} FROM {table}{before} WHERE "
                );
                self.all_of(out, names, &found_by, row * columns.len() + 1);
                let _ = write!(out, "{behind}{close}");
            }
            return true;
        }
        if updates == Updates::WithValues {
            let _ = write!(out, "WITH {ROWS} (");
            list(out, names, columns);
            let _ = write!(out, ", {NUMBER}) AS (VALUES ");
            self.numbered_values(out, names, columns, rows);
            let _ = write!(out, ") SELECT {number}{selected} FROM {ROWS}");
        } else {
            let _ = write!(out, "SELECT {number}{selected} FROM (VALUES ");
            self.numbered_values(out, names, columns, rows);
            let _ = write!(out, ") AS {ROWS} (");
            list(out, names, columns);
            let _ = write!(out, ", {NUMBER})");
        }
        false
    }

    /// Writes `($1, '0'), ($2, '1')`.
    fn numbered_values(self, out: &mut String, names: &TableNames, columns: &[usize], rows: usize) {
        let mut number = 0;
        for row in 0..rows {
            out.push_str(if row == 0 { "(" } else { ", (" });
            for column in columns {
                number += 1;
                self.value(out, names, *column, number);
                out.push_str(", ");
            }
            let _ = write!(out, "'{row}')");
        }
    }
}
