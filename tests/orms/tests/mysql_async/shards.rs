//! One unit of work over two databases.

use ::mysql_async::{Conn, Pool, prelude::Queryable as _};
use libtest_mimic::Trial;
use ordid::{KeyType as _, OrderedKey, uuid::Uuid};
use ordid_mysql_async::{Flushed, OrphanDecision, Retry, ShardedUnitOfWork, Sharding};
use ordid_tests::{servers::Servers, trials::Outcome};

use sqlx::MySql;

use crate::{connect, execute, keys::Native, mysql};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>, server: &'static str) {
    ordid_tests::address_tests!(
        trials, servers, MySql: server, "shards::";
        a_part_that_fails_stays,
        two_phases_write_all_parts_or_none,
    );
}

#[derive(OrderedKey)]
#[ordid(table = "cities")]
struct City {
    id: Option<Native>,
    number: i64,
}

const CREATE: &str =
    "CREATE TABLE cities (id BINARY(16) NOT NULL PRIMARY KEY, number BIGINT NOT NULL)";
const CITIES: i64 = 40;

/// Two databases of the server, beside that of the test. They are dropped at the end.
struct Two {
    pools: [Pool; 2],
    looks: Conn,
    names: [String; 2],
}

impl Two {
    async fn create(url: &str) -> Outcome<Self> {
        let (server, own) = url.rsplit_once('/').ok_or("no database")?;
        let names = ["a", "b"].map(|it| format!("{own}_{it}"));
        let mut looks = connect(url).await?;
        for name in &names {
            execute(&mut looks, &[&format!("CREATE DATABASE {name}")]).await?;
        }
        let pools = [0, 1].map(|it: usize| mysql::pool(&format!("{server}/{}", names[it])));
        for pool in &pools {
            ordid_mysql_async::create_flushes_table(pool).await?;
        }
        Ok(Self {
            pools,
            looks,
            names,
        })
    }

    async fn execute(&self, shard: usize, sql: &str) -> Outcome {
        execute(&mut self.pools[shard].get_conn().await?, &[sql]).await
    }

    async fn numbers(&self, shard: usize) -> Outcome<Vec<i64>> {
        let mut conn = self.pools[shard].get_conn().await?;
        Ok(conn.query("SELECT number FROM cities").await?)
    }

    async fn drop(mut self) -> Outcome {
        for pool in self.pools {
            pool.disconnect().await?;
        }
        for name in &self.names {
            execute(&mut self.looks, &[&format!("DROP DATABASE {name}")]).await?;
        }
        Ok(())
    }
}

fn unit() -> Outcome<ShardedUnitOfWork> {
    let mut work = ShardedUnitOfWork::new(Sharding::by_hash(2)?).with_retry(Retry::NONE);
    for number in 0..CITIES {
        work.add(City { id: None, number })?;
    }
    Ok(work)
}

/// A shard that fails leaves the other one's rows committed, and its own to be flushed again.
async fn a_part_that_fails_stays(url: String) -> Outcome {
    let two = Two::create(&url).await?;
    two.execute(0, CREATE).await?;
    let mut work = unit()?;
    let lengths = [0, 1].map(|shard: usize| work.shards()[shard].len());
    assert!(lengths.iter().all(|length| *length > 0), "{lengths:?}");

    let too_few = work.flush(&two.pools[..1]).await.unwrap_err();
    assert!(too_few.is_plan() && too_few.shards().is_none(), "{too_few}");
    let error = work.flush(&two.pools).await.unwrap_err();
    let [Ok(first), Err(second)] = error.shards().ok_or("one of them failed")? else {
        panic!("the second one failed: {error}");
    };
    assert_eq!(first.rows(), lengths[0]);
    assert!(second.to_string().contains("doesn't exist"), "{second}");
    assert_eq!(work.len(), lengths[1]);

    two.execute(1, CREATE).await?;
    let flushed = work.flush(&two.pools).await?;
    let rows: Vec<_> = flushed.iter().map(Flushed::rows).collect();
    assert_eq!(rows, [0, lengths[1]]);
    assert!(work.is_empty());
    let mut all = two.numbers(0).await?;
    all.extend(two.numbers(1).await?);
    all.sort_unstable();
    assert!(all.into_iter().eq(0..CITIES));
    two.drop().await
}

/// A shard that fails keeps the other one from being written. What is left prepared is recovered.
async fn two_phases_write_all_parts_or_none(url: String) -> Outcome {
    let two = Two::create(&url).await?;
    for shard in [0, 1] {
        two.execute(shard, CREATE).await?;
    }
    let mut work = unit()?.two_phase_commit("cities");
    for refuses in [0, 1] {
        two.execute(
            refuses,
            "ALTER TABLE cities ADD CONSTRAINT refused CHECK (number < 0)",
        )
        .await?;
        let error = work.flush(&two.pools).await.unwrap_err();
        let start = format!("nothing was written on any of 2 shards; shard {refuses}: ");
        assert!(error.to_string().starts_with(&start), "{error}");
        two.execute(refuses, "ALTER TABLE cities DROP CONSTRAINT refused")
            .await?;
        for shard in [0, 1] {
            assert_eq!(two.numbers(shard).await?, [0; 0]);
        }
    }
    let flushed = work.flush(&two.pools).await?;
    assert_eq!(flushed.iter().map(Flushed::rows).sum::<usize>(), 40);
    let mut all = two.numbers(0).await?;
    all.extend(two.numbers(1).await?);
    all.sort_unstable();
    assert!(all.into_iter().eq(0..CITIES));

    // What a program has left that was killed before its decision.
    let id = Native::generate().to_raw();
    let gid = format!("ordid:cities:{}:0:1", Uuid::simple(id));
    let mut left = connect(&url).await?;
    let insert = format!(
        "INSERT INTO {}.cities VALUES (REPEAT('a', 16), -1)",
        two.names[1]
    );
    let ends = ["START", "END", "PREPARE"].map(|it| format!("XA {it} '{gid}'"));
    execute(&mut left, &[&ends[0], &insert, &ends[1], &ends[2]]).await?;
    left.disconnect().await?;
    let orphans = ordid_mysql_async::prepared_orphans("cities", &two.pools).await?;
    assert!(orphans.iter().any(|it| it.gid == gid), "{orphans:?}");
    let decided = orphans.iter().map(|it| it.decision);
    assert!(decided.eq(orphans.iter().map(|_| OrphanDecision::NotCommitted)));
    let any = std::time::Duration::ZERO;
    let recovered = ordid_mysql_async::recover_prepared("cities", &two.pools, any).await?;
    assert_eq!(recovered.rolled_back, [gid]);
    assert_eq!(
        ordid_mysql_async::prepared_orphans("cities", &two.pools).await?,
        []
    );
    two.drop().await
}
