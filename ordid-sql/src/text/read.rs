//! The text of the query that reads what the database fills.

use std::fmt::Write as _;

use super::{NUMBER, ROWS, Statement, StatementKind, TARGET, TableNames, Writer, joined, list};
use crate::Updates;

/// Who is seen by the query, beside the transaction itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sees {
    /// Rows that the transaction has written, which it sees as they are.
    Own,
    /// Rows that another transaction may have written, of which it waits for what is committed. A row that somebody has
    /// locked is not skipped, as it is by a probe for rows.
    Others,
}

impl Writer<'_> {
    /// ```text
    /// PostgreSQL,   SELECT ordid_number, "created_at" FROM (VALUES ($1, '0'), ($2, '1')) AS ordid_rows ("id", ordid_number)
    /// SQL Server    JOIN "orders" AS ordid_target ON ordid_target."id" = ordid_rows."id"
    /// SQLite        WITH ordid_rows ("id", ordid_number) AS (VALUES (?, '0'), (?, '1'))
    ///               SELECT ordid_number, ordid_target."created_at" FROM ordid_rows
    ///               JOIN "orders" AS ordid_target ON ordid_target."id" = +ordid_rows."id"
    /// MySQL         (SELECT '0', `created_at` FROM `orders` WHERE `id` = ?)
    ///               UNION ALL (SELECT '1', `created_at` FROM `orders` WHERE `id` = ?)
    /// Oracle        SELECT '0', "created_at" FROM "orders" WHERE "id" = :1
    /// ```
    ///
    /// The numbers say which row a value is of. The rows of the list have no column of a name that is read, so that name
    /// needs no table before it. It has one on SQLite, which takes a quoted name that no table has for a text. MySQL is asked so, and SQLite with a `+`, for the reasons that [`find`](Self::find) and
    /// [`update`](Self::update) give.
    pub(crate) fn read(
        self,
        names: &TableNames,
        found_by: &[usize],
        rows: usize,
        sees: Sees,
    ) -> Statement {
        let pairs: Vec<_> = found_by.iter().map(|it| (*it, *it)).collect();
        let [before, behind] = match (sees, self.engine.words.confirms) {
            (Sees::Own, _) => ["", ""],
            (Sees::Others, Some(waits)) => ["", waits],
            (Sees::Others, None) => self.engine.words.reads_committed,
        };
        let mut selected = names.returning.join(", ");
        let mut sql = String::with_capacity(96 + rows * (found_by.len() * 7 + 8));
        let out = &mut sql;
        let updates = self.engine.updates;
        match updates {
            Updates::RowByRow | Updates::Arrays => {
                for row in 0..rows {
                    let [open, close] = match (row, rows) {
                        (_, 1) => ["", ""],
                        (0, _) => ["(", ")"],
                        _ => [" UNION ALL (", ")"],
                    };
                    let _ = write!(
                        out,
                        "{open}SELECT '{row}', {selected} FROM {}{before} WHERE ",
                        names.table
                    );
                    self.all_of(out, names, &pairs, row * found_by.len() + 1);
                    let _ = write!(out, "{behind}{close}");
                }
            }
            _ => {
                let is_with = updates == Updates::WithValues;
                if is_with {
                    selected = of_target(&names.returning);
                    let _ = write!(out, "WITH {ROWS} (");
                    list(out, names, found_by);
                    let _ = write!(out, ", {NUMBER}) AS (VALUES ");
                    self.numbered_values(out, names, found_by, rows);
                    let _ = write!(out, ") SELECT {NUMBER}, {selected} FROM {ROWS}");
                } else {
                    let _ = write!(out, "SELECT {NUMBER}, {selected} FROM (VALUES ");
                    self.numbered_values(out, names, found_by, rows);
                    let _ = write!(out, ") AS {ROWS} (");
                    list(out, names, found_by);
                    let _ = write!(out, ", {NUMBER})");
                }
                let _ = write!(out, " JOIN {} AS {TARGET}{before} ON ", names.table);
                joined(out, names, &pairs, if is_with { "+" } else { "" });
                out.push_str(behind);
            }
        }
        Statement {
            kind: StatementKind::Read,
            sql: sql.into(),
            columns: found_by.into(),
            rows,
            repeats: false,
        }
    }
}

/// Returns what is selected, with the table before each name. A cast stays as it is.
fn of_target(selected: &[String]) -> String {
    let of_target = |name: &String| match name.starts_with('"') {
        true => format!("{TARGET}.{name}"),
        false => name.clone(),
    };
    selected
        .iter()
        .map(of_target)
        .collect::<Vec<_>>()
        .join(", ")
}
