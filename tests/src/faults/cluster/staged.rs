//! Many rows that go through a temporary table, which only the node has that the flush is sent to.

use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_sqlx::UnitOfWork;
use sqlx::{Executor as _, MySqlPool};

use super::{MySql, Nodes, Outcome};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
struct CoinId(Uuid);

#[derive(OrderedKey, Clone)]
#[ordid(table = "coins", columns)]
struct Coin {
    id: CoinId,
    amount: i64,
}

/// Rows of one node are updated on the second, upserted on the third, and read on all.
pub(super) async fn rows(nodes: Nodes<'_>) -> Outcome {
    let pools = nodes
        .sites
        .each_ref()
        .map(|site| MySqlPool::connect_lazy_with(site.options().clone()));
    let table = "CREATE TABLE coins (id BINARY(16) PRIMARY KEY, amount BIGINT NOT NULL)";
    pools[0].execute(table).await?;
    nodes.agree().await?;
    let coins: Vec<Coin> = (0..1_500)
        .map(|amount| Coin {
            id: CoinId::generate(),
            amount,
        })
        .collect();
    let mut work = UnitOfWork::<MySql>::new();
    coins[..1_000].iter().for_each(|coin| {
        work.add(coin.clone());
    });
    work.flush(&pools[0]).await?;
    nodes.agree().await?;
    for (number, coin) in coins[..1_000].iter().enumerate() {
        let amount = coin.amount + 1;
        let coin = Coin { amount, ..*coin };
        match number % 2 {
            0 => work.update(coin),
            _ => work.update_columns(coin, Coin::amount),
        }
    }
    let flushed = work.flush(&pools[1]).await?;
    assert!(flushed.tables[0].statements < 20, "{flushed:?}");
    nodes.agree().await?;
    for coin in &coins {
        let amount = coin.amount + 2;
        work.upsert(Coin { amount, ..*coin });
    }
    let flushed = work.flush(&pools[2]).await?;
    assert_eq!([flushed.updated(), flushed.rows()], [1_000, 500]);
    nodes.agree().await?;
    for pool in &pools {
        let found: (i64, i64) = sqlx::query_as(
            "SELECT COUNT(*), CAST(SUM(amount) AS SIGNED) FROM coins WHERE amount >= 2",
        )
        .fetch_one(pool)
        .await?;
        assert_eq!(found, (1_500, 1_500 * 1_499 / 2 + 2 * 1_500));
        pool.close().await;
    }
    Ok(())
}
