//! Keys that newer servers make by themselves, held against ours: PostgreSQL 18's `uuidv7()`, MariaDB 11.7's
//! `UUID_v7()` and `UUID_v4()`. On an older server these tests are ignored.

use std::{future::Future, time::Duration};

use libtest_mimic::{Completion, Trial};
use ordid::{
    KeyType,
    clock::ManualClock,
    entropy::SeededEntropy,
    generator::{Generator, Policy},
    scheme::{uuid_v7::UuidV7Generator, uuid_v7_sub_millis::UuidV7SubMillisGenerator},
    storage::{Stores as _, column::MariaDbUuid},
    uuid::Uuid,
};
use ordid_tests::{
    servers::{Scratch, Servers},
    trials::{Outcome, ignored, run},
};
use sqlx::{MySql, Pool, Postgres, query, query_scalar};

use crate::{
    database::{Live, one, read},
    keys::{Keys as _, Maria, Native},
};

/// How many keys of each kind.
const KEYS: usize = 1_000;

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    let postgres = (
        "postgres",
        "SELECT COUNT(*) FROM pg_proc WHERE proname = 'uuidv7'",
        "PostgreSQL has uuidv7() from version 18",
    );
    let mariadb = (
        "mariadb",
        "SELECT VERSION() REGEXP '^(11[.]([7-9]|[1-9][0-9])|1[2-9]|[2-9][0-9])[.]'",
        "MariaDB has UUID_v7() from version 11.7",
    );
    macro_rules! add {
        ($database:ty, $engine:expr, $name:ident) => {
            trials.push(trial::<$database, _>(
                servers,
                $engine,
                stringify!($name),
                $name,
            ));
        };
    }
    add!(Postgres, postgres, uuidv7_is_read_by_our_scheme);
    add!(Postgres, postgres, uuid_extract_timestamp_reads_our_keys);
    add!(Postgres, postgres, our_keys_and_uuidv7_sort_by_time);
    add!(
        Postgres,
        postgres,
        our_keys_of_sub_millis_and_uuidv7_sort_by_time
    );
    add!(MySql, mariadb, native_uuids_sort_as_their_sort_key);
    add!(MySql, mariadb, our_keys_and_native_uuids_sort_by_time);
}

/// A test on a database of its own, ignored with the reason where a query says no.
fn trial<DB: Scratch + Live, F: Future<Output = Outcome>>(
    servers: &Servers,
    (server, has, reason): (&'static str, &'static str, &'static str),
    name: &str,
    test: impl FnOnce(Pool<DB>) -> F + Send + 'static,
) -> Trial {
    let name = format!("{server}::native::{name}");
    let url = match servers.url(server) {
        Ok(url) => url,
        Err(reason) => return ignored(name, reason),
    };
    Trial::ignorable_test(name, move || {
        let mut completion = Completion::Completed;
        run(async || {
            let (pool, cleanup) = DB::scratch(&url).await?;
            let outcome = if one::<i64>(&pool, has).await? > 0 {
                test(pool).await
            } else {
                completion = Completion::ignored_with(reason);
                Ok(())
            };
            cleanup.await?;
            outcome
        })?;
        Ok(completion)
    })
}

async fn uuidv7_is_read_by_our_scheme(pool: Pool<Postgres>) -> Outcome {
    let sql = "SELECT id, (extract(epoch FROM uuid_extract_timestamp(id)) * 1000)::int8 \
               FROM (SELECT uuidv7() AS id FROM generate_series(1, $1)) AS made";
    let made: Vec<(Uuid, i64)> = sqlx::query_as(sql)
        .bind(i64::try_from(KEYS)?)
        .fetch_all(&pool)
        .await?;
    assert_eq!(made.len(), KEYS);
    for (id, millis) in made {
        let key = Native::try_from(id)?;
        let timestamp = key.timestamp().ok_or("no time")?;
        assert_eq!(i64::try_from(timestamp.as_unix_millis())?, millis, "{id}");
    }
    Ok(())
}

async fn uuid_extract_timestamp_reads_our_keys(pool: Pool<Postgres>) -> Outcome {
    let sql = "SELECT (extract(epoch FROM uuid_extract_timestamp($1)) * 1000)::int8, \
               uuid_extract_version($1)::int8";
    // Some are of now, the others of any time that a key may have.
    let mut keys: Vec<Native> = (0..100).map(|_| Native::generate()).collect();
    keys.extend(Native::wild(200));
    for key in keys {
        let timestamp = key.timestamp().ok_or("no time")?;
        let expected = i64::try_from(timestamp.as_unix_millis())?;
        let read: (i64, i64) = sqlx::query_as(sql).bind(key).fetch_one(&pool).await?;
        assert_eq!(read, (expected, 7), "{key}");
    }
    Ok(())
}

/// The server's clock in microseconds, which is not ours where the server is elsewhere.
const POSTGRES_NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8";
const MARIADB_NOW: &str = "SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)";

/// A clock of ours that reads what the server's did.
async fn set<DB: Live>(clock: &ManualClock, pool: &Pool<DB>, now: &str) -> Outcome {
    let micros = u64::try_from(one::<i64>(pool, now).await?)?;
    clock.set_unix_millis(micros / 1_000);
    clock.set_nanos(u32::try_from(micros % 1_000 * 1_000)?);
    Ok(())
}

/// Two milliseconds, since within one the order is by chance.
async fn later() {
    tokio::time::sleep(Duration::from_millis(2)).await;
}

async fn our_keys_and_uuidv7_sort_by_time(pool: Pool<Postgres>) -> Outcome {
    let clock = ManualClock::at_unix_millis(0);
    let ours = UuidV7Generator::new(&clock, SeededEntropy::new(1), Policy::DEFAULT);
    let mut keys = Vec::new();
    for _ in 0..100 {
        set(&clock, &pool, POSTGRES_NOW).await?;
        keys.push(ours.try_generate()?.into_raw());
        later().await;
        keys.push(one(&pool, "SELECT uuidv7()").await?);
        later().await;
    }
    sort_as_they_are(&pool, &keys).await
}

/// As far apart as questions are that follow each other: the time within the millisecond counts.
async fn our_keys_of_sub_millis_and_uuidv7_sort_by_time(pool: Pool<Postgres>) -> Outcome {
    let clock = ManualClock::at_unix_millis(0);
    let ours = UuidV7SubMillisGenerator::new(&clock, SeededEntropy::new(1), Policy::DEFAULT);
    let mut keys = Vec::new();
    for _ in 0..500 {
        set(&clock, &pool, POSTGRES_NOW).await?;
        keys.push(ours.try_generate()?.into_raw());
        keys.push(one(&pool, "SELECT uuidv7()").await?);
    }
    sort_as_they_are(&pool, &keys).await
}

/// The database sorts them as they were made.
async fn sort_as_they_are(pool: &Pool<Postgres>, keys: &[Uuid]) -> Outcome {
    let sql = "SELECT id FROM unnest($1::uuid[]) AS id ORDER BY id";
    let sorted: Vec<Uuid> = query_scalar(sql).bind(keys).fetch_all(pool).await?;
    assert_eq!(sorted, keys);
    Ok(())
}

async fn native_uuids_sort_as_their_sort_key(pool: Pool<MySql>) -> Outcome {
    Live::script(&pool, "CREATE TABLE native (id UUID PRIMARY KEY)").await?;
    let mut count = 0;
    // Each version, and then all of them.
    for (function, version) in [("UUID()", 1), ("UUID_v4()", 4), ("UUID_v7()", 7)] {
        let sql = format!(
            "CREATE OR REPLACE TABLE alone (id UUID PRIMARY KEY) \
            SELECT {function} AS id FROM seq_1_to_{KEYS}"
        );
        Live::script(&pool, &sql).await?;
        Live::script(&pool, "INSERT INTO native SELECT id FROM alone").await?;
        let alone = sorted(&pool, "alone").await?;
        assert_eq!(alone.len(), KEYS);
        assert!(alone.iter().all(|key| key.get_version_num() == version));
        count += KEYS;
    }
    assert_eq!(sorted(&pool, "native").await?.len(), count);
    Ok(())
}

/// Returns a table's keys in its order, which is that of the sort keys.
async fn sorted(pool: &Pool<MySql>, table: &str) -> Outcome<Vec<Uuid>> {
    let sql = format!("SELECT CAST(id AS CHAR) FROM {table} ORDER BY id");
    let texts: Vec<(String,)> = read(pool, &sql).await?;
    let texts = texts.iter().map(|(text,)| text.parse());
    let keys = texts.collect::<Result<Vec<Uuid>, _>>()?;
    let by_ours = |key: &Uuid| MariaDbUuid::sort_key(*key);
    assert!(keys.is_sorted_by_key(by_ours), "{table}");
    Ok(keys)
}

async fn our_keys_and_native_uuids_sort_by_time(pool: Pool<MySql>) -> Outcome {
    Live::script(
        &pool,
        "CREATE TABLE both_kinds (id UUID PRIMARY KEY, position INT)",
    )
    .await?;
    let clock = ManualClock::at_unix_millis(0);
    let ours = UuidV7Generator::new(&clock, SeededEntropy::new(1), Policy::DEFAULT);
    for position in (0..200).step_by(2) {
        set(&clock, &pool, MARIADB_NOW).await?;
        let key = Maria::try_from(ours.try_generate()?.into_raw())?;
        let insert = query("INSERT INTO both_kinds VALUES (?, ?)");
        insert.bind(key).bind(position).execute(&pool).await?;
        later().await;
        let before: i64 = one(&pool, MARIADB_NOW).await?;
        let insert = query("INSERT INTO both_kinds VALUES (UUID_v7(), ?)");
        insert.bind(position + 1).execute(&pool).await?;
        let after: i64 = one(&pool, MARIADB_NOW).await?;
        let made = query_scalar("SELECT id FROM both_kinds WHERE position = ?");
        let made: Maria = made.bind(position + 1).fetch_one(&pool).await?;
        let timestamp = made.timestamp().ok_or("no time")?;
        let millis = i64::try_from(timestamp.as_unix_millis())?;
        assert!((before / 1_000..=after / 1_000).contains(&millis), "{made}");
        later().await;
    }
    let sql = "SELECT position FROM both_kinds ORDER BY id";
    let positions: Vec<(i32,)> = read(&pool, sql).await?;
    assert!(positions.into_iter().eq((0..200).map(|it| (it,))));
    Ok(())
}
