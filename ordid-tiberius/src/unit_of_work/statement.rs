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

#[cfg(test)]
mod tests {
    use ordid::{KeyType, OrderedKey, uuid::Uuid};
    use ordid_core::storage::dialect::SqlServer;
    use tiberius::ColumnData;

    use super::*;

    #[derive(KeyType)]
    #[ordid(scheme = uuid_v8_sql_server, tiberius(sql_server = unique_identifier))]
    struct NodeId(Uuid);

    #[derive(OrderedKey)]
    #[ordid(table = "nodes")]
    struct Node {
        #[ordid(parent)]
        up: Option<NodeId>,
        id: NodeId,
        number: i32,
    }

    #[test]
    fn a_circle_is_inserted_with_null_and_set_by_key() {
        let ids: [NodeId; 3] = std::array::from_fn(|_| NodeId::generate());
        let mut batches = Batches::<Binder<SqlServer>>::new();
        for (id, up) in [(0, 2), (1, 0), (2, 1)] {
            batches.rows_mut().push(Node {
                up: Some(ids[up]),
                id: ids[id],
                number: 7,
            });
        }
        let plan = batches.plan::<SqlServer>().unwrap();
        let mut statements = Statements::new::<SqlServer>(&batches);
        let chunks: Vec<Chunk> = plan.chunks().collect();
        let [insert, fix_up] = &chunks[..] else {
            panic!("two statements: {chunks:?}");
        };
        assert_eq!(
            &*statements.get::<SqlServer>(insert),
            "INSERT INTO [nodes] ([up], [id], [number]) VALUES (@P1, @P2, @P3), (@P4, @P5, @P6), \
             (@P7, @P8, @P9)"
        );
        assert_eq!(
            &*statements.get::<SqlServer>(fix_up),
            "UPDATE t SET [up] = v.[up] FROM [nodes] AS t JOIN (VALUES (@P1, @P2)) AS v ([up], \
             [id]) ON t.[id] = v.[id]"
        );
        let values = |chunk: &Chunk| {
            let mut binder = Binder::with_capacity(9);
            batches.write(chunk, chunk.rows.clone(), &mut binder);
            binder.into_values()
        };
        let inserted = values(insert);
        assert_eq!(inserted.len(), 9);
        assert_eq!(inserted[0], ColumnData::Guid(None));
        assert_eq!(inserted[2], ColumnData::I32(Some(7)));
        assert!(matches!(inserted[3], ColumnData::Guid(Some(_))));
        let fixed = values(fix_up);
        assert_eq!(fixed.len(), 2);
        assert_eq!(fixed[1], inserted[1]);
        assert_eq!(fixed[0], inserted[7]);
    }
}
