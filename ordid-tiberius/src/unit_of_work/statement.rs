//! Statements of many rows.

mod text;

use std::sync::Arc;

use futures_util::io::{AsyncRead, AsyncWrite};
use ordid_core::unit_of_work::{Action, Batches, Chunk, Place, Table};
use tiberius::{Client, Query};

use crate::{binder::Binder, error::FlushError, failure::judge, flavour::Flavour};

/// Sends a chunk by one statement.
pub(super) async fn send<D: Flavour, S>(
    batches: &Batches<Binder<D>>,
    client: &mut Client<S>,
    chunk: &Chunk,
    statements: &mut Statements,
) -> Result<(), FlushError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let table = &statements.tables[chunk.table];
    let place = Place::of(table, chunk);
    let columns = table.columns_of(chunk.action).len();
    let mut binder = Binder::with_capacity(chunk.rows.len() * columns);
    batches.write(chunk, chunk.rows.clone(), &mut binder);
    let sql = statements.text::<D>(chunk);
    let mut query = Query::new(&*sql);
    query.bind_iter(binder.into_values().into_iter().map(D::parameter));
    if chunk.action == Action::Insert {
        // What an `INSERT` by an `INSTEAD OF` trigger counts is the database's own affair.
        let sent = query.execute(client).await;
        return sent
            .map(drop)
            .map_err(|error| FlushError::statement(judge(error), place));
    }
    let rows = chunk.rows.len();
    match changed(query, client).await {
        Err(error) => Err(FlushError::statement(judge(error), place)),
        Ok(changed) if usize::try_from(changed).is_ok_and(|changed| changed == rows) => Ok(()),
        Ok(changed) => Err(FlushError::count(changed, rows, place)),
    }
}

/// Sends a statement that answers with how many rows it changed.
async fn changed<S>(query: Query<'_>, client: &mut Client<S>) -> tiberius::Result<u64>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let results = query.query(client).await?.into_results().await?;
    // The last: a trigger may have answered before.
    let row = results.last().and_then(|rows| rows.first());
    let count: Option<i32> = match row {
        Some(row) => row.try_get(0)?,
        None => None,
    };
    count
        .and_then(|count| u64::try_from(count).ok())
        .ok_or_else(|| tiberius::error::Error::Protocol("no answer to @@ROWCOUNT".into()))
}

/// The text of the statement that was sent last for each table: all chunks but an action's last have
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

    /// Returns the text of the statement for a chunk.
    pub(super) fn text<D: Flavour>(&mut self, chunk: &Chunk) -> Arc<str> {
        let rows = chunk.rows.len();
        let slot = &mut self.last[chunk.table];
        match slot {
            Some((action, length, text)) if (*action, *length) == (chunk.action, rows) => {
                Arc::clone(text)
            }
            _ => {
                let text = text::statement::<D>(&self.tables[chunk.table], chunk.action, rows);
                let text: Arc<str> = text.into();
                *slot = Some((chunk.action, rows, Arc::clone(&text)));
                text
            }
        }
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
            &*statements.text::<SqlServer>(insert),
            "INSERT INTO [nodes] ([up], [id], [number]) VALUES (@P1, @P2, @P3), (@P4, @P5, @P6), \
             (@P7, @P8, @P9)"
        );
        assert_eq!(
            &*statements.text::<SqlServer>(fix_up),
            "UPDATE t SET [up] = v.[up] FROM [nodes] AS t JOIN (VALUES (@P1, @P2)) AS v ([up], \
             [id]) ON t.[id] = v.[id]; SELECT @@ROWCOUNT"
        );
        let values = |chunk: &Chunk| {
            let mut binder = Binder::with_capacity(9);
            batches.write(chunk, chunk.rows.clone(), &mut binder);
            binder.into_values().into_iter().collect::<Vec<_>>()
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
