//! Pools: connections that they lend and that are lost.

use std::time::Duration;

use ::mysql_async::{Pool, PoolConstraints, PoolOpts, prelude::Queryable as _};
use libtest_mimic::Trial;
use ordid::{KeyType as _, OrderedKey};
use ordid_mysql_async::{Retry, UnitOfWork};
use ordid_tests::{servers::Servers, trials::Outcome};

use sqlx::MySql;

use crate::{connect, execute, keys::Native, mysql, number};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>, server: &'static str) {
    ordid_tests::address_tests!(
        trials, servers, MySql: server, "pools::";
        connections_that_are_lost_are_made_again,
        a_pool_without_a_server_ends_the_flush,
        a_pool_that_is_closed_ends_the_flush,
        a_pool_without_a_free_connection_is_waited_for_until_the_deadline,
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

const CREATE: &str = "CREATE TABLE cities (id BINARY(16) NOT NULL PRIMARY KEY)";

fn pool(url: &str, most: usize) -> Outcome<Pool> {
    // A pool closes the connections above the least number as they come back.
    let most = PoolConstraints::new(most, most).ok_or("one is not too many")?;
    let options = PoolOpts::default().with_constraints(most);
    Ok(Pool::new(mysql::options(url)?.pool_opts(options)))
}

async fn connections_that_are_lost_are_made_again(url: String) -> Outcome {
    let mut looks = connect(&url).await?;
    execute(&mut looks, &[CREATE]).await?;
    let pool = pool(&url, 4)?;
    for round in 0..3 {
        // The server ends all of the pool's connections.
        let mut all = Vec::new();
        for _ in 0..4 {
            all.push(pool.get_conn().await?);
        }
        let ids: Vec<u32> = all.iter().map(|it| it.id()).collect();
        drop(all);
        tokio::time::sleep(Duration::from_millis(50)).await;
        for id in ids {
            execute(&mut looks, &[&format!("KILL {id}")]).await?;
        }
        let flushed = cities(20).with_retry(Retry::DEFAULT).flush(&pool).await?;
        assert!(flushed.retries <= 1, "{} retries", flushed.retries);
        let expected = 20 * (round + 1);
        assert_eq!(number(&mut looks, "COUNT(*) FROM cities").await?, expected);
    }
    Ok(pool.disconnect().await?)
}

async fn a_pool_without_a_server_ends_the_flush(_: String) -> Outcome {
    let pool = pool("mysql://nobody@127.0.0.1:1/none", 1)?;
    let mut work = cities(1).with_retry(Retry::NONE);
    let error = work.flush(&pool).await.unwrap_err();
    assert!(
        error.is_connection_lost() && !error.is_commit_unknown(),
        "{error}"
    );
    assert_eq!(work.len(), 1);
    Ok(())
}

async fn a_pool_that_is_closed_ends_the_flush(url: String) -> Outcome {
    let pool = pool(&url, 1)?;
    let conn = pool.get_conn().await?;
    drop(conn);
    pool.clone().disconnect().await?;
    let error = cities(1)
        .with_retry(Retry::DEFAULT)
        .flush(&pool)
        .await
        .unwrap_err();
    assert!(
        !error.is_connection_lost() && error.retries() == 0,
        "{error}"
    );
    assert!(
        error.to_string().contains("Pool was disconnected"),
        "{error}"
    );
    Ok(())
}

async fn a_pool_without_a_free_connection_is_waited_for_until_the_deadline(url: String) -> Outcome {
    let pool = pool(&url, 1)?;
    let mut conn = pool.get_conn().await?;
    execute(&mut conn, &[CREATE]).await?;
    let mut work = cities(3).with_deadline(Duration::from_millis(200));
    let error = work.flush(&pool).await.unwrap_err();
    assert!(error.is_timeout() && !error.is_commit_unknown(), "{error}");
    // Another flush waits for it, and gets it.
    let flush = work.flush(&pool);
    let gives_back = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        conn.query_drop("SELECT 1").await?;
        drop(conn);
        Ok::<(), ::mysql_async::Error>(())
    };
    let (flushed, given) = tokio::join!(flush, gives_back);
    given?;
    assert_eq!(flushed?.rows(), 3);
    Ok(pool.disconnect().await?)
}
