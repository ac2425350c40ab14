//! Values that the database fills are known after a flush with a journal, over shards and in chunks.

use std::path::Path;

use ordid::{Assigned, KeyType, OrderedKey, uuid::Uuid};
use ordid_file::FlushJournal;
use ordid_sqlx::{ChunkLimits, Journaled, ShardedUnitOfWork, Sharding, UnitOfWork};
use serde::{Deserialize, Serialize};
use sqlx::{Sqlite, SqlitePool};

#[derive(KeyType)]
#[ordid(sqlx(sqlite = blob))]
struct ReceiptId(Uuid);

#[derive(OrderedKey, Serialize, Deserialize)]
#[ordid(table = "receipts")]
struct Receipt {
    #[ordid(key)]
    id: ReceiptId,
    total: i64,
    #[ordid(returning)]
    tax: Assigned<i64>,
    #[ordid(returning)]
    place: Assigned<String>,
}

/// A row and the cells that a flush fills.
type Filled = (Assigned<i64>, Assigned<String>);

fn receipt(total: i64) -> (Receipt, Filled) {
    let receipt = Receipt {
        id: ReceiptId::generate(),
        total,
        tax: Assigned::new(),
        place: Assigned::new(),
    };
    let filled = (receipt.tax.clone(), receipt.place.clone());
    (receipt, filled)
}

/// Makes a database whose rows have this place, and no negative total.
async fn database(place: &str) -> SqlitePool {
    let options = sqlx::pool::PoolOptions::<Sqlite>::new().max_connections(1);
    let pool = options.connect("sqlite::memory:").await;
    let pool = pool.expect("a database");
    let table = format!(
        "CREATE TABLE receipts (id BLOB PRIMARY KEY, total INTEGER NOT NULL CHECK (total >= 0), \
         tax INTEGER AS (total / 5) STORED, place TEXT NOT NULL DEFAULT '{place}')"
    );
    let table = sqlx::AssertSqlSafe(table);
    sqlx::raw_sql(table).execute(&pool).await.expect("a table");
    let flushes = ordid_sqlx::create_flushes_table(&pool).await;
    flushes.expect("a table of marker rows");
    pool
}

fn journaled(file: &Path) -> UnitOfWork<Sqlite> {
    let journal = FlushJournal::open(file).expect("a journal");
    UnitOfWork::new().with_journal(Journaled::new(journal).row::<Receipt>())
}

fn get((tax, place): &Filled) -> Option<(i64, String)> {
    tax.get().zip(place.get())
}

#[tokio::test]
async fn with_a_journal_they_are_known_after_the_flush_and_a_refused_one_fills_nothing() {
    let pool = database("here").await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("journal");

    let mut work = journaled(&file);
    let (refused, empty) = receipt(-1);
    work.add(refused);
    work.flush(&pool).await.expect_err("a negative total");
    assert_eq!((empty.0.get(), empty.1.get()), (None, None));
    work.discard().expect("an empty journal");

    let filled: Vec<Filled> = (0..10)
        .map(|number| {
            let (receipt, filled) = receipt(number * 5);
            work.add(receipt);
            filled
        })
        .collect();
    let flushed = work.flush(&pool).await.expect("all rows");
    assert_eq!(flushed.rows(), 10);
    for (number, filled) in (0..).zip(&filled) {
        assert_eq!(get(filled), Some((number, "here".to_owned())));
    }
}

/// The journal keeps the rows of a run that could not flush. A journal has no values of fields that the database fills.
#[tokio::test]
async fn rows_that_are_resumed_are_written_with_what_the_database_fills() {
    let pool = database("here").await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("journal");
    let closed = database("closed").await;
    closed.close().await;

    let mut work = journaled(&file);
    let (first, filled) = receipt(50);
    let id = first.id;
    // What the program set itself is not sent.
    let elsewhere = Receipt {
        place: Assigned::from("elsewhere".to_owned()),
        ..first
    };
    work.add(elsewhere);
    work.flush(&closed).await.expect_err("no database");
    assert_eq!(get(&filled), None);
    drop(work);

    let mut work = journaled(&file);
    assert_eq!(work.resume().expect("rows"), 1);
    work.flush(&pool).await.expect("the row");
    let read = sqlx::query_as("SELECT id, tax, place FROM receipts");
    let read: (ReceiptId, i64, String) = read.fetch_one(&pool).await.expect("a row");
    assert_eq!(read, (id, 10, "here".to_owned()));
}

#[tokio::test]
async fn over_shards_each_row_has_the_values_of_its_own_database() {
    let pools = [database("first").await, database("second").await];
    let mut work = ShardedUnitOfWork::new(Sharding::by_hash(2).expect("two shards"));
    let mut rows = Vec::new();
    for number in 0..20 {
        let (receipt, filled) = receipt(number * 5);
        rows.push((receipt.id, filled));
        work.add(receipt).expect("a shard");
    }
    work.flush(&pools).await.expect("all rows");
    for (pool, place) in pools.iter().zip(["first", "second"]) {
        let read = sqlx::query_as("SELECT id, tax FROM receipts").fetch_all(pool);
        let read: Vec<(ReceiptId, i64)> = read.await.expect("rows");
        assert!((1..20).contains(&read.len()), "{} in {place}", read.len());
        for (id, tax) in read {
            let (_, filled) = rows.iter().find(|row| row.0 == id).expect("a row of ours");
            assert_eq!(get(filled), Some((tax, place.to_owned())));
        }
    }
}

#[tokio::test]
async fn in_chunks_the_rows_of_committed_chunks_are_filled_and_the_others_are_not() {
    let pool = database("here").await;
    let mut work = UnitOfWork::new().in_chunks(ChunkLimits::rows(4));
    let filled: Vec<Filled> = (0..10)
        .map(|number| {
            let total = if number == 9 { -1 } else { number * 5 };
            let (receipt, filled) = receipt(total);
            work.add(receipt);
            filled
        })
        .collect();
    let error = work.flush(&pool).await.expect_err("a negative total");
    assert_eq!(error.committed_chunks(), 2, "{error}");
    for (number, filled) in (0..).zip(&filled) {
        let expected = (number < 8).then(|| (number, "here".to_owned()));
        assert_eq!(get(filled), expected, "row {number}");
    }
}
