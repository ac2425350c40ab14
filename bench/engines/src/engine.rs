//! What differs between the engines: where the table is, and what can be counted.

use std::{error::Error, time::Duration};

use crate::{Row, gate::Gate, key::Case};

mod mariadb;
mod postgres;
mod sqlite;

/// Any error: a bench only reports it.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Makes the rows of one more statement.
pub(crate) type More<'a> = &'a mut dyn FnMut() -> Vec<Row>;

/// An engine that tables are loaded into.
pub(crate) trait Engine {
    /// The name, as the harness knows it.
    const SERVER: &'static str;

    /// What is counted of each table.
    const FIGURES: [&'static str; 3];

    const GATES: &'static [Gate];

    /// The open connection, and where it leads.
    type Open;

    /// The keys and columns that are loaded.
    fn cases() -> Vec<Case>;

    /// Starts the engine. An `Err` inside says why it is left out.
    async fn open() -> Result<std::result::Result<Self::Open, String>>;

    /// Says which version it is and how it is set.
    async fn version(open: &mut Self::Open) -> Result<String>;

    /// Makes the table anew.
    async fn create(open: &mut Self::Open, case: &Case) -> Result<()>;

    /// Reads the counter whose growth is a figure.
    async fn before(open: &mut Self::Open) -> Result<f64>;

    /// Inserts these rows by one statement and returns how long it took, with the commit.
    async fn insert(open: &mut Self::Open, case: &Case, rows: &[Row]) -> Result<Duration>;

    /// Counts what is in the table after so many rows.
    async fn figures(
        open: &mut Self::Open,
        case: &Case,
        rows: u32,
        before: f64,
        more: More<'_>,
    ) -> Result<[f64; 3]>;

    async fn drop(open: &mut Self::Open) -> Result<()>;

    /// Ends what was started.
    async fn close(open: Self::Open) -> Result<()>;
}

/// The columns of a statement.
fn columns(case: &Case, rows: &[Row]) -> &'static str {
    match rows.first() {
        Some(row) if row.key == crate::key::Value::Auto => "(k, payload)",
        Some(_) => "(id, k, payload)",
        None => unreachable!("{} has a row a statement", case.declared),
    }
}

/// Writes a statement with `?` for each value, or `$1`, `$2`, ..
fn statement(case: &Case, rows: &[Row], numbered: bool) -> String {
    let columns = columns(case, rows);
    let width = columns.split(',').count();
    let mut sql = format!("INSERT INTO loaded {columns} VALUES ");
    for row in 0..rows.len() {
        sql += if row == 0 { "(" } else { ", (" };
        for column in 0..width {
            if column > 0 {
                sql += ", ";
            }
            if numbered {
                sql += &format!("${}", row * width + column + 1);
            } else {
                sql.push('?');
            }
        }
        sql.push(')');
    }
    sql
}

/// Executes [`statement`] on a connection and returns how long it took.
macro_rules! execute {
    ($connection:expr, $sql:expr, $rows:expr) => {{
        let mut query = sqlx::query(sqlx::AssertSqlSafe($sql));
        for row in $rows {
            query = match &row.key {
                crate::key::Value::Auto => query,
                crate::key::Value::Integer(key) => query.bind(*key),
                crate::key::Value::Uuid(key) => query.bind(*key),
                crate::key::Value::Bytes(key) => query.bind(&key[..]),
                crate::key::Value::Text(key) => query.bind(&key[..]),
            };
            query = query.bind(row.number).bind(&row.text[..]);
        }
        let started = std::time::Instant::now();
        query.execute($connection).await?;
        started.elapsed()
    }};
}

use execute;
