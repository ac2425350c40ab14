//! Counters and sequences: no number twice, whatever fails.

use std::{collections::HashSet, num::NonZeroU32, sync::Arc, time::Duration};

use libtest_mimic::Trial;
use ordid_core::{
    Error,
    coordination::{AsyncSegmentSource, CoordinationFailure, Segment, SegmentOrder},
    generator::{Generator as _, SegmentGenerator, Steps, WhenEmpty},
};
use ordid_harness::Server;
use ordid_sqlx::{Backend, ConnectOptions, PgSequence, SqlCounter};
use ordid_tests::{
    proxy::{At, Fault},
    servers::Servers,
    trials::{Outcome, ignored, on_scratch, run},
};
use sqlx::{Connection as _, Postgres, postgres::PgConnectOptions};

use crate::sql::{Network, on_each, on_servers, proxy_to, sql};

pub(crate) fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    on_each!(
        "segments",
        servers,
        trials,
        counters_have_no_gap_and_no_number_twice,
        a_counter_ends_at_the_last_number,
        a_counter_that_is_gone_or_went_back_is_an_error,
    );
    on_servers!(
        "segments",
        servers,
        trials,
        a_rollback_gives_no_number_back,
        an_answer_that_is_lost_is_a_gap,
        a_connection_that_was_closed_while_idle_is_replaced,
    );
    macro_rules! on_postgres {
        ($($test:ident),+ $(,)?) => {
            $(
                let name = concat!("segments::", stringify!($test));
                on_scratch::<Postgres, _, _>(trials, servers, "postgres", name, |pool| async move {
                    $test((*pool.connect_options()).clone()).await
                });
            )+
        };
    }
    on_postgres!(
        a_sequence_gives_blocks_of_its_increment,
        a_sequence_that_was_altered_is_refused,
        a_sequence_that_is_altered_meanwhile_is_refused,
        a_sequence_ends_at_the_last_number,
    );
    let name = "postgres::segments::a_block_of_a_sequence_is_as_durable_as_a_commit";
    trials.push(match servers.url("postgres") {
        Err(reason) => ignored(name, reason),
        Ok(_) => Trial::test(name, || {
            run(async || waits_for_a_standby(&ordid_harness::start("postgres")?).await)
        }),
    });
}

pub(crate) fn failure<T: std::fmt::Debug>(result: Result<T, Error>) -> Option<CoordinationFailure> {
    result
        .expect_err("it cannot be done")
        .coordination_failure()
}

pub(crate) fn count(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).expect("some")
}

/// Reserves from many tasks, checks that the numbers of each task rise, where they should, and returns all.
pub(crate) async fn reserved<S>(
    source: &Arc<S>,
    tasks: u32,
    each: u32,
    rises: bool,
) -> Outcome<Vec<i64>>
where
    S: AsyncSegmentSource + 'static,
    S::Order: SegmentOrder,
{
    let mut running = tokio::task::JoinSet::new();
    for task in 0..tasks {
        let source = Arc::clone(source);
        running.spawn(async move {
            let mut numbers = Vec::new();
            for round in 0..each {
                let wanted = count(1 + (task * 7 + round * 3) % 20);
                let segment: Segment<S::Order> = source.reserve(wanted).await?;
                assert_eq!(segment.len(), wanted.get());
                let last = numbers.last().copied();
                assert!(
                    !rises || last < segment.first(),
                    "{last:?} then {segment:?}"
                );
                numbers.extend(segment.values());
            }
            Ok::<_, Error>(numbers)
        });
    }
    let mut all = Vec::new();
    while let Some(numbers) = running.join_next().await {
        all.extend(numbers??);
    }
    Ok(all)
}

async fn created<DB: Backend>(options: &ConnectOptions<DB>, first: i64) -> Outcome<SqlCounter<DB>> {
    let counter = SqlCounter::new(options.clone(), "orders")?.with_timeout(Duration::from_secs(30));
    let below = counter.create(0).await.expect_err("below 1");
    assert!(below.to_string().contains("and not with 0"), "{below}");
    counter.create(first).await?;
    // It takes nothing away from a counter that is in use.
    counter.create(1).await?;
    Ok(counter)
}

async fn counters_have_no_gap_and_no_number_twice<DB: Backend>(
    options: ConnectOptions<DB>,
) -> Outcome {
    let counter = Arc::new(created::<DB>(&options, 1_000).await?);
    let mut numbers = reserved(&counter, 8, 25, true).await?;
    numbers.sort_unstable();
    let expected: Vec<i64> = (1_000..).take(numbers.len()).collect();
    assert!(numbers.len() > 1_000 && numbers == expected);
    // Another name is another counter, and so is another table.
    let other = SqlCounter::<DB>::new(options.clone(), "Orders")?;
    other.create(1).await?;
    assert!(other.reserve(count(2)).await?.values().eq([1, 2]));
    let table = SqlCounter::<DB>::new(options, "orders")?.with_table("other_counters")?;
    table.create(1).await?;
    assert!(table.reserve(count(2)).await?.values().eq([1, 2]));
    Ok(())
}

/// F18.
async fn a_counter_ends_at_the_last_number<DB: Backend>(options: ConnectOptions<DB>) -> Outcome {
    let counter = created::<DB>(&options, i64::MAX - 4).await?;
    assert_eq!(counter.reserve(count(3)).await?.first(), Some(i64::MAX - 4));
    let exhausted = Some(CoordinationFailure::CounterExhausted);
    assert_eq!(failure(counter.reserve(count(3)).await), exhausted);
    assert_eq!(counter.reserve(count(2)).await?.first(), Some(i64::MAX - 1));
    for _ in 0..2 {
        assert_eq!(failure(counter.reserve(count(1)).await), exhausted);
    }
    Ok(())
}

/// F15, and a counter that nobody made.
async fn a_counter_that_is_gone_or_went_back_is_an_error<DB: Backend>(
    options: ConnectOptions<DB>,
) -> Outcome {
    let lost = Some(CoordinationFailure::StateLost);
    let counter = SqlCounter::<DB>::new(options.clone(), "orders")?;
    assert_eq!(
        failure(counter.reserve(count(1)).await),
        lost,
        "it was never made"
    );
    counter.create(1).await?;
    assert!(counter.reserve(count(100)).await?.values().eq(1..101));
    sql::<DB>(&options, "UPDATE ordid_counters SET value = 50").await?;
    // However often it is asked, it comes no nearer to the numbers that others have.
    for _ in 0..20 {
        let error = counter.reserve(count(10)).await.expect_err("it went back");
        let regressed = Some(CoordinationFailure::CeilingRegressed);
        assert_eq!(error.coordination_failure(), regressed);
        assert!(error.to_string().contains("has given 100"), "{error}");
    }
    // Once it is raised, it goes on.
    sql::<DB>(&options, "UPDATE ordid_counters SET value = 100").await?;
    assert_eq!(counter.reserve(count(1)).await?.first(), Some(101));
    sql::<DB>(&options, "DELETE FROM ordid_counters").await?;
    assert_eq!(failure(counter.reserve(count(1)).await), lost);
    for name in ["", "a b", "a'b", &"a".repeat(64)] {
        let refused = SqlCounter::<DB>::new(options.clone(), name);
        assert_eq!(failure(refused), Some(CoordinationFailure::Mismatch));
    }
    Ok(())
}

/// A transaction of the program is open, and rolled back.
async fn a_rollback_gives_no_number_back<DB: Backend>(options: ConnectOptions<DB>) -> Outcome {
    let counter = created::<DB>(&options, 1).await?;
    let mut connection = DB::Connection::connect_with(&options).await?;
    let transaction = connection.begin().await?;
    let first: Vec<i64> = counter.reserve(count(10)).await?.values().collect();
    // Its lock is gone: another one is not waited for.
    let second =
        tokio::time::timeout(Duration::from_secs(10), counter.reserve(count(10))).await??;
    transaction.rollback().await?;
    let third = counter.reserve(count(1)).await?;
    assert!(first.into_iter().eq(1..11) && second.values().eq(11..21) && third.values().eq([21]));
    Ok(())
}

/// F16, at each byte of the answer: it may be used or not, and is never given again.
async fn an_answer_that_is_lost_is_a_gap<DB: Backend + Network>(
    options: ConnectOptions<DB>,
) -> Outcome {
    let direct = created::<DB>(&options, 1).await?;
    let proxy = proxy_to::<DB>(&options).await?;
    let over = || -> Result<SqlCounter<DB>, Error> {
        let counter = SqlCounter::<DB>::new(DB::at(&options, proxy.port()), "orders")?;
        Ok(counter.with_timeout(Duration::from_secs(30)))
    };
    let first = over()?;
    let mut numbers: Vec<i64> = first.reserve(count(5)).await?.values().collect();
    // The traffic is read while the connection is open, because MySQL may also answer when it is closed.
    let whole = proxy.last_traffic();
    drop(first);
    let mut steps = Vec::new();
    for step in 0..6_u64 {
        let fault = match step {
            0 => Fault::Cut(At::Up(whole.up - 1)),
            1 => Fault::Cut(At::Up(whole.up)),
            _ => Fault::Cut(At::Down(whole.down - step * 3 + 5)),
        };
        proxy.plan([fault]);
        let answer = over()?.reserve(count(5)).await;
        let answer = answer.map(|segment| numbers.extend(segment.values()));
        let next = direct.reserve(count(5)).await?;
        let is_gap = next.first() > numbers.last().map(|last| last + 1);
        numbers.extend(next.values());
        steps.push((is_gap, fault, answer, proxy.last_traffic()));
    }
    proxy.plan([Fault::Swallow(whole.down - 1)]);
    let lost = over()?.reserve(count(5)).await;
    let seen = (whole, &steps, proxy.last_traffic());
    assert!(lost.is_err(), "{seen:?}");
    assert_eq!(failure(lost), Some(CoordinationFailure::Unavailable));
    numbers.extend(direct.reserve(count(5)).await?.values());
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    let gaps = steps.iter().filter(|(is_gap, ..)| *is_gap).count();
    assert!(gaps >= 4, "whole: {whole:?}, lost too early: {steps:?}");
    Ok(())
}

/// F17.
async fn a_connection_that_was_closed_while_idle_is_replaced<DB: Backend + Network>(
    options: ConnectOptions<DB>,
) -> Outcome {
    created::<DB>(&options, 1).await?;
    let proxy = proxy_to::<DB>(&options).await?;
    let counter = SqlCounter::<DB>::new(DB::at(&options, proxy.port()), "orders")?;
    let mut numbers: Vec<i64> = counter.reserve(count(5)).await?.values().collect();
    let first = proxy.last_traffic().up;
    // The connections to come break in the midst of the second reservation.
    let again = SqlCounter::<DB>::new(DB::at(&options, proxy.port()), "orders")?;
    proxy.plan([Fault::Cut(At::Up(first + 2))]);
    numbers.extend(again.reserve(count(5)).await?.values());
    for _ in 0..3 {
        numbers.extend(again.reserve(count(5)).await?.values());
    }
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    assert_eq!(numbers.len(), 25);
    assert_eq!(proxy.traffic().len(), 3, "one was replaced");
    Ok(())
}

async fn a_sequence_gives_blocks_of_its_increment(options: PgConnectOptions) -> Outcome {
    let sequence = Arc::new(PgSequence::new(options.clone(), "order_ids", count(20))?);
    assert_eq!(
        failure(sequence.reserve(count(1)).await),
        Some(CoordinationFailure::StateLost)
    );
    sequence.create().await?;
    sequence.create().await?;
    let numbers = reserved(&sequence, 8, 25, true).await?;
    let distinct: HashSet<i64> = numbers.iter().copied().collect();
    assert_eq!(distinct.len(), numbers.len());
    let segment = sequence.reserve(count(20)).await?;
    assert!(segment.values().eq(4_001..4_021), "200 blocks before");
    let error = sequence
        .reserve(count(21))
        .await
        .expect_err("more than a block");
    assert_eq!(
        error.to_string(),
        "not what was asked for: the sequence order_ids gives 20 numbers at once, and not 21: raise its increment"
    );
    // A generator asks for no more at once, also for a larger batch.
    let wait = WhenEmpty::Wait {
        max: Duration::from_secs(60),
    };
    let (keys, feeder) = SegmentGenerator::fed(Steps::DEFAULT, wait);
    let feeding = tokio::spawn(feeder.run(Arc::clone(&sequence), tokio::time::sleep));
    let made = tokio::task::spawn_blocking(move || {
        let mut made = Vec::new();
        for _ in 0..200 {
            made.push(keys.try_generate()?.into_raw());
        }
        for key in keys.reserve(100)? {
            made.push(key?.into_raw());
        }
        Ok::<_, Error>(made)
    });
    assert!(made.await??.into_iter().eq(4_021..4_321));
    feeding.await??;
    // Nobody else's table or function of that name is called.
    assert!(PgSequence::new(options, "order_ids'); --", count(1)).is_err());
    Ok(())
}

async fn a_sequence_that_was_altered_is_refused(options: PgConnectOptions) -> Outcome {
    let mismatch = Some(CoordinationFailure::Mismatch);
    // PostgreSQL 15 and later.
    let unlogged = "CREATE UNLOGGED SEQUENCE unlogged AS bigint INCREMENT BY 100";
    sql::<Postgres>(&options, unlogged).await?;
    let sequence = PgSequence::new(options.clone(), "unlogged", count(100))?;
    assert_eq!(failure(sequence.reserve(count(1)).await), mismatch);
    let logged = "ALTER SEQUENCE unlogged SET LOGGED";
    sql::<Postgres>(&options, logged).await?;
    assert!(sequence.reserve(count(1)).await?.first().is_some());

    let sequence = PgSequence::new(options.clone(), "ids", count(100))?;
    sequence.create().await?;
    assert_eq!(sequence.reserve(count(100)).await?.first(), Some(1));
    for (altered, back) in [
        ("INCREMENT BY 10", "INCREMENT BY 100"),
        ("CACHE 5", "CACHE 1"),
        ("CYCLE", "NO CYCLE"),
    ] {
        sql::<Postgres>(&options, &format!("ALTER SEQUENCE ids {altered}")).await?;
        assert_eq!(
            failure(sequence.reserve(count(1)).await),
            mismatch,
            "{altered}"
        );
        sql::<Postgres>(&options, &format!("ALTER SEQUENCE ids {back}")).await?;
        sequence.reserve(count(1)).await?;
    }
    // F15.
    sql::<Postgres>(&options, "ALTER SEQUENCE ids RESTART WITH 1").await?;
    let regressed = Some(CoordinationFailure::CeilingRegressed);
    let last = "SELECT last_value FROM ids";
    let mut connection = sqlx::PgConnection::connect_with(&options).await?;
    for round in 0..20 {
        assert_eq!(failure(sequence.reserve(count(1)).await), regressed);
        let last: i64 = sqlx::query_scalar(last).fetch_one(&mut connection).await?;
        assert_eq!(last, 1, "round {round}");
    }
    // Once it is raised, it goes on.
    sql::<Postgres>(&options, "ALTER SEQUENCE ids RESTART WITH 5001").await?;
    assert_eq!(sequence.reserve(count(1)).await?.first(), Some(5_001));
    assert_eq!(sequence.reserve(count(1)).await?.first(), Some(5_101));
    Ok(())
}

/// `nextval` waits for the ALTER, and is in a statement whose snapshot is older.
async fn a_sequence_that_is_altered_meanwhile_is_refused(options: PgConnectOptions) -> Outcome {
    let sequence = Arc::new(PgSequence::new(options.clone(), "ids", count(100))?);
    sequence.create().await?;
    assert_eq!(sequence.reserve(count(100)).await?.first(), Some(1));
    let mut connection = sqlx::PgConnection::connect_with(&options).await?;
    let mut open = connection.begin().await?;
    sqlx::query("ALTER SEQUENCE ids INCREMENT BY 10")
        .execute(&mut *open)
        .await?;
    let asked = Arc::clone(&sequence);
    let asking = tokio::spawn(async move { asked.reserve(count(100)).await });
    let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'ids'::regclass \
                 AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))";
    while !sqlx::query_scalar(waits).fetch_one(&mut *open).await? {
        assert!(!asking.is_finished(), "it waits for the ALTER");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    open.commit().await?;
    let mismatch = Some(CoordinationFailure::Mismatch);
    assert_eq!(failure(asking.await?), mismatch);
    assert_eq!(failure(sequence.reserve(count(1)).await), mismatch);
    Ok(())
}

/// `nextval` writes to the log once for 32 numbers, and the statements in between write nothing, so that their COMMIT waits
/// neither for the disk nor for the standby: who is promoted without that record gives the same numbers again.
async fn waits_for_a_standby(server: &Server) -> Outcome {
    let options: PgConnectOptions = server.url().parse()?;
    let sequence = || PgSequence::new(options.clone(), "ids", count(10));
    sequence()?.create().await?;
    // The standby never answers.
    for change in [
        "ALTER SYSTEM SET synchronous_standby_names = 'nobody'",
        "SELECT pg_reload_conf()",
    ] {
        sql::<Postgres>(&options, change).await?;
    }
    // The second one finds what the first has logged.
    for _ in 0..2 {
        let sequence = sequence()?.with_timeout(Duration::from_secs(2));
        let unavailable = Some(CoordinationFailure::Unavailable);
        assert_eq!(failure(sequence.reserve(count(10)).await), unavailable);
    }
    let allow = "ALTER SYSTEM RESET synchronous_standby_names";
    for change in [allow, "SELECT pg_reload_conf()"] {
        sql::<Postgres>(&options, change).await?;
    }
    assert!(sequence()?.reserve(count(10)).await?.first() > Some(10));
    Ok(())
}

/// F18.
async fn a_sequence_ends_at_the_last_number(options: PgConnectOptions) -> Outcome {
    let exhausted = Some(CoordinationFailure::CounterExhausted);
    let sequence = PgSequence::new(options.clone(), "ids", count(10))?;
    sequence.create().await?;
    let restart = format!("ALTER SEQUENCE ids RESTART WITH {}", i64::MAX - 14);
    sql::<Postgres>(&options, &restart).await?;
    assert_eq!(
        sequence.reserve(count(10)).await?.first(),
        Some(i64::MAX - 14)
    );
    // The block begins below the last number and ends above.
    assert_eq!(failure(sequence.reserve(count(10)).await), exhausted);
    for _ in 0..2 {
        assert_eq!(failure(sequence.reserve(count(1)).await), exhausted);
    }
    Ok(())
}
