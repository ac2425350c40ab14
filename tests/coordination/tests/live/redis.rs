//! Leases and counts on Redis.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use libtest_mimic::Trial;
use ordid_core::{
    clock::Timestamp,
    coordination::{
        AsyncNodeAllocator, AsyncSegmentSource, CoordinationFailure, Grant, NodeAllocator,
        SegmentSource,
    },
};
use ordid_harness::Server;
use ordid_redis::{Blocking, RedisCounter, RedisLease};
use ordid_tests::{
    proxy::{Fault, Proxy},
    servers::Servers,
    trials::Outcome,
};
use redis::{
    Client, RedisResult,
    aio::{ConnectionManager, MultiplexedConnection},
    cmd,
};

use crate::stores::{
    Adder, ENDLESS, Holder, Threads, a_count_ends, a_killed_holder_leaves_a_gap,
    a_paused_holder_is_fenced, acquire_when_free, clocks_cannot_bring_a_time_back, earlier,
    failure, hold, keys_end_at_the_ceiling, later, long, nodes_run_out, now, numbers_come_once,
    own_name, says, seconds, short, starters_get_distinct_nodes, the_first_copy_to_renew_goes_on,
};

/// How long an answer may take on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(20);

pub fn add(servers: &Servers, trials: &mut Vec<Trial>) {
    let mut shared = Adder {
        trials,
        servers,
        server: "redis",
    };
    shared.on("starters_get_distinct_nodes", starters);
    shared.on("nodes_run_out", run_out);
    shared.on("clocks_cannot_bring_a_time_back", clocks);
    shared.on("a_paused_holder_is_fenced", paused);
    shared.on("a_killed_holder_leaves_a_gap", killed);
    shared.on("what_was_not_created_is_lost", not_created);
    shared.on("a_record_that_went_back_is_noticed", went_back);
    shared.on("what_somebody_else_wrote_is_refused", damaged);
    shared.on("a_lost_answer_is_a_gap", lost_answer);
    shared.on("a_lost_renewal_is_fenced", lost_renewal);
    shared.on("a_lost_grant_is_a_gap", lost_grant);
    shared.on("the_first_copy_to_renew_goes_on", copies);
    shared.on("numbers_come_once", numbers);
    shared.on("a_count_ends", count_ends);
    shared.on("a_blocking_connection_does_it_all", blocking);
    shared.on_own("a_server_that_is_away_ends_nothing", away);
    shared.on_own("keys_end_at_the_ceiling", keys_end);
    shared.on_own("a_server_without_its_data_is_an_error", without_data);
    shared.on_own("a_copy_that_lags_behind_is_noticed", lagging);
}

pub async fn connect(url: &str) -> RedisResult<MultiplexedConnection> {
    let config = redis::AsyncConnectionConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(PATIENCE));
    let client = Client::open(url)?;
    client
        .get_multiplexed_async_connection_with_config(&config)
        .await
}

async fn field(
    connection: &mut MultiplexedConnection,
    key: &str,
    node: u64,
) -> RedisResult<String> {
    cmd("HGET").arg(key).arg(node).query_async(connection).await
}

async fn set_field(
    connection: &mut MultiplexedConnection,
    key: &str,
    node: u64,
    record: &str,
) -> RedisResult<()> {
    let mut set = cmd("HSET");
    set.arg(key).arg(node).arg(record);
    set.exec_async(connection).await
}

pub fn threads(url: &str) -> Blocking {
    Blocking::new(Client::open(url).expect("a URL"), PATIENCE)
}

async fn starters(url: String) -> Outcome {
    let key = own_name("starters");
    starters_get_distinct_nodes(move || {
        let (url, key) = (url.clone(), key.clone());
        async move {
            let lease = RedisLease::new(connect(&url).await.expect("Redis"), key, long(16));
            lease.create(Timestamp::MIN).await.expect("made");
            lease
        }
    })
    .await;
    Ok(())
}

async fn run_out(url: String) -> Outcome {
    let key = own_name("run-out");
    let connection = connect(&url).await?;
    let leases = [(); 4].map(|()| RedisLease::new(connection.clone(), &key, long(3)));
    assert!(leases[0].create(Timestamp::MIN).await?);
    assert!(!leases[1].create(now()).await?, "it is there");
    nodes_run_out(&leases).await
}

async fn clocks(url: String) -> Outcome {
    let lease = RedisLease::new(connect(&url).await?, own_name("clocks"), long(1));
    lease.create(Timestamp::MIN).await?;
    clocks_cannot_bring_a_time_back(&lease).await
}

/// A process that holds the only node, through a connection for threads.
async fn holder(url: &str, test: &str) -> RedisResult<(Holder, RedisLease<MultiplexedConnection>)> {
    let key = own_name(test);
    let lease = RedisLease::new(connect(url).await?, &key, short(1));
    lease.create(Timestamp::MIN).await.expect("made");
    let holder = Holder::start("redis", url, &key)?;
    Ok((holder, lease))
}

/// What that process does.
pub async fn hold_node(url: &str, key: &str) -> Outcome {
    hold(&Threads(RedisLease::new(threads(url), key, short(1)))).await
}

async fn paused(url: String) -> Outcome {
    let (holder, lease) = holder(&url, "paused").await?;
    a_paused_holder_is_fenced(holder, &lease).await;
    Ok(())
}

async fn killed(url: String) -> Outcome {
    let (holder, lease) = holder(&url, "killed").await?;
    a_killed_holder_leaves_a_gap(holder, &lease).await;
    Ok(())
}

/// F13, and F1: nothing begins by itself.
async fn not_created(url: String) -> Outcome {
    let connection = connect(&url).await?;
    let lease = RedisLease::new(connection.clone(), own_name("lost"), short(1));
    let error = AsyncNodeAllocator::acquire(&lease, now(), None)
        .await
        .unwrap_err();
    says(
        &error,
        "the store has lost its state: Redis has no key ordid-lost-",
    );
    says(&error, "call `RedisLease::create` once");
    assert_eq!(
        error.coordination_failure(),
        Some(CoordinationFailure::StateLost)
    );
    let counter = RedisCounter::new(connection, own_name("lost-count"));
    let reserved = counter.reserve(1.try_into()?).await;
    assert_eq!(failure(reserved), CoordinationFailure::StateLost);

    // Nobody listens at port 1.
    let nobody = Blocking::new(Client::open("redis://127.0.0.1:1/")?, PATIENCE);
    let lease = RedisLease::new(nobody.clone(), "nobody", short(1));
    let acquired = NodeAllocator::acquire(&lease, now(), None);
    assert_eq!(failure(acquired), CoordinationFailure::Unavailable);
    let reserved = SegmentSource::reserve(&RedisCounter::new(nobody, "nobody"), 1.try_into()?);
    assert_eq!(failure(reserved), CoordinationFailure::Unavailable);
    Ok(())
}

/// F15: restored from a copy.
async fn went_back(url: String) -> Outcome {
    let mut connection = connect(&url).await?;
    let key = own_name("went-back");
    let lease = RedisLease::new(connection.clone(), &key, long(1));
    lease.create(Timestamp::MIN).await?;
    let grant = AsyncNodeAllocator::acquire(&lease, now(), None).await?;
    let copy = field(&mut connection, &key, grant.node()).await?;
    let renewed = AsyncNodeAllocator::renew(&lease, &grant, later(now(), 10)).await?;
    set_field(&mut connection, &key, grant.node(), &copy).await?;
    let again = AsyncNodeAllocator::renew(&lease, &renewed, now()).await;
    assert_eq!(failure(again), CoordinationFailure::CeilingRegressed);
    cmd("HDEL")
        .arg(&key)
        .arg(grant.node())
        .exec_async(&mut connection)
        .await?;
    let again = AsyncNodeAllocator::renew(&lease, &renewed, now()).await;
    assert_eq!(failure(again), CoordinationFailure::CeilingRegressed);

    let key = own_name("count-back");
    let counter = RedisCounter::new(connection.clone(), &key);
    counter.create(1).await?;
    counter.reserve(100.try_into()?).await?;
    cmd("SET")
        .arg(&key)
        .arg(50)
        .exec_async(&mut connection)
        .await?;
    let reserved = counter.reserve(1.try_into()?).await;
    assert_eq!(failure(reserved), CoordinationFailure::CeilingRegressed);
    Ok(())
}

async fn damaged(url: String) -> Outcome {
    let mut connection = connect(&url).await?;
    let key = own_name("damaged");
    let lease = RedisLease::new(connection.clone(), &key, long(1));
    let counter = RedisCounter::new(connection.clone(), &key);
    lease.create(Timestamp::MIN).await?;
    // A hash is no count.
    let reserved = counter.reserve(1.try_into()?).await;
    assert_eq!(failure(reserved), CoordinationFailure::Mismatch);
    set_field(&mut connection, &key, 0, "1 2").await?;
    let error = AsyncNodeAllocator::acquire(&lease, now(), None)
        .await
        .unwrap_err();
    assert_eq!(
        error.coordination_failure(),
        Some(CoordinationFailure::Mismatch)
    );
    says(
        &error,
        "field 0 is `1 2`, which is not what ordid-redis writes",
    );
    cmd("DEL").arg(&key).exec_async(&mut connection).await?;
    // Nor is a text, and a text is no hash.
    cmd("SET")
        .arg(&key)
        .arg("many")
        .exec_async(&mut connection)
        .await?;
    let reserved = counter.reserve(1.try_into()?).await;
    assert_eq!(failure(reserved), CoordinationFailure::Mismatch);
    let acquired = AsyncNodeAllocator::acquire(&lease, now(), None).await;
    assert_eq!(failure(acquired), CoordinationFailure::Mismatch);
    assert_eq!(
        failure(lease.create(now()).await),
        CoordinationFailure::Mismatch
    );
    assert_eq!(
        failure(counter.create(-1).await),
        CoordinationFailure::Mismatch
    );
    Ok(())
}

/// A proxy before the server of this address, and the address that leads through it.
async fn through_proxy(url: &str) -> Outcome<(Proxy, String)> {
    let address = url.trim_start_matches("redis://").trim_end_matches('/');
    let address: SocketAddr = address.parse()?;
    let proxy = Proxy::start(address).await?;
    let through = format!("redis://127.0.0.1:{}/", proxy.port());
    Ok((proxy, through))
}

/// F16: the numbers of an answer that nobody heard are never used.
async fn lost_answer(url: String) -> Outcome {
    let (proxy, through) = through_proxy(&url).await?;
    let key = own_name("lost-answer");
    // Each with a connection of its own.
    let reserve = async || {
        let counter = RedisCounter::new(threads(&through), &key);
        let reserved = tokio::task::spawn_blocking(move || {
            SegmentSource::reserve(&counter, 10.try_into().expect("ten"))
        });
        reserved.await.expect("a thread")
    };
    RedisCounter::new(connect(&url).await?, &key)
        .create(1_000)
        .await?;
    // The first loads the script; the second says what a reservation takes.
    assert_eq!(reserve().await?.first(), Some(1_000));
    assert_eq!(reserve().await?.first(), Some(1_010));
    let answer = "$4\r\n1010\r\n".len() as u64;
    proxy.plan([Fault::Swallow(proxy.last_traffic().down - answer)]);
    let lost = reserve().await;
    assert_eq!(failure(lost), CoordinationFailure::Unavailable);
    // They are a gap.
    assert_eq!(reserve().await?.first(), Some(1_030));
    Ok(())
}

/// F16 of a renewal: whoever asked cannot know, and is refused.
async fn lost_renewal(url: String) -> Outcome {
    let (proxy, through) = through_proxy(&url).await?;
    // The answer before the last has a time in it, whose length varies: then the question is lost.
    for attempt in 0..20 {
        let key = own_name(&format!("lost-renewal-{attempt}"));
        let lease = RedisLease::new(connect(&url).await?, &key, short(1));
        lease.create(Timestamp::MIN).await?;
        let grant = AsyncNodeAllocator::acquire(&lease, now(), None).await?;
        // Each with a connection of its own.
        let renew = async |grant: Grant, millis| {
            let lease = RedisLease::new(threads(&through), &key, short(1));
            let at = later(grant.floor(), millis);
            let renewed =
                tokio::task::spawn_blocking(move || NodeAllocator::renew(&lease, &grant, at));
            renewed.await.expect("a thread")
        };
        // Loads the scripts; the second says what a renewal takes.
        let grant = renew(grant, 10).await?;
        let grant = renew(grant, 20).await?;
        let answer = ":2\r\n".len() as u64;
        proxy.plan([Fault::Swallow(proxy.last_traffic().down - answer)]);
        let lost = renew(grant, 30).await;
        assert_eq!(failure(lost), CoordinationFailure::Unavailable);

        let again = renew(grant, 40).await;
        let moved = again.is_err();
        if moved {
            assert_eq!(failure(again), CoordinationFailure::Fenced);
        }
        // Whoever comes next begins behind what was granted unheard.
        let next = acquire_when_free(&lease, grant.floor()).await;
        assert_eq!(
            next.floor(),
            later(grant.ceiling(), if moved { 10 } else { 20 })
        );
        if moved {
            return Ok(());
        }
    }
    Err("no renewal was lost".into())
}

/// F16 of an acquisition: nobody makes keys of the time that was granted unheard.
async fn lost_grant(url: String) -> Outcome {
    let (proxy, through) = through_proxy(&url).await?;
    // As in `lost_renewal`.
    for attempt in 0..20 {
        let key = own_name(&format!("lost-grant-{attempt}"));
        let lease = RedisLease::new(connect(&url).await?, &key, short(1));
        lease.create(Timestamp::MIN).await?;
        let acquire = async |at| {
            let lease = RedisLease::new(threads(&through), &key, short(1));
            let acquired =
                tokio::task::spawn_blocking(move || NodeAllocator::acquire(&lease, at, None));
            acquired.await.expect("a thread")
        };
        for _ in 0..2 {
            let grant = acquire(now()).await?;
            AsyncNodeAllocator::release(&lease, &grant, None).await?;
        }
        let answer = ":2\r\n".len() as u64;
        proxy.plan([Fault::Swallow(proxy.last_traffic().down - answer)]);
        let at = now();
        let lost = acquire(at).await;
        assert_eq!(failure(lost), CoordinationFailure::Unavailable);
        let held = AsyncNodeAllocator::acquire(&lease, at, None).await;
        if held.is_err() {
            assert_eq!(failure(held), CoordinationFailure::NoFreeNode);
            let next = acquire_when_free(&lease, earlier(at, 5_000)).await;
            assert_eq!(next.floor(), later(at, 300));
            return Ok(());
        }
    }
    Err("no grant was lost".into())
}

async fn copies(url: String) -> Outcome {
    let key = own_name("copies");
    let one = RedisLease::new(connect(&url).await?, &key, long(4));
    one.create(Timestamp::MIN).await?;
    let other = RedisLease::new(connect(&url).await?, &key, long(4));
    the_first_copy_to_renew_goes_on(&one, &other).await
}

async fn numbers(url: String) -> Outcome {
    let key = own_name("numbers");
    let counter = RedisCounter::new(connect(&url).await?, &key);
    assert!(counter.create(7).await?);
    assert!(!counter.create(1).await?, "it is there");
    let make = async || RedisCounter::new(connect(&url).await.expect("Redis"), &key);
    numbers_come_once(make, 7, 50, &[1, 1_000, 3]).await
}

async fn count_ends(url: String) -> Outcome {
    let connection = connect(&url).await?;
    let counter = RedisCounter::new(connection, own_name("ends"));
    counter.create(i64::MAX - 5).await?;
    a_count_ends(&counter).await
}

async fn blocking(url: String) -> Outcome {
    let done = tokio::task::spawn_blocking(move || {
        let connection = threads(&url);
        let one = 1.try_into()?;
        let lease = RedisLease::new(connection.clone(), own_name("blocking"), long(2));
        assert!(lease.create(Timestamp::MIN)? && !lease.create(now())?);
        let grant = NodeAllocator::acquire(&lease, now(), None)?;
        let grant = NodeAllocator::renew(&lease, &grant, later(now(), 1_000))?;
        NodeAllocator::release(&lease, &grant, None)?;
        let renewed = NodeAllocator::renew(&lease, &grant, now());
        assert_eq!(failure(renewed), CoordinationFailure::CeilingRegressed);

        let key = own_name("blocking-count");
        let counter = RedisCounter::new(connection, &key);
        assert!(counter.create(5)? && !counter.create(1)?);
        assert_eq!(SegmentSource::reserve(&counter, one)?.first(), Some(5));
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
    });
    done.await?
}

/// F2: gone while a node is held, and back with what it had.
async fn away(mut server: Server) -> Outcome {
    let manager = ConnectionManager::new(Client::open(server.url())?).await?;
    let lease = RedisLease::new(manager.clone(), "lease", long(1));
    lease.create(Timestamp::MIN).await?;
    let counter = RedisCounter::new(manager, "count");
    counter.create(1).await?;
    let grant = AsyncNodeAllocator::acquire(&lease, now(), None).await?;
    counter.reserve(10.try_into()?).await?;
    server.kill()?;
    for _ in 0..2 {
        let renewed = AsyncNodeAllocator::renew(&lease, &grant, now()).await;
        assert_eq!(failure(renewed), CoordinationFailure::Unavailable);
        let reserved = counter.reserve(10.try_into()?).await;
        assert_eq!(failure(reserved), CoordinationFailure::Unavailable);
    }
    server.restart()?;
    // The first questions may still go to the connection that was lost.
    let start = Instant::now();
    let renewed = loop {
        match AsyncNodeAllocator::renew(&lease, &grant, later(grant.floor(), 1_000)).await {
            Ok(renewed) => break renewed,
            Err(error) => {
                let unavailable = Some(CoordinationFailure::Unavailable);
                assert_eq!(error.coordination_failure(), unavailable, "{error}");
                assert!(
                    start.elapsed() < PATIENCE,
                    "it does not connect anew: {error}"
                );
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    };
    assert_eq!(renewed.epoch(), grant.epoch());
    assert!(renewed.ceiling() > grant.ceiling());
    assert!(counter.reserve(10.try_into()?).await?.first() >= Some(11));
    Ok(())
}

async fn keys_end(server: Server) -> Outcome {
    let manager = ConnectionManager::new(Client::open(server.url())?).await?;
    let lease = RedisLease::new(manager, "lease", seconds(1));
    lease.create(Timestamp::MIN).await?;
    keys_end_at_the_ceiling(lease, server).await
}

/// F13: killed, and started without what it had.
async fn without_data(mut server: Server) -> Outcome {
    let lease = RedisLease::new(connect(&server.url()).await?, "lease", long(1));
    lease.create(Timestamp::MIN).await?;
    let grant = AsyncNodeAllocator::acquire(&lease, now(), None).await?;
    let counter = RedisCounter::new(connect(&server.url()).await?, "count");
    counter.create(1).await?;
    counter.reserve(10.try_into()?).await?;

    server.kill()?;
    std::fs::remove_dir_all(server.folder().join("data/appendonlydir"))?;
    server.restart()?;
    let lease = RedisLease::new(connect(&server.url()).await?, "lease", long(1));
    let acquired = AsyncNodeAllocator::acquire(&lease, now(), None).await;
    assert_eq!(failure(acquired), CoordinationFailure::StateLost);
    let renewed = AsyncNodeAllocator::renew(&lease, &grant, now()).await;
    assert_eq!(failure(renewed), CoordinationFailure::StateLost);
    let released = AsyncNodeAllocator::release(&lease, &grant, None).await;
    assert_eq!(failure(released), CoordinationFailure::StateLost);
    let counter = RedisCounter::new(connect(&server.url()).await?, "count");
    for _ in 0..2 {
        let reserved = counter.reserve(10.try_into()?).await;
        assert_eq!(failure(reserved), CoordinationFailure::StateLost);
    }

    // Somebody says from where.
    let floor = later(grant.ceiling(), 1);
    assert!(lease.create(floor).await?);
    let renewed = AsyncNodeAllocator::renew(&lease, &grant, now()).await;
    assert_eq!(failure(renewed), CoordinationFailure::CeilingRegressed);
    let next = AsyncNodeAllocator::acquire(&lease, earlier(now(), 60_000), None).await?;
    assert_eq!(next.floor(), floor);
    counter.create(1_000).await?;
    assert_eq!(counter.reserve(1.try_into()?).await?.first(), Some(1_000));
    Ok(())
}

/// F15: a replica that had not heard of the last renewal takes over.
async fn lagging(server: Server) -> Outcome {
    let copy = tokio::task::spawn_blocking(ordid_harness::redis).await??;
    let (mut first, mut second) = (connect(&server.url()).await?, connect(&copy.url()).await?);
    let lease = RedisLease::new(first.clone(), "lease", long(1));
    lease.create(Timestamp::MIN).await?;
    let grant = AsyncNodeAllocator::acquire(&lease, now(), None).await?;
    let replicate = async |connection: &mut MultiplexedConnection, host: &str, port: &str| {
        let mut replicate = cmd("REPLICAOF");
        replicate.arg(host).arg(port);
        replicate.exec_async(connection).await
    };
    replicate(&mut second, "127.0.0.1", &server.port().to_string()).await?;
    let start = Instant::now();
    let has = async |connection: &mut MultiplexedConnection| {
        cmd("EXISTS")
            .arg("lease")
            .query_async::<bool>(connection)
            .await
    };
    while !has(&mut second).await? {
        assert!(start.elapsed() < ENDLESS, "the copy gets nothing");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(has(&mut first).await?);
    // A replica takes no writes, and is no store.
    let lease_of_copy = RedisLease::new(second.clone(), "lease", long(1));
    let renewed = AsyncNodeAllocator::renew(&lease_of_copy, &grant, later(now(), 1_000)).await;
    assert_eq!(failure(renewed), CoordinationFailure::Unavailable);

    replicate(&mut second, "NO", "ONE").await?;
    let renewed = AsyncNodeAllocator::renew(&lease, &grant, later(grant.floor(), 1_000)).await?;
    let stale = AsyncNodeAllocator::renew(&lease_of_copy, &renewed, now()).await;
    assert_eq!(failure(stale), CoordinationFailure::CeilingRegressed);
    Ok(())
}
