//! Inserting into a table that has outgrown the buffer pool, on a slow disk.

use std::{
    num::NonZero,
    path::PathBuf,
    time::{Duration, Instant},
};

use ordid_core::{
    entropy::ThreadEntropy,
    scheme::{
        UuidV4Clustered, UuidV7,
        uuid_v4_clustered::{ClusteredGenerator, Clusters, Period},
    },
    storage::{
        column::{Binary16, Char22, Char36},
        dialect::MariaDb,
    },
};
use sqlx::{Connection as _, MySql, MySqlConnection};

use super::{Finding, Outcome, throttle::Throttle};
use crate::{
    BATCH, Row,
    engine::{Engine, Result},
    fill,
    key::{Arrival, Case, Value},
};

/// Reads and writes a second, each.
const IOPS: u32 = 500;

pub(super) async fn run(rows: u32, seconds: u32) -> Result<Vec<Finding>> {
    let Ok(mut database) = MySql::open().await? else {
        return Ok(Vec::new());
    };
    let steady = &[Arrival::Steady];
    let random = [
        Case::random::<Char36, MariaDb>(),
        Case::random::<Char22, MariaDb>(),
        Case::random::<Binary16, MariaDb>(),
    ];
    let ordered = [
        Case::made::<_, Binary16, MariaDb>("pseudo-ordered v4", steady, |clock| {
            // Each minute has a prefix, as the source has it.
            let period = Period::Seconds(NonZero::new(60).expect("not zero"));
            let clusters = Clusters {
                period,
                ..Clusters::DEFAULT
            };
            ClusteredGenerator::<UuidV4Clustered, _, _>::new(clock, ThreadEntropy, clusters)
        }),
        Case::of::<UuidV7, Binary16, MariaDb>("v7", steady),
        Case::automatic("auto-increment", "BIGINT AUTO_INCREMENT"),
    ];
    let mut throttled = Ok(());
    let mut rates = Vec::new();
    for (case, seconds) in random
        .iter()
        .map(|case| (case, seconds.div_ceil(3)))
        .chain(ordered.iter().map(|case| (case, seconds)))
    {
        let window = Duration::from_secs(u64::from(seconds));
        let rate = timed(&mut database, case, rows, window, &mut throttled).await?;
        println!("  {}: {rate:.0} rows a second", case.name(case.arrivals[0]));
        rates.push(rate);
    }
    let mapped = mapped(&mut database, rows, seconds, &mut throttled).await?;
    println!("  mapped integers: {mapped:.0} rows a second");
    MySql::close(database).await?;

    let outcome = |held| match &throttled {
        Ok(()) => Outcome::of(held),
        Err(error) => {
            println!("  not at {IOPS} a second: {error}");
            Outcome::NotJudged("the disk could not be throttled")
        }
    };
    let slowest_ordered = rates[3..].iter().copied().fold(f64::INFINITY, f64::min);
    let fastest_random = rates[..3].iter().copied().fold(0.0, f64::max);
    let listed = |rates: &[f64]| {
        let rates: Vec<_> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
        rates.join(", ")
    };
    Ok(vec![
        Finding {
            claim: "random keys collapse in a table larger than the pool, ordered ones do not",
            source: "CHAR(36), CHAR(22), BINARY(16) collapse",
            ours: format!(
                "{} rows/s; pseudo-ordered, v7, auto-increment {}",
                listed(&rates[..3]),
                listed(&rates[3..])
            ),
            outcome: outcome(slowest_ordered >= 5.0 * fastest_random),
        },
        Finding {
            claim: "integers mapped from UUIDs stay near the bound of the processor",
            source: "about 4,000 single inserts/s",
            ours: format!("{mapped:.0} rows/s in batches of {BATCH}"),
            outcome: outcome(mapped >= 5.0 * fastest_random),
        },
    ])
}

/// Fills a table at full speed, and returns the rate of inserting more at the slow disk's.
async fn timed(
    database: &mut <MySql as Engine>::Open,
    case: &Case,
    rows: u32,
    window: Duration,
    throttled: &mut std::result::Result<(), std::io::Error>,
) -> Result<f64> {
    MySql::create(database, case).await?;
    let mut keys = case.keys(case.arrivals[0]);
    let mut batch = Vec::new();
    let mut next = 0;
    while next < rows {
        fill(&mut batch, &mut keys, next, BATCH, false);
        next += BATCH;
        MySql::insert(database, case, &batch).await?;
    }
    settle(&mut database.1).await?;
    let throttle = slow_disk(&mut database.1, throttled).await?;
    let started = Instant::now();
    let mut inserted = 0;
    while started.elapsed() < window {
        fill(&mut batch, &mut keys, next, BATCH, false);
        next += BATCH;
        MySql::insert(database, case, &batch).await?;
        inserted += BATCH;
    }
    let rate = f64::from(inserted) / started.elapsed().as_secs_f64();
    drop(throttle);
    MySql::drop(database).await?;
    Ok(rate)
}

/// The table of the source that gives each UUID an integer, and the rows under the integers.
async fn mapped(
    database: &mut <MySql as Engine>::Open,
    rows: u32,
    seconds: u32,
    throttled: &mut std::result::Result<(), std::io::Error>,
) -> Result<f64> {
    let map = "CREATE OR REPLACE TABLE mapped (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, \
        uuid BINARY(16) NOT NULL, uuid_hash INT UNSIGNED AS (crc32(uuid)) STORED, \
        KEY (uuid_hash)) ENGINE = InnoDB";
    run_sql(&mut database.1, map).await?;
    let random = Case::random::<Binary16, MariaDb>();
    let integers = Case::automatic("mapped", "BIGINT");
    MySql::create(database, &integers).await?;
    let mut keys = random.keys(Arrival::Any);
    let mut batch = Vec::new();
    let mut next = 0;
    while next < rows {
        next = map_and_insert(database, &integers, &mut batch, &mut keys, next).await?;
    }
    settle(&mut database.1).await?;
    let throttle = slow_disk(&mut database.1, throttled).await?;
    let (started, before) = (Instant::now(), next);
    while started.elapsed() < Duration::from_secs(u64::from(seconds)) {
        next = map_and_insert(database, &integers, &mut batch, &mut keys, next).await?;
    }
    let rate = f64::from(next - before) / started.elapsed().as_secs_f64();
    drop(throttle);
    run_sql(&mut database.1, "DROP TABLE mapped").await?;
    MySql::drop(database).await?;
    Ok(rate)
}

/// Maps a statement's worth of UUIDs, and inserts a row under each integer.
async fn map_and_insert(
    database: &mut <MySql as Engine>::Open,
    case: &Case,
    batch: &mut Vec<Row>,
    keys: &mut dyn FnMut() -> Value,
    next: u32,
) -> Result<u32> {
    fill(batch, keys, next, BATCH, false);
    let marks = vec!["(?)"; batch.len()].join(", ");
    let sql = format!("INSERT INTO mapped (uuid) VALUES {marks}");
    let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
    for row in &*batch {
        let Value::Bytes(uuid) = &row.key else {
            unreachable!("BINARY(16) is bound as bytes");
        };
        query = query.bind(&uuid[..]);
    }
    let first = query.execute(&mut database.1).await?.last_insert_id();
    for (row, id) in batch.iter_mut().zip(first..) {
        row.key = Value::Integer(i64::try_from(id)?);
    }
    MySql::insert(database, case, batch).await?;
    Ok(next + BATCH)
}

/// Waits until what is dirty has been written, so that filling is not charged to what follows.
async fn settle(connection: &mut MySqlConnection) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(120);
    run_sql(connection, "SET GLOBAL innodb_max_dirty_pages_pct = 0").await?;
    loop {
        let sql = "SELECT CAST(VARIABLE_VALUE AS SIGNED) FROM information_schema.GLOBAL_STATUS \
            WHERE VARIABLE_NAME = 'INNODB_BUFFER_POOL_PAGES_DIRTY'";
        let dirty: i64 = sqlx::query_scalar(sql).fetch_one(&mut *connection).await?;
        if dirty < 100 || Instant::now() > deadline {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    run_sql(
        connection,
        "SET GLOBAL innodb_max_dirty_pages_pct = DEFAULT",
    )
    .await
}

/// Slows the server's disk down, or notes why not.
async fn slow_disk(
    connection: &mut MySqlConnection,
    throttled: &mut std::result::Result<(), std::io::Error>,
) -> Result<Option<Throttle>> {
    let (folder, pid_file): (String, String) = sqlx::query_as("SELECT @@datadir, @@pid_file")
        .fetch_one(&mut *connection)
        .await?;
    let process = std::fs::read_to_string(PathBuf::from(&folder).join(pid_file))
        .and_then(|text| text.trim().parse().map_err(std::io::Error::other));
    match process.and_then(|process| Throttle::new(process, folder.as_ref(), IOPS)) {
        Ok(throttle) => Ok(Some(throttle)),
        Err(error) => {
            *throttled = Err(error);
            connection.ping().await?;
            Ok(None)
        }
    }
}

async fn run_sql(connection: &mut MySqlConnection, sql: &str) -> Result<()> {
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned()))
        .execute(connection)
        .await?;
    Ok(())
}
