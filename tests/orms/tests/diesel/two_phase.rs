//! A two-phase commit over two schemas of PostgreSQL, as two databases.

mod xa;

use std::time::Duration;

use diesel::{
    connection::{AnsiTransactionManager, SimpleConnection as _, TransactionManager as _},
    prelude::*,
};
use diesel_async::{AsyncConnection as _, AsyncPgConnection};
use libtest_mimic::Trial;
use ordid::{KeyType as _, OrderedKey, uuid::Uuid};
use ordid_diesel::{Error, Flushed, OrphanDecision, Retry, ShardedUnitOfWork, Sharding};
use ordid_tests::servers::Servers;

use crate::{Outcome, keys::Native, scratch::on_server};

diesel::table! {
    cities (id) { id -> Uuid, number -> Integer, }
}

#[derive(OrderedKey)]
#[diesel(table_name = cities)]
#[ordid(diesel)]
struct City {
    id: Option<Native>,
    number: i32,
}

type Work = ShardedUnitOfWork<diesel::pg::Pg>;

const CITIES: i32 = 40;
const NAME: &str = "cities";

fn schema(url: &str, shard: usize) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!(
        "{url}{separator}options=-csearch_path%3D{}",
        ["a", "b"][shard]
    )
}

fn open(url: &str, shard: usize) -> ConnectionResult<PgConnection> {
    PgConnection::establish(&schema(url, shard))
}

fn numbers(connection: &mut PgConnection) -> QueryResult<Vec<i32>> {
    cities::table.select(cities::number).load(connection)
}

/// Inserts a row that is no part of any flush.
fn insert(connection: &mut PgConnection) -> QueryResult<()> {
    connection.batch_execute("INSERT INTO cities VALUES (gen_random_uuid(), -2)")
}

/// A shard that fails keeps the other one from being written. What is left prepared is recovered.
fn all_or_none(
    url: &str,
    mut flush: impl FnMut(&mut Work) -> Result<Vec<Flushed>, Error>,
) -> Outcome {
    PgConnection::establish(url)?.batch_execute("CREATE SCHEMA a; CREATE SCHEMA b")?;
    let mut looks = [open(url, 0)?, open(url, 1)?];
    for looks in &mut looks {
        looks
            .batch_execute("CREATE TABLE cities (id uuid PRIMARY KEY, number integer NOT NULL)")?;
        ordid_diesel::create_flushes_table(looks)?;
    }
    let mut work = Work::new(Sharding::by_hash(2)?)
        .with_retry(Retry::NONE)
        .two_phase_commit(NAME);
    for number in 0..CITIES {
        work.add(City { id: None, number })?;
    }
    for refuses in [0, 1] {
        let refused = "ALTER TABLE cities ADD CONSTRAINT refused CHECK (number < 0)";
        looks[refuses].batch_execute(refused)?;
        let error = flush(&mut work).unwrap_err();
        let start = format!("nothing was written on any of 2 shards; shard {refuses}: ");
        assert!(error.to_string().starts_with(&start), "{error}");
        looks[refuses].batch_execute("ALTER TABLE cities DROP CONSTRAINT refused")?;
        for looks in &mut looks {
            assert_eq!(numbers(looks)?, [0; 0]);
        }
    }
    let flushed = flush(&mut work)?;
    assert_eq!(flushed.iter().map(Flushed::rows).sum::<usize>(), 40);
    let mut all = numbers(&mut looks[0])?;
    all.extend(numbers(&mut looks[1])?);
    all.sort_unstable();
    assert!(all.into_iter().eq(0..CITIES));

    // What a program has left that was killed before its decision.
    let gid = format!("ordid:{NAME}:{}:0:1", Uuid::generate().simple());
    looks[1].batch_execute("BEGIN; INSERT INTO cities VALUES (gen_random_uuid(), -1)")?;
    looks[1].batch_execute(&format!("PREPARE TRANSACTION '{gid}'"))?;
    let orphans = ordid_diesel::prepared_orphans(NAME, &mut looks)?;
    assert_eq!((orphans.len(), orphans[0].shard), (1, 1));
    assert_eq!(orphans[0].decision, OrphanDecision::NotCommitted);
    // What ends it would end the user's transaction.
    AnsiTransactionManager::begin_transaction(&mut looks[1])?;
    insert(&mut looks[1])?;
    for error in [
        ordid_diesel::prepared_orphans(NAME, &mut looks).unwrap_err(),
        ordid_diesel::recover_prepared(NAME, &mut looks, Duration::ZERO).unwrap_err(),
    ] {
        assert!(error.is_connection_state(), "{error}");
    }
    assert!(numbers(&mut looks[1])?.contains(&-2));
    AnsiTransactionManager::rollback_transaction(&mut looks[1])?;
    assert!(!numbers(&mut looks[1])?.contains(&-2));
    let recovered = ordid_diesel::recover_prepared(NAME, &mut looks, Duration::ZERO)?;
    assert_eq!(recovered.rolled_back, [gid]);
    let runtime = runtime()?;
    let mut others = runtime.block_on(async {
        Ok::<_, ConnectionError>([
            AsyncPgConnection::establish(&schema(url, 0)).await?,
            AsyncPgConnection::establish(&schema(url, 1)).await?,
        ])
    })?;
    let orphans = ordid_diesel::prepared_orphans_async(NAME, &mut others);
    assert_eq!(runtime.block_on(orphans)?, []);
    Ok(())
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// Each call is there at once, so that the parts wait for each other within one poll.
fn over_connections(url: &str) -> Outcome {
    let mut connections = None;
    all_or_none(url, |work| {
        let open = || [0, 1].map(|shard| open(url, shard).expect("the schemas are there"));
        work.flush(connections.get_or_insert_with(open))
    })
}

fn over_made_connections(url: &str) -> Outcome {
    all_or_none(url, |work| work.flush_with(|shard| open(url, shard)))
}

fn over_made_async_connections(url: &str) -> Outcome {
    let runtime = runtime()?;
    all_or_none(url, |work| {
        let flush = work.flush_with_async(|shard| {
            let url = schema(url, shard);
            async move { AsyncPgConnection::establish(&url).await }
        });
        runtime.block_on(flush)
    })
}

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    for (name, test) in [
        ("connections", over_connections as fn(&str) -> Outcome),
        ("made_connections", over_made_connections),
        ("made_async_connections", over_made_async_connections),
    ] {
        let name = format!("two_phase::all_or_none_over_{name}");
        on_server::<PgConnection>(trials, servers, "postgres", &name, " WITH (FORCE)", test);
    }
    xa::trials(servers, trials);
}
