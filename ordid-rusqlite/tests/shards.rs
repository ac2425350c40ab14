//! One unit of work over two files of SQLite.

use std::path::{Path, PathBuf};

use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_rusqlite::{Error, Flushed, Retry, ShardedUnitOfWork, Sharding};
use rusqlite::Connection;

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, rusqlite)]
struct CityId(Uuid);

#[derive(OrderedKey)]
#[ordid(table = "cities")]
struct City {
    id: Option<CityId>,
    number: i32,
}

const CREATE: &str = "CREATE TABLE cities (id BLOB NOT NULL PRIMARY KEY, number INTEGER NOT NULL)";
const CITIES: i32 = 40;

fn file(folder: &Path, shard: usize) -> PathBuf {
    folder.join(format!("shard{shard}.db"))
}

fn open(folder: &Path, shard: usize) -> Connection {
    Connection::open(file(folder, shard)).expect("it is a file")
}

fn create(folder: &Path, shard: usize) {
    let created = open(folder, shard).execute_batch(CREATE);
    created.expect("it is a table");
}

fn numbers(folder: &Path, shard: usize) -> Vec<i32> {
    let connection = open(folder, shard);
    let mut query = connection
        .prepare("SELECT number FROM cities")
        .expect("it is a query");
    let rows = query.query_map([], |row| row.get(0));
    let numbers = rows.expect("it is a query").collect::<Result<_, _>>();
    numbers.expect("they are numbers")
}

/// A shard that fails leaves the other one's rows committed, and its own to be flushed again.
fn a_part_that_fails_stays(
    folder: &Path,
    mut flush: impl FnMut(&mut ShardedUnitOfWork) -> Result<Vec<Flushed>, Error>,
) {
    create(folder, 0);
    let sharding = Sharding::by_hash(2).expect("they are few");
    let mut work = ShardedUnitOfWork::new(sharding).with_retry(Retry::NONE);
    for number in 0..CITIES {
        let city = City { id: None, number };
        work.add(city).expect("it has a shard");
    }
    let lengths = [0, 1].map(|shard: usize| work.shards()[shard].len());
    assert!(lengths.iter().all(|length| *length > 0), "{lengths:?}");

    let error = flush(&mut work).expect_err("the second shard has no table");
    let outcomes = error.shards().expect("one of them failed");
    assert_eq!(outcomes.len(), 2);
    assert_eq!(
        (numbers(folder, 0).len(), work.len()),
        (lengths[0], lengths[1])
    );

    create(folder, 1);
    let flushed = flush(&mut work).expect("it is written");
    let rows: Vec<_> = flushed.iter().map(Flushed::rows).collect();
    assert_eq!((rows, work.is_empty()), (vec![0, lengths[1]], true));
    let mut all = [numbers(folder, 0), numbers(folder, 1)].concat();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..CITIES));
}

#[test]
fn a_part_that_fails_stays_over_connections() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut connections = [0, 1].map(|shard| open(folder.path(), shard));
    a_part_that_fails_stays(folder.path(), |work| {
        let too_few = work.flush(&mut connections[..1]);
        let too_few = too_few.expect_err("there are two shards");
        assert!(too_few.is_plan() && too_few.shards().is_none(), "{too_few}");
        work.flush(&mut connections)
    });
}

#[test]
fn a_part_that_fails_stays_over_made_connections() {
    let folder = tempfile::tempdir().expect("a folder");
    a_part_that_fails_stays(folder.path(), |work| {
        work.flush_with(|shard| Connection::open(file(folder.path(), shard)).map(Box::new))
    });
}
