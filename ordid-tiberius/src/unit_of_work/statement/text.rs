//! The text of statements. All names are quoted.

use std::fmt::Write as _;

use ordid_core::unit_of_work::{Action, Table};
use tiberius::Query;

use crate::flavour::Flavour;

/// Asks how many rows the statement before it changed.
///
/// The counts beside the answers would not do. A trigger's own statements have some, too, and under
/// `SET NOCOUNT ON`, which a server may have for its default, there are none. `@@ROWCOUNT` is set all the
/// same, and is of the statement itself, not of its triggers: Entity Framework Core counts by it on tables
/// with triggers.
const COUNT: &str = "; SELECT @@ROWCOUNT";

/// Writes the statement that does something with so many rows of a table. It takes the values of the
/// columns [`Table::columns_of`] the action, row by row, and all but an insert answer with how many rows
/// they changed.
pub(super) fn statement<D: Flavour>(table: &Table, action: Action, rows: usize) -> String {
    let columns = table.columns_of(action);
    let columns: Vec<String> = columns
        .into_iter()
        .map(|column| D::quote(table.columns()[column]))
        .collect();
    let name = D::quote_table(table.schema(), table.name());
    // A row of short names and its parameters.
    let mut sql = String::with_capacity(128 + rows * (columns.len() * 8 + 4));
    match action {
        Action::Insert => {
            let _ = write!(sql, "INSERT INTO {name} ({}) VALUES ", columns.join(", "));
            push_rows(&mut sql, rows, columns.len());
            return sql;
        }
        Action::FixUp { .. } | Action::Update => {
            let key = D::quote(table.key_column());
            update(&mut sql, &name, &key, &columns, rows);
        }
        Action::Unlink { parent } => {
            let parent = D::quote(table.parents()[parent].column());
            let _ = write!(sql, "UPDATE {name} SET {parent} = NULL");
            where_key_in::<D>(&mut sql, table, rows);
        }
        Action::Delete => {
            let _ = write!(sql, "DELETE FROM {name}");
            where_key_in::<D>(&mut sql, table, rows);
        }
    }
    sql.push_str(COUNT);
    sql
}

/// ```text
/// UPDATE t SET [total] = v.[total]
/// FROM [orders] AS t JOIN (VALUES (@P1, @P2), (@P3, @P4)) AS v ([id], [total]) ON t.[id] = v.[id]
/// ```
///
/// A value arrives in its column as by an `INSERT` of many rows, whose `VALUES` takes its types in the
/// same way: from the parameters, which are declared, also where they are NULL. Where there is no column
/// but the key, it is set to itself, as the row has to be there all the same.
fn update(sql: &mut String, table: &str, key: &str, columns: &[String], rows: usize) {
    sql.push_str("UPDATE t SET ");
    let mut separator = "";
    for column in columns.iter().filter(|column| *column != key) {
        let _ = write!(sql, "{separator}{column} = v.{column}");
        separator = ", ";
    }
    if separator.is_empty() {
        let _ = write!(sql, "{key} = t.{key}");
    }
    let _ = write!(sql, " FROM {table} AS t JOIN (VALUES ");
    push_rows(sql, rows, columns.len());
    let _ = write!(sql, ") AS v ({}) ON t.{key} = v.{key}", columns.join(", "));
}

/// ` WHERE [id] IN (@P1, @P2)`
fn where_key_in<D: Flavour>(sql: &mut String, table: &Table, rows: usize) {
    let key = D::quote(table.key_column());
    let _ = write!(sql, " WHERE {key} IN ({})", Query::placeholders(1, rows));
}

/// Writes `(@P1, @P2), (@P3, @P4)`.
fn push_rows(sql: &mut String, rows: usize, columns: usize) {
    let mut number = 0;
    for row in 0..rows {
        sql.push_str(if row == 0 { "(" } else { ", (" });
        for column in 0..columns {
            if column > 0 {
                sql.push_str(", ");
            }
            number += 1;
            let _ = write!(sql, "@P{number}");
        }
        sql.push(')');
    }
}
