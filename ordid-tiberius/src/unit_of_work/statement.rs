//! Statements of many rows.

use std::{fmt::Write as _, sync::Arc};

use futures_util::io::{AsyncRead, AsyncWrite};
use ordid_core::unit_of_work::{Action, Batches, Chunk, Table};
use tiberius::{Client, Query};

use crate::{
    binder::Binder,
    error::{Error, Place},
    flavour::Flavour,
};

/// Sends a chunk by one statement.
pub(super) async fn send<D: Flavour, S>(
    batches: &Batches<Binder<D>>,
    client: &mut Client<S>,
    chunk: &Chunk,
    statements: &mut Statements,
) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let table = &statements.tables[chunk.table];
    let mut binder = Binder::with_capacity(chunk.rows.len() * table.columns().len());
    batches.write(chunk, chunk.rows.clone(), &mut binder);
    let place = Place {
        table: table.name(),
        chunk: chunk.number,
        rows: chunk.rows.clone(),
        key: None,
    };
    let sql = statements.get::<D>(chunk);
    let mut query = Query::new(&*sql);
    query.bind_iter(binder.into_values());
    match query.execute(client).await {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::insert(error, place)),
    }
}

/// The text of the statement that was sent last for each table: all chunks but a table's last have
/// the same.
pub(super) struct Statements {
    tables: Vec<Table>,
    last: Vec<Option<(Action, usize, Arc<str>)>>,
}

impl Statements {
    pub(super) fn new<D: Flavour>(batches: &Batches<Binder<D>>) -> Self {
        let tables = batches.tables();
        Self {
            last: tables.iter().map(|_| None).collect(),
            tables,
        }
    }

    fn get<D: Flavour>(&mut self, chunk: &Chunk) -> Arc<str> {
        let rows = chunk.rows.len();
        let slot = &mut self.last[chunk.table];
        match slot {
            Some((action, length, text)) if (*action, *length) == (chunk.action, rows) => {
                Arc::clone(text)
            }
            _ => {
                let table = &self.tables[chunk.table];
                let text: Arc<str> = match chunk.action {
                    Action::FixUp { parent } => fix_up_statement::<D>(table, parent, rows),
                    _ => insert_statement::<D>(table, rows),
                }
                .into();
                *slot = Some((chunk.action, rows, Arc::clone(&text)));
                text
            }
        }
    }
}

/// Writes `INSERT INTO [orders] ([id], [total]) VALUES (@P1, @P2), (@P3, @P4)`. All names are quoted.
fn insert_statement<D: Flavour>(table: &Table, rows: usize) -> String {
    let columns = table.columns();
    let mut sql = String::with_capacity(64 + rows * (columns.len() * 8 + 4));
    sql.push_str("INSERT INTO ");
    sql.push_str(&D::quote_table(table.schema(), table.name()));
    let names: Vec<_> = columns.iter().map(|column| D::quote(column)).collect();
    let _ = write!(sql, " ({}) VALUES ", names.join(", "));
    push_rows(&mut sql, rows, columns.len());
    sql
}

/// Writes `UPDATE t SET [up] = v.[up] FROM [nodes] AS t JOIN (VALUES (@P1, @P2), (@P3, @P4)) AS v
/// ([id], [up]) ON t.[id] = v.[id]`: values come in the order of the columns.
fn fix_up_statement<D: Flavour>(table: &Table, parent: usize, rows: usize) -> String {
    let taken = table.columns_of(Action::FixUp { parent });
    let names: Vec<_> = taken
        .iter()
        .map(|column| D::quote(table.columns()[*column]))
        .collect();
    let set = D::quote(table.parents()[parent].column());
    let key = D::quote(table.key_column());
    let mut sql = format!(
        "UPDATE t SET {set} = v.{set} FROM {} AS t JOIN (VALUES ",
        D::quote_table(table.schema(), table.name())
    );
    push_rows(&mut sql, rows, taken.len());
    let _ = write!(sql, ") AS v ({}) ON t.{key} = v.{key}", names.join(", "));
    sql
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
