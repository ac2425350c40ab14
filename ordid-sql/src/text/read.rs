//! The text of the query that reads the columns that the database fills.

use std::fmt::Write as _;

use super::{NUMBER, Statement, StatementKind, TARGET, TableNames, Writer, joined, names::pairs};
use crate::Updates;

/// The transactions whose rows the query has to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sees {
    /// The transaction itself has written the rows, so it sees them as they are.
    Own,
    /// Another transaction may have written the rows, and the query waits until it ends. Other than a probe for rows,
    /// it does not skip a row that somebody has locked.
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
    /// The numbers show which row a value belongs to. No column of the list has the name of a column that is read, so
    /// such a name needs no table before it. It has one on SQLite, which interprets a quoted name that no table has as
    /// a text. [`find`](Self::find) gives the reason for the form on MySQL, and [`update`](Self::update) the reason for
    /// the `+` on SQLite.
    pub(crate) fn read(
        self,
        names: &TableNames,
        found_by: &[usize],
        rows: usize,
        sees: Sees,
    ) -> Statement {
        let locks = match sees {
            Sees::Own => ["", ""],
            Sees::Others => self.waits_for_committed(),
        };
        let is_with = self.engine.updates == Updates::WithValues;
        let mut selected = String::new();
        for name in &names.returning {
            let _ = match is_with && name.starts_with('"') {
                true => write!(selected, ", {TARGET}.{name}"),
                // The expression is a cast, or a name that needs no table before it.
                false => write!(selected, ", {name}"),
            };
        }
        let mut sql = String::with_capacity(96 + rows * (found_by.len() * 7 + 8));
        if !self.numbered_rows(&mut sql, names, found_by, rows, [NUMBER, &selected], locks) {
            let [before, behind] = locks;
            let _ = write!(sql, " JOIN {} AS {TARGET}{before} ON ", names.table);
            joined(
                &mut sql,
                names,
                &pairs(found_by),
                if is_with { "+" } else { "" },
            );
            sql.push_str(behind);
        }
        Statement {
            kind: StatementKind::Read,
            is_kept: self.keeps(&sql, false),
            sql: sql.into(),
            columns: found_by.into(),
            rows,
        }
    }
}
