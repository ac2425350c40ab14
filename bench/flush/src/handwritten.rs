//! What is written without ordid: the same rows into the same table, in one transaction.
//!
//! All of it keeps its prepared statements, as SQLx does unless told otherwise: a statement that
//! is not kept is parsed and planned again for every chunk.

use sqlx::{
    Arguments as _, AssertSqlSafe, Database, Encode, Pool, SqlSafeStr, SqlStr, Type,
    error::BoxDynError, query_builder::Separated,
};

use crate::{
    engine::Engine,
    form::{Form, FormOn, Values},
};

/// A way of inserting the rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Case {
    /// `UnitOfWork::flush`.
    Flush,
    /// `QueryBuilder::push_values`, so many rows a statement: what SQLx documents.
    PushValues(usize),
    /// The statement's text built once, its parameters bound directly.
    Prebuilt(usize),
    /// `INSERT .. SELECT * FROM UNNEST(..)`, one array a column: PostgreSQL only.
    Unnest(usize),
    /// `COPY .. FROM STDIN (FORMAT binary)`, so many rows a command: PostgreSQL only.
    Copy(usize),
    /// One row a statement.
    RowByRow,
    /// The rows are in another table of the database already: what the server takes for them with
    /// no client in the way.
    ServerAlone,
}

impl Case {
    /// Returns the cases of an engine, in the order of the report.
    pub(crate) fn all<DB: Engine, R: FormOn<DB>>() -> Vec<Self> {
        let most = DB::MAX_PARAMETERS / R::COLUMNS.len();
        let mut cases = vec![Self::Flush];
        cases.extend([100, 500, 1000, most].map(Self::PushValues));
        cases.extend([100, 500, 1000, most].map(Self::Prebuilt));
        if R::UNNEST {
            cases.extend([1000, 10_000].map(Self::Unnest));
        }
        if DB::COPY {
            cases.extend([1000, 10_000, 100_000].map(Self::Copy));
        }
        cases.extend([Self::RowByRow, Self::ServerAlone]);
        cases
    }

    pub(crate) fn name(self) -> String {
        match self {
            Self::Flush => "ordid flush".to_owned(),
            Self::PushValues(rows) => format!("push_values, {rows} rows"),
            Self::Prebuilt(rows) => format!("prebuilt text, {rows} rows"),
            Self::Unnest(rows) => format!("unnest, {rows} rows"),
            Self::Copy(rows) => format!("copy, {rows} rows"),
            Self::RowByRow => "row by row".to_owned(),
            Self::ServerAlone => "server alone, no client".to_owned(),
        }
    }

    /// Whether this is multi-row code.
    pub(crate) fn is_multi_row(self) -> bool {
        matches!(
            self,
            Self::PushValues(_) | Self::Prebuilt(_) | Self::Unnest(_)
        )
    }

    /// Whether this is `COPY`.
    pub(crate) fn is_copy(self) -> bool {
        matches!(self, Self::Copy(_))
    }
}

/// Returns `INSERT INTO orders (id, ..) `.
pub(crate) fn insert<R: Form>() -> String {
    format!("INSERT INTO {} ({}) ", R::TABLE, R::COLUMNS.join(", "))
}

/// Values that are bound directly.
pub(crate) struct Bound<DB: Database>(pub(crate) DB::Arguments);

impl<DB: Database> Values<DB> for Bound<DB> {
    fn put<'q, T: Encode<'q, DB> + Type<DB>>(&mut self, value: T) -> Result<(), BoxDynError> {
        self.0.add(value)
    }
}

/// Values that a `QueryBuilder` is given.
pub(crate) struct Pushed<'q, DB: Database>(pub(crate) Separated<'q, DB, &'static str>);

impl<DB: Database> Values<DB> for Pushed<'_, DB> {
    fn put<'q, T: Encode<'q, DB> + Type<DB>>(&mut self, value: T) -> Result<(), BoxDynError> {
        self.0.push_bind(value);
        Ok(())
    }
}

/// Inserts the rows as a case says that is not [`Case::Flush`].
pub(crate) async fn insert_all<DB: Engine, R: FormOn<DB>>(
    pool: &Pool<DB>,
    data: &[R],
    case: Case,
) -> Result<(), sqlx::Error> {
    let mut transaction = pool.begin().await?;
    match case {
        Case::PushValues(rows) => {
            for chunk in data.chunks(rows) {
                DB::push_values(&mut transaction, chunk).await?;
            }
        }
        Case::Unnest(rows) => {
            for chunk in data.chunks(rows) {
                R::unnest(&mut transaction, chunk).await?;
            }
        }
        Case::Copy(rows) => {
            for chunk in data.chunks(rows) {
                DB::copy(&mut transaction, chunk).await?;
            }
        }
        Case::Prebuilt(rows) => prebuilt::<DB, R>(&mut transaction, data, rows).await?,
        Case::RowByRow => prebuilt::<DB, R>(&mut transaction, data, 1).await?,
        Case::ServerAlone => {
            let sql = format!("{}SELECT * FROM {STAGED}", insert::<R>());
            DB::execute_raw(&mut transaction, sql).await?;
        }
        Case::Flush => unreachable!("not written by hand"),
    }
    transaction.commit().await
}

/// The table that [`Case::ServerAlone`] copies from.
const STAGED: &str = "staged";

/// Puts the rows into [`STAGED`], in order.
pub(crate) async fn stage<DB: Engine, R: FormOn<DB>>(
    pool: &Pool<DB>,
    data: &[R],
) -> Result<(), sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let sql = format!("CREATE TABLE {STAGED} AS SELECT * FROM {}", R::TABLE);
    DB::execute_raw(&mut transaction, sql).await?;
    for chunk in data.chunks(500) {
        let sql = statement::<DB, R>(chunk.len())
            .as_str()
            .replacen(R::TABLE, STAGED, 1);
        DB::insert(&mut transaction, AssertSqlSafe(sql).into_sql_str(), chunk).await?;
    }
    transaction.commit().await
}

async fn prebuilt<DB: Engine, R: FormOn<DB>>(
    connection: &mut DB::Connection,
    data: &[R],
    rows: usize,
) -> Result<(), sqlx::Error> {
    let full = statement::<DB, R>(rows);
    for chunk in data.chunks(rows) {
        let sql = if chunk.len() == rows {
            full.clone()
        } else {
            statement::<DB, R>(chunk.len())
        };
        DB::insert(connection, sql, chunk).await?;
    }
    Ok(())
}

fn statement<DB: Engine, R: FormOn<DB>>(rows: usize) -> SqlStr {
    let sql = insert::<R>() + "VALUES " + &placeholders::<DB>(rows, R::COLUMNS.len());
    AssertSqlSafe(sql).into_sql_str()
}

/// Returns `($1, $2), ($3, $4)`.
pub(crate) fn placeholders<DB: Engine>(rows: usize, values: usize) -> String {
    let mut sql = String::new();
    for row in 0..rows {
        sql += if row == 0 { "(" } else { ", (" };
        for column in 0..values {
            if column > 0 {
                sql += ", ";
            }
            sql += &DB::placeholder(row * values + column + 1);
        }
        sql += ")";
    }
    sql
}
