//! Multi-row `INSERT` statements.

use std::{fmt::Write as _, future::poll_fn, sync::Arc, task::Poll};

use ordid_core::{
    storage::Dialect,
    unit_of_work::{Action, Batches, Chunk, Table},
};
use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use crate::{
    backend::{Backend, Binder},
    error::{Error, Place},
};

/// A statement with its parameters, or why a row could not be bound.
pub(super) type Bound<DB> = Result<Statement<DB>, Error>;

pub(super) struct Statement<DB: Backend> {
    sql: SqlStr,
    arguments: DB::Arguments,
    /// A prepared statement is kept in the connection's cache only where it serves again.
    repeats: bool,
    place: Place,
}

pub(super) fn bind<DB: Backend>(
    batches: &Batches<Binder<DB>>,
    chunk: &Chunk,
    statements: &mut Statements,
) -> Bound<DB> {
    let table = &statements.tables[chunk.table];
    let mut place = Place {
        table: table.name(),
        chunk: chunk.number,
        rows: chunk.rows.clone(),
        key: None,
    };
    if chunk.action != Action::Insert {
        return Err(Error::bind(
            "rows in a circle of foreign keys cannot be flushed here".into(),
            place,
        ));
    }
    let mut binder = Binder::with_capacity(chunk.rows.len() * table.columns().len());
    let row = batches.write(chunk, chunk.rows.clone(), &mut binder);
    if let Some(error) = binder.take_error() {
        place.key = Some(batches.key_text(chunk, row));
        return Err(Error::bind(error, place));
    }
    let (sql, repeats) = statements.get::<DB>(chunk);
    Ok(Statement {
        sql,
        arguments: binder.into_arguments(),
        repeats,
        place,
    })
}

/// Sends a statement, and calls `meanwhile` when it is on its way.
pub(super) async fn send<DB: Backend>(
    connection: &mut DB::Connection,
    bound: Bound<DB>,
    meanwhile: impl FnOnce(),
) -> Result<(), Error> {
    let Statement {
        sql,
        arguments,
        repeats,
        place,
    } = bound?;
    let mut sending = DB::execute(connection, sql, arguments, repeats);
    // One poll hands the statement to the socket, or to SQLite's thread.
    let sent = poll_fn(|context| Poll::Ready(sending.as_mut().poll(context))).await;
    meanwhile();
    let outcome = match sent {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => sending.await,
    };
    outcome.map_err(|error| Error::insert(error, place))
}

/// The text of the statement that was sent last for each table: all chunks but a table's last have
/// the same.
pub(super) struct Statements {
    tables: Vec<Table>,
    last: Vec<Option<(usize, Arc<str>)>>,
}

impl Statements {
    pub(super) fn new<DB: Backend>(batches: &Batches<Binder<DB>>) -> Self {
        let tables = batches.tables();
        Self {
            last: tables.iter().map(|_| None).collect(),
            tables,
        }
    }

    /// Returns the statement for a chunk, and whether it was or will be sent more than once.
    fn get<DB: Backend>(&mut self, chunk: &Chunk) -> (SqlStr, bool) {
        let rows = chunk.rows.len();
        let repeats = chunk.number > 0 || self.tables[chunk.table].rows() >= 2 * rows;
        (
            AssertSqlSafe(self.text::<DB>(chunk)).into_sql_str(),
            repeats,
        )
    }

    /// Returns the text of the statement for a chunk.
    pub(super) fn text<DB: Backend>(&mut self, chunk: &Chunk) -> Arc<str> {
        let rows = chunk.rows.len();
        let slot = &mut self.last[chunk.table];
        match slot {
            Some((length, text)) if *length == rows => Arc::clone(text),
            _ => {
                let text: Arc<str> = insert_statement::<DB>(&self.tables[chunk.table], rows).into();
                *slot = Some((rows, Arc::clone(&text)));
                text
            }
        }
    }
}

/// Writes `INSERT INTO "orders" ("id", "total") VALUES ($1, $2), ($3, $4)`. All names are quoted.
fn insert_statement<DB: Backend>(table: &Table, rows: usize) -> String {
    let columns = table.columns();
    let mut sql = String::with_capacity(64 + rows * (columns.len() * 7 + 4));
    sql.push_str("INSERT INTO ");
    sql.push_str(&DB::Dialect::quote_table(table.schema(), table.name()));
    let names: Vec<_> = columns
        .iter()
        .map(|column| DB::Dialect::quote(column))
        .collect();
    let _ = write!(sql, " ({}) VALUES ", names.join(", "));
    let mut number = 0;
    for row in 0..rows {
        sql.push_str(if row == 0 { "(" } else { ", (" });
        for column in 0..columns.len() {
            if column > 0 {
                sql.push_str(", ");
            }
            number += 1;
            DB::push_placeholder(&mut sql, number);
        }
        sql.push(')');
    }
    sql
}
