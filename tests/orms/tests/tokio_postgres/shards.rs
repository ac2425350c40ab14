//! One unit of work over two schemas, as two databases.

use ::tokio_postgres::Client;
use libtest_mimic::Trial;
use ordid::OrderedKey;
use ordid_tests::{servers::Servers, trials::Outcome};
use ordid_tokio_postgres::{Error, Flushed, OrphanDecision, Retry, ShardedUnitOfWork, Sharding};

use sqlx::Postgres;

use crate::{
    keys::Native,
    tokio::{connect, on_thread},
};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    ordid_tests::address_tests!(
        trials, servers, Postgres: "postgres", "shards::";
        a_part_that_fails_stays,
        a_part_that_fails_stays_over_made_connections,
        a_part_that_fails_stays_over_clients_that_block,
        two_phases_write_all_parts_or_none,
        two_phases_write_all_parts_or_none_over_made_connections,
        two_phases_write_all_parts_or_none_over_clients_that_block,
    );
}

#[derive(OrderedKey)]
#[ordid(table = "cities")]
struct City {
    id: Option<Native>,
    number: i32,
}

const CREATE: &str = "CREATE TABLE cities (id uuid PRIMARY KEY, number integer NOT NULL)";
const CITIES: i32 = 40;

fn urls(url: &str) -> [String; 2] {
    ["a", "b"].map(|schema| {
        let separator = if url.contains('?') { '&' } else { '?' };
        format!("{url}{separator}options=-csearch_path%3D{schema}")
    })
}

async fn numbers(client: &Client) -> Outcome<Vec<i32>> {
    let rows = client.query("SELECT number FROM cities", &[]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// A shard that fails leaves the other one's rows committed, and its own to be flushed again.
async fn parts(
    url: &str,
    mut flush: impl AsyncFnMut(&mut ShardedUnitOfWork) -> Result<Vec<Flushed>, Error>,
) -> Outcome {
    let looks = connect(url).await?;
    looks
        .batch_execute("CREATE SCHEMA a; CREATE SCHEMA b")
        .await?;
    let [one, two] = urls(url);
    let looks = [connect(&one).await?, connect(&two).await?];
    looks[0].batch_execute(CREATE).await?;
    for looks in &looks {
        ordid_tokio_postgres::create_flushes_table(looks).await?;
    }
    let mut work = ShardedUnitOfWork::new(Sharding::by_hash(2)?).with_retry(Retry::NONE);
    for number in 0..CITIES {
        work.add(City { id: None, number })?;
    }
    let lengths = [0, 1].map(|shard: usize| work.shards()[shard].len());
    assert!(lengths.iter().all(|length| *length > 0), "{lengths:?}");

    let error = flush(&mut work).await.unwrap_err();
    let [Ok(first), Err(second)] = error.shards().expect("one of them failed") else {
        panic!("the second one failed: {error}");
    };
    assert_eq!(first.rows(), lengths[0]);
    assert!(second.to_string().contains("does not exist"), "{second}");
    assert_eq!(work.len(), lengths[1]);

    looks[1].batch_execute(CREATE).await?;
    let flushed = flush(&mut work).await?;
    let rows: Vec<_> = flushed.iter().map(Flushed::rows).collect();
    assert_eq!(rows, [0, lengths[1]]);
    assert!(work.is_empty());
    let mut all = numbers(&looks[0]).await?;
    assert_eq!(all.len(), lengths[0]);
    all.extend(numbers(&looks[1]).await?);
    all.sort_unstable();
    assert!(all.into_iter().eq(0..CITIES));
    Ok(())
}

async fn a_part_that_fails_stays(url: String) -> Outcome {
    let [one, two] = urls(&url);
    let mut clients = [connect(&one).await?, connect(&two).await?];
    parts(&url, async |work| {
        let too_few = work.flush(&mut clients[..1]).await.unwrap_err();
        assert!(too_few.is_plan() && too_few.shards().is_none(), "{too_few}");
        work.flush(&mut clients).await
    })
    .await
}

async fn a_part_that_fails_stays_over_made_connections(url: String) -> Outcome {
    let urls = urls(&url);
    parts(&url, async |work| {
        work.flush_with(&urls, |url| connect(url)).await
    })
    .await
}

/// First over clients, and then over those that a function makes.
async fn a_part_that_fails_stays_over_clients_that_block(url: String) -> Outcome {
    let mut urls = Some(urls(&url));
    let made = urls.clone().expect("they are");
    parts(&url, async |work| {
        let (first, made) = (urls.take(), made.clone());
        let mut own = Some(std::mem::replace(
            work,
            ShardedUnitOfWork::new(Sharding::by_hash(2).expect("there are two")),
        ));
        let connect = |url: &String| postgres::Client::connect(url, postgres::NoTls);
        let outcome = on_thread(&mut own, move |own| {
            let work = own.as_mut().expect("it was put there");
            match first {
                Some(urls) => {
                    let clients = urls.iter().map(connect).collect::<Result<Vec<_>, _>>();
                    work.flush_blocking(&mut clients.expect("the server is there"))
                }
                None => work.flush_with_blocking(|shard| connect(&made[shard]).map(Box::new)),
            }
        })
        .await;
        *work = own.expect("it comes back");
        outcome
    })
    .await
}

/// A shard that fails keeps the other one from being written. What is left prepared is recovered.
async fn all_or_none(
    url: &str,
    mut flush: impl AsyncFnMut(&mut ShardedUnitOfWork) -> Result<Vec<Flushed>, Error>,
) -> Outcome {
    let looks = connect(url).await?;
    looks
        .batch_execute("CREATE SCHEMA a; CREATE SCHEMA b")
        .await?;
    let [one, two] = urls(url);
    let mut looks = [connect(&one).await?, connect(&two).await?];
    for looks in &looks {
        looks.batch_execute(CREATE).await?;
        ordid_tokio_postgres::create_flushes_table(looks).await?;
    }
    let mut work = ShardedUnitOfWork::new(Sharding::by_hash(2)?)
        .with_retry(Retry::NONE)
        .two_phase_commit("cities");
    for number in 0..CITIES {
        work.add(City { id: None, number })?;
    }
    for refuses in [0, 1] {
        let refused = "ALTER TABLE cities ADD CONSTRAINT refused CHECK (number < 0)";
        looks[refuses].batch_execute(refused).await?;
        let error = flush(&mut work).await.unwrap_err();
        let start = format!("nothing was written on any of 2 shards; shard {refuses}: ");
        assert!(error.to_string().starts_with(&start), "{error}");
        let allowed = "ALTER TABLE cities DROP CONSTRAINT refused";
        looks[refuses].batch_execute(allowed).await?;
        for looks in &looks {
            assert_eq!(numbers(looks).await?, [0; 0]);
        }
    }
    let flushed = flush(&mut work).await?;
    assert_eq!(flushed.iter().map(Flushed::rows).sum::<usize>(), 40);
    let mut all = numbers(&looks[0]).await?;
    all.extend(numbers(&looks[1]).await?);
    all.sort_unstable();
    assert!(all.into_iter().eq(0..CITIES));

    // What a program has left that was killed before its decision.
    let gid = format!("ordid:cities:{}:0:1", uuid_v7().simple());
    let left = "BEGIN; INSERT INTO cities VALUES (gen_random_uuid(), -1)";
    looks[1].batch_execute(left).await?;
    looks[1]
        .batch_execute(&format!("PREPARE TRANSACTION '{gid}'"))
        .await?;
    let orphans = ordid_tokio_postgres::prepared_orphans("cities", &mut looks).await?;
    assert_eq!((orphans.len(), orphans[0].shard), (1, 1));
    assert_eq!(orphans[0].decision, OrphanDecision::NotCommitted);
    let any = std::time::Duration::ZERO;
    let recovered = ordid_tokio_postgres::recover_prepared("cities", &mut looks, any).await?;
    assert_eq!(recovered.rolled_back, [gid]);
    assert_eq!(
        ordid_tokio_postgres::prepared_orphans("cities", &mut looks).await?,
        []
    );
    Ok(())
}

fn uuid_v7() -> ordid::uuid::Uuid {
    ordid::KeyType::generate()
}

async fn two_phases_write_all_parts_or_none(url: String) -> Outcome {
    let [one, two] = urls(&url);
    let mut clients = [connect(&one).await?, connect(&two).await?];
    all_or_none(&url, async |work| work.flush(&mut clients).await).await
}

async fn two_phases_write_all_parts_or_none_over_made_connections(url: String) -> Outcome {
    let urls = urls(&url);
    all_or_none(&url, async |work| {
        work.flush_with(&urls, |url| connect(url)).await
    })
    .await
}

/// Each call is there at once, so that the parts wait for each other within one poll.
async fn two_phases_write_all_parts_or_none_over_clients_that_block(url: String) -> Outcome {
    let made = urls(&url);
    all_or_none(&url, async |work| {
        let made = made.clone();
        let mut own = Some(std::mem::replace(
            work,
            ShardedUnitOfWork::new(Sharding::by_hash(2).expect("there are two")),
        ));
        let connect = |url: &String| postgres::Client::connect(url, postgres::NoTls);
        let outcome = on_thread(&mut own, move |own| {
            let work = own.as_mut().expect("it was put there");
            work.flush_with_blocking(|shard| connect(&made[shard]).map(Box::new))
        })
        .await;
        *work = own.expect("it comes back");
        outcome
    })
    .await
}
