//! Leases, counts and sequential nodes on ZooKeeper.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    time::{Duration, Instant},
};

use libtest_mimic::Trial;
use ordid_core::{
    Error,
    clock::Timestamp,
    coordination::{AsyncNodeAllocator, AsyncSegmentSource, CoordinationFailure, LeaseTerms},
};
use ordid_harness::Server;
use ordid_tests::{
    proxy::{Fault, Proxy},
    servers::Servers,
    trials::Outcome,
};
use ordid_zookeeper::{SequentialNode, Session, ZooKeeperCounter, ZooKeeperLease};
use tokio::task::JoinSet;

use crate::stores::{
    Adder, ENDLESS, Store, acquire_when_free, earlier, fails, failure, hold,
    keys_end_at_the_ceiling, lasting, later, long, now, on_own_servers, says, short,
    the_first_copy_to_renew_goes_on,
};
use crate::zookeeper_session::{SESSION, connector, expire};
pub(crate) use crate::zookeeper_session::{own_path, session};

mod ensemble;

/// How long a session that is to end outlives its connection.
const SHORT_SESSION: Duration = Duration::from_secs(2);

pub fn add(servers: &Servers, trials: &mut Vec<Trial>) {
    let mut shared = Adder::new(trials, servers, "zookeeper");
    shared.on_any_store::<ZooKeeper>();
    shared.on("a_session_that_expired_is_fenced", expired);
    shared.on("what_was_not_created_is_lost", not_created);
    shared.on("a_record_that_went_back_is_noticed", went_back);
    shared.on("what_somebody_else_wrote_is_refused", damaged);
    shared.on("a_lost_answer_is_a_gap", lost_answer);
    shared.on("a_lost_renewal_is_fenced", lost_renewal);
    shared.on("a_lost_release_gives_the_node_back", lost_release);
    shared.on(
        "a_lost_renewal_does_not_keep_a_released_node",
        lost_renewal_and_release,
    );
    shared.on("a_dropped_renewal_keeps_no_node_for_ever", dropped_renewal);
    shared.on("a_lost_grant_is_a_gap", lost_grant);
    shared.on("the_first_copy_to_renew_goes_on", copies);
    shared.on("a_lease_that_was_revoked_is_fenced", revoked);
    shared.on("sequential_nodes_come_once", sequential_nodes);
    shared.on_own("a_server_that_is_away_ends_nothing", away);
    shared.on_own("keys_end_at_the_ceiling", keys_end);
    shared.on_own("a_server_without_its_data_is_an_error", without_data);
    on_own_servers(
        trials,
        servers,
        "zookeeper",
        "an_ensemble_changes_its_leader",
        ordid_harness::zookeeper_ensemble,
        ensemble::changes_its_leader,
    );
}

pub fn lease_of(session: Session, path: &str, terms: LeaseTerms) -> ZooKeeperLease {
    ZooKeeperLease::new(session, path, terms).expect("a path")
}

/// ZooKeeper, as a store.
enum ZooKeeper {}

impl Store for ZooKeeper {
    const SERVER: &'static str = "zookeeper";
    const NUMBERS: u32 = 20;

    type Lease = ZooKeeperLease;
    type Counter = ZooKeeperCounter;

    fn place(test: &str) -> String {
        own_path(test)
    }

    async fn lease(url: &str, path: &str, terms: LeaseTerms) -> ZooKeeperLease {
        lease_of(session(url), path, terms)
    }

    async fn create(lease: &ZooKeeperLease, floor: Timestamp) -> Result<bool, Error> {
        lease.create(floor).await
    }

    async fn counter(url: &str, path: &str) -> ZooKeeperCounter {
        ZooKeeperCounter::new(session(url), path).expect("a path")
    }

    async fn create_counter(counter: &ZooKeeperCounter, first: i64) -> Result<bool, Error> {
        counter.create(first).await
    }
}

/// What that process does.
pub async fn hold_node(url: &str, path: &str) -> Outcome {
    let session = Session::new(connector(SHORT_SESSION), url);
    hold(&lease_of(session, path, short(1))).await
}

/// F12: the holder's session is over, and so is its lease, whether or not another has the node.
async fn expired(url: String) -> Outcome {
    let path = own_path("expired");
    let own = session(&url);
    let lease = lease_of(own.clone(), &path, long(1));
    lease.create(Timestamp::MIN).await?;
    let grant = lease.acquire(now(), None).await?;
    expire(&url, &own).await?;
    fails(
        lease.renew(&grant, now()).await,
        CoordinationFailure::Fenced,
        "its session has expired",
    );
    let released = lease.release(&grant, None).await;
    assert_eq!(failure(released), CoordinationFailure::Fenced);
    let other = lease_of(session(&url), &path, long(1));
    let next = acquire_when_free(&other, earlier(now(), 60_000)).await;
    assert_eq!(next.floor(), grant.ceiling());
    let error = lease.renew(&grant, now()).await.unwrap_err();
    says(&error, "the node was granted to another");
    // Nobody holds what the session had.
    let acquired = lease.acquire(now(), None).await;
    assert_eq!(failure(acquired), CoordinationFailure::NoFreeNode);
    Ok(())
}

/// F13, and F1: nothing begins by itself.
async fn not_created(url: String) -> Outcome {
    let lease = lease_of(session(&url), &own_path("lost"), short(1));
    let error = lease.acquire(now(), None).await.unwrap_err();
    let lost = Some(CoordinationFailure::StateLost);
    assert_eq!(error.coordination_failure(), lost);
    says(
        &error,
        "the store has lost its state: ZooKeeper has no node /ordid/ordid-lost-",
    );
    says(&error, "call `ZooKeeperLease::create` once");
    let counter = ZooKeeperCounter::new(session(&url), own_path("lost-count"))?;
    let reserved = counter.reserve(1.try_into()?).await;
    assert_eq!(failure(reserved), CoordinationFailure::StateLost);
    let ids = SequentialNode::new(session(&url), own_path("lost-nodes"))?;
    assert_eq!(failure(ids.next_id().await), CoordinationFailure::StateLost);

    // Nobody listens at port 1.
    let nobody = Session::new(connector(SESSION).with_fail_eagerly(), "127.0.0.1:1");
    let lease = lease_of(nobody.clone(), "/nobody", short(1));
    let acquired = lease.acquire(now(), None).await;
    assert_eq!(failure(acquired), CoordinationFailure::Unavailable);
    let counter = ZooKeeperCounter::new(nobody, "/nobody")?;
    let reserved = counter.reserve(1.try_into()?).await;
    assert_eq!(failure(reserved), CoordinationFailure::Unavailable);
    Ok(())
}

/// F15: restored from a copy.
async fn went_back(url: String) -> Outcome {
    let own = session(&url);
    let client = own.client().await?;
    let path = own_path("went-back");
    let lease = lease_of(own.clone(), &path, long(1));
    lease.create(Timestamp::MIN).await?;
    let grant = lease.acquire(now(), None).await?;
    let node = format!("{path}/0");
    let (copy, _) = client.get_data(&node).await?;
    let renewed = lease.renew(&grant, later(grant.floor(), 10)).await?;
    client.set_data(&node, &copy, None).await?;
    let again = lease.renew(&renewed, now()).await;
    assert_eq!(failure(again), CoordinationFailure::CeilingRegressed);

    let path = own_path("count-back");
    let counter = ZooKeeperCounter::new(own, &path)?;
    counter.create(1).await?;
    counter.reserve(100.try_into()?).await?;
    client.set_data(&path, b"50", None).await?;
    let reserved = counter.reserve(1.try_into()?).await;
    assert_eq!(failure(reserved), CoordinationFailure::CeilingRegressed);
    Ok(())
}

async fn damaged(url: String) -> Outcome {
    let own = session(&url);
    let client = own.client().await?;
    let path = own_path("damaged");
    let lease = lease_of(own.clone(), &path, long(1));
    lease.create(Timestamp::MIN).await?;
    let grant = lease.acquire(now(), None).await?;
    client.set_data(&format!("{path}/0"), b"4", None).await?;
    let error = lease.renew(&grant, now()).await.unwrap_err();
    let mismatch = Some(CoordinationFailure::Mismatch);
    assert_eq!(error.coordination_failure(), mismatch);
    says(
        &error,
        "/0: it holds `4`, which is not what ordid-zookeeper writes",
    );
    client.set_data(&path, b"many", None).await?;
    let acquired = lease.acquire(now(), None).await;
    assert_eq!(failure(acquired), CoordinationFailure::Mismatch);
    let counter = ZooKeeperCounter::new(own, &path)?;
    let reserved = counter.reserve(1.try_into()?).await;
    assert_eq!(failure(reserved), CoordinationFailure::Mismatch);
    let negative = counter.create(-1).await;
    assert_eq!(failure(negative), CoordinationFailure::Mismatch);
    Ok(())
}

/// The bytes of an answer to a write: its length, a header, and what is known of the node.
const WRITTEN: u64 = 4 + 16 + 68;

/// A proxy before the server of this address, and the address that leads through it.
async fn through_proxy(url: &str) -> Outcome<(Proxy, String)> {
    let address = url.trim_start_matches("tcp://").trim_end_matches('/');
    let address: SocketAddr = address.parse()?;
    let proxy = Proxy::start(address).await?;
    let through = format!("127.0.0.1:{}", proxy.port());
    Ok((proxy, through))
}

/// Leases that are new, and in another session, which the proxy is about to see, the same.
async fn new_through(url: &str, through: &str, test: &str) -> Outcome<[ZooKeeperLease; 2]> {
    let path = own_path(test);
    let direct = lease_of(session(url), &path, long(1));
    direct.create(Timestamp::MIN).await?;
    Ok([direct, lease_of(session(through), &path, long(1))])
}

/// F16 of a renewal: whoever asked cannot know, and is refused if the ceiling has moved.
async fn lost_renewal(url: String) -> Outcome {
    let (proxy, through) = through_proxy(&url).await?;
    // What a grant and a renewal are answered in a new session: as much each time.
    let [_, lease] = new_through(&url, &through, "lost-renewal-0").await?;
    let grant = lease.acquire(now(), None).await?;
    lease.renew(&grant, later(grant.floor(), 500)).await?;
    let whole = proxy.last_traffic().down;

    // It writes its owner's node, which moves nothing, and then the ceiling.
    for (attempt, writes) in [(1, 2), (2, 1)] {
        let test = format!("lost-renewal-{attempt}");
        let [direct, lease] = new_through(&url, &through, &test).await?;
        proxy.plan([Fault::Swallow(whole - writes * WRITTEN)]);
        let grant = lease.acquire(now(), None).await?;
        let at = later(grant.floor(), 500);
        let lost = lease.renew(&grant, at).await;
        assert_eq!(failure(lost), CoordinationFailure::Unavailable);
        // In the same session, over another connection.
        let again = lease.renew(&grant, at).await;
        if writes == 1 {
            let words = "a renewal whose answer was lost";
            fails(again, CoordinationFailure::Fenced, words);
        } else {
            again?;
        }
        // Whoever comes next begins behind it, heard or not. A holder that was refused has given its node back, though its
        // session goes on.
        if writes == 2 {
            drop(lease);
        }
        let next = acquire_when_free(&direct, grant.floor()).await;
        assert_eq!(next.floor(), later(at, 3_000));
    }
    Ok(())
}

/// F16 of a release, at its first question and at its last answer. The session goes on, and nobody holds the node.
async fn lost_release(url: String) -> Outcome {
    let (proxy, through) = through_proxy(&url).await?;
    let [_, lease] = new_through(&url, &through, "lost-release-0").await?;
    let grant = lease.acquire(now(), None).await?;
    let acquired = proxy.last_traffic().down;
    lease.release(&grant, None).await?;
    let whole = proxy.last_traffic().down;

    for (at, cut, is_done) in [(1, acquired, false), (2, whole - 1, true)] {
        for again in [false, true] {
            // As long as the first one: ZooKeeper answers with the path.
            let test = format!("lost-release-{}", at + 2 * u32::from(again));
            let [direct, lease] = new_through(&url, &through, &test).await?;
            proxy.plan([Fault::Swallow(cut)]);
            let grant = lease.acquire(now(), None).await?;
            let lost = lease.release(&grant, None).await;
            assert_eq!(failure(lost), CoordinationFailure::Unavailable);
            // A release may be repeated, and otherwise the next acquisition gives the node back.
            let next = if again {
                lease.release(&grant, None).await?;
                direct.acquire(grant.floor(), None).await?
            } else {
                lease.acquire(grant.floor(), None).await?
            };
            assert_eq!(next.epoch(), 2);
            let is_unused = is_done || again;
            let floor = if is_unused {
                grant.floor()
            } else {
                grant.ceiling()
            };
            assert_eq!(next.floor(), floor);
        }
    }
    Ok(())
}

/// F16 of a renewal, after which the holder stops: its release is refused, and nobody holds the node, though the session
/// goes on.
async fn lost_renewal_and_release(url: String) -> Outcome {
    let (proxy, through) = through_proxy(&url).await?;
    let [_, lease] = new_through(&url, &through, "lost-renewal-released-0").await?;
    let grant = lease.acquire(now(), None).await?;
    lease.renew(&grant, later(grant.floor(), 500)).await?;
    let whole = proxy.last_traffic().down;

    let [direct, lease] = new_through(&url, &through, "lost-renewal-released-1").await?;
    proxy.plan([Fault::Swallow(whole - WRITTEN)]);
    let grant = lease.acquire(now(), None).await?;
    let at = later(grant.floor(), 500);
    let lost = lease.renew(&grant, at).await;
    assert_eq!(failure(lost), CoordinationFailure::Unavailable);
    let released = lease.release(&grant, None).await;
    assert_eq!(failure(released), CoordinationFailure::Fenced);
    let next = direct.acquire(grant.floor(), None).await?;
    assert_eq!(next.floor(), later(at, 3_000));
    drop(lease);
    Ok(())
}

/// Nobody waits for the answer to a renewal, and the holder asks for nothing any more: its node comes free after the time to
/// live, though its session goes on.
async fn dropped_renewal(url: String) -> Outcome {
    let (proxy, through) = through_proxy(&url).await?;
    let of = |session: Session, path: &str| lease_of(session, path, short(1));
    let paths = [0, 1].map(|at| own_path(&format!("dropped-renewal-{at}")));
    let own = session(&url);
    for path in &paths {
        of(own.clone(), path).create(Timestamp::MIN).await?;
    }
    let lease = of(session(&through), &paths[0]);
    let grant = lease.acquire(now(), None).await?;
    lease.renew(&grant, later(grant.floor(), 100)).await?;
    let whole = proxy.last_traffic().down;

    let lease = of(session(&through), &paths[1]);
    proxy.plan([Fault::Swallow(whole - WRITTEN)]);
    let grant = lease.acquire(now(), None).await?;
    let at = later(grant.floor(), 100);
    let record = format!("1 {}", later(at, 300).as_unix_millis());
    let client = own.client().await?;
    let is_written = async {
        let node = format!("{}/0", paths[1]);
        while client.get_data(&node).await?.0 != record.as_bytes() {
            tokio::task::yield_now().await;
        }
        Outcome::Ok(())
    };
    tokio::select! {
        written = is_written => written?,
        // This takes longer, but not on every machine.
        lost = lease.renew(&grant, at) => assert_eq!(failure(lost), CoordinationFailure::Unavailable),
    }
    let start = Instant::now();
    let next = loop {
        let error = match lease.acquire(grant.floor(), None).await {
            Ok(next) => break next,
            Err(error) => error,
        };
        // The first of them may be asked over the connection without answers.
        let failure = error.coordination_failure();
        let is_held = Some(CoordinationFailure::NoFreeNode);
        let is_silent = Some(CoordinationFailure::Unavailable);
        assert!(failure == is_held || failure == is_silent, "{error}");
        assert!(start.elapsed() < ENDLESS, "no node comes free");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!((next.epoch(), next.floor()), (2, later(at, 300)));
    Ok(())
}

/// F16 of an acquisition: nobody makes keys of the time that was granted unheard.
async fn lost_grant(url: String) -> Outcome {
    let (proxy, through) = through_proxy(&url).await?;
    let [_, lease] = new_through(&url, &through, "lost-grant-0").await?;
    lease.acquire(now(), None).await?;
    let whole = proxy.last_traffic().down;
    let [direct, lease] = new_through(&url, &through, "lost-grant-1").await?;
    proxy.plan([Fault::Swallow(whole - WRITTEN)]);
    let at = now();
    let lost = lease.acquire(at, None).await;
    assert_eq!(failure(lost), CoordinationFailure::Unavailable);
    // It has given the node back, though its session goes on.
    let next = direct.acquire(earlier(at, 5_000), None).await?;
    assert_eq!(next.floor(), later(at, 3_000));
    let acquired = lease.acquire(at, None).await;
    assert_eq!(failure(acquired), CoordinationFailure::NoFreeNode);
    Ok(())
}

/// In the same session: a copy of a machine has that, too.
async fn copies(url: String) -> Outcome {
    let lease = lease_of(session(&url), &own_path("copies"), long(4));
    lease.create(Timestamp::MIN).await?;
    the_first_copy_to_renew_goes_on(&lease, &lease.clone()).await
}

/// F14: an operator has taken the node from its holder.
async fn revoked(url: String) -> Outcome {
    let own = session(&url);
    let path = own_path("revoked");
    let lease = lease_of(own.clone(), &path, long(1));
    lease.create(Timestamp::MIN).await?;
    let grant = lease.acquire(now(), None).await?;
    let client = own.client().await?;
    client.delete(&format!("{path}/0/owner"), None).await?;
    let renewed = lease.renew(&grant, now()).await;
    assert_eq!(failure(renewed), CoordinationFailure::Fenced);
    let released = lease.release(&grant, None).await;
    assert_eq!(failure(released), CoordinationFailure::Fenced);
    let other = lease_of(session(&url), &path, long(1));
    let next = other.acquire(earlier(now(), 60_000), None).await?;
    assert_eq!(next.floor(), grant.ceiling());
    Ok(())
}

/// F16: the numbers of an answer that nobody heard are never used.
async fn lost_answer(url: String) -> Outcome {
    let (proxy, through) = through_proxy(&url).await?;
    let path = own_path("lost-answer");
    ZooKeeperCounter::new(session(&url), &path)?
        .create(1_000)
        .await?;
    let counter = || ZooKeeperCounter::new(session(&through), &path);
    let ten = 10.try_into()?;
    let reserved = counter()?.reserve(ten).await?;
    assert_eq!(reserved.first(), Some(1_000));
    proxy.plan([Fault::Swallow(proxy.last_traffic().down - WRITTEN)]);
    let counter = counter()?;
    let lost = counter.reserve(ten).await;
    assert_eq!(failure(lost), CoordinationFailure::Unavailable);
    // They are a gap; and the session goes on, over another connection.
    assert_eq!(counter.reserve(ten).await?.first(), Some(1_020));
    Ok(())
}

async fn sequential_nodes(url: String) -> Outcome {
    let path = own_path("nodes");
    let ids = SequentialNode::new(session(&url), &path)?;
    assert!(ids.create(1_000).await?);
    assert!(!ids.create(1).await?, "it is there");
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let ids = SequentialNode::new(session(&url), &path)?;
        tasks.spawn(async move {
            let mut made = Vec::new();
            for _ in 0..20 {
                let id = ids.next_id().await?;
                assert!(made.last() < Some(&id), "they rise");
                made.push(id);
            }
            Ok::<_, ordid_core::Error>(made)
        });
    }
    let mut made = BTreeSet::new();
    while let Some(ids) = tasks.join_next().await {
        made.extend(ids??);
    }
    assert!(made.into_iter().eq(1_000..1_160));
    // Nothing stays behind.
    let client = session(&url).client().await?;
    let start = Instant::now();
    while !client.list_children(&path).await?.is_empty() {
        assert!(start.elapsed() < ENDLESS, "nodes stay behind");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// F2 and F12: gone while a node is held, and back with what it had, sessions included.
async fn away(mut server: Server) -> Outcome {
    let own = session(&server.url());
    let lease = lease_of(own.clone(), "/lease", long(1));
    lease.create(Timestamp::MIN).await?;
    let counter = ZooKeeperCounter::new(own.clone(), "/count")?;
    counter.create(1).await?;
    let grant = lease.acquire(now(), None).await?;
    counter.reserve(10.try_into()?).await?;
    server.kill()?;
    let (renewed, reserved) =
        tokio::join!(lease.renew(&grant, now()), counter.reserve(10.try_into()?));
    assert_eq!(failure(renewed), CoordinationFailure::Unavailable);
    assert_eq!(failure(reserved), CoordinationFailure::Unavailable);

    server.restart()?;
    let start = Instant::now();
    let renewed = loop {
        match lease.renew(&grant, later(grant.floor(), 1_000)).await {
            Ok(renewed) => break Some(renewed),
            Err(error) => match error.coordination_failure() {
                // The client gave its session up, where that took longer than the session.
                Some(CoordinationFailure::Fenced) => break None,
                Some(CoordinationFailure::Unavailable) => {
                    assert!(start.elapsed() < ENDLESS, "it does not connect: {error}");
                }
                _ => return Err(error.into()),
            },
        }
    };
    let held = renewed.unwrap_or(grant);
    assert_eq!(held.epoch(), grant.epoch());
    assert!(counter.reserve(10.try_into()?).await?.first() >= Some(11));
    let next = match renewed {
        Some(renewed) => {
            lease.release(&renewed, None).await?;
            lease.acquire(earlier(now(), 60_000), None).await?
        }
        None => acquire_when_free(&lease, earlier(now(), 60_000)).await,
    };
    assert_eq!(next.epoch(), grant.epoch() + 1);
    Ok(())
}

async fn keys_end(server: Server) -> Outcome {
    let lease = lease_of(session(&server.url()), "/lease", lasting(1));
    lease.create(Timestamp::MIN).await?;
    keys_end_at_the_ceiling(lease, server).await
}

/// F13: killed, and started without what it had.
async fn without_data(mut server: Server) -> Outcome {
    let own = session(&server.url());
    let lease = lease_of(own.clone(), "/app/lease", long(1));
    lease.create(Timestamp::MIN).await?;
    let grant = lease.acquire(now(), None).await?;
    let counter = ZooKeeperCounter::new(own.clone(), "/app/count")?;
    counter.create(1).await?;
    counter.reserve(10.try_into()?).await?;

    server.kill()?;
    std::fs::remove_dir_all(server.folder().join("data/version-2"))?;
    server.restart()?;
    // The server does not know the session, either.
    let start = Instant::now();
    let error = loop {
        let error = lease.renew(&grant, now()).await.unwrap_err();
        if error.coordination_failure() != Some(CoordinationFailure::Unavailable) {
            break error;
        }
        assert!(start.elapsed() < ENDLESS, "it does not connect: {error}");
    };
    let lost = Some(CoordinationFailure::StateLost);
    assert_eq!(error.coordination_failure(), lost, "{error}");
    assert_eq!(
        failure(lease.acquire(now(), None).await),
        CoordinationFailure::StateLost
    );
    for _ in 0..2 {
        let reserved = counter.reserve(10.try_into()?).await;
        assert_eq!(failure(reserved), CoordinationFailure::StateLost);
    }

    // Somebody says from where.
    let floor = later(grant.ceiling(), 1);
    assert!(lease.create(floor).await?);
    let next = lease.acquire(earlier(now(), 60_000), None).await?;
    assert_eq!(next.floor(), floor);
    let renewed = lease.renew(&grant, now()).await;
    // The same node and grant, but not the same time.
    assert_eq!(failure(renewed), CoordinationFailure::Fenced);
    counter.create(1_000).await?;
    assert_eq!(counter.reserve(1.try_into()?).await?.first(), Some(1_000));
    Ok(())
}
