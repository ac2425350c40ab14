//! Rows that refer to themselves and to each other, inserted and deleted: what an engine refuses of
//! them, and that a flush does it all the same.

use ordid::{KeyType, OrderedKey, uuid::Uuid};

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

macro_rules! own {
    ($engine:ident, $database:ident, $dialect:ty, $key:literal) => {
        pub mod $engine {
            use ordid::storage::Dialect;
            use ordid_sqlx::UnitOfWork;
            use sqlx::{AssertSqlSafe, Pool, query_scalar, raw_sql, $database};

            use super::nodes;
            use crate::Outcome;

            pub async fn rows_of_themselves(pool: Pool<$database>) -> Outcome {
                let table = |name: &str, key: &str| {
                    AssertSqlSafe(format!(
                        "CREATE TABLE {name} (id {key} NOT NULL PRIMARY KEY, up {key}, \
                         FOREIGN KEY (up) REFERENCES {name} (id))"
                    ))
                };
                raw_sql(table("plain", "INTEGER")).execute(&pool).await?;
                raw_sql("INSERT INTO plain VALUES (1, 1)")
                    .execute(&pool)
                    .await?;
                let deleted = raw_sql("DELETE FROM plain").execute(&pool).await;
                assert_eq!(
                    deleted.is_ok(),
                    <$dialect as Dialect>::DELETES_ROWS_OF_THEMSELVES,
                    "{deleted:?}"
                );

                raw_sql(table("node", $key)).execute(&pool).await?;
                let nodes = nodes();
                let mut work = UnitOfWork::<$database>::new();
                for node in &nodes {
                    work.add(*node);
                }
                let flushed = work.flush(&pool).await?;
                assert_eq!(flushed.tables[0].rows, nodes.len());
                let count = "SELECT COUNT(*) FROM node WHERE up IS NOT NULL";
                let there: i64 = query_scalar(count).fetch_one(&pool).await?;
                assert_eq!(there, i64::try_from(nodes.len())?);
                raw_sql(ordid_sqlx::flushes_table::<$database>())
                    .execute(&pool)
                    .await?;
                for node in &nodes {
                    work.delete(node);
                }
                let flushed = work.flush(&pool).await?;
                assert_eq!(flushed.tables[0].deleted, nodes.len());
                let there: i64 = query_scalar("SELECT COUNT(*) FROM node")
                    .fetch_one(&pool)
                    .await?;
                assert_eq!(there, 0);
                Ok(())
            }
        }
    };
}

own!(
    postgres,
    Postgres,
    ordid::storage::dialect::Postgres,
    "UUID"
);
own!(mysql, MySql, ordid::storage::dialect::MySql, "BINARY(16)");
own!(sqlite, Sqlite, ordid::storage::dialect::Sqlite, "BLOB");
