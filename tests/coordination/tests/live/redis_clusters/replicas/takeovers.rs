//! Holders whose grants the new master knows, while it may lack those of others.

use std::{sync::atomic::Ordering, time::Duration};

use libtest_mimic::Trial;
use ordid_core::{
    clock::Timestamp,
    coordination::{AsyncNodeAllocator, CoordinationFailure},
};
use ordid_harness::Server;
use ordid_redis::RedisLease;
use ordid_tests::{servers::Servers, trials::Outcome};

use super::{Between, Pair, ask, cut_off, fail_over, overlap, wait, wait_for};
use crate::redis_connection::connect;
use crate::stores::{acquire_when_free, fails, failure, later, long, now, on_own_servers, short};

pub(super) fn add(servers: &Servers, trials: &mut Vec<Trial>, pair: Pair) {
    let name = "replicas::a_holder_that_slept_through_a_failover_is_fenced";
    on_own_servers(trials, servers, "redis", name, pair, slept);
    let name = "replicas::a_failover_between_question_and_renewal_is_noticed";
    on_own_servers(trials, servers, "redis", name, pair, renewed_in_between);
    let name = "replicas::a_renewal_notices_a_failover_first";
    on_own_servers(trials, servers, "redis", name, pair, renewed_first);
    let name = "replicas::a_holder_whose_last_renewal_was_lost_goes_on";
    on_own_servers(trials, servers, "redis", name, pair, lost_renewal);
    let name = "replicas::a_failover_of_an_older_hash_is_noticed";
    on_own_servers(trials, servers, "redis", name, pair, older_hash);
}

/// What a replica keeps of the only node.
fn kept(replica: &Server) -> Option<String> {
    ask(replica, &["HGET", "lease", "0"]).ok()?
}

/// One sleeps until its node is free, another gets it, and the new master knows only the first.
async fn slept([mut master, replica]: [Server; 2]) -> Outcome {
    let before = RedisLease::new(connect(&master.url()).await?, "lease", short(1));
    before.create(Timestamp::MIN).await?;
    let sleeper = before.acquire(now(), None).await?;
    wait("the first grant", || kept(&replica));
    cut_off(&replica)?;
    let lost = acquire_when_free(&before, now()).await;
    assert_eq!(lost.epoch(), sleeper.epoch() + 1);
    fail_over(&mut master, &replica)?;

    let after = RedisLease::new(connect(&replica.url()).await?, "lease", short(1));
    let words = "another server took over while the node was free, and may lack a grant to another";
    for _ in 0..2 {
        let renewed = after.renew(&sleeper, now()).await;
        fails(renewed, CoordinationFailure::Fenced, words);
    }
    let released = after.release(&sleeper, None).await;
    fails(released, CoordinationFailure::Fenced, words);
    let renewed = after.renew(&lost, now()).await;
    assert_eq!(failure(renewed), CoordinationFailure::CeilingRegressed);
    // The node is not lost.
    let next = wait_for(async || after.acquire(now(), None).await.ok()).await;
    assert!(
        !overlap(&next, &lost) && !overlap(&next, &sleeper),
        "{next}"
    );
    after.renew(&next, now()).await?;
    Ok(())
}

/// The same, where the sleeper has read its record on the old master.
async fn renewed_in_between([master, replica]: [Server; 2]) -> Outcome {
    let connection = Between::new(&master, &replica).await?;
    let before = RedisLease::new(connection.master.clone(), "lease", short(1));
    before.create(Timestamp::MIN).await?;
    let sleeper = before.acquire(now(), None).await?;
    wait("the grant", || kept(&replica));
    // Until it is free, and could have been granted to another.
    tokio::time::sleep(Duration::from_millis(700)).await;
    let has_failed = connection.has_failed.clone();
    let lease = RedisLease::new(connection, "lease", short(1));
    let renewed = lease.renew(&sleeper, now()).await;
    assert_eq!(failure(renewed), CoordinationFailure::Fenced);
    assert!(has_failed.load(Ordering::Relaxed));
    Ok(())
}

/// A holder that is awake goes on, and its renewal sets when free nodes are granted again.
async fn renewed_first([mut master, replica]: [Server; 2]) -> Outcome {
    let before = RedisLease::new(connect(&master.url()).await?, "lease", long(2));
    before.create(Timestamp::MIN).await?;
    let held = before.acquire(now(), None).await?;
    wait("the grant", || {
        let fields = ask::<u32>(&replica, &["HLEN", "lease"]);
        (fields.ok() == Some(3)).then_some(())
    });
    fail_over(&mut master, &replica)?;

    let after = RedisLease::new(connect(&replica.url()).await?, "lease", long(2));
    let seen = now();
    let held = after.renew(&held, seen).await?;
    tokio::time::sleep(Duration::from_secs(4)).await;
    // A window after the renewal, not after this question.
    let next = after.acquire(now(), None).await?;
    assert!(next.floor() >= later(seen, 10_000), "{next}");
    assert_ne!(next.node(), held.node());
    let held = after.renew(&held, now()).await?;
    after.release(&held, None).await?;
    Ok(())
}

/// The new master lacks the last renewal. It knows the grant, whose node was not free.
async fn lost_renewal([mut master, replica]: [Server; 2]) -> Outcome {
    let before = RedisLease::new(connect(&master.url()).await?, "lease", long(1));
    before.create(Timestamp::MIN).await?;
    let held = before.acquire(now(), None).await?;
    wait("the grant", || kept(&replica));
    cut_off(&replica)?;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let renewed = before.renew(&held, now()).await?;
    assert!(renewed.ceiling() > held.ceiling());
    fail_over(&mut master, &replica)?;

    let after = RedisLease::new(connect(&replica.url()).await?, "lease", long(1));
    let again = after.renew(&renewed, now()).await?;
    assert!(again.ceiling() >= renewed.ceiling() && again.epoch() == held.epoch());
    // A copy that has only the first grant gets no more time.
    let copy = after.renew(&held, now()).await;
    assert_eq!(failure(copy), CoordinationFailure::Fenced);
    after.release(&again, None).await?;
    Ok(())
}

/// A version of this crate before there were fail-overs has not written down the server.
async fn older_hash([mut master, replica]: [Server; 2]) -> Outcome {
    let before = RedisLease::new(connect(&master.url()).await?, "lease", long(1));
    before.create(Timestamp::MIN).await?;
    ask::<()>(&master, &["HDEL", "lease", "server"])?;
    wait("what was created", || {
        let fields = ask::<Vec<String>>(&replica, &["HKEYS", "lease"]).ok()?;
        (fields == ["floor"]).then_some(())
    });
    cut_off(&replica)?;
    // As that version does.
    let lost = before.acquire(now(), None).await?;
    fail_over(&mut master, &replica)?;

    let after = RedisLease::new(connect(&replica.url()).await?, "lease", long(1));
    let words = "another server took over";
    let refused = after.acquire(now(), None).await;
    fails(refused, CoordinationFailure::Unavailable, words);
    let next = wait_for(async || after.acquire(now(), None).await.ok()).await;
    assert!(!overlap(&lost, &next), "{lost}, {next}");
    Ok(())
}
