//! A lock for each id on ZooKeeper.

use std::time::Duration;

use coordination_tour::zookeeper_lock::ZooKeeperLockIds;
use libtest_mimic::Trial;
use ordid_core::coordination::{AsyncSegmentSource, CoordinationFailure};
use ordid_tests::{
    servers::Servers,
    stores::{Adder, ENDLESS, a_count_ends, failure, numbers_come_once, says},
    trials::Outcome,
};

use crate::zookeeper_session::{expire, own_path, session};

pub(crate) fn add(servers: &Servers, trials: &mut Vec<Trial>) {
    let mut shared = Adder::new(trials, servers, "zookeeper");
    shared.on("numbers_under_a_lock_come_once", locked_numbers);
    shared.on("a_count_ends", count_ends);
    shared.on("a_lock_that_was_lost_writes_nothing", lost_lock);
}

async fn locked_numbers(url: String) -> Outcome {
    let path = own_path("locked");
    let ids = ZooKeeperLockIds::new(session(&url), &path);
    ids.counter()?.create(7).await?;
    let make = async || {
        let ids = ZooKeeperLockIds::new(session(&url), &path);
        ids.with_patience(ENDLESS)
    };
    numbers_come_once(make, 7, 10, &[1]).await
}

async fn count_ends(url: String) -> Outcome {
    let ids = ZooKeeperLockIds::new(session(&url), own_path("ends-locked"));
    ids.counter()?.create(i64::MAX - 5).await?;
    a_count_ends(&ids).await
}

/// F3 and F4 of a lock, and F12: its holder's session ended while it did something else.
async fn lost_lock(url: String) -> Outcome {
    let path = own_path("lost-lock");
    let own = session(&url);
    let ids = ZooKeeperLockIds::new(own.clone(), &path);
    ids.counter()?.create(1).await?;
    let other = ZooKeeperLockIds::new(session(&url), &path).with_patience(ENDLESS);
    let one = 1.try_into()?;

    // Somebody removes the lock's node.
    let held = ids.lock().await?;
    assert_eq!(held.reserve(one).await?.first(), Some(1));
    let hasty = other.clone().with_patience(Duration::from_millis(200));
    let error = hasty.lock().await.expect_err("the lock is held");
    assert_eq!(
        error.coordination_failure(),
        Some(CoordinationFailure::Unavailable)
    );
    says(&error, "others have held the lock for 200ms");
    let client = own.client().await?;
    client.delete(held.path(), None).await?;
    assert_eq!(
        failure(held.reserve(one).await),
        CoordinationFailure::Fenced
    );
    let next = other.lock().await?;
    assert_eq!(next.reserve(one).await?.first(), Some(2));
    assert_eq!(
        failure(held.reserve(one).await),
        CoordinationFailure::Fenced
    );
    drop((held, next));

    let held = ids.lock().await?;
    expire(&url, &own).await?;
    let next = other.lock().await?;
    assert_eq!(next.reserve(one).await?.first(), Some(3));
    assert_eq!(
        failure(held.reserve(one).await),
        CoordinationFailure::Unavailable
    );
    drop((held, next));
    assert_eq!(ids.reserve(one).await?.first(), Some(4));
    Ok(())
}
