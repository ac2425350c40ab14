//! Rows that refer to themselves and to each other, inserted and deleted: what an engine refuses of
//! them, and that a flush does it all the same.

use ordid::{KeyType, OrderedKey, storage::Dialect as _, uuid::Uuid};
use sqlx::Pool;

use crate::{
    Outcome,
    database::{Keeps, Live, begin},
};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
pub struct NodeId(Uuid);

#[derive(OrderedKey, Clone, Copy)]
#[ordid(table = "node")]
pub struct Node {
    #[ordid(parent)]
    pub up: Option<NodeId>,
    pub id: NodeId,
}

/// A row of itself; a ring of three; a row below each of the four.
fn nodes() -> Vec<Node> {
    let ids: [NodeId; 8] = std::array::from_fn(|_| NodeId::generate());
    let up = [0, 2, 3, 1, 0, 1, 2, 3];
    let nodes = ids.iter().zip(up);
    nodes
        .map(|(id, up)| Node {
            up: Some(ids[up]),
            id: *id,
        })
        .collect()
}

pub async fn rows_of_themselves<DB: Live + Keeps<Node>>(pool: Pool<DB>) -> Outcome {
    let table = |name: &str, key: &str| {
        format!(
            "CREATE TABLE {name} (id {key} NOT NULL PRIMARY KEY, up {key}, \
             FOREIGN KEY (up) REFERENCES {name} (id))"
        )
    };
    DB::script(&pool, &table("plain", "INTEGER")).await?;
    DB::script(&pool, "INSERT INTO plain VALUES (1, 1)").await?;
    let deleted = DB::script(&pool, "DELETE FROM plain").await;
    assert_eq!(
        deleted.is_ok(),
        DB::Dialect::DELETES_ROWS_OF_THEMSELVES,
        "{deleted:?}"
    );

    DB::script(&pool, &table("node", DB::KEY)).await?;
    let nodes = nodes();
    let mut work = begin::<DB>();
    for node in &nodes {
        work.add(*node);
    }
    let flushed = work.flush(&pool).await?;
    assert_eq!(flushed.tables[0].rows, nodes.len());
    let there = DB::count(&pool, "node WHERE up IS NOT NULL").await?;
    assert_eq!(there, i64::try_from(nodes.len())?);
    DB::create_flushes(&pool).await?;
    for node in &nodes {
        work.delete(node);
    }
    let flushed = work.flush(&pool).await?;
    assert_eq!(flushed.tables[0].deleted, nodes.len());
    assert_eq!(DB::count(&pool, "node").await?, 0);
    Ok(())
}
