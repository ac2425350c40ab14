//! Pools: connections that they lend and that are lost, and what a dropped flush gives back.

use ::tokio_postgres::{Config, NoTls};
use bb8_postgres::{PostgresConnectionManager, bb8};
use libtest_mimic::Trial;
use ordid::{KeyType as _, OrderedKey};
use ordid_tests::{flushed::copied, servers::Servers, trials::Outcome};
use ordid_tokio_postgres::{AsClient, Error, Flushed, Retry, UnitOfWork};

use sqlx::Postgres;

use crate::{is_so, keys::Native, tokio::connect};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    ordid_tests::address_tests!(
        trials, servers, Postgres: "postgres", "pools::";
        deadpool_lends_connections,
        bb8_lends_connections,
        a_transaction_of_a_pool_is_flushed_into,
        a_pool_without_a_server_ends_the_flush,
    );
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "cities")]
struct City {
    id: Native,
}

fn cities(count: usize) -> UnitOfWork {
    crate::work((0..count).map(|_| City {
        id: Native::generate(),
    }))
}

const CREATE: &str = "CREATE TABLE cities (id uuid PRIMARY KEY)";

/// Flushes over a pool of one connection, also after the server has ended that or has taken no writes for a while.
async fn over<C, E, W>(url: &str, get: impl Fn() -> W + Send + Sync) -> Outcome
where
    C: AsClient,
    E: std::error::Error + Send + Sync + 'static,
    W: Future<Output = Result<C, E>> + Send,
{
    let looks = connect(url).await?;
    looks.batch_execute(CREATE).await?;
    let flush = async |count: usize| -> Result<Flushed, Error> {
        let work = cities(count).with_retry(Retry::DEFAULT);
        let mut work = work;
        work.flush_with(&get).await
    };
    assert_eq!(copied(&flush(2_000).await?), (2_000, 2_000));
    assert_eq!(copied(&flush(20).await?), (20, 0));
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    looks.batch_execute(end).await?;
    assert_eq!(flush(20).await?.rows(), 20);

    // The connection stays open and takes no writes, as of a server that has become a standby.
    let lent = get().await?;
    let read_only = "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY";
    lent.as_client().batch_execute(read_only).await?;
    drop(lent);
    let flushed = flush(20).await?;
    assert_eq!((flushed.rows(), flushed.retries), (20, 1));

    // A flush that is dropped while it waits for a lock gives back a place for another connection.
    looks.batch_execute("BEGIN; LOCK TABLE cities").await?;
    let mut waits = cities(3);
    let dropped = tokio_timeout(waits.flush_with(&get)).await;
    assert!(dropped.is_none());
    looks.batch_execute("COMMIT").await?;
    assert_eq!(flush(20).await?.rows(), 20);
    assert_eq!(waits.flush_with(&get).await?.rows(), 3);
    assert!(is_so(&looks, "(SELECT count(*) FROM cities) = 2083").await?);
    Ok(())
}

async fn tokio_timeout<T>(flush: impl Future<Output = T>) -> Option<T> {
    let limit = std::time::Duration::from_millis(200);
    ::tokio::time::timeout(limit, flush).await.ok()
}

async fn deadpool_lends_connections(url: String) -> Outcome {
    let manager = deadpool_postgres::Manager::new(url.parse::<Config>()?, NoTls);
    let pool = deadpool_postgres::Pool::builder(manager)
        .max_size(1)
        .build()?;
    over(&url, || pool.get()).await
}

async fn bb8_lends_connections(url: String) -> Outcome {
    let manager = PostgresConnectionManager::new(url.parse::<Config>()?, NoTls);
    let pool = bb8::Pool::builder().max_size(1).build(manager).await?;
    over(&url, || pool.get()).await
}

async fn a_transaction_of_a_pool_is_flushed_into(url: String) -> Outcome {
    let manager = deadpool_postgres::Manager::new(url.parse::<Config>()?, NoTls);
    let pool = deadpool_postgres::Pool::builder(manager)
        .max_size(1)
        .build()?;
    let mut client = pool.get().await?;
    client.batch_execute(CREATE).await?;
    assert_eq!(cities(3).flush(&mut client).await?.rows(), 3);
    let mut transaction = client.transaction().await?;
    let mut work = cities(3);
    assert_eq!(work.flush_in(&mut transaction).await?.rows(), 3);
    // The same keys once more: the transaction is as before.
    let error = work.flush_in(&mut transaction).await.unwrap_err();
    assert!(
        error.is_unique_violation() && !error.is_transaction_over(),
        "{error}"
    );
    transaction
        .execute(
            "DELETE FROM cities WHERE id = (SELECT id FROM cities LIMIT 1)",
            &[],
        )
        .await?;
    transaction.commit().await?;
    assert!(is_so(&client, "(SELECT count(*) FROM cities) = 5").await?);
    Ok(())
}

async fn a_pool_without_a_server_ends_the_flush(_: String) -> Outcome {
    let config = "host=127.0.0.1 port=1 user=nobody".parse::<Config>()?;
    let manager = deadpool_postgres::Manager::new(config, NoTls);
    let pool = deadpool_postgres::Pool::builder(manager)
        .max_size(1)
        .build()?;
    let mut work = cities(1).with_retry(Retry::NONE);
    let error = work.flush_with(|| pool.get()).await.unwrap_err();
    assert!(
        error.is_connection_lost() && !error.is_commit_unknown(),
        "{error}"
    );
    assert_eq!(work.len(), 1);
    Ok(())
}
