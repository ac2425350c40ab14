//! A lock for each id on Redis.

use std::time::Duration;

use coordination_tour::redis_lock::RedisLockIds;
use libtest_mimic::Trial;
use ordid_core::coordination::{AsyncSegmentSource, CoordinationFailure};
use ordid_tests::{
    servers::Servers,
    stores::{Adder, a_count_ends, failure, numbers_come_once, own_name, says},
    trials::Outcome,
};
use redis::cmd;

use crate::redis_connection::{PATIENCE, connect};

pub(crate) fn add(servers: &Servers, trials: &mut Vec<Trial>) {
    let mut shared = Adder::new(trials, servers, "redis");
    shared.on("a_count_that_was_not_created_is_lost", not_created);
    shared.on("numbers_under_a_lock_come_once", locked_numbers);
    shared.on("a_count_ends", count_ends);
    shared.on("a_lock_that_expired_writes_nothing", expired_lock);
    shared.on("a_lock_in_the_way_is_waited_for", waits);
}

async fn not_created(url: String) -> Outcome {
    let locks = RedisLockIds::new(connect(&url).await?, own_name("lost-lock"));
    let reserved = locks.reserve(1.try_into()?).await;
    assert_eq!(failure(reserved), CoordinationFailure::StateLost);
    Ok(())
}

async fn locked_numbers(url: String) -> Outcome {
    let key = own_name("locked");
    let ids = RedisLockIds::new(connect(&url).await?, &key);
    ids.counter().create(7).await?;
    let make = async || {
        RedisLockIds::new(connect(&url).await.expect("Redis"), &key).with_patience(PATIENCE)
    };
    numbers_come_once(make, 7, 25, &[1]).await
}

async fn count_ends(url: String) -> Outcome {
    let ids = RedisLockIds::new(connect(&url).await?, own_name("ends-locked"));
    ids.counter().create(i64::MAX - 5).await?;
    a_count_ends(&ids).await
}

/// F3 and F4 of a lock: its holder was paused for longer than it lasts.
async fn expired_lock(url: String) -> Outcome {
    let mut connection = connect(&url).await?;
    let key = own_name("expired");
    let ids = RedisLockIds::new(connection.clone(), &key);
    ids.counter().create(1).await?;
    let one = 1.try_into()?;
    let paused = ids.lock().await?;
    assert_eq!(paused.reserve(one).await?.first(), Some(1));
    // While it is held, others wait, and not for ever.
    let impatient = ids.clone().with_patience(Duration::ZERO);
    let error = impatient.reserve(one).await.expect_err("the lock is held");
    let unavailable = Some(CoordinationFailure::Unavailable);
    assert_eq!(error.coordination_failure(), unavailable);
    says(&error, "another has held the lock");

    // The server forgets it, as it does at its time.
    let lock = format!("{key}:lock");
    let expires: bool = cmd("PEXPIRE")
        .arg(&lock)
        .arg(1)
        .query_async(&mut connection)
        .await?;
    assert!(expires, "it has a time");
    let patient = ids.clone().with_patience(PATIENCE);
    let next = patient.lock().await?;
    assert_eq!(
        failure(paused.reserve(one).await),
        CoordinationFailure::Fenced
    );
    assert_eq!(next.reserve(one).await?.first(), Some(2));
    // Nor does it free another's lock.
    assert!(!paused.unlock().await?);
    assert_eq!(next.reserve(one).await?.first(), Some(3));
    assert!(next.unlock().await?);
    // One that nobody gives back is free in the end.
    let hasty = ids.clone().with_expiry(Duration::from_millis(50));
    let _forgotten = hasty.lock().await?;
    assert_eq!(patient.reserve(one).await?.first(), Some(4));
    Ok(())
}

/// Somebody holds the lock until it expires.
async fn waits(url: String) -> Outcome {
    let connection = connect(&url).await?;
    let ids = RedisLockIds::new(connection, own_name("in-the-way"));
    ids.counter().create(6).await?;
    let ids = ids.with_patience(PATIENCE);
    // Only the last lock expires soon. The others are in use, so they must not expire on a slow machine.
    let hasty = ids.clone().with_expiry(Duration::from_millis(30));
    let one = 1.try_into()?;
    for id in 6..10 {
        let _forgotten = hasty.lock().await?;
        assert_eq!(ids.reserve(one).await?.first(), Some(id));
    }
    Ok(())
}
