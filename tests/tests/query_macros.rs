//! Key types in SQLx's checked macros. What the macros know of the schema lies in `tests/.sqlx`;
//! CONTRIBUTING.md says how it is written anew.

use ordid::{KeyType, uuid::Uuid};
use sqlx::{Executor, SqlitePool};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
struct OrderId(Uuid);

#[derive(Debug, PartialEq)]
struct Order {
    id: OrderId,
    replaces: Option<OrderId>,
    total: i64,
}

#[tokio::test]
async fn query_macros_take_and_give_key_types() -> Result<(), sqlx::Error> {
    let pool = SqlitePool::connect("sqlite::memory:").await?;
    pool.execute(include_str!("query_macros.sql")).await?;
    let [first, second] = [OrderId::generate(), OrderId::generate()];
    for (id, replaces, total) in [(first, None, 1250), (second, Some(first), 990)] {
        sqlx::query!(
            "INSERT INTO orders (id, replaces, total) VALUES (?, ?, ?)",
            id as OrderId,
            replaces as Option<OrderId>,
            total
        )
        .execute(&pool)
        .await?;
    }
    let orders = sqlx::query_as!(
        Order,
        r#"SELECT id AS "id: OrderId", replaces AS "replaces: OrderId", total
           FROM orders WHERE id >= ? ORDER BY id"#,
        first as OrderId
    )
    .fetch_all(&pool)
    .await?;
    assert_eq!(
        orders,
        [
            Order {
                id: first,
                replaces: None,
                total: 1250
            },
            Order {
                id: second,
                replaces: Some(first),
                total: 990
            }
        ]
    );
    let newest = sqlx::query_scalar!(r#"SELECT max(id) AS "id: OrderId" FROM orders"#);
    assert_eq!(newest.fetch_one(&pool).await?, Some(second));
    Ok(())
}
