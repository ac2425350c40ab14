//! Pools: connections that they lend and that are lost.

use std::time::Duration;

use ::mysql_async::{Pool, PoolConstraints, PoolOpts, prelude::Queryable as _};
use libtest_mimic::Trial;
use ordid::{KeyType as _, OrderedKey};
use ordid_mysql_async::{Retry, UnitOfWork};
use ordid_tests::{
    faults::Remote as _,
    proxy::{At, Fault, Proxy},
    servers::{Client as _, Options, Servers},
    trials::Outcome,
};

use sqlx::MySql;

use crate::{connect, execute, keys::Native, mysql, number};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>, server: &'static str) {
    ordid_tests::address_tests!(
        trials, servers, MySql: server, "pools::";
        connections_that_are_lost_are_made_again,
        a_transaction_that_somebody_has_left_open_is_not_committed,
        a_pool_of_one_connection_goes_past_one_that_does_not_answer,
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

/// A pool that resets no connections lends one with the transaction of whoever had it before.
async fn a_transaction_that_somebody_has_left_open_is_not_committed(url: String) -> Outcome {
    let mut looks = connect(&url).await?;
    execute(&mut looks, &[CREATE]).await?;
    let one = PoolConstraints::new(1, 1).ok_or("one is not too many")?;
    let options = PoolOpts::default().with_constraints(one);
    let options = options.with_reset_connection(false);
    let pool = Pool::new(mysql::options(&url)?.pool_opts(options));
    let mut work = cities(3);
    for begin in ["START TRANSACTION", "SET autocommit = 0"] {
        let mut conn = pool.get_conn().await?;
        let insert = "INSERT INTO cities VALUES (UNHEX(REPEAT('00', 16)))";
        execute(&mut conn, &[begin, insert]).await?;
        drop(conn);
        let error = work.flush(&pool).await.unwrap_err();
        assert!(error.is_connection_state(), "{error}");
        assert_eq!(number(&mut looks, "COUNT(*) FROM cities").await?, 0);
        let mut conn = pool.get_conn().await?;
        execute(&mut conn, &["ROLLBACK", "SET autocommit = 1"]).await?;
    }
    assert_eq!(work.flush(&pool).await?.rows(), 3);
    Ok(pool.disconnect().await?)
}

/// The first connection is cut at the INSERT, and the second one at the first byte behind those with which it is made.
async fn a_pool_of_one_connection_goes_past_one_that_does_not_answer(url: String) -> Outcome {
    let mut looks = connect(&url).await?;
    execute(&mut looks, &[CREATE]).await?;
    let address: Options<MySql> = url.parse()?;
    let proxy = Proxy::start(MySql::address(&address)?).await?;
    proxy.look_for("INSERT");
    let url = MySql::client_url(&address.host("127.0.0.1").port(proxy.port()));
    // The server may ask the first one for more, before it knows the password.
    for _ in 0..2 {
        let pool = pool(&url, 1)?;
        drop(pool.get_conn().await?);
        pool.disconnect().await?;
    }
    let made = pool(&url, 1)?;
    let conn = made.get_conn().await?;
    let up = proxy.last_traffic().up;
    drop(conn);
    made.disconnect().await?;
    proxy.plan([Fault::Cut(At::Commit(0)), Fault::Cut(At::Up(up + 1))]);
    let pool = pool(&url, 1)?;
    let before = proxy.traffic().len();
    let mut work = cities(3)
        .with_retry(Retry::DEFAULT)
        .with_deadline(Duration::from_secs(20));
    let flushed = work.flush(&pool).await?;
    assert_eq!((flushed.rows(), flushed.retries), (3, 1));
    let traffic = proxy.traffic();
    assert_eq!(traffic.len() - before, 3, "the third one answers");
    assert_eq!(traffic[before + 1].up, up + 1, "a ping was cut");
    assert_eq!(number(&mut looks, "COUNT(*) FROM cities").await?, 3);
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
