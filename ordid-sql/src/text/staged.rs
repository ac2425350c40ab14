//! The text of statements that take rows through a temporary table.
//!
//! The rows are inserted there as into the table itself, whose column types it has. So a value arrives as by an `INSERT`,
//! which it does not do in a list of rows that an `UPDATE` joins with: see [`Updates::RowByRow`]. And one statement takes
//! over many thousand rows, for which the database finds a good plan.

use std::{fmt::Write as _, sync::Arc};

use super::{NUMBER, ROWS, Statement, StatementKind, TARGET, TableNames, Writer, joined, list};
use crate::{Action, Table, Updates, UpsertStep, copy};

/// The most ranges of numbers in one text.
const MAX_RANGES: usize = 1_000;

/// Whether the row is there, in MySQL's temporary table.
const FOUND: &str = "ordid_found";

/// The rows that are there and those that are not, in [`merge`](Writer::merge).
const THERE: &str = "ordid_there";
const NEW: &str = "ordid_new";
const IS_NEW: &str = "NOT EXISTS (SELECT 1 FROM ordid_there WHERE ordid_there.ordid_number = ordid_rows.ordid_number)";

impl Writer<'_> {
    /// The most chunks that the temporary table takes at once. MySQL answers by a row for each row.
    pub(crate) const fn max_staged_chunks(self) -> usize {
        match self.engine.updates {
            Updates::RowByRow => 20,
            _ => copy::MAX_CHUNKS,
        }
    }

    /// The temporary table.
    pub(crate) fn staged_table(self) -> &'static str {
        match self.engine.updates {
            Updates::RowByRow => ROWS,
            _ => "pg_temp.ordid_rows",
        }
    }

    /// The temporary table in a query, by the name [`ROWS`].
    fn staged_rows(self) -> &'static str {
        match self.engine.updates {
            Updates::RowByRow => ROWS,
            _ => "pg_temp.ordid_rows AS ordid_rows",
        }
    }

    /// Makes the temporary table:
    ///
    /// ```text
    /// PostgreSQL   CREATE TEMPORARY TABLE pg_temp.ordid_rows ON COMMIT DROP AS SELECT "id", "total" FROM "orders"
    ///              WITH NO DATA
    ///              ALTER TABLE pg_temp.ordid_rows ADD ordid_number ..   (for upserts)
    /// MySQL        DROP TEMPORARY TABLE IF EXISTS ordid_rows
    ///              CREATE TEMPORARY TABLE ordid_rows (ordid_number .., ordid_found ..) SELECT `id`, `total`
    ///              FROM `orders` LIMIT 0
    /// ```
    ///
    /// MySQL keeps the temporary table of a flush that was dropped.
    pub(crate) fn stage(self, table: &Table, names: &TableNames, action: Action) -> Vec<Statement> {
        let mut selected = String::new();
        for (place, column) in table.columns_of(action).into_iter().enumerate() {
            let separator = if place > 0 { ", " } else { "" };
            let _ = match names.columns.get(column) {
                Some(name) => write!(selected, "{separator}{name}"),
                None => {
                    let version = names.version.map_or("NULL", |it| names.column(it));
                    write!(selected, "{separator}{version} AS {}", names.column(column))
                }
            };
        }
        let (staged, from) = (self.staged_table(), &names.table);
        if let Some(clear) = self.clear_staged() {
            let create = Statement::change(format!(
                "CREATE TEMPORARY TABLE {staged} ({NUMBER} BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, \
                 {FOUND} BOOLEAN NOT NULL DEFAULT FALSE) ENGINE=InnoDB SELECT {selected} FROM {from} LIMIT 0"
            ));
            return vec![clear, create];
        }
        let create = Statement::change(format!(
            "CREATE TEMPORARY TABLE {staged} ON COMMIT DROP AS SELECT {selected} FROM {from} WITH NO DATA"
        ));
        let number = Statement::change(format!(
            "ALTER TABLE {staged} ADD {NUMBER} bigint GENERATED ALWAYS AS IDENTITY"
        ));
        match action.upserts() {
            true => vec![create, number],
            false => vec![create],
        }
    }

    /// Removes the temporary table.
    pub(crate) fn unstage(self) -> Statement {
        let temporary = match self.engine.updates {
            Updates::RowByRow => "TEMPORARY ",
            _ => "",
        };
        Statement::change(format!("DROP {temporary}TABLE {}", self.staged_table()))
    }

    /// Removes the temporary table of a transaction that is rolled back; `None` if the rollback does.
    pub(crate) fn clear_staged(self) -> Option<Statement> {
        let is_left = self.engine.updates == Updates::RowByRow;
        is_left.then(|| Statement::change(format!("DROP TEMPORARY TABLE IF EXISTS {ROWS}")))
    }

    /// Inserts rows into the temporary table.
    ///
    /// The text names the table that they are for. A library keeps a prepared statement, with the types of its parameters,
    /// under its text.
    pub(super) fn fill(
        self,
        table: &Table,
        names: &TableNames,
        action: Action,
        rows: usize,
    ) -> Statement {
        let columns = table.columns_of(action);
        let mut sql = String::with_capacity(96 + rows * (columns.len() * 7 + 4));
        let of = comment(&names.table);
        let _ = write!(sql, "INSERT INTO {} /* of {of} */ (", self.staged_table());
        list(&mut sql, names, &columns);
        sql.push_str(") VALUES ");
        self.values(&mut sql, names, &columns, rows);
        Statement {
            kind: StatementKind::Insert,
            sql: sql.into(),
            columns: columns.into(),
            rows,
            is_kept: false,
        }
    }

    /// The statements that may be sent between the last insert into the temporary table and its end.
    pub(crate) fn take_over(
        self,
        table: &Table,
        names: &TableNames,
        action: Action,
        rows: usize,
    ) -> Vec<Statement> {
        let Action::Upsert { set, .. } = action else {
            return vec![self.update_staged(table, names, action, rows)];
        };
        if let Some(merge) = self.merge(table, names, action, rows) {
            return vec![merge];
        }
        let of = |step| Action::Upsert { set, step };
        let found_by = names.found_by(table, action);
        let columns = table.columns_of(of(UpsertStep::Insert));
        let mut statements = vec![self.staged_found(names, &found_by, rows)];
        statements.extend(self.mark(names, &columns, None));
        statements.push(self.insert_staged(names, &columns, rows));
        match table.column_sets()[set].columns.is_empty() {
            false => {
                statements.push(self.update_staged(table, names, of(UpsertStep::Update), rows))
            }
            true => statements.extend(self.confirm_staged(names, &found_by, rows)),
        }
        statements
    }

    /// Updates the rows of an action from the temporary table; of upserts, those that were found.
    ///
    /// ```text
    /// PostgreSQL   UPDATE "orders" AS ordid_target SET "total" = ordid_rows."total"
    ///              FROM pg_temp.ordid_rows AS ordid_rows WHERE ordid_target."id" = ordid_rows."id"
    /// MySQL        UPDATE ordid_rows STRAIGHT_JOIN `orders` AS ordid_target ON ordid_target.`id` = ordid_rows.`id`
    ///              SET ordid_target.`total` = ordid_rows.`total`
    /// ```
    ///
    /// Without `STRAIGHT_JOIN`, MySQL might read the whole table and look for each row in the temporary one, which has no
    /// index of the key.
    pub(crate) fn update_staged(
        self,
        table: &Table,
        names: &TableNames,
        action: Action,
        rows: usize,
    ) -> Statement {
        let (found_by, columns) = (names.found_by(table, action), table.columns_of(action));
        let is_mysql = self.engine.updates == Updates::RowByRow;
        let mut sql = String::new();
        let of_target = if is_mysql {
            let _ = write!(
                sql,
                "UPDATE {ROWS} STRAIGHT_JOIN {} AS {TARGET} ON ",
                names.table
            );
            joined(&mut sql, names, &found_by, "");
            format!("{TARGET}.")
        } else {
            let _ = write!(sql, "UPDATE {} AS {TARGET}", names.table);
            String::new()
        };
        let set = names
            .set_of(table, action, &columns)
            .into_iter()
            .map(|column| {
                let column = &names.columns[column];
                format!("{of_target}{column} = {ROWS}.{column}")
            });
        let mut set = set.collect::<Vec<_>>().join(", ");
        if set.is_empty() {
            // The row has to be there all the same.
            let key = &names.columns[names.keys[0]];
            set = format!("{of_target}{key} = {TARGET}.{key}");
        }
        let _ = write!(sql, " SET {set}");
        if !is_mysql {
            let _ = write!(sql, " FROM {} WHERE ", self.staged_rows());
            joined(&mut sql, names, &found_by, "");
        } else if action.upserts() {
            let _ = write!(sql, " WHERE {ROWS}.{FOUND}");
        }
        Statement {
            rows,
            ..Statement::change(sql)
        }
    }

    /// Updates the rows of an upsert that are there, or leaves them alone, and inserts the others. Returns, as one text, how
    /// many it has inserted, how many were there and were not updated all the same, and the numbers of those that were. `None`
    /// on MySQL, which has no such statement.
    ///
    /// ```text
    /// WITH ordid_there AS (UPDATE .. RETURNING ordid_rows.ordid_number),
    /// ordid_new AS (INSERT INTO "orders" (..) SELECT .. FROM pg_temp.ordid_rows AS ordid_rows WHERE NOT EXISTS
    ///     (SELECT 1 FROM ordid_there WHERE ordid_there.ordid_number = ordid_rows.ordid_number) .. RETURNING 1)
    /// SELECT (SELECT count(*) FROM ordid_new) || ',' ||
    ///     (SELECT count(*) FROM .. WHERE NOT EXISTS (.. ordid_there ..) AND EXISTS (.. "orders" ..)) ||
    ///     coalesce((SELECT string_agg(',' || ordid_number, '') FROM ordid_there), '')
    /// ```
    ///
    /// A trigger or a policy may keep a row from being updated, and of two rows with the same values only one is. Without a
    /// unique index such a row would be inserted again.
    pub(crate) fn merge(
        self,
        table: &Table,
        names: &TableNames,
        action: Action,
        rows: usize,
    ) -> Option<Statement> {
        let Action::Upsert { set, .. } = action else {
            return None;
        };
        if self.engine.updates == Updates::RowByRow {
            return None;
        }
        let of = |step| Action::Upsert { set, step };
        let staged = self.staged_rows();
        let mut exists = format!("EXISTS (SELECT 1 FROM {} AS {TARGET} WHERE ", names.table);
        joined(&mut exists, names, &names.found_by(table, action), "");
        exists.push(')');
        let there = match table.column_sets()[set].columns.is_empty() {
            true => format!("SELECT {NUMBER} FROM {staged} WHERE {exists}"),
            false => {
                let update = self.update_staged(table, names, of(UpsertStep::Update), rows);
                format!("{} RETURNING {ROWS}.{NUMBER}", update.sql)
            }
        };
        let columns = table.columns_of(of(UpsertStep::Insert));
        let insert = self.insert_staged(names, &columns, rows);
        let sql = format!(
            "WITH {THERE} AS ({there}), {NEW} AS ({} RETURNING 1) SELECT (SELECT count(*) FROM {NEW}) || ',' || \
             (SELECT count(*) FROM {staged} WHERE {IS_NEW} AND {exists}) || \
             coalesce((SELECT string_agg(',' || {NUMBER}, '') FROM {THERE}), '')",
            insert.sql
        );
        Some(Statement::found(sql, rows))
    }

    /// Asks for the numbers of all rows in MySQL's temporary table, in the order in which they were inserted: that of a row
    /// that is there as it is, that of another one with a minus.
    ///
    /// It locks nothing. A statement that changes other rows where these are missing would lock the gaps, so that two
    /// flushes would wait for each other's inserts: see [`mark`](Self::mark).
    pub(crate) fn staged_found(
        self,
        names: &TableNames,
        found_by: &[(usize, usize)],
        rows: usize,
    ) -> Statement {
        let [cast, cast_behind] = self.engine.words.as_text;
        let mut sql = format!(
            "SELECT {cast}CASE WHEN EXISTS (SELECT 1 FROM {} AS {TARGET} WHERE ",
            names.table
        );
        joined(&mut sql, names, found_by, "");
        let _ = write!(
            sql,
            ") THEN {NUMBER} ELSE -{NUMBER} END{cast_behind} FROM {} ORDER BY {NUMBER}",
            self.staged_rows()
        );
        Statement::found(sql, rows)
    }

    /// Marks the rows with these numbers as found, or all. The numbers rise. A text has at most [`MAX_RANGES`] ranges of
    /// them: a library may keep every text prepared.
    ///
    /// The columns are set to themselves. MySQL copies `ON UPDATE CURRENT_TIMESTAMP`, and would write the time of this
    /// statement to a column that it does not name.
    pub(crate) fn mark(
        self,
        names: &TableNames,
        columns: &[usize],
        numbers: Option<&[i64]>,
    ) -> Vec<Statement> {
        let mut sql = format!("UPDATE {} SET {FOUND} = TRUE", self.staged_table());
        for column in columns {
            let column = names.column(*column);
            let _ = write!(sql, ", {column} = {column}");
        }
        let Some(numbers) = numbers else {
            return vec![Statement::change(sql)];
        };
        let ranges: Vec<_> = numbers.chunk_by(|one, next| one + 1 == *next).collect();
        let texts = ranges.chunks(MAX_RANGES).map(|ranges| {
            let mut sql = sql.clone();
            let mut separator = " WHERE ";
            let mut single = Vec::new();
            for range in ranges {
                match range {
                    [number] => single.push(number.to_string()),
                    [first, .., last] => {
                        let _ = write!(sql, "{separator}{NUMBER} BETWEEN {first} AND {last}");
                        separator = " OR ";
                    }
                    [] => {}
                }
            }
            if !single.is_empty() {
                let _ = write!(sql, "{separator}{NUMBER} IN ({})", single.join(", "));
            }
            Statement::change(sql)
        });
        texts.collect()
    }

    /// Inserts the rows of an upsert that were not found.
    pub(crate) fn insert_staged(
        self,
        names: &TableNames,
        columns: &[usize],
        rows: usize,
    ) -> Statement {
        let mut sql = format!("INSERT INTO {} (", names.table);
        list(&mut sql, names, columns);
        sql.push_str(") SELECT ");
        list(&mut sql, names, columns);
        let is_new = match self.engine.updates {
            Updates::RowByRow => "NOT ordid_found",
            _ => IS_NEW,
        };
        let _ = write!(
            sql,
            " FROM {} WHERE {is_new} ORDER BY {NUMBER}",
            self.staged_rows()
        );
        Statement {
            kind: StatementKind::Insert,
            rows,
            ..Statement::change(sql)
        }
    }

    /// Asks for the numbers of the rows that were found and are there still, once no other transaction can change that;
    /// `None` if the engine's first answer holds.
    pub(crate) fn confirm_staged(
        self,
        names: &TableNames,
        found_by: &[(usize, usize)],
        rows: usize,
    ) -> Option<Statement> {
        let waits = self.engine.words.confirms?;
        let [cast, cast_behind] = self.engine.words.as_text;
        let mut sql = format!(
            "SELECT {cast}{NUMBER}{cast_behind} FROM {ROWS} STRAIGHT_JOIN {} AS {TARGET} ON ",
            names.table
        );
        joined(&mut sql, names, found_by, "");
        let _ = write!(sql, " WHERE {FOUND}{waits}");
        Some(Statement::found(sql, rows))
    }
}

impl Statement {
    /// A change without parameters, which is sent once.
    fn change(sql: String) -> Self {
        Self {
            kind: StatementKind::Update,
            ..Self::query(sql)
        }
    }

    /// A query for the numbers of rows, without parameters.
    fn found(sql: String, rows: usize) -> Self {
        Self {
            kind: StatementKind::Find,
            rows,
            ..Self::query(sql)
        }
    }
}

/// Returns whether the rows of an action may go through a temporary table.
pub(crate) const fn can_be_staged(action: Action) -> bool {
    matches!(
        action,
        Action::Update
            | Action::UpdateColumns { .. }
            | Action::Upsert {
                step: UpsertStep::Find,
                ..
            }
    )
}

/// Returns the step of an action whose values the temporary table takes.
pub(crate) const fn staged_action(action: Action) -> Action {
    match action {
        Action::Upsert { set, .. } => Action::Upsert {
            set,
            step: UpsertStep::Insert,
        },
        other => other,
    }
}

/// Returns a name as it can stand in a comment, other than each other name.
fn comment(name: &str) -> Arc<str> {
    match name.contains(['*', '/', '\0']) {
        false => name.into(),
        true => name
            .bytes()
            .fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            })
            .into(),
    }
}
