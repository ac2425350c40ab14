//! The text of statements. All names are quoted.

use std::fmt::Write as _;

use ordid_core::{
    storage::{Dialect, numbers::KeepsNumbers as _},
    unit_of_work::{Action, Table},
};

use crate::backend::{Backend, Updates};

/// The name of the rows that an `UPDATE` takes its values from. One of SQLite's `WITH` hides a table
/// of its name, so it is one that no table has.
const ROWS: &str = "ordid_rows";

/// Returns whether an action takes a statement for each of its rows.
pub(in super::super) fn is_for_each_row<DB: Backend>(action: Action) -> bool {
    match action {
        Action::Update | Action::FixUp { .. } => DB::UPDATES == Updates::RowByRow,
        Action::Insert | Action::Unlink { .. } | Action::Delete => false,
    }
}

/// Writes the statement that does something with so many rows of a table. It takes the values of the
/// columns [`Table::columns_of`] the action, row by row; where it is for one row, the key last.
pub(super) fn statement<DB: Backend>(table: &Table, action: Action, rows: usize) -> String {
    let columns = table.columns_of(action);
    let columns: Vec<&str> = columns.into_iter().map(|it| table.columns()[it]).collect();
    // A row of short names and its placeholders.
    let mut sql = String::with_capacity(64 + rows * (columns.len() * 7 + 4));
    match action {
        Action::Insert => insert::<DB>(&mut sql, table, &columns, rows),
        Action::Update | Action::FixUp { .. } if is_for_each_row::<DB>(action) => {
            update_row::<DB>(&mut sql, table, &columns);
        }
        Action::Update | Action::FixUp { .. } => update::<DB>(&mut sql, table, &columns, rows),
        Action::Unlink { parent } => {
            let parent = quote::<DB>(table.parents()[parent].column());
            let _ = write!(sql, "UPDATE {} SET {parent} = NULL", name::<DB>(table));
            where_key_in::<DB>(&mut sql, table, rows);
        }
        Action::Delete => {
            let _ = write!(sql, "DELETE FROM {}", name::<DB>(table));
            where_key_in::<DB>(&mut sql, table, rows);
        }
    }
    sql
}

/// `INSERT INTO "orders" ("id", "total") VALUES ($1, $2), ($3, $4)`
fn insert<DB: Backend>(sql: &mut String, table: &Table, columns: &[&str], rows: usize) {
    let _ = write!(
        sql,
        "INSERT INTO {} ({}) VALUES ",
        name::<DB>(table),
        names::<DB>(columns)
    );
    values::<DB>(sql, columns.len(), rows);
}

/// PostgreSQL and SQLite:
///
/// ```text
/// UPDATE "orders" SET "total" = ordid_rows."total"
/// FROM (VALUES ($1, $2), ($3, $4)) AS ordid_rows ("id", "total")
/// WHERE "orders"."id" = ordid_rows."id"
///
/// WITH ordid_rows ("id", "total") AS (VALUES (?, ?), (?, ?))
/// UPDATE "orders" SET "total" = ordid_rows."total"
/// FROM ordid_rows WHERE "orders"."id" = ordid_rows."id"
/// ```
///
/// A value arrives in its column as by an `INSERT`: in PostgreSQL a parameter has the type that SQLx
/// gives it, also where it is NULL, a column of `VALUES` the type of its parameters, and an assignment
/// casts from there; in SQLite a column of `VALUES` has no affinity, and so changes nothing.
fn update<DB: Backend>(sql: &mut String, table: &Table, columns: &[&str], rows: usize) {
    let target = name::<DB>(table);
    let with = DB::UPDATES == Updates::WithValues;
    if with {
        let _ = write!(sql, "WITH {ROWS} ({}) AS (VALUES ", names::<DB>(columns));
        values::<DB>(sql, columns.len(), rows);
        sql.push_str(") ");
    }
    // The alias is the table's own name without its schema.
    let alias = quote::<DB>(table.name());
    let _ = write!(sql, "UPDATE {target} AS {alias} SET ");
    assignments::<DB>(sql, table, columns, |sql, column| {
        let _ = write!(sql, "{ROWS}.{column}");
    });
    if with {
        let _ = write!(sql, " FROM {ROWS}");
    } else {
        sql.push_str(" FROM (VALUES ");
        values::<DB>(sql, columns.len(), rows);
        let _ = write!(sql, ") AS {ROWS} ({})", names::<DB>(columns));
    }
    let key = quote::<DB>(table.key_column());
    let _ = write!(sql, " WHERE {alias}.{key} = {ROWS}.{key}");
}

/// ``UPDATE `orders` SET `total` = ? WHERE `id` = ?``: MySQL's parameters take their types from where
/// they stand, so that they stand at the columns themselves.
fn update_row<DB: Backend>(sql: &mut String, table: &Table, columns: &[&str]) {
    let mut number = 0;
    let mut placeholder = |sql: &mut String, _: &str| {
        number += 1;
        DB::Dialect::push_placeholder(sql, number);
    };
    let _ = write!(sql, "UPDATE {} SET ", name::<DB>(table));
    assignments::<DB>(sql, table, columns, &mut placeholder);
    let _ = write!(sql, " WHERE {} = ", quote::<DB>(table.key_column()));
    placeholder(sql, "");
}

/// Sets all columns but the key. Where there is no other, the key is set to itself, as the row has to
/// be there all the same.
fn assignments<DB: Backend>(
    sql: &mut String,
    table: &Table,
    columns: &[&str],
    mut value: impl FnMut(&mut String, &str),
) {
    let mut separator = "";
    for column in columns.iter().filter(|it| **it != table.key_column()) {
        let column = quote::<DB>(column);
        let _ = write!(sql, "{separator}{column} = ");
        value(sql, &column);
        separator = ", ";
    }
    if separator.is_empty() {
        let key = quote::<DB>(table.key_column());
        let alias = quote::<DB>(table.name());
        let _ = write!(sql, "{key} = {alias}.{key}");
    }
}

fn where_key_in<DB: Backend>(sql: &mut String, table: &Table, rows: usize) {
    let _ = write!(sql, " WHERE {} IN ", quote::<DB>(table.key_column()));
    row::<DB>(sql, 0, rows);
}

/// `($1, $2), ($3, $4)`
fn values<DB: Backend>(sql: &mut String, columns: usize, rows: usize) {
    for number in 0..rows {
        if number > 0 {
            sql.push_str(", ");
        }
        row::<DB>(sql, number * columns, columns);
    }
}

/// `($3, $4)`, where there were two before.
fn row<DB: Backend>(sql: &mut String, before: usize, columns: usize) {
    sql.push('(');
    for column in 1..=columns {
        if column > 1 {
            sql.push_str(", ");
        }
        DB::Dialect::push_placeholder(sql, before + column);
    }
    sql.push(')');
}

fn name<DB: Backend>(table: &Table) -> String {
    DB::Dialect::quote_table(table.schema(), table.name())
}

fn names<DB: Backend>(columns: &[&str]) -> String {
    let names: Vec<_> = columns.iter().map(|column| quote::<DB>(column)).collect();
    names.join(", ")
}

fn quote<DB: Backend>(identifier: &str) -> String {
    DB::Dialect::quote(identifier)
}
