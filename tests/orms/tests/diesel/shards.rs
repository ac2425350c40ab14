//! One unit of work over two files of SQLite.

use diesel::{connection::SimpleConnection as _, prelude::*};
use diesel_async::{AsyncConnection as _, sync_connection_wrapper::SyncConnectionWrapper};
use libtest_mimic::Trial;
use ordid::OrderedKey;
use ordid_diesel::{Error, Flushed, Retry, ShardedUnitOfWork, Sharding};
use ordid_tests::flushed::assert_first_alone;

use crate::{Outcome, keys::Native, scratch::in_file};

diesel::table! {
    cities (id) { id -> Binary, number -> Integer, }
}

#[derive(OrderedKey)]
#[diesel(table_name = cities)]
#[ordid(diesel)]
struct City {
    id: Option<Native>,
    number: i32,
}

type Work = ShardedUnitOfWork<diesel::sqlite::Sqlite>;
type Wrapper = SyncConnectionWrapper<SqliteConnection>;

const CREATE: &str = "CREATE TABLE cities (id BLOB NOT NULL PRIMARY KEY, number INTEGER NOT NULL)";
const CITIES: i32 = 40;

fn file(url: &str, shard: usize) -> String {
    format!("{url}{shard}")
}

fn open(url: &str, shard: usize) -> ConnectionResult<SqliteConnection> {
    SqliteConnection::establish(&file(url, shard))
}

async fn open_async(file: String) -> ConnectionResult<Wrapper> {
    Wrapper::establish(&file).await
}

fn numbers(url: &str, shard: usize) -> Outcome<Vec<i32>> {
    let found = cities::table
        .select(cities::number)
        .load(&mut open(url, shard)?)?;
    Ok(found)
}

/// A shard that fails leaves the other one's rows committed, and its own to be flushed again: twice by the
/// same flush.
fn parts(url: &str, mut flush: impl FnMut(&mut Work) -> Result<Vec<Flushed>, Error>) -> Outcome {
    open(url, 0)?.batch_execute(CREATE)?;
    let mut work = Work::new(Sharding::by_hash(2)?).with_retry(Retry::NONE);
    for number in 0..CITIES {
        work.add(City { id: None, number })?;
    }
    let lengths = [0, 1].map(|shard: usize| work.shards()[shard].len());
    assert!(lengths.iter().all(|length| *length > 0), "{lengths:?}");

    let error = flush(&mut work).unwrap_err();
    let outcomes = error.shards().expect("one of them failed");
    assert_first_alone(outcomes, lengths[0]);
    assert_eq!(work.len(), lengths[1]);

    open(url, 1)?.batch_execute(CREATE)?;
    let flushed = flush(&mut work)?;
    let rows: Vec<_> = flushed.iter().map(Flushed::rows).collect();
    assert_eq!(rows, [0, lengths[1]]);
    assert!(work.is_empty());
    let mut all = [numbers(url, 0)?, numbers(url, 1)?];
    assert_eq!(all.each_ref().map(Vec::len), lengths);
    let mut all = all.iter_mut().flat_map(std::mem::take).collect::<Vec<_>>();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..CITIES));
    Ok(())
}

fn over_connections(url: &str) -> Outcome {
    let mut connections = [open(url, 0)?, open(url, 1)?];
    parts(url, |work| {
        let too_few = work.flush(&mut connections[..1]).unwrap_err();
        assert!(too_few.is_plan() && too_few.shards().is_none(), "{too_few}");
        work.flush(&mut connections)
    })
}

fn over_made_connections(url: &str) -> Outcome {
    parts(url, |work| work.flush_with(|shard| open(url, shard)))
}

fn over_async_connections(url: &str) -> Outcome {
    let runtime = runtime()?;
    let mut connections = [0, 1].map(|shard| {
        let opened = runtime.block_on(open_async(file(url, shard)));
        opened.expect("a file can be made")
    });
    parts(url, |work| {
        runtime.block_on(work.flush_async(&mut connections))
    })
}

fn over_made_async_connections(url: &str) -> Outcome {
    let runtime = runtime()?;
    parts(url, |work| {
        runtime.block_on(work.flush_with_async(|shard| open_async(file(url, shard))))
    })
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

pub fn trials(trials: &mut Vec<Trial>) {
    for (name, test) in [
        ("connections", over_connections as fn(&str) -> Outcome),
        ("made_connections", over_made_connections),
        ("async_connections", over_async_connections),
        ("made_async_connections", over_made_async_connections),
    ] {
        let name = format!("shards::a_part_that_fails_stays_over_{name}");
        in_file(trials, &name, test);
    }
}
