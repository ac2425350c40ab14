//! Statements of many rows, bound and sent.

mod text;

use std::{future::poll_fn, sync::Arc, task::Poll};

use ordid_core::unit_of_work::{Action, Batches, Chunk, Place, Table};
use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use crate::{
    Error,
    backend::{Backend, Binder, BoxFuture},
    failure::judge,
};

pub(super) use text::is_for_each_row;

/// A statement with its parameters, or why a row could not be bound.
pub(super) type Bound<DB> = Result<Statement<DB>, Error>;

pub(super) struct Statement<DB: Backend> {
    sql: SqlStr,
    /// Once for all rows, or for each row.
    arguments: Arguments<DB>,
    /// A prepared statement is kept in the connection's cache only where it serves again.
    repeats: bool,
    place: Place,
}

enum Arguments<DB: Backend> {
    OfAllRows(DB::Arguments),
    OfEachRow(Vec<DB::Arguments>),
}

pub(super) fn bind<DB: Backend>(
    batches: &Batches<Binder<DB>>,
    chunk: &Chunk,
    statements: &mut Statements,
) -> Bound<DB> {
    let table = &statements.tables[chunk.table];
    let refused = |error, row| {
        let place = Place::of(table, chunk);
        Err(Error::bind(
            error,
            place.with_key(batches.key_text(chunk, row)),
        ))
    };
    let columns = table.columns_of(chunk.action);
    let arguments = if is_for_each_row::<DB>(chunk.action) {
        let is_key = |column: &usize| table.columns()[*column] == table.key_column();
        let (key, values): (Vec<_>, Vec<_>) = columns.into_iter().partition(is_key);
        let mut of_each = Vec::with_capacity(chunk.rows.len());
        for row in chunk.rows.clone() {
            let mut binder = Binder::with_capacity(values.len() + key.len());
            for columns in [&values, &key] {
                binder.take_only(columns);
                batches.write(chunk, row..row + 1, &mut binder);
            }
            if let Some(error) = binder.take_error() {
                return refused(error, row);
            }
            of_each.push(binder.into_arguments());
        }
        Arguments::OfEachRow(of_each)
    } else {
        let mut binder = Binder::with_capacity(chunk.rows.len() * columns.len());
        let row = batches.write(chunk, chunk.rows.clone(), &mut binder);
        if let Some(error) = binder.take_error() {
            return refused(error, row);
        }
        Arguments::OfAllRows(binder.into_arguments())
    };
    let place = Place::of(table, chunk);
    let (sql, repeats) = statements.get::<DB>(chunk);
    Ok(Statement {
        sql,
        arguments,
        repeats,
        place,
    })
}

/// Sends a statement, for each row where it is for one, and calls `meanwhile` when it is on its way.
/// Returns how many statements it took.
pub(super) async fn send<DB: Backend>(
    connection: &mut DB::Connection,
    bound: Bound<DB>,
    meanwhile: impl FnOnce(),
) -> Result<usize, Error> {
    let Statement {
        sql,
        arguments,
        repeats,
        mut place,
    } = bound?;
    let of_each = match arguments {
        Arguments::OfAllRows(arguments) => {
            let sending = DB::execute(connection, sql, arguments, repeats);
            let changed = hand_over(sending, meanwhile).await;
            check(changed, place.rows.len(), place)?;
            return Ok(1);
        }
        Arguments::OfEachRow(of_each) => of_each,
    };
    let count = of_each.len();
    let mut meanwhile = Some(meanwhile);
    for (number, arguments) in of_each.into_iter().enumerate() {
        let sending = DB::execute(connection, sql.clone(), arguments, repeats);
        let changed = hand_over(sending, || {
            if let Some(meanwhile) = meanwhile.take() {
                meanwhile();
            }
        });
        place.row = Some(place.rows.start + number);
        check(changed.await, 1, place.clone())?;
    }
    Ok(count)
}

/// Awaits a statement, and calls `meanwhile` when it is on its way.
async fn hand_over<T>(mut sending: BoxFuture<'_, T>, meanwhile: impl FnOnce()) -> T {
    // One poll hands the statement to the socket, or to SQLite's thread.
    let sent = poll_fn(|context| Poll::Ready(sending.as_mut().poll(context))).await;
    meanwhile();
    match sent {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => sending.await,
    }
}

/// Whether the database took the rows: those that it had to have, it had.
fn check(changed: Result<u64, sqlx::Error>, rows: usize, place: Place) -> Result<(), Error> {
    match changed {
        Err(error) => Err(Error::statement(judge(error), place)),
        // What an `INSERT` into a view or by a rule counts is the database's own affair.
        Ok(_) if place.action == Action::Insert => Ok(()),
        Ok(changed) if usize::try_from(changed).is_ok_and(|changed| changed == rows) => Ok(()),
        Ok(changed) => Err(Error::count(changed, rows, place)),
    }
}

/// The text of the statement that was sent last for each table: all chunks but an action's last have
/// the same.
pub(super) struct Statements {
    tables: Vec<Table>,
    last: Vec<Option<(Action, usize, Arc<str>)>>,
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
        let table = &self.tables[chunk.table];
        let rows = match chunk.action {
            Action::Insert => table.rows(),
            Action::Update => table.updates(),
            Action::Delete => table.deletes(),
            // Circles are small.
            Action::FixUp { .. } | Action::Unlink { .. } => chunk.rows.end,
        };
        let in_statement = rows_in_statement::<DB>(chunk);
        let repeats = chunk.number > 0 || rows >= 2 * in_statement;
        (
            AssertSqlSafe(self.text::<DB>(chunk)).into_sql_str(),
            repeats,
        )
    }

    /// Returns the text of the statement for a chunk.
    pub(super) fn text<DB: Backend>(&mut self, chunk: &Chunk) -> Arc<str> {
        let rows = rows_in_statement::<DB>(chunk);
        let slot = &mut self.last[chunk.table];
        match slot {
            Some((action, length, text)) if (*action, *length) == (chunk.action, rows) => {
                Arc::clone(text)
            }
            _ => {
                let text = text::statement::<DB>(&self.tables[chunk.table], chunk.action, rows);
                let text: Arc<str> = text.into();
                *slot = Some((chunk.action, rows, Arc::clone(&text)));
                text
            }
        }
    }
}

fn rows_in_statement<DB: Backend>(chunk: &Chunk) -> usize {
    if is_for_each_row::<DB>(chunk.action) {
        1
    } else {
        chunk.rows.len()
    }
}
