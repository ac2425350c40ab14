//! One unit of work over two schemas, as two databases.

use ::tokio_postgres::Client;
use libtest_mimic::Trial;
use ordid::OrderedKey;
use ordid_tests::{servers::Servers, trials::Outcome};
use ordid_tokio_postgres::{Error, Flushed, Retry, ShardedUnitOfWork, Sharding};

use crate::{
    add,
    keys::Native,
    tokio::{connect, on_thread},
};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    add!(
        trials, servers, "postgres", "shards";
        a_part_that_fails_stays,
        a_part_that_fails_stays_over_made_connections,
        a_part_that_fails_stays_over_clients_that_block,
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
