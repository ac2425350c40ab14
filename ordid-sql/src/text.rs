//! The SQL text of a flush's statements. All names are quoted.

mod find;
mod names;
mod read;
mod staged;
mod statements;

use std::{fmt::Write as _, sync::Arc};

use crate::{
    Action, EngineProfile, MARKER_TABLE, Table, TreeDeletes, Updates, UpsertStep, spi::RowBinder,
};

pub use self::names::TableNames;
pub(crate) use self::read::Sees;
pub(crate) use self::staged::{can_be_staged, staged_action};
pub(crate) use self::statements::Statements;

/// The name of the rows that an `UPDATE` takes its values from, and that of the table beside them. One
/// of SQLite's `WITH` hides a table of its name, so they are names that no table has.
const ROWS: &str = "ordid_rows";
const TARGET: &str = "ordid_target";
/// The name, among [`ROWS`], of the number of a row.
const NUMBER: &str = "ordid_number";
/// The name, among [`ROWS`], of the version that a row was read with.
const READ_VERSION: &str = "ordid_version";

/// What a statement does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StatementKind {
    /// It inserts rows.
    Insert,
    /// It updates rows by their keys. Statements without parameters, such as those that make and remove a temporary table,
    /// are of this kind, too.
    Update,
    /// It sets a column of rows to NULL, by their keys.
    SetNull,
    /// It deletes rows by their keys.
    Delete,
    /// It asks whether a row is there.
    Exists,
    /// It asks which of many rows are there, by some of their columns: the answer has the number of each that is, counted
    /// from 0, as text. Where the engine can, one row has all numbers, with commas in between. Of rows in a temporary table
    /// the answer has numbers of ordid's own. On PostgreSQL such a statement also writes them, so it is no query alone.
    Find,
    /// It finds many rows by some columns, and reads other columns of them. Its first column has, as text, the number
    /// of each row that exists, counted from 0.
    Read,
}

/// A statement of a flush, without its values. An adapter's connection sends it.
///
/// Its parameters are the values of [`columns`](Self::columns), for each of the [`rows`](Self::rows) in turn. If
/// the engine binds arrays, they are those of one row, and each takes the values of all rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The kind of statement.
    pub kind: StatementKind,
    /// The text, with a placeholder for each parameter.
    pub sql: Arc<str>,
    /// The columns that a row's parameters are for, in their order in the text: positions in
    /// [`Table::columns`].
    pub columns: Arc<[usize]>,
    /// The number of rows.
    pub rows: usize,
    /// Whether the library keeps it prepared: the same text is sent more than once, or the library
    /// [keeps](crate::spi::RowBinder::KEEPS_UP_TO) any of that length. Never where the engine
    /// [does not prepare](EngineProfile::prepares) statements by name.
    pub is_kept: bool,
}

impl Statement {
    /// A query without parameters, which is asked once.
    pub(crate) fn query(sql: impl Into<Arc<str>>) -> Self {
        Self {
            kind: StatementKind::Exists,
            sql: sql.into(),
            columns: [].into(),
            rows: 0,
            is_kept: false,
        }
    }

    /// Returns for each parameter which of a row's values it is. A row writes each of the [`columns`](Self::columns) once, in
    /// the order in which the entity has them. A statement may have them in another order, and a column twice: an upsert may
    /// set a column by which it finds the row.
    pub fn positions(&self) -> Vec<usize> {
        let mut rising = self.columns.to_vec();
        rising.sort_unstable();
        rising.dedup();
        let columns = self.columns.iter();
        columns
            .map(|column| rising.partition_point(|at| at < column))
            .collect()
    }

    /// Writes the `INSERT` of so many rows, each with values for these columns: for what an adapter offers
    /// beside a unit of work.
    pub fn insert(
        engine: &EngineProfile,
        names: &TableNames,
        columns: &[usize],
        rows: usize,
    ) -> Self {
        let mut sql = String::new();
        Writer::new(engine).insert(&mut sql, names, columns, rows);
        sql.push_str(engine.words.counted);
        Self {
            kind: StatementKind::Insert,
            sql: sql.into(),
            columns: columns.into(),
            rows,
            is_kept: false,
        }
    }
}

/// Writes the statements of one engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writer<'a> {
    pub(crate) engine: &'a EngineProfile,
    /// What stands in the place of each parameter, where that is not the engine's placeholder.
    pub(crate) placeholder: Option<char>,
    /// The length of the longest text that is kept prepared although it may be sent only once.
    keeps_up_to: usize,
}

impl<'a> Writer<'a> {
    /// Writes with the engine's placeholders.
    pub(crate) const fn new(engine: &'a EngineProfile) -> Self {
        Self {
            engine,
            placeholder: None,
            keeps_up_to: 0,
        }
    }

    /// Writes for a library.
    pub(crate) const fn of<B: RowBinder>(engine: &'a EngineProfile) -> Self {
        Self {
            engine,
            placeholder: B::PLACEHOLDER,
            keeps_up_to: B::KEEPS_UP_TO,
        }
    }

    /// Returns whether the library keeps a text prepared.
    fn keeps(self, sql: &str, recurs: bool) -> bool {
        self.engine.prepares && (recurs || sql.len() <= self.keeps_up_to)
    }
}

impl Writer<'_> {
    /// Returns whether an action takes a statement for each of its rows.
    pub(crate) fn is_for_each_row(self, action: Action) -> bool {
        match action {
            Action::Update
            | Action::UpdateColumns { .. }
            | Action::Upsert {
                step: UpsertStep::Update,
                ..
            }
            | Action::FixUp { .. } => self.engine.updates == Updates::RowByRow,
            Action::Insert | Action::Upsert { .. } | Action::Unlink { .. } | Action::Delete => {
                false
            }
        }
    }

    /// Returns which of the values of an action stand first in the text of an update of one row, those that are set, and
    /// which stand last, those that it is found by.
    pub(crate) fn of_row(
        self,
        table: &Table,
        names: &TableNames,
        action: Action,
    ) -> [Vec<usize>; 2] {
        let set = names.set_of(table, action, &table.columns_of(action));
        [set, positions(&names.found_by(table, action))]
    }

    /// Writes the statement that does something with so many rows of a table. `set` names the columns
    /// that the rows have values for, where those are not all that the action takes.
    pub(crate) fn statement(
        self,
        table: &Table,
        names: &TableNames,
        action: Action,
        rows: usize,
        set: Option<&[usize]>,
    ) -> Statement {
        let columns = match set {
            Some(set) => set.to_vec(),
            None => table.columns_of(action),
        };
        let written = match self.engine.binds_arrays() {
            true => 1,
            false => rows,
        };
        // A row of short names and its placeholders.
        let mut sql = String::with_capacity(96 + written * (columns.len() * 7 + 4));
        let out = &mut sql;
        let (kind, columns) = match action {
            Action::Insert
            | Action::Upsert {
                step: UpsertStep::Insert,
                ..
            } => {
                self.insert(out, names, &columns, written);
                (StatementKind::Insert, columns)
            }
            Action::Upsert {
                step: UpsertStep::Write,
                ..
            } => {
                self.insert(out, names, &columns, written);
                self.on_conflict(out, table, names, action);
                (StatementKind::Insert, columns)
            }
            Action::Upsert {
                step: step @ (UpsertStep::Find | UpsertStep::Confirm),
                ..
            } => {
                self.find(out, names, &columns, written, step);
                return Statement {
                    kind: StatementKind::Find,
                    sql: sql.into(),
                    columns: columns.into(),
                    rows,
                    is_kept: false,
                };
            }
            Action::Update
            | Action::UpdateColumns { .. }
            | Action::Upsert {
                step: UpsertStep::Update,
                ..
            }
            | Action::FixUp { .. } => {
                let found_by = names.found_by(table, action);
                let set_columns = names.set_of(table, action, &columns);
                let columns = match self.engine.updates {
                    Updates::RowByRow | Updates::Arrays => {
                        let keeps = matches!(action, Action::FixUp { .. });
                        self.update_row(out, names, set_columns, &found_by, keeps)
                    }
                    // As one row needs no list.
                    _ if rows == 1 && set.is_some() => {
                        self.update_row(out, names, set_columns, &found_by, false)
                    }
                    updates => {
                        let columns = [&columns[..], &set_columns];
                        self.update(out, names, columns, &found_by, written, updates);
                        columns[0].to_vec()
                    }
                };
                (StatementKind::Update, columns)
            }
            Action::Unlink { parent } => {
                let parent = table.position_of(table.parents()[parent].column());
                let parent = &names.columns[parent];
                let found_by = names.found_by(table, action);
                self.with_found(out, names, &found_by, written);
                if self.joins(&found_by, written) {
                    let _ = write!(out, "UPDATE {TARGET} SET {parent} = NULL");
                } else {
                    let _ = write!(out, "UPDATE {} SET {parent} = NULL", names.table);
                }
                self.keep_version(out, names);
                self.where_found(out, names, &found_by, written);
                (StatementKind::SetNull, positions(&found_by))
            }
            Action::Delete => {
                let found_by = names.found_by(table, action);
                self.with_found(out, names, &found_by, written);
                if self.joins(&found_by, written) {
                    let _ = write!(out, "DELETE {TARGET}");
                } else {
                    let _ = write!(out, "DELETE FROM {}", names.table);
                }
                self.where_found(out, names, &found_by, written);
                let is_tree = table.refers_to(table) && written > 1;
                if is_tree && self.engine.tree_deletes == TreeDeletes::ByKey {
                    let keys = names.keys.iter().map(|key| &names.columns[*key]);
                    let keys: Vec<_> = keys.map(|key| format!("{key} DESC")).collect();
                    let _ = write!(out, " ORDER BY {}", keys.join(", "));
                }
                (StatementKind::Delete, positions(&found_by))
            }
        };
        sql.push_str(self.engine.words.counted);
        Statement {
            kind,
            sql: sql.into(),
            columns: columns.into(),
            rows,
            is_kept: false,
        }
    }

    /// Asks for the numbers of those tables that have a unique index which would refuse the same row a second time.
    /// Each table comes with the positions of the columns that are sent. Returns `None` if the engine is not asked.
    pub(crate) fn are_protected<'t>(
        self,
        tables: impl Iterator<Item = (&'t TableNames, &'t [usize])>,
    ) -> Option<Statement> {
        let question = self.engine.words.is_protected?;
        let [cast, cast_behind] = self.engine.words.as_text;
        let questions = tables.enumerate().map(|(number, (names, sent))| {
            let from = question(names, sent);
            format!("SELECT {cast}{number}{cast_behind} {from}")
        });
        let questions: Vec<_> = questions.collect();
        Some(Statement::query(questions.join(" UNION ALL ")))
    }

    /// Asks for a row by its key.
    pub(crate) fn exists(self, names: &TableNames) -> Statement {
        self.exists_with(names, &names.key(), self.engine.words.reads_committed)
    }

    /// Asks for a row by what a delete finds it by: its key and, if its type has one, the version that it was read with.
    pub(crate) fn exists_as_read(self, names: &TableNames, table: &Table) -> Statement {
        let found_by = names.found_by(table, Action::Delete);
        self.exists_with(names, &found_by, self.engine.words.reads_committed)
    }

    /// Asks for a row by its key, even if another transaction has locked it. Returns `None` if [`exists`](Self::exists)
    /// passes over no locked row either.
    pub(crate) fn exists_or_is_locked(self, names: &TableNames) -> Option<Statement> {
        let confirms = self.engine.words.confirms;
        confirms.map(|_| self.exists_with(names, &names.key(), ["", ""]))
    }

    fn exists_with(
        self,
        names: &TableNames,
        found_by: &[(usize, usize)],
        [before, behind]: [&str; 2],
    ) -> Statement {
        let mut sql = format!("SELECT 1 FROM {}{before}", names.table);
        self.where_found(&mut sql, names, found_by, 1);
        sql.push_str(behind);
        Statement {
            kind: StatementKind::Exists,
            is_kept: self.keeps(&sql, true),
            sql: sql.into(),
            columns: positions(found_by).as_slice().into(),
            rows: 1,
        }
    }

    /// Asks for a row's version as text, by its key.
    pub(crate) fn version(self, names: &TableNames) -> Option<Statement> {
        let version = &names.columns[names.version?];
        let [cast, cast_behind] = self.engine.words.as_text;
        let [before, behind] = self.engine.words.reads_committed;
        let mut sql = format!(
            "SELECT {cast}{version}{cast_behind} FROM {}{before}",
            names.table
        );
        self.where_found(&mut sql, names, &names.key(), 1);
        sql.push_str(behind);
        Some(Statement {
            kind: StatementKind::Exists,
            is_kept: self.keeps(&sql, false),
            sql: sql.into(),
            columns: names.keys.as_slice().into(),
            rows: 1,
        })
    }

    /// Inserts a marker row, or asks for it.
    pub(crate) fn marker(self, kind: StatementKind) -> Statement {
        let [before, behind] = self.engine.words.reads_committed;
        let mut sql;
        if kind == StatementKind::Insert {
            sql = format!("INSERT INTO {MARKER_TABLE} (id) VALUES (");
            self.placeholder(&mut sql, 1);
            sql.push(')');
            sql.push_str(self.engine.words.counted);
        } else {
            sql = format!("SELECT 1 FROM {MARKER_TABLE}{before} WHERE id = ");
            self.placeholder(&mut sql, 1);
            sql.push_str(behind);
        }
        Statement {
            kind,
            is_kept: self.keeps(&sql, true),
            sql: sql.into(),
            columns: [0].into(),
            rows: 1,
        }
    }

    /// Deletes so many of the marker rows below a key.
    pub(crate) fn old_markers(self, rows: u64) -> Statement {
        let mut is_old = "id < ".to_owned();
        self.placeholder(&mut is_old, 1);
        let words = &self.engine.words;
        let mut sql = words
            .delete_first
            .replace("{t}", MARKER_TABLE)
            .replace("{where}", &is_old)
            .replace("{n}", &rows.to_string());
        sql.push_str(words.counted);
        Statement {
            kind: StatementKind::Delete,
            is_kept: self.keeps(&sql, false),
            sql: sql.into(),
            columns: [0].into(),
            rows: 1,
        }
    }

    /// `INSERT INTO "orders" ("id", "total") VALUES ($1, $2), ($3, $4)`
    fn insert(self, out: &mut String, names: &TableNames, columns: &[usize], rows: usize) {
        let _ = write!(out, "INSERT INTO {} (", names.table);
        list(out, names, columns);
        out.push_str(") VALUES ");
        self.values(out, names, columns, rows);
    }

    /// Makes an `INSERT` write the columns of rows that are there, where [a question](crate::words) says that only these rows
    /// can be in its way:
    ///
    /// ```text
    /// SQLite   ON CONFLICT ("id") DO UPDATE SET "total" = excluded."total"
    /// MySQL    ON DUPLICATE KEY UPDATE `total` = VALUES(`total`)
    /// ```
    ///
    /// MariaDB has no other way than `VALUES` to name the new values.
    fn on_conflict(self, out: &mut String, table: &Table, names: &TableNames, action: Action) {
        let is_mysql = self.engine.updates == Updates::RowByRow;
        if is_mysql {
            out.push_str(" ON DUPLICATE KEY UPDATE ");
        } else {
            out.push_str(" ON CONFLICT (");
            list(out, names, &positions(&names.found_by(table, action)));
            out.push_str(") DO UPDATE SET ");
        }
        let mut separator = "";
        for column in names.set_of(table, action, &table.columns_of(action)) {
            let column = names.column(column);
            let _ = match is_mysql {
                true => write!(out, "{separator}{column} = VALUES({column})"),
                false => write!(out, "{separator}{column} = excluded.{column}"),
            };
            separator = ", ";
        }
    }

    /// ```text
    /// PostgreSQL   UPDATE "orders" AS ordid_target SET "total" = ordid_rows."total"
    ///              FROM (VALUES ($1, $2), ($3, $4)) AS ordid_rows ("id", "total")
    ///              WHERE ordid_target."id" = ordid_rows."id"
    /// SQLite       WITH ordid_rows ("id", "total") AS (VALUES (?, ?), (?, ?))
    ///              UPDATE "orders" AS ordid_target SET "total" = ordid_rows."total"
    ///              FROM ordid_rows WHERE ordid_target."id" = +ordid_rows."id"
    /// SQL Server   UPDATE ordid_target SET [total] = ordid_rows.[total] FROM [orders] AS ordid_target
    ///              JOIN (VALUES (@P1, @P2), (@P3, @P4)) AS ordid_rows ([id], [total])
    ///              ON ordid_target.[id] = ordid_rows.[id]
    /// ```
    ///
    /// A value arrives in its column as by an `INSERT`. In PostgreSQL a parameter has the type that the
    /// library gives it, also where it is NULL, a column of `VALUES` has the type of its parameters, and
    /// an assignment casts from there. In SQLite a column of `VALUES` has no affinity, and so changes
    /// nothing; the `+` keeps it from reading the whole table and looking for each row in the list, as it does with some
    /// hundred rows. In SQL Server, `VALUES` takes its types as that of an `INSERT` of many rows does: from the
    /// parameters, which are declared, also where they are NULL.
    fn update(
        self,
        out: &mut String,
        names: &TableNames,
        [columns, set]: [&[usize]; 2],
        found_by: &[(usize, usize)],
        rows: usize,
        updates: Updates,
    ) {
        if updates == Updates::WithValues {
            self.with_values(out, names, columns, rows);
        }
        match updates {
            Updates::JoinValues => {
                let _ = write!(out, "UPDATE {TARGET} SET ");
            }
            _ => {
                let _ = write!(out, "UPDATE {} AS {TARGET} SET ", names.table);
            }
        }
        let mut separator = "";
        for column in set {
            let column = &names.columns[*column];
            let _ = write!(out, "{separator}{column} = {ROWS}.{column}");
            separator = ", ";
        }
        if separator.is_empty() {
            // The row has to be there all the same.
            let key = &names.columns[names.keys[0]];
            let _ = write!(out, "{key} = {TARGET}.{key}");
        }
        match updates {
            Updates::WithValues => {
                let _ = write!(out, " FROM {ROWS} WHERE ");
            }
            Updates::JoinValues => {
                let _ = write!(out, " FROM {} AS {TARGET} JOIN ", names.table);
                self.named_values(out, names, columns, rows);
                out.push_str(" ON ");
            }
            _ => {
                out.push_str(" FROM ");
                self.named_values(out, names, columns, rows);
                out.push_str(" WHERE ");
            }
        }
        joined(
            out,
            names,
            found_by,
            if updates == Updates::WithValues {
                "+"
            } else {
                ""
            },
        );
    }

    /// `WITH ordid_rows ("id", "total") AS (VALUES (?, ?), (?, ?)) `
    fn with_values(self, out: &mut String, names: &TableNames, columns: &[usize], rows: usize) {
        let _ = write!(out, "WITH {ROWS} (");
        list(out, names, columns);
        out.push_str(") AS (VALUES ");
        self.values(out, names, columns, rows);
        out.push_str(") ");
    }

    /// `(VALUES ($1, $2), ($3, $4)) AS ordid_rows ("id", "total")`
    fn named_values(self, out: &mut String, names: &TableNames, columns: &[usize], rows: usize) {
        out.push_str("(VALUES ");
        self.values(out, names, columns, rows);
        let _ = write!(out, ") AS {ROWS} (");
        list(out, names, columns);
        out.push(')');
    }

    /// ``UPDATE `orders` SET `total` = ? WHERE `id` = ?``: returns the columns in the order of their
    /// parameters, the key last, and behind it the version that the row was read with. A column that is set and by which
    /// the row is found comes twice. `keeps_version` is that the version stays, where the database would raise it.
    fn update_row(
        self,
        out: &mut String,
        names: &TableNames,
        mut columns: Vec<usize>,
        found_by: &[(usize, usize)],
        keeps_version: bool,
    ) -> Vec<usize> {
        let _ = write!(out, "UPDATE {} SET ", names.table);
        for (number, column) in columns.iter().enumerate() {
            let separator = if number > 0 { ", " } else { "" };
            let _ = write!(out, "{separator}{} = ", names.columns[*column]);
            self.value(out, names, *column, number + 1);
        }
        if columns.is_empty() {
            // The row has to be there all the same.
            let key = &names.columns[names.keys[0]];
            let _ = write!(out, "{key} = {key}");
        }
        if keeps_version {
            self.keep_version(out, names);
        }
        out.push_str(" WHERE ");
        self.all_of(out, names, found_by, columns.len() + 1);
        columns.extend(positions(found_by));
        columns
    }

    /// ``, `version` = `version` ``: MySQL raises a column that is `ON UPDATE CURRENT_TIMESTAMP` by itself if an update
    /// does not set it, so the program would not know the row's version.
    fn keep_version(self, out: &mut String, names: &TableNames) {
        if let (Updates::RowByRow, Some(version)) = (self.engine.updates, names.version) {
            let version = names.column(version);
            let _ = write!(out, ", {version} = {version}");
        }
    }

    /// Returns whether rows are found by a join with a list of their values.
    fn joins(self, found_by: &[(usize, usize)], rows: usize) -> bool {
        rows > 1 && found_by.len() > 1 && self.engine.updates == Updates::JoinValues
    }

    /// Names the rows that are looked for in front of the statement, where [`where_found`](Self::where_found) needs that.
    fn with_found(
        self,
        out: &mut String,
        names: &TableNames,
        found_by: &[(usize, usize)],
        rows: usize,
    ) {
        if rows > 1 && found_by.len() > 1 && self.engine.updates == Updates::WithValues {
            self.with_values(out, names, &positions(found_by), rows);
        }
    }

    /// ```text
    /// one row, or arrays   WHERE "id" = $1 AND "version" = $2
    /// one column           WHERE "id" IN ($1, $2)
    /// PostgreSQL           WHERE ("id", "version") IN (VALUES ($1, $2), ($3, $4))
    /// SQLite               WHERE ("id", "version") IN (SELECT "id", ordid_version FROM ordid_rows)
    /// MySQL                WHERE `id` = ? AND `version` = ? OR `id` = ? AND `version` = ?
    /// SQL Server           FROM [orders] AS ordid_target JOIN (VALUES (@P1, @P2), (@P3, @P4)) AS ordid_rows
    ///                      ([id], ordid_version) ON ordid_target.[id] = ordid_rows.[id] AND ..
    /// ```
    ///
    /// Each is what the engine uses the index of the key for. SQLite reads the whole table for a list of values, and
    /// takes no expression of a thousand rows; SQL Server has no rows of values.
    fn where_found(
        self,
        out: &mut String,
        names: &TableNames,
        found_by: &[(usize, usize)],
        rows: usize,
    ) {
        let columns = positions(found_by);
        if self.joins(found_by, rows) {
            let _ = write!(out, " FROM {} AS {TARGET} JOIN ", names.table);
            self.named_values(out, names, &columns, rows);
            out.push_str(" ON ");
            return joined(out, names, found_by, "");
        }
        out.push_str(" WHERE ");
        match (found_by, self.engine.updates) {
            _ if rows == 1 => self.all_of(out, names, found_by, 1),
            ([(column, _)], _) => {
                let _ = write!(out, "{} IN (", names.columns[*column]);
                for number in 1..=rows {
                    if number > 1 {
                        out.push_str(", ");
                    }
                    self.value(out, names, *column, number);
                }
                out.push(')');
            }
            (_, Updates::RowByRow) => {
                for row in 0..rows {
                    if row > 0 {
                        out.push_str(" OR ");
                    }
                    self.all_of(out, names, found_by, row * found_by.len() + 1);
                }
            }
            _ => {
                let found: Vec<_> = found_by.iter().map(|(column, _)| *column).collect();
                out.push('(');
                list(out, names, &found);
                if self.engine.updates == Updates::WithValues {
                    out.push_str(") IN (SELECT ");
                    list(out, names, &columns);
                    let _ = write!(out, " FROM {ROWS})");
                } else {
                    out.push_str(") IN (VALUES ");
                    self.values(out, names, &columns, rows);
                    out.push(')');
                }
            }
        }
    }

    /// `"id" = $1 AND "version" = $2`, with parameters from this number on.
    fn all_of(
        self,
        out: &mut String,
        names: &TableNames,
        found_by: &[(usize, usize)],
        number: usize,
    ) {
        for (place, (column, value)) in found_by.iter().enumerate() {
            let separator = if place > 0 { " AND " } else { "" };
            let _ = write!(out, "{separator}{} = ", names.columns[*column]);
            self.value(out, names, *value, number + place);
        }
    }

    /// `($1, $2), ($3, $4)`
    fn values(self, out: &mut String, names: &TableNames, columns: &[usize], rows: usize) {
        let mut number = 0;
        for row in 0..rows {
            out.push_str(if row == 0 { "(" } else { ", (" });
            for (place, column) in columns.iter().enumerate() {
                if place > 0 {
                    out.push_str(", ");
                }
                number += 1;
                self.value(out, names, *column, number);
            }
            out.push(')');
        }
    }

    fn value(self, out: &mut String, names: &TableNames, column: usize, number: usize) {
        // The version that a row was read with is like the one that is written.
        let column = match names.version {
            Some(version) if column == names.columns.len() => version,
            _ => column,
        };
        match names.around.get(column) {
            Some(Some([before, behind])) => {
                out.push_str(before);
                self.placeholder(out, number);
                out.push_str(behind);
            }
            _ => self.placeholder(out, number),
        }
    }

    fn placeholder(self, out: &mut String, number: usize) {
        match self.placeholder {
            Some(placeholder) => out.push(placeholder),
            None => (self.engine.words.placeholder)(out, number),
        }
    }
}

/// `"id", "total"`
fn list(out: &mut String, names: &TableNames, columns: &[usize]) {
    for (number, column) in columns.iter().enumerate() {
        if number > 0 {
            out.push_str(", ");
        }
        out.push_str(names.column(*column));
    }
}

/// `ordid_target."id" = ordid_rows."id" AND ordid_target."version" = ordid_rows.ordid_version`, with this text before each
/// value of the list.
fn joined(out: &mut String, names: &TableNames, found_by: &[(usize, usize)], before: &str) {
    for (place, (column, value)) in found_by.iter().enumerate() {
        let separator = if place > 0 { " AND " } else { "" };
        let (column, value) = (names.column(*column), names.column(*value));
        let _ = write!(out, "{separator}{TARGET}.{column} = {before}{ROWS}.{value}");
    }
}

/// Returns the positions of the values that rows are found by.
fn positions(found_by: &[(usize, usize)]) -> Vec<usize> {
    found_by.iter().map(|(_, value)| *value).collect()
}

#[cfg(test)]
mod tests;
