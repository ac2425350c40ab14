//! A master and one replica: what of its writes is lost at a fail-over, and who notices.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU16, Ordering},
    },
    time::{Duration, Instant},
};

use libtest_mimic::Trial;
use ordid_core::{
    clock::Timestamp,
    coordination::{AsyncNodeAllocator, AsyncSegmentSource, CoordinationFailure, Grant},
};
use ordid_harness::Server;
use ordid_redis::{Reconnecting, RedisCounter, RedisLease};
use ordid_tests::{servers::Servers, trials::Outcome};
use redis::{
    Cmd, Pipeline, RedisFuture, RedisResult, Value,
    aio::{ConnectionLike, MultiplexedConnection},
};

use super::{AT_LAST, ONE, TEN, WITHIN, ask, wait};
use crate::redis_connection::connect;
use crate::stores::{ENDLESS, fails, failure, later, long, now, on_own_servers};

mod left;
mod takeovers;

/// Starts a master and its replica.
type Pair = fn() -> Result<[Server; 2], ordid_harness::Error>;

pub(super) fn add(servers: &Servers, trials: &mut Vec<Trial>) {
    let pair = || {
        let master = ordid_harness::redis()?;
        let replica = ordid_harness::redis_replica(&master)?;
        Ok([master, replica])
    };
    let name = "replicas::what_too_few_confirm_does_not_count";
    on_own_servers(trials, servers, "redis", name, pair, unconfirmed);
    let name = "replicas::a_failover_loses_what_none_confirmed";
    on_own_servers(trials, servers, "redis", name, pair, lost);
    let name = "replicas::a_failover_loses_nothing_that_was_confirmed";
    on_own_servers(trials, servers, "redis", name, pair, kept);
    let name = "replicas::a_failover_between_question_and_grant_is_noticed";
    on_own_servers(trials, servers, "redis", name, pair, in_between);
    left::add(servers, trials, pair);
    takeovers::add(servers, trials, pair);
}

async fn wait_for<T>(mut found: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = found().await {
            return found;
        }
        assert!(start.elapsed() < ENDLESS, "it does not come");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Cuts a replica off, as a network does: the other server is told nothing of it.
fn cut_off(replica: &Server) -> RedisResult<()> {
    // Nobody listens at port 1.
    ask(replica, &["REPLICAOF", "127.0.0.1", "1"])
}

/// Kills a master, and makes its replica the next one, as whoever watches over them does.
fn fail_over(master: &mut Server, replica: &Server) -> Outcome {
    master.kill()?;
    ask::<()>(replica, &["REPLICAOF", "NO", "ONE"])?;
    Ok(())
}

/// A replica that stands still, and one that is gone.
async fn unconfirmed([master, replica]: [Server; 2]) -> Outcome {
    let connection = connect(&master.url()).await?;
    let counter = RedisCounter::new(connection.clone(), "count").with_replicas(ONE, AT_LAST);
    let refused = counter.clone().with_replicas(ONE, WITHIN);
    counter.create(1).await?;
    let lease = RedisLease::new(connection, "lease", long(2)).with_replicas(ONE, AT_LAST);
    lease.create(Timestamp::MIN).await?;
    let grant = lease.acquire(now(), None).await?;
    assert_eq!(counter.reserve(TEN).await?.first(), Some(1));

    replica.pause()?;
    let (kind, words) = (
        CoordinationFailure::Unavailable,
        "0 of 1 replicas confirmed within 200ms; what was written may be lost at a fail-over",
    );
    fails(refused.reserve(TEN).await, kind, words);
    replica.resume()?;
    // A gap.
    assert_eq!(counter.reserve(TEN).await?.first(), Some(21));

    cut_off(&replica)?;
    wait("a master alone", || {
        let info = ask::<String>(&master, &["INFO", "replication"]).ok()?;
        info.contains("connected_slaves:0").then_some(())
    });
    fails(refused.reserve(TEN).await, kind, words);
    // Another connection has written nothing that anybody could lack, and is refused all the same.
    let other = connect(&master.url()).await?;
    let refused = RedisLease::new(other, "lease", long(2)).with_replicas(ONE, WITHIN);
    fails(
        refused.renew(&grant, later(now(), 1_000)).await,
        kind,
        words,
    );
    fails(refused.acquire(now(), None).await, kind, words);
    // Nothing was written for them: the holder goes on as soon as the replica does.
    ask::<()>(
        &replica,
        &["REPLICAOF", "127.0.0.1", &master.port().to_string()],
    )?;
    wait("the replica", || {
        let role = ask::<String>(&replica, &["INFO", "replication"]).ok()?;
        role.contains("master_link_status:up").then_some(())
    });
    lease.renew(&grant, later(now(), 1_000)).await?;
    Ok(())
}

/// A store that was master and is killed, a replica that lacks its last writes, and who notices.
async fn lost([mut master, replica]: [Server; 2]) -> Outcome {
    // As whoever watches over them tells where the master is.
    let port = Arc::new(AtomicU16::new(master.port()));
    let now_at = Arc::clone(&port);
    let connection = Reconnecting::new(move || {
        let url = format!("redis://127.0.0.1:{}/", now_at.load(Ordering::Relaxed));
        async move { connect(&url).await }
    });
    let counter = RedisCounter::new(connection.clone(), "count");
    counter.create(1).await?;
    let lease = RedisLease::new(connection.clone(), "lease", long(1));
    lease.create(Timestamp::MIN).await?;
    wait("what was created", || {
        let both = ask::<u32>(&replica, &["EXISTS", "count", "lease"]);
        (both.ok() == Some(2)).then_some(())
    });
    cut_off(&replica)?;
    let first = counter.reserve(TEN).await?;
    let held = lease.acquire(now(), None).await?;
    fail_over(&mut master, &replica)?;
    port.store(replica.port(), Ordering::Relaxed);

    // The numbers come twice: a source that is new cannot know how far the count was.
    let new = connect(&replica.url()).await?;
    let five = 5.try_into()?;
    let again = RedisCounter::new(new, "count").reserve(five).await?;
    assert_eq!(again.first(), first.first());
    // The source that had them notices that the count went back, once it is connected anew.
    let refused = counter.reserve(TEN).await;
    assert_eq!(failure(refused), CoordinationFailure::Unavailable);
    let noticed = counter.reserve(TEN).await;
    assert_eq!(failure(noticed), CoordinationFailure::CeilingRegressed);
    // The node is taken for free, too, but nobody gets time that may have been granted.
    let other = RedisLease::new(connection, "lease", long(1));
    let refused = other.acquire(now(), None).await;
    fails(
        refused,
        CoordinationFailure::Unavailable,
        "another server took over, which may lack the last grants; nodes are granted again in ",
    );
    let next = wait_for(async || other.acquire(now(), None).await.ok()).await;
    assert_eq!((next.node(), next.epoch()), (held.node(), held.epoch()));
    assert!(!overlap(&held, &next), "{held}, {next}");
    // The first holder is told at its next renewal.
    let renewed = other.renew(&held, later(held.floor(), 10)).await;
    assert_eq!(failure(renewed), CoordinationFailure::Fenced);
    // It is master now, as others are.
    other.renew(&next, now()).await?;
    other.release(&next, None).await?;
    let again = other.acquire(now(), None).await?;
    assert_eq!(again.epoch(), next.epoch() + 1);
    Ok(())
}

fn overlap(one: &Grant, other: &Grant) -> bool {
    one.node() == other.node() && one.floor() < other.ceiling() && other.floor() < one.ceiling()
}

/// The same with a replica that has to confirm.
async fn kept([mut master, replica]: [Server; 2]) -> Outcome {
    let before = connect(&master.url()).await?;
    let counter = RedisCounter::new(before.clone(), "count").with_replicas(ONE, AT_LAST);
    counter.create(1).await?;
    let lease = RedisLease::new(before, "lease", long(2)).with_replicas(ONE, AT_LAST);
    lease.create(Timestamp::MIN).await?;
    let first = counter.reserve(TEN).await?;
    let held = lease.acquire(now(), None).await?;
    cut_off(&replica)?;
    let counter = counter.with_replicas(ONE, WITHIN);
    let refused = counter.reserve(TEN).await;
    assert_eq!(failure(refused), CoordinationFailure::Unavailable);
    let lease = lease.with_replicas(ONE, WITHIN);
    let refused = lease.acquire(now(), None).await;
    assert_eq!(failure(refused), CoordinationFailure::Unavailable);
    fail_over(&mut master, &replica)?;

    let after = connect(&replica.url()).await?;
    let again = RedisCounter::new(after.clone(), "count")
        .reserve(TEN)
        .await?;
    assert_eq!(again.first(), first.first().map(|first| first + 10));
    let other = RedisLease::new(after.clone(), "lease", long(2));
    let next = wait_for(async || other.acquire(held.floor(), None).await.ok()).await;
    assert!(!overlap(&held, &next), "{held}, {next}");
    let renewed = other.renew(&held, later(held.floor(), 10)).await?;
    assert_eq!(renewed.epoch(), held.epoch());
    Ok(())
}

/// A connection to a master, and from the first swap on to its replica, which takes over right before.
#[derive(Clone)]
struct Between {
    master: MultiplexedConnection,
    replica: MultiplexedConnection,
    has_failed: Arc<AtomicBool>,
}

impl Between {
    async fn new(master: &Server, replica: &Server) -> RedisResult<Self> {
        Ok(Self {
            master: connect(&master.url()).await?,
            replica: connect(&replica.url()).await?,
            has_failed: Arc::default(),
        })
    }
}

impl ConnectionLike for Between {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        // `EVALSHA`, the script, the number of keys, the key, and the five arguments of a swap; the others have fewer.
        let is_swap = cmd.args_iter().count() == 9;
        if is_swap && !self.has_failed.swap(true, Ordering::Relaxed) {
            return Box::pin(async move {
                let mut promote = redis::cmd("REPLICAOF");
                promote.arg("NO").arg("ONE");
                promote.exec_async(&mut self.replica).await?;
                self.replica.req_packed_command(cmd).await
            });
        }
        match self.has_failed.load(Ordering::Relaxed) {
            true => self.replica.req_packed_command(cmd),
            false => self.master.req_packed_command(cmd),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        self.master.req_packed_commands(pipeline, offset, count)
    }

    fn get_db(&self) -> i64 {
        0
    }
}

/// The grant of another that the replica lacks was made after the question. What was read is the same on both.
async fn in_between([master, replica]: [Server; 2]) -> Outcome {
    let connection = Between::new(&master, &replica).await?;
    let lease = RedisLease::new(connection.master.clone(), "lease", long(1));
    lease.create(Timestamp::MIN).await?;
    wait("what was created", || {
        (ask::<u32>(&replica, &["EXISTS", "lease"]).ok() == Some(1)).then_some(())
    });
    let has_failed = Arc::clone(&connection.has_failed);
    let lease = RedisLease::new(connection, "lease", long(1));
    let asked = now();
    fails(
        lease.acquire(asked, None).await,
        CoordinationFailure::Unavailable,
        "another server took over",
    );
    assert!(has_failed.load(Ordering::Relaxed));
    let grant = wait_for(async || lease.acquire(now(), None).await.ok()).await;
    assert!(grant.floor() >= later(asked, 10_000), "{grant}");
    Ok(())
}
