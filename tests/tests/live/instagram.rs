//! Instagram's functions in PostgreSQL: what they make is read by the scheme `instagram`.

use libtest_mimic::Trial;
use ordid::{
    clock::{Clock, SystemClock},
    scheme::{
        Instagram, Layout,
        instagram::{Shard, create_function_sql, create_rising_function_sql},
        snowflake::Parts,
    },
};
use ordid_tests::{scratch_tests, servers::Servers};
use sqlx::{AssertSqlSafe, PgConnection, Pool, Postgres, query_scalar};

use crate::Outcome;

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    scratch_tests!(trials, servers, Postgres: "postgres", "";
        instagram_original_is_read,
        instagram_rising_rises,
        instagram_rising_ends_in_errors,
        instagram_rising_is_cancelled,
    );
}

const SHARD: u64 = 8_191;
const KEYS: usize = 20_000;

/// Makes a shard's schema of a hostile name, with this function and a table that calls it.
async fn install(
    connection: &mut PgConnection,
    function: impl Fn(&str, &str, Shard) -> Result<String, ordid::Error>,
) -> Outcome {
    let function = function("Shard \"5\"", "it's newest", Shard::new(SHARD)?)?;
    let sql = format!(
        r#"CREATE SCHEMA "Shard ""5"""; CREATE SEQUENCE "Shard ""5"""."it's newest"; {function}
        CREATE TABLE photos (
            id bigint PRIMARY KEY DEFAULT "Shard ""5""".next_id(), position integer NOT NULL
        )"#
    );
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(connection)
        .await?;
    Ok(())
}

/// Makes keys in one session, half of them directly and half as a column's default, in order.
async fn made(connection: &mut PgConnection, keys: usize) -> Result<Vec<i64>, sqlx::Error> {
    let half = i32::try_from(keys / 2).expect("a small number");
    let mut made: Vec<i64> =
        query_scalar(r#"SELECT "Shard ""5""".next_id() FROM generate_series(1, $1)"#)
            .bind(half)
            .fetch_all(&mut *connection)
            .await?;
    made.extend::<Vec<i64>>(
        query_scalar(
            "INSERT INTO photos (position) SELECT n FROM generate_series(1, $1) AS n RETURNING id",
        )
        .bind(half)
        .fetch_all(connection)
        .await?,
    );
    assert_eq!(made.len(), keys);
    Ok(made)
}

/// Reads keys, and checks shard and time.
fn parts(keys: &[i64], since_millis: u64) -> Vec<Parts> {
    // Of the server's clock, which is this machine's; and a key a millisecond ahead, at the most
    // that a server makes.
    let (first, last) = (
        since_millis - 1_000,
        SystemClock.now().as_unix_millis() + 1_000,
    );
    keys.iter()
        .map(|key| {
            let parts = Instagram::unpack(key).expect("a key of the layout");
            assert_eq!(parts.node, SHARD);
            let moment = Instagram::inspect(key).expect("the same").moment;
            let time = moment.and_then(|moment| moment.timestamp());
            let millis = time.expect("a time").as_unix_millis();
            assert!(
                (first..=last).contains(&millis),
                "{millis} of {first} to {last}"
            );
            assert_eq!(Instagram::pack(parts).as_ref(), Ok(key));
            parts
        })
        .collect()
}

fn now_millis() -> u64 {
    SystemClock.now().as_unix_millis()
}

async fn instagram_original_is_read(pool: Pool<Postgres>) -> Outcome {
    let mut session = pool.acquire().await?;
    install(&mut session, create_function_sql).await?;
    let since = now_millis();
    let keys = made(&mut session, KEYS).await?;
    let parts = parts(&keys, since);
    // `nextval % 1024`, from the sequence's 1 on, whatever the time.
    for (number, parts) in (1..).zip(&parts) {
        assert_eq!(parts.sequence, number % 1_024);
    }
    // So of two keys of a millisecond the later is below where the sequence begins again, and
    // nowhere else does the order break: what the rising form is for.
    for (keys, parts) in keys.windows(2).zip(parts.windows(2)) {
        let goes_down = parts[0].time > parts[1].time
            || parts[0].time == parts[1].time && parts[0].sequence == 1_023;
        assert_eq!(keys[0] > keys[1], goes_down, "{parts:?}");
    }
    // Deterministic: both sides of the wrap in one millisecond, as the function would number them.
    let [before, after] = [1_023, 0].map(|sequence| {
        Instagram::pack(Parts {
            sequence,
            ..parts[0]
        })
    });
    assert!(before? > after?);
    let descents = keys.windows(2).filter(|pair| pair[0] > pair[1]).count();
    println!("instagram_original_is_read: {descents} descents in {KEYS} keys");
    Ok(())
}

async fn instagram_rising_rises(pool: Pool<Postgres>) -> Outcome {
    install(&mut *pool.acquire().await?, create_rising_function_sql).await?;
    let since = now_millis();
    let alone = made(&mut *pool.acquire().await?, KEYS).await?;
    assert!(alone.is_sorted_by(|a, b| a < b));
    parts(&alone, since);

    // Four sessions, of which each sees its own keys rise above all that were there before.
    let sessions: Vec<_> = (0..4)
        .map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move { made(&mut *pool.acquire().await?, KEYS / 4).await })
        })
        .collect();
    let mut all = alone;
    let newest = all[KEYS - 1];
    for session in sessions {
        let keys = session.await??;
        assert!(keys.is_sorted_by(|a, b| a < b));
        assert!(keys[0] > newest);
        parts(&keys, since);
        all.extend(keys);
    }
    assert_eq!(all.len(), 2 * KEYS);
    // None twice, none left out: it counts in the millisecond, from zero.
    all.sort_unstable();
    for parts in parts(&all, since).windows(2) {
        let [before, after] = [parts[0], parts[1]];
        let next = if after.time == before.time {
            before.sequence + 1
        } else {
            0
        };
        assert_eq!(after.sequence, next, "{before:?}, {after:?}");
    }

    // A clock that is behind the newest key: held, and what a millisecond lacks is the next one's.
    let ahead = (now_millis() + 86_400_000 - 1_314_220_021_721) << 10 | 1_022;
    let ahead = i64::try_from(ahead)?;
    query_scalar::<_, i64>(r#"SELECT setval('"Shard ""5"""."it''s newest"', $1)"#)
        .bind(ahead)
        .fetch_one(&pool)
        .await?;
    let held = made(&mut *pool.acquire().await?, 2_000).await?;
    let held: Vec<Parts> = held
        .iter()
        .map(Instagram::unpack)
        .collect::<Result<_, _>>()?;
    for (number, parts) in (u64::try_from(ahead)? + 1..).zip(&held) {
        assert_eq!((parts.time, parts.sequence), (number >> 10, number & 1_023));
    }
    Ok(())
}

/// An advisory lock of a session outlives an error, unless it is given back.
async fn instagram_rising_ends_in_errors(pool: Pool<Postgres>) -> Outcome {
    let mut first = pool.acquire().await?;
    install(&mut first, create_rising_function_sql).await?;
    let end = (1_i64 << 50) - 1;
    query_scalar::<_, i64>(r#"SELECT setval('"Shard ""5"""."it''s newest"', $1)"#)
        .bind(end)
        .fetch_one(&mut *first)
        .await?;
    for session in [&mut first, &mut pool.acquire().await?] {
        let error = made(session, 2).await.expect_err("beyond the layout's end");
        let text = error.to_string();
        assert!(
            text.contains("does not fit: the layout has 40 bits"),
            "{text}"
        );
        let locks: i64 = query_scalar(
            "SELECT count(*) FROM pg_locks JOIN pg_database ON database = pg_database.oid \
             WHERE datname = current_database() AND locktype = 'advisory'",
        )
        .fetch_one(&mut **session)
        .await?;
        assert_eq!(locks, 0);
    }
    Ok(())
}

/// Calls that end at their timeout anywhere, also right behind the statement that takes the lock.
async fn instagram_rising_is_cancelled(pool: Pool<Postgres>) -> Outcome {
    install(&mut *pool.acquire().await?, create_rising_function_sql).await?;
    let sessions: Vec<_> = (0..3)
        .map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move {
                let mut session = pool.acquire().await?;
                let mut cancelled = 0;
                for _ in 0..1_500 {
                    // One transaction, so an error takes the timeout back, too.
                    let made = sqlx::raw_sql(
                        r#"SET statement_timeout = 1;
                        SELECT count("Shard ""5""".next_id()) FROM generate_series(1, 200);
                        SET statement_timeout = 0"#,
                    );
                    cancelled += usize::from(made.execute(&mut *session).await.is_err());
                }
                let locks: i64 = query_scalar(
                    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
                )
                .fetch_one(&mut *session)
                .await?;
                Ok::<_, sqlx::Error>((cancelled, locks))
            })
        })
        .collect();
    for session in sessions {
        let (cancelled, locks) = session.await??;
        assert!(cancelled > 0);
        assert_eq!(locks, 0);
    }
    Ok(())
}
